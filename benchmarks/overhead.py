"""What a worker costs in addition to its training: checks, memory and start-up time.

    python benchmarks/overhead.py [--format table|json|csv] [--steps 3000]

Each figure comes from fresh processes on one core. ``evaluation_share`` is the share of checks in
the time of steps and checks, with the paper's 500 steps between checks and 500 validation
contexts; ``evaluation_share_full`` is what it would be if every check were scored to the end, as
happens only in a run that is converging. In the second table it is that of whole runs next to a
threshold, where most of a check is needed, and it includes their tests. ``peak_mib_above_idle`` is
the peak of resident memory in training and test, above that of a worker that has only imported
torch. ``startup_seconds`` is from launching the process to the end of its first training step, with
the compiled code in cache.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from cores import pin
from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from throughput import LAYER

WORKER = Path(__file__).with_name("overhead_worker.py")
SHAPES = [shape[:4] for shape in LAYER]
ENGINES = {"fused": 1, "lanes": 10}
"""The engines, with how many lanes each trains at a time in one thread."""
THRESHOLDS = [
    # m, d_model, h, D_K
    (64, 16, 2, 18),
    (256, 32, 4, 52),
    (512, 16, 64, 448),
    (512, 64, 4, 56),
]
"""Probes of the base grid next to their thresholds."""
SEEDS = 10
"""Whole runs of a probe."""
LARGE = 1024
"""From so many items on, a third of the steps are taken."""


def ask_worker(*arguments: object) -> dict[str, Any]:
    """What a fresh worker process answers."""
    command = [sys.executable, str(WORKER), *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def startup_seconds(engine: str, lanes: int, shape: tuple[int, ...], starts: int) -> float:
    """Median time to the first step, after one more start that fills the cache of compiled code."""
    ask_worker("start", engine, lanes, *shape)
    times = []
    for _ in range(starts):
        launched = time.time()
        times.append(ask_worker("start", engine, lanes, *shape)["at"] - launched)
    return statistics.median(times)


def measure(
    engine: str, shape: tuple[int, int, int, int], steps: int, starts: int, idle_mib: float
) -> dict[str, Any]:
    """One row: an engine at a shape."""
    lanes = ENGINES[engine]
    startup = startup_seconds(engine, lanes, shape, starts)
    trained = ask_worker("train", engine, lanes, *shape, steps)

    def share(check: float) -> float:
        return round(check / (check + trained["training"]), 4)

    return {
        "engine": engine,
        **dict(zip(("m", "d_model", "h", "D_K"), shape, strict=True)),
        "lanes": lanes,
        "steps": steps,
        "evaluation_share": share(trained["check"]),
        "evaluation_share_full": share(trained["full_check"]),
        "peak_mib_above_idle": round(trained["peak_mib"] - idle_mib, 1),
        "startup_seconds": round(startup, 2),
    }


def measure_runs(engine: str, probe: tuple[int, int, int, int]) -> dict[str, Any]:
    """One row: whole runs of a probe, with what they spend in checks and tests."""
    spent = ask_worker("run", engine, SEEDS, *probe)
    return {
        "engine": engine,
        **dict(zip(("m", "d_model", "h", "D_K"), probe, strict=True)),
        "runs": SEEDS,
        "seconds": round(spent["total"], 2),
        "evaluation_share": round(spent["evaluation"] / spent["total"], 4),
    }


def main(
    how: How = Format.TABLE,
    steps: Annotated[int, typer.Option(min=500, help="steps of each lane")] = 3000,
    starts: Annotated[int, typer.Option(min=1, help="starts of each engine")] = 5,
    smallest: Annotated[bool, typer.Option("--smallest", help="the smallest shape alone")] = False,
) -> None:
    """Measure evaluation share, memory and start-up of a worker, for each engine and shape."""
    messages = Console(stderr=True)
    pin(1)
    idle_mib = statistics.median(ask_worker("idle")["peak_mib"] for _ in range(starts))
    rows = []
    for shape in [min(SHAPES)] if smallest else SHAPES:
        messages.print(f"(m, d_model, h, D_K) = {shape}")
        taken = max(500, steps // 3) if shape[0] >= LARGE else steps
        rows += [measure(engine, shape, taken, starts, idle_mib) for engine in ENGINES]
    runs = []
    for probe in THRESHOLDS[:1] if smallest else THRESHOLDS:
        messages.print(f"whole runs, (m, d_model, h, D_K) = {probe}")
        runs += [measure_runs(engine, probe) for engine in ENGINES]
    print_listing({"rows": rows, "runs": runs}, how)


if __name__ == "__main__":
    typer.run(main)
