"""The state of one run of model ``transformer`` in compiled training, and its steps."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from rgr_dist.engines.api import Lane, Outcome, Weights
from rgr_dist.engines.checks import StopReason
from rgr_dist.engines.fused.block.step import Arrays, Parts, Sizes, Workspace, train_block
from rgr_dist.engines.fused.simd import WIDTH, padded
from rgr_dist.engines.fused.simd_memory import zeros
from rgr_dist.engines.schedule import adamw_factors
from rgr_dist.problem.matching_task import D_FF, Examples, MatchingTask, initial_block
from rgr_dist.study.run import Run

BATCHES = 32
"""Batches that are drawn at once."""
INPUTS_FIRST = ("W_O", "W_2")
"""Matrices that keep a row for each input; the others are transposed."""


class BlockLane(Lane):
    """One run in training.

    Attributes:
        best: the best validation accuracy so far, and ``best_theta`` its parameters.
    """

    def __init__(self, run: Run) -> None:
        cell = run.cell
        self.run, self.task, self.steps = run, MatchingTask.of(cell, run.seed), 0
        h, d, n, V, D = run.h, cell.d_model, cell.context.length + 2, cell.m + 1, run.D_K
        E, f = padded(d, WIDTH), D_FF
        self.sizes = sizes = Sizes(h, run.d_k, d // h, d, E, n, f, V)
        rows = {"W_V": d, "W_O": d, "W_1": f, "W_2": f, "W_Q": D, "W_K": D}
        lengths = {name: count * E for name, count in rows.items()}
        lengths |= {"b_1": padded(f, WIDTH), "b_2": E}
        ends = np.cumsum([lengths[name] for name in Parts._fields]).tolist()
        theta, first, second, gradient = (zeros(ends[-1]) for _ in range(4))
        parts, d_parts = (Parts(*np.split(one, ends[:-1])) for one in (theta, gradient))
        table = zeros(V, E)
        table.reshape(V, E)[:, :d] = self.task.table
        self.theta = theta
        work = make_workspace(sizes)
        self.arrays = Arrays(table, theta, first, second, gradient, parts, d_parts, work, sizes)
        for name, value in initial_block(run).items():
            self._views()[name][...] = value
        self.best, self.best_theta = -1.0, theta.copy()

    def _views(self) -> dict[str, npt.NDArray[np.float32]]:
        """The parameters by name, shaped as in the reference: views of ``theta``."""
        d, E, views = self.sizes.d, self.sizes.E, {}
        for name, part in self.arrays.parts._asdict().items():
            if name.startswith("b"):
                views[name] = part[: D_FF if name == "b_1" else d]
            else:
                matrix = part.reshape(-1, E)[:, :d]
                views[name] = matrix if name in INPUTS_FIRST else matrix.T
        return views

    def advance(self, steps: int) -> None:
        """Take ``steps`` training steps."""
        training, end = self.run.cell.training, self.steps + steps
        while self.steps < end:
            count = min(BATCHES, end - self.steps)
            factors = adamw_factors(training, self.steps, count).astype(np.float32)
            train_block(self.arrays, self.task.training_batches(self.steps, count), *factors)
            self.steps += count

    def check(self, above: float | None) -> float:
        """The validation accuracy; ``above`` is ignored. Keeps a copy of the best weights."""
        if not np.isfinite(self.theta).all():
            return math.nan
        accuracy, _ = self._score(self.task.validation)
        if accuracy > self.best:
            self.best, self.best_theta = accuracy, self.theta.copy()
        return accuracy

    def outcome(self, stop_reason: StopReason, val_score: float | None) -> Outcome:
        """How the lane ended, tested with its best weights, without its ``seconds``."""
        own = self.theta.copy()
        self.theta[:] = self.best_theta
        score, null_rate = self._score(self.task.test)
        self.theta[:] = own
        return Outcome(
            steps=self.steps,
            stop_reason=stop_reason,
            score=score,
            val_score=self.best,
            null_rate=null_rate,
        )

    def _score(self, examples: Examples) -> tuple[float, float]:
        """Accuracy over examples, and the share that was answered with NULL."""
        none = np.zeros(0, dtype=np.float32)
        right, nulls = train_block(self.arrays, examples[np.newaxis], none, none, none)
        return int(right) / len(examples), int(nulls) / len(examples)

    def weights(self) -> Weights:
        """A copy of the weights by name."""
        return {name: view.copy() for name, view in self._views().items()}


def make_workspace(sizes: Sizes) -> Workspace:
    """The buffers for sixteen examples."""
    h, d, E, n, f = sizes.h, sizes.d, sizes.E, sizes.n, sizes.f
    features = {
        **dict.fromkeys(("Q", "dQ"), h * sizes.k),
        **dict.fromkeys(("R", "dR", "mixed", "d_mixed"), h * E),
        **dict.fromkeys(("P", "dP"), h * n),
        **dict.fromkeys(("heads", "d_heads"), d),
        **dict.fromkeys(("hidden", "active", "d_active"), f),
        "Z": n * E,
        "logits": sizes.V,
        "inverse": 1,
    }
    return Workspace(*(zeros(features.get(name, E), WIDTH) for name in Workspace._fields))
