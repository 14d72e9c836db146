"""Relations that share an embedding, which is trained with their layers, as one task in torch.

Shapes in names: R relations, B batches, l items of a context, d = d_model, m items.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.func import vmap
from torch.nn.functional import normalize

from rgr_dist.engines.api import Outcome, mean
from rgr_dist.engines.checks import worst
from rgr_dist.engines.tasks import Batch, Edges, Theta, TorchTask
from rgr_dist.study.run import Run


class SharedEdges(TorchTask):
    """Recovering a graph for each of R relations, whose layers see x_i = E_i / |E_i|.

    E starts at the rows that the layers of frozen embeddings see. Relation r has a graph, contexts,
    parameters and a tau of its own; relation 0 has those of the run with frozen embeddings. A
    step takes a context of each relation, and the loss is the sum of their losses: the parameters
    of a relation get the gradient that they would get alone.

    Attributes:
        relations: their own tasks, on the rows x_i that were seen at the last check.
        order: the relations in the order in which a check asks them.
    """

    def __init__(self, run: Run, device: torch.device, dtype: torch.dtype) -> None:
        count = run.cell.training.relations
        self.relations = [Edges(run, device, dtype, relation=one) for one in range(count)]
        self.order, self.block, self.data = [*range(count)], max(10, 250 // count), {}
        first, own = self.relations[0], [one.theta for one in self.relations]
        self.may_compile = first.may_compile
        if self.may_compile:
            joined = {name: torch.stack([theta[name] for theta in own]) for name in first.theta}
        else:  # modules are trained themselves
            joined = {f"{name} {r}": p for r, theta in enumerate(own) for name, p in theta.items()}
        self.theta = {"E": first.X_md.clone(), **joined}
        self.key = first.key, run.cell.m, count
        self.loss = self._loss()

    def _loss(self) -> Callable[[Theta, Theta, Batch], Tensor]:
        one = self.relations[0].loss

        def loss(theta: Theta, data: Theta, batch: Batch) -> Tensor:
            nodes_Rl, y_Rll = batch
            X_Rld = normalize(theta["E"]).index_select(0, nodes_Rl.flatten())
            X_Rld = X_Rld.unflatten(0, nodes_Rl.shape)
            own = {name: p for name, p in theta.items() if name != "E"}
            losses_R: Tensor = vmap(lambda p, X, y: one(p, {}, (X, y)))(own, X_Rld, y_Rll)
            return losses_R.sum()

        def loss_of_modules(theta: Theta, data: Theta, batch: Batch) -> Tensor:
            X_md = normalize(theta["E"])
            losses = [
                task.loss(self._own(theta, r), data, (X_md[nodes_l], y_ll))
                for r, (task, nodes_l, y_ll) in enumerate(zip(self.relations, *batch, strict=True))
            ]
            return torch.stack(losses).sum()

        return loss if self.may_compile else loss_of_modules

    def _own(self, theta: Theta, r: int) -> dict[str, Tensor]:
        """The parameters of a relation."""
        if self.may_compile:
            return {name: p[r] for name, p in theta.items() if name != "E"}
        return {name: theta[f"{name} {r}"] for name in self.relations[r].theta}

    def batches(self, first: int, count: int) -> Batch:
        """Items [B, R, l] and edges as 0 and 1 [B, R, l, l] of training contexts."""
        drawn = [one.contexts(first, count) for one in self.relations]
        nodes, y = (torch.stack(parts, 1) for parts in zip(*drawn, strict=True))
        return nodes, y

    def check(self, theta: Theta, above: float | None) -> float | None:
        """The score of the worst relation over its validation contexts."""
        self._see(theta)
        return worst(self.order, lambda r: self.relations[r].check(self._own(theta, r), above))

    def outcome(self, theta: Theta, **ended: Any) -> Outcome:
        """How the run ended, with the mean of the test scores."""
        self._see(theta)
        each = enumerate(self.relations)
        return mean([one.outcome(self._own(theta, r), **ended) for r, one in each])

    def _see(self, theta: Theta) -> None:
        """Give every relation the rows as they are now."""
        with torch.no_grad():
            X_md = normalize(theta["E"])
        for one in self.relations:
            one.X_md = X_md
