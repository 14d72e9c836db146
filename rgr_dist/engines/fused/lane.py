"""The state of one run in compiled training, and its steps."""

from __future__ import annotations

import numpy as np

from rgr_dist.engines import api
from rgr_dist.engines.api import Weights
from rgr_dist.engines.fused.simd import ROWS, WIDTH, padded
from rgr_dist.engines.fused.simd_memory import FloatArray, zeros
from rgr_dist.engines.fused.step import Arrays, Graph, Parameters, Sizes, Workspace, train_steps
from rgr_dist.engines.schedule import adamw_factors
from rgr_dist.problem.edge_task import Task, initial_projections
from rgr_dist.study.models import Model
from rgr_dist.study.run import Run

BLOCK = 1024
"""Contexts drawn at once: as many as stay in cache."""


def make_workspace(model: Model, sizes: Sizes) -> Workspace:
    """The buffers of a step.

    Buffers that only other models need are None. From that the kernels know the model when they are
    compiled, so those of one model contain no code for another.
    """
    h, L, E, C, T = sizes.h, sizes.L, sizes.E, sizes.C, sizes.T
    is_softmax, has_messages = model.heads == "softmax", model.loss == "messages"
    workspace = Workspace(
        nodes=zeros(L),
        X=zeros(L, E),
        X_t=zeros(E, L),
        P=zeros(T, L),
        P_t=zeros(L, T),
        dP=zeros(C, L),
        scores=zeros(L, L),
        argmax_head=zeros(L, L),
        argmax_head_t=zeros(L, L),
        labels=zeros(L, L),
        grad_scores=zeros(L, L),
        grad_scores_t=zeros(L, L),
        attention=zeros(h, L, L) if is_softmax else None,
        scores_t=zeros(L, L) if is_softmax else None,
        messages=zeros(L, E) if has_messages else None,
        error=zeros(L, E) if has_messages else None,
    )
    workspace.nodes[:] = -1
    return workspace


class Lane(api.Lane):
    """One run in training.

    Attributes:
        steps: training steps done.
        arrays: what the kernels take; ``theta``, ``sizes`` and ``workspace`` are parts of it.
    """

    def __init__(self, run: Run, relation: int = 0) -> None:
        cell = run.cell
        self.run, self.task, self.steps = run, Task.of(cell, run.seed, relation), 0
        d, D, length = cell.d_model, run.D_K, cell.context.length
        L, E, C = padded(length, WIDTH), padded(d, WIDTH), padded(2 * D, ROWS)
        self.sizes = Sizes(run.h, run.d_k, length, L, E, C, padded(C, WIDTH))
        self.workspace = make_workspace(cell.record, self.sizes)
        self.theta = Parameters(zeros(C, E), zeros(C, E), zeros(C, E), zeros(3))
        self._columns[:, :d] = np.concatenate(initial_projections(run, relation), axis=1).T
        items, messages = zeros(padded(cell.m, L), E), None
        items.reshape(-1, E)[: cell.m, :d] = self.task.embedding
        if cell.record.loss == "messages":
            messages = zeros(cell.m, E)
            messages.reshape(-1, E)[:, :d] = self.task.messages
        starts, targets = self.task.graph
        graph = Graph(starts if cell.graph.balanced else None, targets)
        self.arrays = Arrays(self.theta, self.workspace, self.sizes, items, messages, graph)

    @property
    def _columns(self) -> FloatArray:
        """[W_Q | W_K] transposed, [2 D, E], a view."""
        columns: FloatArray = self.theta.W.reshape(self.sizes.C, self.sizes.E)[: 2 * self.run.D_K]
        return columns

    def advance(self, steps: int) -> None:
        """Take ``steps`` training steps."""
        training = self.run.cell.training
        end = self.steps + steps
        while self.steps < end:
            count = min(BLOCK, end - self.steps)
            train_steps(
                self.arrays,
                self.task.training_contexts(self.steps, count),
                training.sharpness,
                *adamw_factors(training, self.steps, count)[:2].astype(np.float32),
            )
            self.steps += count

    def is_finite(self) -> bool:
        """Whether every parameter is finite."""
        return bool(np.isfinite(self.theta.W).all() and np.isfinite(self.theta.tau[0]))

    def weights(self) -> Weights:
        """A copy of the weights."""
        D = self.run.D_K
        columns = self._columns[:, : self.run.cell.d_model].T.copy()
        return {"W_Q": columns[:, :D], "W_K": columns[:, D:], "tau": self.theta.tau[0].copy()}
