"""Micro-F1 of one lane, context by context, given up once it cannot pass.

Queries and keys depend on the item alone, so they are projected once a check and gathered
from there. A check that asks only whether the score is above a value looks first at the
contexts that were wrong the last time, and ends as soon as the answer is no.

Shapes in names: n contexts of l items, m items and one of padding, d = d_model, h heads,
k = d_k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad

from rgr_dist.engines.lanes.contexts import REGISTER, padded
from rgr_dist.models.labels import labels
from rgr_dist.models.max_heads import micro_f1

FIRST_LOOK = 16
"""Contexts scored before a check first asks whether it can still be passed."""
SCORES_AT_ONCE_ON_CPU, SCORES_AT_ONCE_ON_GPU = 2**18, 2**28
"""Scores of pairs, by head, that are held at once: what fits in a core's cache, or a GiB."""


class Layer(NamedTuple):
    """A lane as it is scored: embeddings, projections [h * k, d], threshold, heads.

    Attributes:
        softmax_scale: 1 / sqrt(d_k) if heads are softmaxes and summed; None: their maximum counts.
    """

    X_md: Tensor
    W_Q: Tensor
    W_K: Tensor
    tau: Tensor
    h: int
    softmax_scale: float | None = None

    def combine(self, S_hnll: Tensor) -> Tensor:
        """Combined scores of whole contexts."""
        if self.softmax_scale is None:
            return S_hnll.amax(0)
        return S_hnll.mul(self.softmax_scale).softmax(3).sum(0)

    def project(self, items: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Queries and keys of some items, or of all: each [h, items, k]."""
        X = self.X_md if items is None else self.X_md.index_select(0, items)
        Q, K = (
            (X @ W.T).unflatten(1, (self.h, -1)).transpose(0, 1).contiguous()
            for W in (self.W_Q, self.W_K)
        )
        return Q, K


def cannot_pass(actual: int, wrong: int, above: float) -> bool:
    """Whether so many errors keep F1 from a value: with A edges it is at most 2A / (2A + E).

    F1 = 2 TP / (2 TP + FP + FN) and TP <= A. Quotients of integers are rounded alike, so a
    bound that is not above the value holds for F1 as it is computed.
    """
    return wrong > 0 and 2 * actual / (2 * actual + wrong) <= above


class BlockScorer:
    """Scores one lane over one set of contexts, again and again.

    Contexts are padded to whole registers, so that the scores of one have the same bits
    wherever it stands.

    Args:
        contexts: int32 [n, l].
        targets_m: out-neighbours, as ``models.labels`` takes them; the last row is of the padding.
    """

    def __init__(self, contexts: npt.NDArray[np.int32], targets_m: Tensor) -> None:
        nodes = torch.from_numpy(contexts).to(targets_m.device).long()
        self.length = nodes.shape[1]
        extra = padded(self.length, REGISTER) - self.length
        self.nodes = pad(nodes, (0, extra), value=len(targets_m) - 1)
        self.edges = labels(nodes, targets_m)
        self.actual = int(self.edges.sum())
        self.errors = torch.zeros(len(nodes), dtype=torch.int64, device=nodes.device)

    def score(self, layer: Layer, above: float | None = None) -> float | None:
        """Micro-F1, or None if it is certainly not above a value.

        What is returned as a number comes from the queries and keys of all items at once, so
        it does not depend on the order of the contexts, nor on whether a check could end early.
        """
        order = torch.argsort(self.errors, descending=True, stable=True)
        n, pairs = self.nodes.shape[0], self.nodes.shape[1] ** 2
        if above is not None and FIRST_LOOK * self.nodes.shape[1] < len(layer.X_md):
            first = order[:FIRST_LOOK]
            nodes = self.nodes[first]
            rows = torch.arange(nodes.numel(), device=nodes.device).view_as(nodes)
            self._count(layer, layer.project(nodes.flatten()), first, rows)
            if cannot_pass(self.actual, int(self.errors[first].sum()), above):
                return None
        table = layer.project()
        on_cpu = order.device.type == "cpu"
        at_once = SCORES_AT_ONCE_ON_CPU if on_cpu else SCORES_AT_ONCE_ON_GPU
        at_once = max(1, at_once // (layer.h * pairs))
        true_positives = predicted = wrong = done = 0
        while done < n:
            until = done + (at_once if above is None else min(at_once, max(done, FIRST_LOOK)))
            block = order[done:until]
            hits, calls = self._count(layer, table, block, self.nodes[block])
            true_positives, predicted = true_positives + hits, predicted + calls
            wrong += int(self.errors[block].sum())
            if above is not None and cannot_pass(self.actual, wrong, above):
                return None
            done = until
        return micro_f1(true_positives, predicted, self.actual)

    def _count(
        self, layer: Layer, projected: tuple[Tensor, Tensor], block: Tensor, rows_nl: Tensor
    ) -> tuple[int, int]:
        """True positives and predicted edges of a block of contexts; notes its errors."""
        rows, by_head = rows_nl.flatten(), (layer.h * len(rows_nl), rows_nl.shape[1], -1)
        Q, K = (P.index_select(1, rows).view(by_head) for P in projected)
        S_hnll = torch.bmm(Q, K.transpose(1, 2)).view(layer.h, len(rows_nl), *Q.shape[1:2] * 2)
        S_nll = layer.combine(S_hnll[:, :, : self.length, : self.length])
        predicted, edges = S_nll > layer.tau, self.edges[block]
        self.errors[block] = (predicted ^ edges).sum((1, 2))
        return int((predicted & edges).sum()), int(predicted.sum())
