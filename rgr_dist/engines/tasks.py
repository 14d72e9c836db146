"""What the torch engines train: tasks, each with its start, batches, loss and scores.

Shapes in names: B batches, l items of a context, d = d_model, m items, n contexts, r = the most
out-neighbours of an item.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from rgr_dist.engines.api import Outcome
from rgr_dist.models.edges import labels
from rgr_dist.models.f1 import f1_cannot_exceed, micro_f1
from rgr_dist.models.layer import AttentionLayer, loss_of, make_layer, paid
from rgr_dist.models.module import ModuleLayer
from rgr_dist.models.transformer import block_logits, count_answers, superpose
from rgr_dist.models.value import retrieval_errors, retrieval_loss
from rgr_dist.problem.edge_task import Task, initial_parameters, initial_projections
from rgr_dist.problem.matching_task import Examples, MatchingTask, initial_block
from rgr_dist.problem.streams import Stream
from rgr_dist.study.run import Run

Theta = Mapping[str, Tensor]
"""Parameters by name."""
Batch = tuple[Tensor, ...]
Loss = Callable[[Theta, Theta, Batch], Tensor]
"""The loss of one batch from the parameters and the ``data`` of a task."""
Contexts = npt.NDArray[np.int32]
Scores = Callable[[Tensor], Tensor]
"""Scores of all pairs of contexts, [n, l, l], from their items, [n, l]."""

AT_ONCE = 125
"""Contexts, or queries, that are scored at once."""


class TorchTask(ABC):
    """One run's task: what is trained, on what, and how it is scored.

    Attributes:
        theta: the trained parameters at the start, by name.
        data: what else the loss reads, of the same shapes at every seed.
        loss: knows nothing of the seed.
        key: what the loss and all shapes depend on.
        block: how many batches are drawn at once.
        may_compile: whether the loss is a function of its arguments alone.
    """

    block: int = 250
    may_compile = True
    theta: dict[str, Tensor]
    data: dict[str, Tensor]
    loss: Loss
    key: Hashable

    @abstractmethod
    def batches(self, first: int, count: int) -> Batch:
        """The batches of steps ``first`` … ``first + count - 1``: tensors [count, …]."""

    @abstractmethod
    def check(self, theta: Theta, above: float | None) -> float | None:
        """The validation score, as ``Lane.check`` returns it for finite parameters."""

    @abstractmethod
    def outcome(self, theta: Theta, **ended: Any) -> Outcome:
        """How a run ended; ``ended`` has its ``steps``, ``stop_reason`` and ``val_score``."""


class Edges(TorchTask):
    """Recovering the edges of a graph by a layer of scores and a threshold tau (App. A.1)."""

    def __init__(
        self,
        run: Run,
        device: torch.device,
        dtype: torch.dtype,
        anew: bool = False,
        relation: int = 0,
    ) -> None:
        cell, training = run.cell, run.cell.training
        self.run, self.device, self.relation = run, device, relation
        self.task = Task.of(cell, run.seed, relation)
        self.X_md = torch.from_numpy(self.task.embedding).to(device, dtype)
        self.targets_mr = torch.from_numpy(self.task.graph.table).long().to(device)
        stream = Stream.of(cell.problem_json, "module", run.seed, relation)
        self.layer = make_layer(run, (stream.key0 << 32) | stream.key1, anew)
        self.theta, self.data = self._start(self.layer, dtype), {}
        self.key = (
            cell.model, cell.layer, cell.d_model, run.h, run.d_k, cell.context.length,
            training.sharpness, cell.graph.balanced,
        )  # fmt: skip
        self.may_compile = not isinstance(self.layer, ModuleLayer)
        self.loss = self._loss(self.layer)
        self.validation = self._scorer(self.task.validation)

    def _start(self, layer: AttentionLayer, dtype: torch.dtype) -> dict[str, Tensor]:
        tau = torch.zeros((), device=self.device, dtype=dtype)
        if isinstance(layer, ModuleLayer):
            own = layer.to(self.device, dtype)
            with torch.no_grad():
                for p in own.values():
                    p.mul_(self.run.cell.training.initial_scale)
            return {**own, "tau": tau}
        drawn: Mapping[str, npt.NDArray[np.float64]]
        if self.run.cell.layer is None:
            projections = initial_projections(self.run, self.relation)
            drawn = dict(zip(("W_Q", "W_K"), projections, strict=True))
        else:
            drawn = initial_parameters(self.run, layer.parameters(), self.relation)
        theta = {name: torch.from_numpy(p).to(self.device, dtype) for name, p in drawn.items()}
        return {**theta, "tau": tau}

    def _loss(self, layer: AttentionLayer) -> Loss:
        of_scores = loss_of(layer, self.run.cell.training.sharpness, self.run.cell.graph.balanced)

        def loss(theta: Theta, data: Theta, batch: Batch) -> Tensor:
            X_ld, y_ll = batch
            p = {name: value for name, value in theta.items() if name != "tau"}
            return of_scores(layer.scores(X_ld, p), y_ll, theta["tau"])

        return loss

    def _scorer(self, contexts: Contexts) -> F1Scorer | ErrorScorer:
        return F1Scorer(contexts, self.targets_mr)

    def scores(self, theta: Theta) -> Scores:
        """The layer's scores of contexts."""
        p = {name: value for name, value in theta.items() if name != "tau"}
        return lambda nodes_nl: self.layer.scores(self.X_md[nodes_nl], p)

    def contexts(self, first: int, count: int) -> tuple[Tensor, Tensor]:
        """Items [B, l], and edges as 0 and 1 [B, l, l], of training contexts."""
        nodes_Bl = torch.from_numpy(self.task.training_contexts(first, count)).long()
        nodes_Bl = nodes_Bl.to(self.device)
        return nodes_Bl, labels(nodes_Bl, self.targets_mr).to(self.X_md.dtype)

    def batches(self, first: int, count: int) -> Batch:
        """Embeddings [B, l, d] and edges as 0 and 1 [B, l, l] of training contexts."""
        nodes_Bl, y_Bll = self.contexts(first, count)
        return self.X_md[nodes_Bl], y_Bll

    def check(self, theta: Theta, above: float | None) -> float | None:
        """The score over the validation contexts."""
        return self.validation.score(self.scores(theta), theta.get("tau"), above)

    def outcome(self, theta: Theta, **ended: Any) -> Outcome:
        """How a run ended, with its test score."""
        score = self._scorer(self.task.test).score(self.scores(theta), theta.get("tau"))
        tau = theta["tau"].detach().item() if "tau" in theta else None
        parameters, cached = (None, None) if self.run.cell.layer is None else paid(self.layer)
        return Outcome(score=score, tau=tau, parameters=parameters, cached=cached, **ended)


