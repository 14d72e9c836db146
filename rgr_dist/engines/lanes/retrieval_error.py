"""Mean squared error of one lane of model ``value``, over a set of contexts (Sec. 7.2).

Every check needs the error itself, so it cannot end early. Contexts are scored by the block, or,
for repeated checks where items are few, errors are summed over triples of items.

Shapes in names: n contexts of l items, m items and one of padding, h heads, k = d_k, v = width of a
message.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad

from rgr_dist.engines.cooccurrence import cooccurrence_pays, error_forms
from rgr_dist.engines.lanes.batches import REGISTER, padded
from rgr_dist.engines.lanes.state import Layer
from rgr_dist.models.labels import labels
from rgr_dist.problem.edge_task import Task

SCORES_AT_ONCE_ON_CPU, SCORES_AT_ONCE_ON_GPU = 2**18, 2**28
"""Scores of pairs, by head, that are held at once: what fits in a core's cache, or a GiB."""


class ErrorScorer:
    """Scores one lane over one set of contexts.

    Args:
        contexts: int32 [n, l].
        V_mv: messages.
        often: whether to prepare for many scores rather than one.

    Attributes:
        forms: of triples of items, [m, m, m] without the padding; None: go by contexts.
    """

    def __init__(
        self, contexts: npt.NDArray[np.int32], task: Task, V_mv: Tensor, often: bool = False
    ) -> None:
        device, m = V_mv.device, len(V_mv) - 1
        self.V_mv = V_mv
        nodes = torch.from_numpy(contexts).to(device).long()
        self.targets = torch.from_numpy(task.targets).to(device).long()
        edges = labels(nodes, self.targets)
        self.length = nodes.shape[1]
        extra = padded(self.length, REGISTER) - self.length
        self.nodes = pad(nodes, (0, extra), value=m)
        self.edges, self.retrieves = edges.to(V_mv.dtype), edges.any(2)
        self.count = max(1, int(self.retrieves.sum()))
        on_cpu = device.type == "cpu"
        self.at_once = SCORES_AT_ONCE_ON_CPU if on_cpu else SCORES_AT_ONCE_ON_GPU
        self.forms = None
        if often and cooccurrence_pays(m, contexts):
            forms = error_forms(contexts, task.targets, task.messages, m)
            self.forms = torch.from_numpy(forms).to(V_mv)

    def score(self, layer: Layer, above: float | None = None) -> float:
        """Mean squared error over the positions whose target is present; 0.0 if there are none.

        Args:
            above: not used; what ``ContextScorer`` takes.
        """
        Q, K = layer.project()
        if self.forms is None:
            return self._by_contexts(layer, Q, K) / self.count
        return self._by_triples(self.forms, self._all_pairs(layer, Q, K)) / self.count

    def _by_contexts(self, layer: Layer, Q_hmk: Tensor, K_hmk: Tensor) -> float:
        whole, length = self.nodes.shape[1], self.length
        some = max(1, self.at_once // (layer.h * whole * whole))
        total = torch.zeros((), dtype=torch.float64, device=Q_hmk.device)
        blocks = (part.split(some) for part in (self.nodes, self.edges, self.retrieves))
        for nodes, edges, retrieves in zip(*blocks, strict=True):
            rows, by_head = nodes.flatten(), (layer.h * len(nodes), whole, -1)
            Q, K = (P.index_select(1, rows).view(by_head) for P in (Q_hmk, K_hmk))
            S_hnll = torch.bmm(Q, K.transpose(1, 2)).view(layer.h, -1, whole, whole)
            S_nll = layer.combine(S_hnll[:, :, :length, :length])
            V_nlv = self.V_mv[nodes[:, :length]]
            errors_nl = torch.bmm(S_nll.sub_(edges), V_nlv).square_().sum(2)
            total += errors_nl.double()[retrieves].sum()
        return float(total)

    def _by_triples(self, forms: Tensor, scores_mm: Tensor) -> float:
        """Sum of the squared errors, as ``error_forms`` has it."""
        x_m1m = scores_mm[:-1, :-1].unsqueeze(1).contiguous()
        sources = torch.arange(len(x_m1m), device=x_m1m.device)
        x_m1m[sources, 0, self.targets] -= 1
        error = float(torch.bmm(x_m1m, forms).mul_(x_m1m).sum(2).double().sum())
        return 0.0 if error < 0 else error  # rounding may leave a little less; NaN stays

    def _all_pairs(self, layer: Layer, Q: Tensor, K: Tensor) -> Tensor:
        """Combined scores of every pair of items, [m, m], in as many parts as memory allows."""
        h, m, _ = Q.shape
        rows = max(1, self.at_once // (h * m))
        parts = (torch.bmm(part, K.transpose(1, 2)) for part in Q.split(rows, 1))
        return torch.cat([part.amax(0) for part in parts])
