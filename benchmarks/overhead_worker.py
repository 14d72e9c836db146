"""What a worker of overhead.py does, in a process of its own: it prints one JSON object.

    python benchmarks/overhead_worker.py idle
    python benchmarks/overhead_worker.py start ENGINE LANES M D_MODEL H D_K
    python benchmarks/overhead_worker.py train ENGINE LANES M D_MODEL H D_K STEPS
    python benchmarks/overhead_worker.py run ENGINE LANES M D_MODEL H D_K

It imports no more than what is measured needs.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rgr_dist.study.run import Run

FULL_CHECKS = 3
"""Checks that are scored to the end, after those that may end early."""


def peak_mib() -> float:
    """The most memory that this process has had resident."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss begins at what the parent had
        words = status.read_text().split()
        return int(words[words.index("VmHWM:") + 1]) / 2**10
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def make_runs(lanes: int, m: int, d_model: int, h: int, D_K: int, **training: int) -> list[Run]:
    """Runs with the paper's protocol except for what is given, one for each seed."""
    from rgr_dist.study.cell import Cell
    from rgr_dist.study.run import Run
    from rgr_dist.study.training import Training

    cell = Cell(m=m, d_model=d_model, training=Training(**training))
    return [Run(cell=cell, h=h, d_k=D_K // h, seed=seed) for seed in range(lanes)]


def idle() -> dict[str, Any]:
    """A worker that has only imported torch."""
    import torch

    torch.set_num_threads(1)
    return {"peak_mib": peak_mib()}


def start(engine: str, *sizes: int) -> dict[str, Any]:
    """A worker until its first training step; says when that was done."""
    from rgr_dist.engines.choose import make_engine

    make_engine(engine).weights_after(make_runs(*sizes), 1)
    return {"at": time.time()}


def train(engine: str, *sizes_and_steps: int) -> dict[str, Any]:
    """A worker that trains, checks and tests; seconds are medians, of steps and of checks."""
    *sizes, steps = sizes_and_steps
    runs = make_runs(*sizes)
    training = runs[0].cell.training
    advance, check, test = (fused_parts if engine == "fused" else lanes_parts)(runs)
    advance(1)
    check(training.stop_score)  # the first also loads what is compiled, and prepares
    between, checks, full = [], [], []
    for _ in range(max(1, steps // training.check_every)):
        between.append(seconds(lambda: advance(training.check_every)))
        checks.append(seconds(lambda: check(training.stop_score)))
    for _ in range(FULL_CHECKS):
        advance(1)
        full.append(seconds(lambda: check(None)))
    test()
    return {
        "peak_mib": peak_mib(),
        "training": statistics.median(between),
        "check": statistics.median(checks),
        "full_check": statistics.median(full),
    }


def run(engine: str, *sizes: int) -> dict[str, Any]:
    """A worker that trains whole runs; seconds in total, and seconds spent in checks and tests."""
    import torch

    from rgr_dist.engines.choose import make_engine
    from rgr_dist.engines.fused.evaluation import F1ByContexts, F1ByPairs, F1Scorer
    from rgr_dist.engines.fused.lane import Lane
    from rgr_dist.engines.lanes.evaluation import Evaluation
    from rgr_dist.engines.lanes.state import Lanes

    torch.set_num_threads(1)
    make_engine(engine).train(make_runs(*sizes, max_steps=2))  # loads what is compiled
    spent: list[float] = []
    evaluation = {
        "fused": (
            (Lane, "is_finite"),
            *((scorer, "__init__") for scorer in (F1ByContexts, F1ByPairs)),
            (F1Scorer, "score"),
        ),
        "lanes": ((Lanes, "is_finite"), (Evaluation, "validate"), (Evaluation, "outcomes")),
    }
    for owner, name in evaluation[engine]:
        setattr(owner, name, noting_seconds(getattr(owner, name), spent))
    runs = make_runs(*sizes)
    total = seconds(lambda: make_engine(engine).train(runs))
    return {"total": total, "evaluation": sum(spent)}


def noting_seconds(function: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    """The function, wrapped to note how long each call took."""

    def timed(*args: Any, **options: Any) -> Any:
        started = time.perf_counter()
        result = function(*args, **options)
        spent.append(time.perf_counter() - started)
        return result

    return timed


Parts = tuple[Callable[[int], object], Callable[[float | None], object], Callable[[], object]]


def fused_parts(runs: list[Run]) -> Parts:
    """Steps, check and test of the one lane that a thread has at a time."""
    from rgr_dist.engines.fused.evaluation import make_scorer
    from rgr_dist.engines.fused.lane import Lane

    lane = Lane(runs[0])
    validation = make_scorer(lane, lane.task.validation, often=True)
    return (
        lane.advance,
        lambda above: (lane.is_finite(), validation.score(above)),
        lambda: make_scorer(lane, lane.task.test).score(),
    )


def lanes_parts(runs: list[Run]) -> Parts:
    """Steps, check and test of lanes that advance together."""
    import torch

    torch.set_num_threads(1)

    from rgr_dist.engines.lanes.evaluation import Evaluation
    from rgr_dist.engines.lanes.state import Lanes

    lanes = Lanes(runs, torch.device("cpu"), torch.float32)
    evaluation, every = Evaluation(lanes), range(len(runs))
    return (
        lanes.advance,
        lambda above: (lanes.is_finite(), [evaluation.validate(lane, above) for lane in every]),
        lambda: [evaluation.score(lane, lanes.tasks[lane].test) for lane in every],
    )


def seconds(work: Callable[[], object]) -> float:
    """How long something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    role, *arguments = sys.argv[1:]
    if role == "idle":
        answer = idle()
    else:
        engine, *numbers = arguments
        answer = {"start": start, "train": train, "run": run}[role](engine, *map(int, numbers))
    print(json.dumps(answer))