class Value(Edges):
    """Retrieving messages through the values of a layer (Sec. 7.2)."""

    def __init__(self, run: Run, device: torch.device, dtype: torch.dtype) -> None:
        messages = Task.of(run.cell, run.seed).messages
        self.V_md = torch.from_numpy(messages).to(device, dtype)
        super().__init__(run, device, dtype)
        del self.theta["tau"]

    def _loss(self, layer: AttentionLayer) -> Loss:
        def loss(theta: Theta, data: Theta, batch: Batch) -> Tensor:
            X_ld, y_ll, V_ld = batch
            return retrieval_loss(layer.scores(X_ld, theta), y_ll, V_ld)

        return loss

    def _scorer(self, contexts: Contexts) -> ErrorScorer:
        return ErrorScorer(contexts, self.targets_mr, self.V_md)

    def batches(self, first: int, count: int) -> Batch:
        """What ``Edges`` trains on, and the messages of the items, [B, l, d]."""
        nodes_Bl, y_Bll = self.contexts(first, count)
        return self.X_md[nodes_Bl], y_Bll, self.V_md[nodes_Bl]


class F1Scorer:
    """Micro-F1 over one set of contexts, scored again and again.

    A check that only asks whether F1 exceeds a value begins with the contexts that had the most
    errors last time, and ends as soon as the answer is no.

    Args:
        contexts: int32 [n, l].
        targets_mr: out-neighbours of each item, padded with -1.

    Attributes:
        errors: wrong pairs of each context when it was last scored.
    """

    def __init__(self, contexts: Contexts, targets_mr: Tensor) -> None:
        self.nodes = torch.from_numpy(contexts).long().to(targets_mr.device)
        self.edges = labels(self.nodes, targets_mr)
        self.errors = torch.zeros(len(contexts), dtype=torch.int64, device=targets_mr.device)

    @cached_property
    def actual(self) -> int:
        """The number of edges in all contexts."""
        return int(self.edges.sum())

    def score(self, scores: Scores, tau: Any, above: float | None = None) -> float | None:
        """Micro-F1, or None if it is certainly not above ``above``."""
        order = torch.argsort(self.errors, descending=True, stable=True)
        tp = predicted = errors = 0
        with torch.no_grad():
            for some in order.split(AT_ONCE):
                called, edges = torch.gt(scores(self.nodes[some]), tau), self.edges[some]
                self.errors[some] = (called ^ edges).sum((1, 2))
                errors += int(self.errors[some].sum())
                if above is not None and f1_cannot_exceed(self.actual, errors, above):
                    return None
                tp, predicted = tp + int((called & edges).sum()), predicted + int(called.sum())
        return micro_f1(tp, predicted, self.actual)


