"""Mean squared error of one lane of model ``value``, over a set of contexts (Sec. 7.2).

Every check tells the error itself, so it cannot end early. Where items are few, all pairs of
them are scored once, and contexts look their scores up; where they are fewer still, errors are
summed over triples of items rather than over contexts.

Shapes in names: n contexts of l items, m items and one of padding, v = width of a message.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rgr_dist.engines.cooccurrence import form_of_errors, meetings_pay
from rgr_dist.engines.lanes.blocks import Layer
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
        form: of triples of items, [m, m, m] without the padding; None where those do not pay.
        places: of the contexts' pairs among all, [n, l, l]; None where those do not pay.
    """

    def __init__(
        self, contexts: npt.NDArray[np.int32], task: Task, V_mv: Tensor, often: bool = False
    ) -> None:
        device, (n, length), m = V_mv.device, contexts.shape, len(V_mv)
        self.V_mv = V_mv
        self.nodes = torch.from_numpy(contexts).to(device).long()
        self.targets = torch.from_numpy(task.targets).to(device).long()
        edges = labels(self.nodes, self.targets)
        self.edges, self.asked = edges.to(V_mv.dtype), edges.any(2)
        self.count = max(1, int(self.asked.sum()))
        on_cpu = device.type == "cpu"
        self.at_once = SCORES_AT_ONCE_ON_CPU if on_cpu else SCORES_AT_ONCE_ON_GPU
        self.form = self.places = None
        if often and meetings_pay(m - 1, contexts):
            form = form_of_errors(contexts, task.targets, task.messages, m - 1)
            self.form = torch.from_numpy(form).to(V_mv)
        elif m * m <= n * length * length:
            self.places = self.nodes.unsqueeze(2) * m + self.nodes.unsqueeze(1)

    def score(self, layer: Layer, above: float | None = None) -> float:
        """Mean squared error over the positions whose target is present; 0.0 if there is none.

        It is told whatever it is ``above``.
        """
        Q, K = layer.project()
        if self.form is not None:
            return self._by_triples(self.form, self._all_pairs(Q, K)) / self.count
        scores_mm = None if self.places is None else self._all_pairs(Q, K)
        n, length = self.nodes.shape
        some = max(1, self.at_once // (layer.h * length * length))
        total = torch.zeros((), dtype=torch.float64, device=Q.device)
        for first in range(0, n, some):
            block = slice(first, first + some)
            nodes = self.nodes[block]
            if scores_mm is not None and self.places is not None:
                S_nll = torch.take(scores_mm, self.places[block])
            else:
                rows, by_head = nodes.flatten(), (layer.h * len(nodes), length, -1)
                Q_, K_ = (P.index_select(1, rows).view(by_head) for P in (Q, K))
                S_nll = torch.bmm(Q_, K_.transpose(1, 2)).view(layer.h, -1, length, length).amax(0)
            V_nlv = self.V_mv.index_select(0, nodes.flatten()).view(*nodes.shape, -1)
            errors_nl = torch.bmm(S_nll.sub_(self.edges[block]), V_nlv).square_().sum(2)
            total += errors_nl.double()[self.asked[block]].sum()
        return float(total) / self.count

    def _by_triples(self, form: Tensor, scores_mm: Tensor) -> float:
        """Sum of the squared errors, as ``form_of_errors`` has it."""
        x_m1m = scores_mm[:-1, :-1].unsqueeze(1).contiguous()
        sources = torch.arange(len(x_m1m), device=x_m1m.device)
        x_m1m[sources, 0, self.targets] -= 1
        error = float(torch.bmm(x_m1m, form).mul_(x_m1m).sum(2).double().sum())
        return 0.0 if error < 0 else error  # rounding may leave a little less; NaN stays

    def _all_pairs(self, Q: Tensor, K: Tensor) -> Tensor:
        """Maximum scores of every pair of items, [m, m], in as many parts as memory asks for."""
        h, m, _ = Q.shape
        rows = max(1, self.at_once // (h * m))
        parts = [torch.bmm(part, K.transpose(1, 2)).amax(0) for part in Q.split(rows, 1)]
        return torch.cat(parts)
