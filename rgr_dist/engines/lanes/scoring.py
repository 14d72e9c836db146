"""Micro-F1 of lanes from all pairs of items at once, each weighted by how often it occurs.

Shapes in names: L lanes, m items, d = d_model, h heads, k = d_k, D = h * k.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rgr_dist.engines.lanes.contexts import REGISTER, padded
from rgr_dist.models.max_heads import micro_f1

SCORES_ON_CPU, SCORES_ON_GPU = 2**20, 2**28
"""Scores of pairs that are held at once: what fits in a core's cache, or a GiB of float32."""
PAIRS_AT_MOST = 2**21
"""Pairs that are counted for each lane; a bound on memory."""


def pairs_pay(m: int, d_model: int, contexts: npt.NDArray[np.int32], device: torch.device) -> bool:
    """Whether to score all pairs of items rather than the contexts, one by one.

    On a CPU if there are no more of them, since either way items are projected once. On a GPU
    if they are less work than contexts that are projected anew, since there all pairs of many
    lanes go in one product.
    """
    n, length = contexts.shape
    if device.type == "cpu":
        length = padded(length, REGISTER)
        return bool(m * m <= min(PAIRS_AT_MOST, n * length * length))
    by_contexts = n * length * (length + 2 * d_model)
    return m * m <= PAIRS_AT_MOST and m * (m + 2 * d_model) <= by_contexts


def lanes_at_once(device: torch.device, h: int, m: int) -> int:
    """Lanes to score together: one on a CPU, where its numbers must not depend on others."""
    return 1 if device.type == "cpu" else max(1, SCORES_ON_GPU // (h * m * m))


def count_pairs(m: int, contexts: npt.NDArray[np.int32]) -> Tensor:
    """How many contexts hold each ordered pair of items, float32 [m, m]: exact below 2**24."""
    nodes = contexts.astype(np.int64)
    pairs = nodes[:, :, np.newaxis] * m + nodes[:, np.newaxis, :]
    counts = np.bincount(pairs.ravel(), minlength=m * m)
    return torch.from_numpy(counts.astype(np.float32).reshape(m, m))


def score_pairs(
    counts_Lmm: Tensor,
    sum_edges: Callable[[Tensor, slice], Tensor],
    X_Lmd: Tensor,
    W_Q: Tensor,
    W_K: Tensor,
    tau_L: Tensor,
    h: int,
) -> list[float]:
    """Micro-F1 of each lane.

    Args:
        sum_edges: sums what stands at the edges of some sources, [L, p, m], to [L].
        W_Q, W_K: projections, transposed: [L, D, d].
    """
    L, m, _ = X_Lmd.shape
    Q, K = (torch.bmm(W, X_Lmd.transpose(1, 2)).view(L * h, -1, m) for W in (W_Q, W_K))
    totals = torch.zeros(3, L, dtype=torch.float64, device=X_Lmd.device)
    at_once = SCORES_ON_CPU if X_Lmd.device.type == "cpu" else SCORES_ON_GPU
    rows = max(1, at_once // (L * h * m))
    for first in range(0, m, rows):
        part = slice(first, first + rows)
        S = torch.bmm(Q[:, :, part].transpose(1, 2), K).view(L, h, -1, m).amax(1)
        counts = counts_Lmm[:, part]
        predicted = S.gt_(tau_L.view(L, 1, 1)).mul_(counts)
        totals[0] += sum_edges(predicted, part)
        totals[1] += predicted.sum(2).double().sum(1)  # of a row alone exact in float32
        totals[2] += sum_edges(counts, part)
    return [micro_f1(*lane) for lane in totals.T.long().tolist()]
