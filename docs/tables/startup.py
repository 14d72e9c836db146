"""How long a command keeps its user waiting, from what the benchmark printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tables.markdown import table

RESULTS = Path(__file__).parent.parent / "results" / "startup.json"
"""What ``python benchmarks/startup.py --format json`` printed."""

COMMANDS = {
    "help": "`rgr --help`",
    "thresholds": "`rgr thresholds quickstart`",
    "run, unchanged": "`rgr run quickstart`, with nothing left to train",
    "run, empty store": "`rgr run quickstart`, from an empty store",
    "import ray": "`import ray` in Python alone",
}


def printed() -> dict[str, Any]:
    """The benchmark's rows and facts."""
    result: dict[str, Any] = json.loads(RESULTS.read_text("utf-8"))
    return result


def waits() -> str:
    """A table of the commands."""
    rows = {row["command"]: row for row in printed()["rows"]}
    return table(
        ["command", "seconds", "processor time of its own, s"],
        [
            [said, f"{rows[name]['seconds']:g}", f"{rows[name]['processor']:g}"]
            for name, said in COMMANDS.items()
        ],
    )


def quickstart() -> str:
    """Seconds of ``rgr run quickstart`` from an empty store, its kernels compiled."""
    rows = {row["command"]: row for row in printed()["rows"]}
    return f"{rows['run, empty store']['seconds']:.0f}"


def load() -> str:
    """How many programs wanted a core before."""
    return f"{printed()['load']:.1f}"


PIECES: dict[str, Callable[[], str]] = {
    "startup": waits,
    "startup load": load,
    "startup quickstart": quickstart,
}
