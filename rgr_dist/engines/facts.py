"""How a layer of facts is trained by the torch engines, token by token, and what is kept of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor
from torch.nn.functional import cross_entropy

from rgr_dist.engines.api import FactsOutcome, Outcome
from rgr_dist.engines.tasks import Batch, Theta, TorchTask
from rgr_dist.facts.logits import all_logits
from rgr_dist.facts.ranks import logits_rank, places_of_largest, triples_rank
from rgr_dist.models.facts import right_by_argmax, right_by_softmax, token_logits
from rgr_dist.problem.facts_task import FactsTask, initial_facts, trained_names
from rgr_dist.study.run import Run

TAUS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Thresholds on the probability at which every layer is measured."""


class Facts(TorchTask):
    """Cross-entropy of a batch of triples; a batch smaller than the others is filled up with
    triples that do not count."""

    block = 20

    def __init__(self, run: Run, device: torch.device, dtype: torch.dtype) -> None:
        self.run, self.device = run, device
        self.task, trained = FactsTask.of(run.cell, run.seed), trained_names(run.cell)
        start = {
            name: torch.from_numpy(p).to(device, dtype) for name, p in initial_facts(run).items()
        }
        self.theta = {name: start[name] for name in trained}
        self.data = {name: p for name, p in start.items() if name not in trained}
        self.triples = torch.from_numpy(self.task.triples).long().to(device)
        cell, h, residual = run.cell, run.h, run.cell.facts.residual
        size = cell.training.batch_size or len(self.task.triples)
        self.size = min(size, len(self.task.triples))
        self.key = cell.database, cell.d_model, h, run.d_k, run.d_vo, residual, trained, self.size
        self.epoch = -1, self.task.triples

        def logits(theta: Theta, data: Theta, triples: Tensor) -> Tensor:
            return token_logits(triples[:, 0], triples[:, 1], {**theta, **data}, h, residual)

        def loss(theta: Theta, data: Theta, batch: Batch) -> Tensor:
            triples, counts = batch
            each = cross_entropy(logits(theta, data, triples), triples[:, 2], reduction="none")
            return (each * counts).sum() / counts.sum()

        self.logits, self.loss = logits, loss

    def batches(self, first: int, count: int) -> Batch:
        """Triples, [B, b, 3], and 1 where they count, else 0, [B, b]."""
        drawn = np.zeros((count, self.size, 3), dtype=np.int64)
        counts = np.zeros((count, self.size))
        for at in range(count):
            epoch, part = divmod(first + at, self.task.batches_per_epoch)
            if self.epoch[0] != epoch:
                self.epoch = epoch, self.task.epoch(epoch)
            own = self.epoch[1][part * self.size : (part + 1) * self.size]
            drawn[at, : len(own)], counts[at, : len(own)] = own, 1
        some = next(iter(self.theta.values()))
        return torch.from_numpy(drawn).to(self.device), torch.from_numpy(counts).to(some)

    def accuracies(self, theta: Theta) -> dict[str, float]:
        """The shares of the triples that are right by argmax and by softmax≥τ."""
        values = self.triples[:, 2]
        with torch.no_grad():
            logits = self.logits(theta, self.data, self.triples)
            argmax = int(right_by_argmax(logits, values).sum())
            right = int(right_by_softmax(logits, values, self.run.cell.facts.tau).sum())
        return {"argmax": argmax / len(values), "softmax": right / len(values)}

    def check(self, theta: Theta, above: float | None) -> float:
        """The accuracy by which the run is judged."""
        return self.accuracies(theta)[self.run.cell.facts.score]

    def outcome(self, theta: Theta, **ended: Any) -> Outcome:
        """How a run ended, with ranks of what its layer predicts for all pairs."""
        accuracies = self.accuracies(theta)
        every = {**theta, **self.data}
        weights = {name: p.detach().cpu().numpy() for name, p in every.items()}
        logits = all_logits(weights, self.run.h, self.run.cell.facts.residual)
        chances = softmax(logits, axis=2)
        keys, queries, values = self.task.triples.T
        right = chances[keys, queries, values]
        ranks: dict[bytes, int] = {}  # a layer often predicts the same at several tau

        def at(tau: float) -> tuple[float, float, int]:
            places = np.argwhere(chances >= tau)
            known = places.tobytes()
            if known not in ranks:
                ranks[known] = triples_rank(places).lower
            return tau, float(np.mean(right >= tau)), ranks[known]

        score = accuracies[self.run.cell.facts.score]
        facts = FactsOutcome(
            argmax_accuracy=accuracies["argmax"],
            softmax_accuracy=accuracies["softmax"],
            rank_logits=logits_rank(logits),
            rank_argmax=triples_rank(places_of_largest(logits)).lower,
            by_tau=tuple(at(tau) for tau in TAUS),
        )
        return Outcome(**{**ended, "val_score": score}, score=score, facts=facts)
