"""What the pages of other made-up studies say: their sections, and D_K* and h* by value."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.analysis.pages.conftest import Made

END = ["cost", "protocol", "provenance", "repeat", "files"]
BEST = ["m", "d_model", "degree", "max_steps", "D_K", "D_K_low", "D_K_high"]
BEST += ["h_star", "h_low", "h_high", "status"]

SECTIONS = {
    "unfinished": ["law", "cells", "heads", "transitions", "laws", "agreement", *END],
    "step-limits": [
        *["training-time", "law", "cells", "heads", "transitions", "laws", "agreement"],
        *END,
    ],
    "grid": ["transitions", "law", "cells", "heads", "laws", *END],
    "dense": ["law", "cells", "heads", "transitions", "laws", "agreement", *END],
    "messages": ["law", "cells", "heads", "transitions", "laws", "agreement", *END],
    "side-by-side": ["cells", "laws", "differences", "files"],
    "transformers-side-by-side": ["splits", "differences", "files"],
}
TABLES: dict[str, list[tuple[Any, ...]]] = {
    "unfinished": [
        (64, 16, 1, 20_000, None, 1, None, None, None, None, "open"),
        (64, 32, 1, 20_000, None, 1, None, None, None, None, "open"),
        (128, 16, 1, 20_000, None, 1, None, None, None, None, "open"),
        (128, 32, 1, 20_000, None, 1, None, None, None, None, "open"),
        (256, 32, 1, 20_000, 80, 76, 84, 2, 1, 4, "found"),
    ],
    "step-limits": [
        (64, 16, 1, 5_000, 40, 26, 42, 1, 1, 2, "found"),
        (64, 16, 1, 20_000, 31, 20, 33, 1, 1, 2, "found"),
        (64, 16, 1, 80_000, 27, 18, 28, 1, 1, 2, "found"),
        (64, 16, 1, 320_000, 25, 16, 26, 1, 1, 2, "found"),
        (128, 16, 1, 5_000, 88, 60, 96, 4, 2, 4, "found"),
        (128, 16, 1, 20_000, 68, 48, 76, 4, 2, 4, "found"),
        (128, 16, 1, 80_000, 60, 40, 64, 4, 2, 4, "found"),
        (128, 16, 1, 320_000, 56, 36, 60, 4, 2, 8, "found"),
    ],
    "grid": [
        (64, 16, 1, 80_000, 32, 24, 32, 1, 1, 2, "found"),
        (64, 32, 1, 80_000, 16, 16, 16, 1, 1, 8, "found"),
    ],
    "dense": [
        (64, 32, 1, 20_000, 15, 10, 16, 1, 1, 1, "found"),
        (64, 32, 2, 20_000, 30, 20, 32, 1, 1, 1, "found"),
        (64, 32, 4, 20_000, 63, 38, 68, 1, 1, 4, "found"),
        (64, 32, 8, 20_000, 124, 80, 140, 4, 2, 8, "found"),
    ],
    "messages": [
        (64, 16, 1, 20_000, 32, 28, 34, 1, 1, 2, "found"),
        (64, 32, 1, 20_000, 16, 14, 17, 1, 1, 8, "found"),
    ],
}


@pytest.mark.parametrize("name", SECTIONS)
def test_a_page_has_its_sections_and_its_cells(
    name: str, tmp_path: Path, made: Callable[[str], Made]
) -> None:
    page, files, _ = made(name)
    assert re.findall(r'<section id="([\w-]+)"', page) == SECTIONS[name]
    if name in TABLES:
        (tmp_path / "best.csv").write_bytes(files["best.csv"])
        best = pd.read_csv(tmp_path / "best.csv").astype("object")
        rows = best.where(best.notna(), None)[BEST].itertuples(index=False, name=None)
        assert list(rows) == TABLES[name]
    for row in TABLES[name] if name == "step-limits" else ():  # in those of cells, heads and cost
        assert page.count(f", {row[3]:,} steps)") >= 3
