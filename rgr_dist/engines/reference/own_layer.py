"""How a run of a layer from a file learns, by autograd: the oracle."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import Parameter

from rgr_dist.engines.api import Outcome, StopReason
from rgr_dist.engines.layer_start import start_of
from rgr_dist.engines.reference.trainer import Trainer
from rgr_dist.models.edges import count_edges, labels
from rgr_dist.models.f1 import micro_f1
from rgr_dist.models.own_layer import loss_of, make_layer, paid
from rgr_dist.problem.edge_task import Task
from rgr_dist.study.run import Run


class OwnTrainer(Trainer):
    """One run: its task, the layer's parameters and tau."""

    def __init__(self, run: Run, dtype: torch.dtype) -> None:
        self.task = Task.of(run.cell, run.seed)
        self.targets = torch.from_numpy(self.task.graph.table).long()
        self.X = torch.from_numpy(self.task.embedding).to(dtype)
        self.layer = make_layer(run.cell, run.h, run.d_k)
        sharpness, balanced = run.cell.training.sharpness, run.cell.graph.balanced
        self.loss_of_scores = loss_of(self.layer, sharpness, balanced)
        start = start_of(self.layer, run)
        trained = self.layer.parameters()
        self.p = {
            name: Parameter(torch.from_numpy(p).to(dtype), requires_grad=name in trained)
            for name, p in start.items()
        }
        self.tau = Parameter(torch.zeros((), dtype=dtype))
        super().__init__(run, {**self.p, "tau": self.tau})

    def loss(self, index: int) -> torch.Tensor:
        """The layer's loss on training context ``index``."""
        nodes = torch.from_numpy(self.task.training_contexts(index, 1)[0]).long()
        y = labels(nodes, self.targets).to(self.X)
        return self.loss_of_scores(self.layer.scores(self.X[nodes], self.p), y, self.tau)

    def score(self, contexts: npt.NDArray[np.int32]) -> float:
        """Micro-F1 over a set of contexts [n, l], one after another."""
        totals = [0, 0, 0]
        with torch.no_grad():
            for nodes in torch.from_numpy(contexts).long():
                S = self.layer.scores(self.X[nodes], self.p)
                counts = count_edges(S, labels(nodes, self.targets), self.tau)
                totals = [total + count for total, count in zip(totals, counts, strict=True)]
        return micro_f1(*totals)

    def check(self) -> float:
        """Micro-F1 over the validation contexts."""
        return self.score(self.task.validation)

    def outcome(self, steps: int, stop_reason: StopReason, val_score: float) -> Outcome:
        """How the run ended, with its test score."""
        parameters, cached = paid(self.layer)
        return Outcome(
            steps=steps,
            stop_reason=stop_reason,
            score=self.score(self.task.test),
            val_score=val_score,
            tau=self.tau.item(),
            parameters=parameters,
            cached=cached,
        )
