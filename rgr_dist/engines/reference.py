"""The paper's loop in plain PyTorch, one run at a time: the oracle, never optimised.

App. A.1 line by line: AdamW on the autograd gradient of the weighted logistic loss, one
context a step, a validation check every ``check_every`` steps, stop after ``patience``
checks in a row above ``stop_score``, micro-F1 on the test contexts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from rgr_dist.engines.engine import Outcome, StopReason, Weights
from rgr_dist.models.labels import labels
from rgr_dist.models.max_heads import max_scores, score_contexts, weighted_logistic_loss
from rgr_dist.problem.task import Task, initial_projections
from rgr_dist.study import Run


class _Trainer:
    """One run: its task, parameters and optimiser."""

    def __init__(self, run: Run, dtype: torch.dtype) -> None:
        self.run = run
        self.task = Task.of(run.cell, run.seed)
        self.targets = torch.from_numpy(self.task.graph.table).long().squeeze(1)
        self.X = torch.from_numpy(self.task.embedding).to(dtype)
        W_Q, W_K = initial_projections(run)
        self.W_Q = torch.nn.Parameter(torch.from_numpy(W_Q).to(dtype))
        self.W_K = torch.nn.Parameter(torch.from_numpy(W_K).to(dtype))
        self.tau = torch.nn.Parameter(torch.zeros((), dtype=dtype))
        self.optimizer = torch.optim.AdamW(
            [self.W_Q, self.W_K, self.tau],
            lr=run.cell.training.learning_rate,
            weight_decay=0.0,
        )

    def step(self, index: int) -> None:
        """One step on training context ``index``."""
        nodes = torch.from_numpy(self.task.training_contexts(index, 1)[0]).long()
        scores = max_scores(self.X[nodes], self.W_Q, self.W_K, self.run.h)
        loss = weighted_logistic_loss(
            scores,
            labels(nodes, self.targets),
            self.tau,
            self.run.cell.training.sharpness,
            self.run.cell.graph.balanced,
        )
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def score(self, contexts: torch.Tensor) -> float:
        """Micro-F1 over a set of contexts."""
        return score_contexts(
            contexts, self.targets, self.X, self.W_Q, self.W_K, self.tau, self.run.h
        )

    def is_finite(self) -> bool:
        """Whether every parameter is a number."""
        return all(bool(torch.isfinite(p).all()) for p in (self.W_Q, self.W_K, self.tau))


class ReferenceEngine:
    """One run after another, as a reader of the paper would write it."""

    name = "reference"

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        self.dtype = dtype

    def train(self, runs: Sequence[Run]) -> list[Outcome]:
        """Train every run until it stops, test it, and return the outcomes in order."""
        return [self._train(run) for run in runs]

    def weights_after(self, runs: Sequence[Run], steps: int) -> list[Weights]:
        """The weights after so many steps, without checks or stopping."""
        result = []
        for run in runs:
            trainer = _Trainer(run, self.dtype)
            for index in range(steps):
                trainer.step(index)
            W_Q, W_K = (p.detach().numpy() for p in (trainer.W_Q, trainer.W_K))
            result.append(Weights(W_Q, W_K, trainer.tau.item()))
        return result

    def _train(self, run: Run) -> Outcome:
        started = time.perf_counter()
        trainer = _Trainer(run, self.dtype)
        training = run.cell.training
        validation = torch.from_numpy(trainer.task.validation).long()
        val_score, good_checks, steps = None, 0, 0
        stop_reason: StopReason = "max_steps"
        while steps < training.max_steps:
            trainer.step(steps)
            steps += 1
            if steps % training.check_every and steps < training.max_steps:
                continue
            if not trainer.is_finite():
                stop_reason = "diverged"
                break
            val_score = trainer.score(validation)
            good_checks = good_checks + 1 if val_score > training.stop_score else 0
            if good_checks == training.patience:
                stop_reason = "converged"
                break
        diverged = stop_reason == "diverged"
        test = torch.from_numpy(trainer.task.test).long()
        return Outcome(
            score=None if diverged else trainer.score(test),
            val_score=None if diverged else val_score,
            tau=None if diverged else trainer.tau.item(),
            steps=steps,
            stop_reason=stop_reason,
            seconds=time.perf_counter() - started,
        )
