"""The paper's loop in plain PyTorch, one run at a time: the oracle, never optimised.

App. A.1 line by line: AdamW on the autograd gradient of the weighted logistic loss, one
context a step, a validation check every ``check_every`` steps, stop after ``patience``
checks in a row above ``stop_score``, micro-F1 on the test contexts. For the other models see
Sec. 7.1 and 7.2.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

import torch

from rgr_dist.engines.api import Outcome, StopReason, Weights
from rgr_dist.engines.early_stopping import EarlyStop
from rgr_dist.engines.reference.one_by_one import OneByOne, Trainer
from rgr_dist.engines.reference.schedule import make_schedule
from rgr_dist.models.labels import labels
from rgr_dist.models.max_heads import Scores, max_scores, score_contexts, weighted_logistic_loss
from rgr_dist.models.softmax_sum import summed_attention
from rgr_dist.models.value_retrieval import retrieval_error_over, retrieval_loss
from rgr_dist.problem.edge_task import Task, initial_projections
from rgr_dist.study.cell import Run

SCORES: Mapping[str | None, Scores] = {"max": max_scores, "softmax": summed_attention}
"""Scores of the pairs of a context, by how the model's heads are combined."""


class EdgeTrainer(Trainer[Weights]):
    """One run: its task, parameters and optimiser."""

    def __init__(self, run: Run, dtype: torch.dtype) -> None:
        self.run = run
        self.task = Task.of(run.cell, run.seed)
        self.targets = torch.from_numpy(self.task.graph.table).long().squeeze(1)
        self.X = torch.from_numpy(self.task.embedding).to(dtype)
        self.V = None
        if run.cell.record.loss == "messages":
            self.V = torch.from_numpy(self.task.messages).to(dtype)
        W_Q, W_K = initial_projections(run)
        self.W_Q = torch.nn.Parameter(torch.from_numpy(W_Q).to(dtype))
        self.W_K = torch.nn.Parameter(torch.from_numpy(W_K).to(dtype))
        self.tau = torch.nn.Parameter(torch.zeros((), dtype=dtype))
        self.optimizer = torch.optim.AdamW(
            [self.W_Q, self.W_K, self.tau],
            lr=run.cell.training.learning_rate,
            weight_decay=0.0,
        )
        self.schedule = make_schedule(self.optimizer, run.cell.training)

    def loss(self, index: int) -> torch.Tensor:
        """The model's loss on training context ``index``."""
        nodes = torch.from_numpy(self.task.training_contexts(index, 1)[0]).long()
        cell = self.run.cell
        S = SCORES[cell.record.heads](self.X[nodes], self.W_Q, self.W_K, self.run.h)
        y = labels(nodes, self.targets)
        if self.V is not None:
            return retrieval_loss(S, y, self.V[nodes])
        sharpness, balanced = cell.training.sharpness, cell.graph.balanced
        return weighted_logistic_loss(S, y, self.tau, sharpness, balanced)

    def score(self, contexts: torch.Tensor) -> float:
        """Micro-F1 over a set of contexts, or the mean squared error of model ``value``."""
        layer = (self.W_Q, self.W_K)
        if self.V is not None:
            return retrieval_error_over(contexts, self.targets, self.X, self.V, *layer, self.run.h)
        scores = SCORES[self.run.cell.record.heads]
        return score_contexts(contexts, self.targets, self.X, *layer, self.tau, self.run.h, scores)

    def weights(self) -> Weights:
        """The parameters as they are."""
        W_Q, W_K = (p.detach().numpy().copy() for p in (self.W_Q, self.W_K))
        return Weights(W_Q, W_K, self.tau.item())

    def is_finite(self) -> bool:
        """Whether every parameter is a number."""
        return all(bool(torch.isfinite(p).all()) for p in (self.W_Q, self.W_K, self.tau))


class ReferenceEngine(OneByOne[Weights]):
    """Trains every run until it stops early or at its limit, and tests it."""

    def trainer(self, run: Run) -> EdgeTrainer:
        """A run at its start."""
        return EdgeTrainer(run, self.dtype)

    def train_one(self, run: Run) -> Outcome:
        """Train a run until it stops, and test it."""
        started = time.perf_counter()
        trainer = self.trainer(run)
        training = run.cell.training
        validation = torch.from_numpy(trainer.task.validation).long()
        stop, val_score, steps = EarlyStop(run.cell), None, 0
        stop_reason: StopReason = "max_steps"
        while steps < training.max_steps:
            trainer.step(steps)
            steps += 1
            if steps % training.check_every and steps < training.max_steps:
                continue
            val_score = trainer.score(validation) if trainer.is_finite() else math.inf
            if not math.isfinite(val_score):
                stop_reason = "diverged"
                break
            if stop.after(val_score):
                stop_reason = "converged"
                break
        diverged = stop_reason == "diverged"
        test = torch.from_numpy(trainer.task.test).long()
        return Outcome(
            score=None if diverged else trainer.score(test),
            val_score=None if diverged else val_score,
            tau=trainer.tau.item() if run.cell.record.has_tau and not diverged else None,
            steps=steps,
            stop_reason=stop_reason,
            seconds=time.perf_counter() - started,
        )
