"""Algorithm 2's layer on sampled contexts: with a softmax, a pair's score depends on the others.

Theorem 8.1 claims that a source whose target is not in the context gets no edge, but its proof
needs the target there: Eq. (11) has the target's exp(3/4 √d_k) in the denominator. The theorem also
assumes ℓ ≥ C max(h, ln m) with a large C, so that the other heads add little: their background is
(h - 1) / ℓ on average. With ℓ = 16 and h = 4 heads or more, this is far from satisfied, and a
source without its target in the context gets about h / ℓ on every item. So the two kinds of source
are counted separately.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from rgr_dist.models.edges import labels
from rgr_dist.models.heads import summed_attention
from rgr_dist.problem.graphs import Neighbours
from rgr_dist.theory.all_pairs import Recovery
from rgr_dist.theory.layer import FloatArray, Layer

CONTEXTS_AT_ONCE = 64
NUMBERS_AT_ONCE = 2**22
"""Most queries' numbers, or pairs over all heads, of contexts scored together if several: 32 MB."""


@dataclass(frozen=True)
class InContexts(Recovery):
    """How well a softmax layer recovers all ordered pairs of sampled contexts.

    Attributes:
        present, present_right: number of sources with a target in their context, and of those
            among them that have every pair right.
        absent, absent_right: the same for sources without a target in their context.
    """

    present: int
    present_right: int
    absent: int
    absent_right: int


def score_contexts_softmax(
    layer: Layer, X: FloatArray, graph: Neighbours, contexts: npt.NDArray[np.int32]
) -> InContexts:
    """Score a softmax layer (eqs. 5 and 6) on contexts, int32 [n, l], at its tau."""
    X_md, W_Q, W_K = (
        torch.from_numpy(np.asarray(a, np.float64)) for a in (X, layer.W_Q, layer.W_K)
    )
    targets = torch.from_numpy(graph.table).long()
    totals, margin = [0] * 7, float("inf")
    length = contexts.shape[1]
    at_once = NUMBERS_AT_ONCE // (length * layer.h * max(layer.d_k, length))
    at_once = max(1, min(CONTEXTS_AT_ONCE, at_once))
    for nodes in torch.from_numpy(contexts).long().split(at_once):
        scores = summed_attention(X_md[nodes], W_Q, W_K, layer.h)
        y, predicted = labels(nodes, targets), scores > layer.tau
        present, right = y.any(-1), (predicted == y).all(-1)
        rows = present, present & right, ~present, ~present & right
        counted = zip(totals, (y & predicted, predicted, y, *rows), strict=True)
        totals = [total + int(which.sum()) for total, which in counted]
        margin = min(margin, float(torch.where(y, scores - layer.tau, layer.tau - scores).min()))
    return InContexts(totals[0], totals[1], totals[2], margin, *totals[3:])
