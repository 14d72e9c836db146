"""Independent runs on threads: one thread trains a run from start to end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from rgr_dist.engines.api import Outcome
from rgr_dist.study.cell import Run

Result = TypeVar("Result")


def map_runs(work: Callable[[Run], Result], runs: Sequence[Run], threads: int) -> list[Result]:
    """What some work makes of each run, in order, on so many threads."""
    if threads == 1 or len(runs) < 2:
        return [work(run) for run in runs]
    with ThreadPoolExecutor(min(threads, len(runs))) as pool:
        return list(pool.map(work, runs))


def train_side_by_side(
    train: Callable[[Run], list[Outcome]], runs: Sequence[Run], threads: int
) -> list[list[Outcome]]:
    """The outcomes of each run, whose seconds are its share of the time that threads share."""
    ends = map_runs(train, runs, threads)
    side_by_side = max(1, min(threads, len(runs)))
    return [
        [replace(outcome, seconds=outcome.seconds / side_by_side) for outcome in outcomes]
        for outcomes in ends
    ]
