"""What the benchmarks printed, as ``docs/results`` keeps it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "results"
"""``NAME.json`` is what ``python benchmarks/NAME.py --format json`` printed."""


@cache
def printed(benchmark: str) -> dict[str, Any]:
    """The tables of a benchmark by their names, and its facts."""
    result: dict[str, Any] = json.loads((FOLDER / f"{benchmark}.json").read_text("utf-8"))
    return result
