"""How long a command keeps its user waiting, on two quiet cores.

    python benchmarks/startup.py [--study quickstart] [--repeats 5] [--format table|json|csv]

The commands take turns, each in a process of its own; caches of compiled code are warm from a first
round that is not counted. ``run, empty store`` trains the whole study with a store of its own each
time; ``run, unchanged`` and ``thresholds`` use one that is finished. ``python`` and ``import ray``
are lower bounds: no command of ours could be faster. ``seconds`` is wall time; ``processor`` is the
processor time of the process itself, without Ray's processes and the workers; ``aim`` is the most
we want. ``load`` is how many programs wanted a core beforehand: near 0 on quiet cores.
"""

from __future__ import annotations

import os
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
AIMS = {"help": 0.6, "thresholds": 2.0, "run, unchanged": 3.0, "run, empty store": 26.0}


TELL = (
    "import atexit, sys, time; atexit.register(lambda: print(time.process_time(), file=sys.stderr))"
)
"""Registered first, so it runs last: the process itself says how much processor time it took."""


def seconds(script: str, *arguments: str) -> tuple[float, float]:
    """How long Python takes to run a command: wall time, and processor time of its own."""
    began = time.perf_counter()
    command = [sys.executable, "-c", f"{TELL}\n{script}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return time.perf_counter() - began, float(done.stderr.split()[-1])


def main(
    study: Annotated[str, typer.Option(help="Which study.")] = "quickstart",
    repeats: Annotated[int, typer.Option(min=1, help="Rounds that count.")] = 5,
    how: How = Format.TABLE,
) -> None:
    """Print the median, least and largest time of each command."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        done = str(Path(folder, "done"))
        seconds(RGR, "run", study, "--store", done)
        commands = {
            "python": ("pass",),
            "import ray": ("import ray",),
            "help": (RGR, "--help"),
            "thresholds": (RGR, "thresholds", study, "--store", done),
            "run, unchanged": (RGR, "run", study, "--store", done),
        }
        times: dict[str, list[tuple[float, float]]] = {
            name: [] for name in (*commands, "run, empty store")
        }
        for turn in range(repeats + 1):
            taken = {name: seconds(*command) for name, command in commands.items()}
            empty = str(Path(folder, f"empty-{turn}"))
            taken["run, empty store"] = seconds(RGR, "run", study, "--store", empty)
            if turn:
                for name, value in taken.items():
                    times[name].append(value)
    rows = [
        {
            "command": name,
            "seconds": round(statistics.median(wall for wall, _ in values), 2),
            "least": round(min(wall for wall, _ in values), 2),
            "largest": round(max(wall for wall, _ in values), 2),
            "processor": round(statistics.median(own for _, own in values), 2),
            "aim": AIMS.get(name),
        }
        for name, values in times.items()
    ]
    print_listing({"rows": rows}, how, facts={"load": round(load, 2), "rounds": repeats})


if __name__ == "__main__":
    typer.run(main)
