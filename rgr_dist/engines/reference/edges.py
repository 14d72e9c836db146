"""How a run of model ``max``, ``softmax`` or ``value`` learns, by autograd: the oracle.

AdamW on the autograd gradient of the weighted logistic loss of one context (App. A.1), scored by
micro-F1; for the other models see Sec. 7.1 and 7.2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import Parameter

from rgr_dist.engines.api import Outcome, StopReason
from rgr_dist.engines.reference.trainer import Trainer
from rgr_dist.engines.start import initial_weights
from rgr_dist.models.edges import labels, score_contexts, weighted_logistic_loss
from rgr_dist.models.heads import SCORES
from rgr_dist.models.value_retrieval import retrieval_error_over, retrieval_loss
from rgr_dist.problem.edge_task import Task
from rgr_dist.study.run import Run


class EdgeTrainer(Trainer):
    """One run: its task, W_Q, W_K and tau."""

    def __init__(self, run: Run, dtype: torch.dtype) -> None:
        self.task = Task.of(run.cell, run.seed)
        self.targets = torch.from_numpy(self.task.graph.table).long()
        self.X = torch.from_numpy(self.task.embedding).to(dtype)
        self.V = None
        if run.cell.record.loss == "messages":
            self.V = torch.from_numpy(self.task.messages).to(dtype)
        self.W_Q, self.W_K, self.tau = (
            Parameter(torch.as_tensor(value, dtype=dtype)) for value in initial_weights(run)
        )
        super().__init__(run, {"W_Q": self.W_Q, "W_K": self.W_K, "tau": self.tau})

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

    def score(self, contexts: npt.NDArray[np.int32]) -> float:
        """Micro-F1 over a set of contexts [n, l], or the mean squared error of model ``value``."""
        nodes, layer = torch.from_numpy(contexts).long(), (self.W_Q, self.W_K)
        if self.V is not None:
            return retrieval_error_over(nodes, self.targets, self.X, self.V, *layer, self.run.h)
        scores = SCORES[self.run.cell.record.heads]
        return score_contexts(nodes, self.targets, self.X, *layer, self.tau, self.run.h, scores)

    def check(self) -> float:
        """The score over the validation contexts."""
        return self.score(self.task.validation)

    def outcome(self, steps: int, stop_reason: StopReason, val_score: float) -> Outcome:
        """How the run ended, with its test score."""
        return Outcome(
            steps=steps,
            stop_reason=stop_reason,
            score=self.score(self.task.test),
            val_score=val_score,
            tau=self.tau.item() if self.run.cell.record.has_tau else None,
        )
