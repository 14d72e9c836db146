"""The state of one run of model ``facts`` in compiled training, and its steps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rgr_dist.engines.api import Outcome, StopReason, Weights, padded
from rgr_dist.engines.facts_outcome import facts_outcome
from rgr_dist.engines.fused.facts.step import Arrays, Parts, Sizes, Workspace, train_facts
from rgr_dist.engines.fused.simd import WIDTH
from rgr_dist.engines.fused.simd_memory import zeros
from rgr_dist.engines.schedule import adamw_factors
from rgr_dist.problem.facts_task import FactsTask, initial_facts, trained_names
from rgr_dist.study.cell import Cell
from rgr_dist.study.database import Function
from rgr_dist.study.run import Run
from rgr_dist.study.training import Training

BLOCK = 256
"""The most steps of one call of the kernel."""


class FactsLane:
    """One run in training.

    Attributes:
        steps: training steps done.
    """

    def __init__(self, run: Run) -> None:
        cell = run.cell
        assert run.d_vo is not None
        self.run, self.task, self.steps = run, FactsTask.of(cell, run.seed), 0
        keys, queries, values = self.task.shape
        K, Q, V, d = (padded(size, WIDTH) for size in (keys, queries, values, cell.d_model))
        h, c, v, T, D = run.h, run.d_k, run.d_vo, K + Q, run.h * (2 * run.d_k + run.d_vo)
        lengths = {"X": d * T, "W": D * d, "W_O": h * v * d, "U": d * V}
        ends = np.cumsum(list(lengths.values())).tolist()
        trained = trained_names(cell)
        sizes = Sizes(
            h, c, v, K, Q, V, d, T, queries, values, cell.facts.residual,
            first=0 if "X_K" in trained else ends[0],
            last=ends[3] if "U" in trained else ends[2],
        )  # fmt: skip
        theta, first, second, gradient = (zeros(ends[3]) for _ in range(4))
        parts, d_parts = (Parts(*np.split(one, ends[:3])) for one in (theta, gradient))
        work = Workspace(
            X_t=zeros(T, d),
            U_t=zeros(V, d),
            P=zeros(D, T),
            dP=zeros(D, T),
            C=zeros(h * v, V),
            dC=zeros(h * v, V),
            A=zeros(h, Q, K),
            dA=zeros(h, Q, K),
            L_V=zeros(h, T, V),
            dL_V=zeros(h, T, V),
            L_E=zeros(Q, V),
            dL_E=zeros(Q, V),
            L_t=zeros(V, T),
            row=zeros(V),
            number=np.arange(V, dtype=np.float32),
            is_value=zeros(V),
        )
        work.is_value[:values] = 1
        self.theta = theta
        self.arrays = Arrays(theta, first, second, gradient, parts, d_parts, work, sizes)
        for name, value in initial_facts(run).items():
            self._views()[name][...] = value
        self._epoch = -1, self.task.triples

    def _views(self) -> dict[str, npt.NDArray[np.float32]]:
        """The parameters by name, shaped as in the reference: views of ``theta``."""
        s, parts = self.arrays.sizes, self.arrays.parts
        keys, queries, values = self.task.shape
        d, key_rows, shared = self.run.cell.d_model, s.h * s.c, s.h * (s.c + s.v)
        X = parts.X.reshape(s.d, s.T)[:d]
        W = parts.W.reshape(-1, s.d)[:, :d]
        return {
            "X_K": X[:, :keys].T,
            "X_Q": X[:, s.K : s.K + queries].T,
            "W_Q": W[shared:].T,
            "W_K": W[:key_rows].T,
            "W_V": W[key_rows:shared].T,
            "W_O": parts.W_O.reshape(-1, s.d)[:, :d],
            "U": parts.U.reshape(s.d, s.V)[:d, :values],
        }

    def advance(self, steps: int) -> None:
        """Take ``steps`` training steps."""
        training, end = self.run.cell.training, self.steps + steps
        while self.steps < end:
            batches = self._batches(min(BLOCK, end - self.steps))
            count = len(batches[1])
            rates, roots, decays = adamw_factors(training, self.steps, count).astype(np.float32)
            tau = self.run.cell.facts.tau
            train_facts(self.arrays, *batches, rates, roots, decays, tau)
            self.steps += count

    def _batches(
        self, most: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The next batches, at most ``most`` and of one epoch: triples, begin and end of each."""
        task, n = self.task, len(self.task.triples)
        if task.batches_per_epoch == 1:
            return task.triples, np.zeros(most, dtype=np.int64), np.full(most, n)
        epoch, part = divmod(self.steps, task.batches_per_epoch)
        if self._epoch[0] != epoch:
            self._epoch = epoch, task.epoch(epoch)
        size = task.cell.training.batch_size or n
        begins = size * np.arange(part, min(part + most, task.batches_per_epoch))
        return self._epoch[1], begins, np.minimum(begins + size, n)

    def is_finite(self) -> bool:
        """Whether every parameter is finite."""
        return bool(np.isfinite(self.theta).all())

    def accuracies(self) -> dict[str, float]:
        """The shares of the triples that are right by argmax and by softmax≥tau."""
        triples, tau = self.task.triples, self.run.cell.facts.tau
        whole, none = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        right = train_facts(self.arrays, triples, whole, whole, none, none, none, tau)
        return dict(zip(("argmax", "softmax"), (int(n) / len(triples) for n in right), strict=True))

    def check(self, above: float | None) -> float:
        """The accuracy by which the run is judged; ``above`` is ignored."""
        return self.accuracies()[self.run.cell.facts.score]

    def outcome(self, stop_reason: StopReason, val_score: float | None) -> Outcome:
        """How the lane ended, with what its layer knows but without its ``seconds``."""
        known = self.weights(), self.accuracies()
        return facts_outcome(self.task, self.run, *known, self.steps, stop_reason)

    def weights(self) -> Weights:
        """A copy of the weights by name."""
        return {name: view.copy() for name, view in self._views().items()}

    @staticmethod
    def brief_runs(run: Run) -> list[Run]:
        """A short run that uses every kernel."""
        database = Function(family="function", keys=2, queries=2, values=2)
        brief = Training(max_steps=1, check_every=1)
        cell = Cell(model="facts", m=4, d_model=2, database=database, training=brief)
        return [Run(cell=cell, h=1, d_k=1, d_vo=1, seed=0)]
