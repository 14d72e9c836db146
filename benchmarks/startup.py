"""How long a command keeps its user waiting, on two quiet cores.

    python benchmarks/startup.py [--study quickstart] [--repeats 5] [--format table|json|csv]

The commands take turns, each in a process of its own; caches of compiled code are warm from a first
round that is not counted. ``run, empty store`` trains the whole study with a store of its own each
time; ``run, unchanged`` and ``thresholds`` have one that is finished. ``python`` and ``import ray``
are what nothing of ours could be faster than. Seconds of wall time; ``aim`` is the most we want.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How

RGR = "from rgr_dist.cli import main; main()"
AIMS = {"help": 0.4, "thresholds": 1.0, "run, unchanged": 3.0, "run, empty store": 22.0}


def seconds(*arguments: str) -> float:
    """How long Python takes for a command."""
    before = time.perf_counter()
    subprocess.run([sys.executable, "-c", *arguments], capture_output=True, check=True)
    return time.perf_counter() - before


def main(
    study: Annotated[str, typer.Option(help="Which study.")] = "quickstart",
    repeats: Annotated[int, typer.Option(min=1, help="Rounds that count.")] = 5,
    how: How = Format.TABLE,
) -> None:
    """Print the median, least and largest time of each command."""
    with tempfile.TemporaryDirectory() as folder:
        done = str(Path(folder, "done"))
        seconds(RGR, "run", study, "--out", done)
        commands = {
            "python": ("pass",),
            "import ray": ("import ray",),
            "help": (RGR, "--help"),
            "thresholds": (RGR, "thresholds", study, "--out", done),
            "run, unchanged": (RGR, "run", study, "--out", done),
        }
        times: dict[str, list[float]] = {name: [] for name in (*commands, "run, empty store")}
        for turn in range(repeats + 1):
            taken = {name: seconds(*command) for name, command in commands.items()}
            empty = str(Path(folder, f"empty-{turn}"))
            taken["run, empty store"] = seconds(RGR, "run", study, "--out", empty)
            if turn:
                for name, value in taken.items():
                    times[name].append(value)
    rows = [
        {
            "command": name,
            "seconds": round(statistics.median(values), 2),
            "least": round(min(values), 2),
            "largest": round(max(values), 2),
            "aim": AIMS.get(name),
        }
        for name, values in times.items()
    ]
    print_listing({"rows": rows}, how)


if __name__ == "__main__":
    typer.run(main)
