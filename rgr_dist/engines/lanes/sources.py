"""Micro-F1 of one lane, source by source, given up once it cannot pass.

As ``lanes_blocks``, but of pairs of items, each counted as often as the contexts hold it. An
item that is wrong is so in many contexts, so that a check by sources ends sooner.

Shapes in names: m items and one of padding, h heads, b sources of a block, r targets of
an item.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad

from rgr_dist.engines.lanes.blocks import Layer, cannot_pass
from rgr_dist.engines.lanes.contexts import padded
from rgr_dist.engines.lanes.scoring import count_pairs
from rgr_dist.models.max_heads import micro_f1

SOURCES = 16
"""Sources of a block: always as many, so that a score has the same bits wherever it stands."""
PAIRS_FOR_ONE = 3
"""Pairs of items scored for each pair that the contexts hold, at most; that one takes longer."""


def sources_pay(m: int, contexts: npt.NDArray[np.int32], device: torch.device) -> bool:
    """Whether to go by sources rather than by contexts; on a GPU many contexts go at once."""
    n, length = contexts.shape
    return device.type == "cpu" and m * m <= PAIRS_FOR_ONE * n * length * length


class SourceScorer:
    """Scores one lane over one set of contexts, again and again.

    Args:
        contexts: int32 [n, l].
        targets_m: out-neighbours, as ``models.labels`` takes them; the last row is of the padding.
    """

    def __init__(self, contexts: npt.NDArray[np.int32], targets_m: Tensor) -> None:
        self.m = len(targets_m) - 1
        counts = count_pairs(self.m, contexts).to(targets_m.device)
        self.counts_mm = pad(counts, (0, 1, 0, 1))
        # No context holds the padding, so that it may stand for a target that is missing.
        self.targets_mr = targets_m.masked_fill(targets_m < 0, self.m).view(self.m + 1, -1)
        self.edges_m1 = self.counts_mm.gather(1, self.targets_mr).sum(1, keepdim=True)
        self.actual = int(self.edges_m1.sum())
        self.errors = torch.zeros(self.m, dtype=torch.int64, device=targets_m.device)

    def score(self, layer: Layer, above: float | None = None) -> float | None:
        """Micro-F1, or None if it is certainly not above a value."""
        order = torch.argsort(self.errors, descending=True, stable=True)
        Q, K = layer.project()
        K_hkm = K.transpose(1, 2)
        true_positives = predicted = wrong = 0
        for some in order.split(SOURCES):
            block = pad(some, (0, padded(len(some), SOURCES) - len(some)), value=self.m)
            S_bm = torch.bmm(Q.index_select(1, block), K_hkm).amax(0)
            calls_bm = S_bm.gt_(layer.tau).mul_(self.counts_mm.index_select(0, block))
            hits_br = calls_bm.gather(1, self.targets_mr.index_select(0, block))
            hits_b1 = hits_br.sum(1, keepdim=True)
            calls_b1 = calls_bm.sum(1, keepdim=True)  # of a row alone exact in float32
            errors_b1 = calls_b1 + self.edges_m1.index_select(0, block) - 2 * hits_b1
            self.errors[some] = errors_b1.flatten()[: len(some)].long()
            totals = torch.cat([hits_b1, calls_b1, errors_b1], 1).double().sum(0)
            hits, calls, errors = totals.long().tolist()
            true_positives, predicted = true_positives + hits, predicted + calls
            wrong += errors
            if above is not None and cannot_pass(self.actual, wrong, above):
                return None
        return micro_f1(true_positives, predicted, self.actual)