class ErrorScorer:
    """Mean squared error of retrieved messages over one set of contexts (Sec. 7.2).

    Args:
        V_md: messages.
    """

    def __init__(self, contexts: Contexts, targets_mr: Tensor, V_md: Tensor) -> None:
        self.nodes, self.V_md = torch.from_numpy(contexts).long().to(V_md.device), V_md
        self.edges = labels(self.nodes, targets_mr)

    def score(self, scores: Scores, tau: Tensor | None, above: float | None = None) -> float:
        """Mean squared error over the positions whose target is present; 0.0 if there are none."""
        total = count = 0.0
        with torch.no_grad():
            for nodes, edges in zip(
                self.nodes.split(AT_ONCE), self.edges.split(AT_ONCE), strict=True
            ):
                V = self.V_md[nodes]
                errors, counts = retrieval_errors(scores(nodes), edges.to(V.dtype), V)
                total, count = total + float(errors.double().sum()), count + float(counts.sum())
        return total / max(1.0, count)


class Matching(TorchTask):
    """Answering queries by a transformer block (Sec. 7.3), whose best weights are tested."""

    block = 32

    def __init__(self, run: Run, device: torch.device, dtype: torch.dtype) -> None:
        cell, h = run.cell, run.h
        self.task, self.device = MatchingTask.of(cell, run.seed), device
        start = initial_block(run)
        self.theta = {name: torch.from_numpy(p).to(device, dtype) for name, p in start.items()}
        self.data = {"E": torch.from_numpy(self.task.table).to(device, dtype)}
        size = cell.training.batch_size
        self.key = cell.model, cell.m, cell.d_model, h, run.d_k, cell.context.length, size
        self.best, self.best_theta = -1.0, {**self.theta}

        def logits(theta: Theta, data: Theta, examples: Tensor) -> Tensor:
            return block_logits(superpose(data["E"], examples), data["E"], theta, h)

        def loss(theta: Theta, data: Theta, batch: Batch) -> Tensor:
            return cross_entropy(logits(theta, data, batch[0]), batch[0][:, -1])

        self.logits, self.loss = logits, loss

    def batches(self, first: int, count: int) -> Batch:
        """Examples, [B, batch_size, 2l + 2]."""
        drawn = torch.from_numpy(self.task.training_batches(first, count))
        return (drawn.long().to(self.device),)

    def check(self, theta: Theta, above: float | None) -> float:
        """The validation accuracy; keeps a copy of the first weights that reach the best one."""
        accuracy, _ = self._score(theta, self.task.validation)
        if accuracy > self.best:
            self.best = accuracy
            self.best_theta = {name: p.detach().clone() for name, p in theta.items()}
        return accuracy

    def outcome(self, theta: Theta, **ended: Any) -> Outcome:
        """How a run ended; its scores are those of its best weights."""
        score, null_rate = self._score(self.best_theta, self.task.test)
        return Outcome(**{**ended, "val_score": self.best}, score=score, null_rate=null_rate)

    def _score(self, theta: Theta, examples: Examples) -> tuple[float, float]:
        """Accuracy over a set of examples, and the share that was answered with NULL."""
        right = null = 0
        with torch.no_grad():
            for part in torch.from_numpy(examples).long().to(self.device).split(AT_ONCE):
                counts = count_answers(self.logits(theta, self.data, part), part[:, -1])
                right, null = right + counts[0], null + counts[1]
        return right / len(examples), null / len(examples)
