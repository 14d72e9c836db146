"""The state of one run of model ``facts`` in compiled training, and its steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rgr_dist.engines.api import BETA_1, BETA_2, BlockWeights
from rgr_dist.engines.fused.facts.step import (
    Parts,
    Sizes,
    Workspace,
    train_facts,
)
from rgr_dist.engines.fused.lane import padded, zeros
from rgr_dist.engines.fused.simd import WIDTH
from rgr_dist.engines.schedule import learning_rates
from rgr_dist.problem.facts_task import FactsTask, initial_facts, trained_names
from rgr_dist.study.cell import Run

BLOCK = 256
"""Steps of one call."""


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
        self.sizes = Sizes(
            h, c, v, K, Q, V, d, T, queries, values, cell.facts.residual,
            first=0 if "X_K" in trained else ends[0],
            last=ends[3] if "U" in trained else ends[2],
        )  # fmt: skip
        self.theta, self.first, self.second, self.gradient = (zeros(ends[3]) for _ in range(4))
        self.parts, self.d_parts = (
            Parts(*np.split(flat, ends[:3])) for flat in (self.theta, self.gradient)
        )
        self.work = Workspace(
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
        self.work.is_value[:values] = 1
        for name, value in initial_facts(run).items():
            self._views()[name][...] = value
        self._epoch = -1, self.task.triples

    def _views(self) -> dict[str, npt.NDArray[np.float32]]:
        """The parameters by name and as the reference shapes them: views of ``theta``."""
        s = self.sizes
        keys, queries, values = self.task.shape
        d, key_rows, shared = self.run.cell.d_model, s.h * s.c, s.h * (s.c + s.v)
        X = self.parts.X.reshape(s.d, s.T)[:d]
        W = self.parts.W.reshape(-1, s.d)[:, :d]
        return {
            "X_K": X[:, :keys].T,
            "X_Q": X[:, s.K : s.K + queries].T,
            "W_Q": W[shared:].T,
            "W_K": W[:key_rows].T,
            "W_V": W[key_rows:shared].T,
            "W_O": self.parts.W_O.reshape(-1, s.d)[:, :d],
            "U": self.parts.U.reshape(s.d, s.V)[:d, :values],
        }

    def advance(self, steps: int) -> None:
        """Take so many training steps."""
        training, end = self.run.cell.training, self.steps + steps
        while self.steps < end:
            triples, begins, ends = self._batches(min(BLOCK, end - self.steps))
            count = len(begins)
            t = np.arange(self.steps + 1, self.steps + count + 1, dtype=np.float64)
            rates = learning_rates(training, self.steps, count)
            self._call(
                triples,
                begins,
                ends,
                (rates / (1 - BETA_1**t)).astype(np.float32),
                (1 / np.sqrt(1 - BETA_2**t)).astype(np.float32),
                (1 - rates * (training.weight_decay or 0.0)).astype(np.float32),
            )
            self.steps += count

    def _batches(
        self, most: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The next batches, at most so many and of one epoch: triples, first and last of each."""
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
        """Whether every parameter is a number."""
        return bool(np.isfinite(self.theta).all())

    def accuracies(self) -> dict[str, float]:
        """The shares of the triples that are right by argmax and by softmax≥tau."""
        whole, none = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        triples = self.task.triples
        right = self._call(triples, whole, whole, none, none, none)
        return dict(zip(("argmax", "softmax"), (int(n) / len(triples) for n in right), strict=True))

    def _call(self, *batches: Any) -> tuple[int, int]:
        kernel: Any = train_facts  # numba tells its types
        counts: tuple[int, int] = kernel(
            self.theta, self.first, self.second, self.gradient, self.parts, self.d_parts,
            self.work, self.sizes, *batches, self.run.cell.facts.tau,
        )  # fmt: skip
        return counts

    def weights(self) -> BlockWeights:
        """A copy of the weights by name."""
        return {name: view.copy() for name, view in self._views().items()}
