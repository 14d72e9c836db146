"""An engine of compiled lanes, each of which one thread trains from start to end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Generic, TypeVar

from rgr_dist.engines.api import BlockWeights, Outcome, Weights
from rgr_dist.study.cell import Run

Result = TypeVar("Result")
W = TypeVar("W", Weights, BlockWeights)


class SideBySide(ABC, Generic[W]):
    """Trains each lane by itself, in compiled code, on so many threads."""

    name = "fused"

    def __init__(self, threads: int = 1) -> None:
        if threads < 1:
            raise ValueError(f"threads: {threads}; give at least 1")
        self.threads = threads

    @abstractmethod
    def train_lane(self, run: Run, budgets: Sequence[int] = ()) -> list[Outcome]:
        """Train a run until it stops: its outcome at each budget and at its end.

        ``seconds`` is its own time, without compiling.
        """

    @abstractmethod
    def weights_of(self, run: Run, steps: int) -> W:
        """The weights of a run after so many steps, without checks or stopping."""

    def train(self, runs: Sequence[Run]) -> list[Outcome]:
        """Train every run until it stops, test it, and return the outcomes in order."""
        return [outcome for (outcome,) in self.train_through(runs, ())]

    def train_through(self, runs: Sequence[Run], budgets: Sequence[int]) -> list[list[Outcome]]:
        """Train every run, and tell how it would have ended at smaller step limits too.

        The seconds of each are its share of the time that threads share.
        """
        ends = self._map(lambda run: self.train_lane(run, budgets), runs)
        side_by_side = max(1, min(self.threads, len(runs)))
        return [
            [replace(outcome, seconds=outcome.seconds / side_by_side) for outcome in outcomes]
            for outcomes in ends
        ]

    def weights_after(self, runs: Sequence[Run], steps: int) -> list[W]:
        """The weights after so many steps, without checks or stopping."""
        return self._map(lambda run: self.weights_of(run, steps), runs)

    def _map(self, work: Callable[[Run], Result], runs: Sequence[Run]) -> list[Result]:
        if self.threads == 1 or len(runs) < 2:
            return [work(run) for run in runs]
        with ThreadPoolExecutor(min(self.threads, len(runs))) as pool:
            return list(pool.map(work, runs))
