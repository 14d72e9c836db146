"""How the lanes of a program are scored: checks as they train, and a test when they stop.

Micro-F1: where items are few, every pair of them is scored once and counts as often as it occurs;
where they are many, or a pair's score may depend on its context, each context is scored. A check
that only asks whether F1 exceeds a value looks first at the contexts that had the most errors last
time, and ends as soon as the answer is no. Mean squared error of retrieved messages (Sec. 7.2):
each context is scored, and no check ends early. In all cases only a lane's own numbers enter its
score.

Shapes in names: L lanes, n contexts of l items, m items (and one of padding), r = the most
out-neighbours of an item, p some of the items, h heads, d = d_model, k = d_k, v = width of a
message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad

from rgr_dist.engines.api import End, Outcome, StopReason, f1_cannot_exceed, padded
from rgr_dist.engines.lanes.batches import REGISTER
from rgr_dist.engines.lanes.own_layer import OwnLane, OwnLanes
from rgr_dist.engines.lanes.state import Lanes, Layer
from rgr_dist.models.edges import labels
from rgr_dist.models.f1 import micro_f1
from rgr_dist.models.own_layer import paid

Contexts = npt.NDArray[np.int32]

PAIRS_AT_ONCE_ON_CPU, PAIRS_AT_ONCE_ON_GPU = 2**20, 2**28
"""Scores of pairs of items that are held at once: what fits in a core's cache, or in a GiB."""
SCORES_AT_ONCE_ON_CPU, SCORES_AT_ONCE_ON_GPU = 2**18, 2**28
"""Scores of pairs in contexts that are held at once, counting each head's."""
PAIRS_AT_MOST = 2**21
"""The most pairs that are counted for a lane; this bounds memory."""
BETWEEN_LOOKS = 64
"""Contexts scored before a check asks again whether F1 can still exceed the value."""


class Evaluation:
    """Scores lanes, and keeps what each check needs from the one before."""

    def __init__(self, lanes: Lanes | OwnLanes) -> None:
        self.lanes = lanes
        self.scorers: dict[int, PairScorer | ContextScorer | ErrorScorer] = {}  # by run index

    def validate(self, lane: int, above: float | None = None) -> float | None:
        """Score of a lane over its validation contexts, or None for an F1 not above ``above``."""
        index = self.lanes.indices[lane]
        if index not in self.scorers:
            self.scorers[index] = self._scorer(lane, self.lanes.tasks[lane].validation)
        return self.scorers[index].score(self.lanes.layer(lane), above)

    def score(self, lane: int, contexts: Contexts) -> float:
        """Score of a lane over a set of contexts."""
        score = self._scorer(lane, contexts).score(self.lanes.layer(lane))
        assert score is not None
        return score

    def outcomes(self, ended: Sequence[End]) -> list[Outcome]:
        """How lanes ended, tested unless they diverged; the engine fills in their time."""
        return [self._outcome(*end) for end in ended]

    def _outcome(self, lane: int, stop_reason: StopReason, val_score: float | None) -> Outcome:
        state = self.lanes
        if stop_reason == "diverged":
            return Outcome(steps=state.steps, stop_reason=stop_reason)
        parameters = cached = None
        if isinstance(state, OwnLanes):
            parameters, cached = paid(state.own_layer)
        return Outcome(
            steps=state.steps,
            stop_reason=stop_reason,
            score=self.score(lane, state.tasks[lane].test),
            val_score=val_score,
            tau=state.tau(lane) if state.cell.record.has_tau else None,
            parameters=parameters,
            cached=cached,
        )

    def _scorer(self, lane: int, contexts: Contexts) -> PairScorer | ContextScorer | ErrorScorer:
        cell, batches = self.lanes.cell, self.lanes.batches
        targets_mr = batches.targets_Lmr[lane].long()
        if cell.record.loss == "messages":
            return ErrorScorer(contexts, targets_mr, batches.V_Lmv[lane])
        # The softmax of a pair depends on its context.
        if cell.record.scores_pairs and pairs_pay(cell.m, cell.d_model, contexts, batches.device):
            return PairScorer(contexts, targets_mr)
        return ContextScorer(contexts, targets_mr)


def pairs_pay(m: int, d_model: int, contexts: Contexts, device: torch.device) -> bool:
    """Whether scoring all pairs of items is faster than scoring the contexts one by one.

    On a CPU it is if there are no more pairs of items than pairs in contexts, since items are
    projected once either way. On a GPU it is if all pairs, scored by one product, are less work
    than contexts that are each projected anew.
    """
    n, length = contexts.shape
    if device.type == "cpu":
        length = padded(length, REGISTER)
        return bool(m * m <= min(PAIRS_AT_MOST, n * length * length))
    by_contexts = n * length * (length + 2 * d_model)
    return m * m <= PAIRS_AT_MOST and m * (m + 2 * d_model) <= by_contexts


class PairScorer:
    """Micro-F1 of one lane over one set of contexts, from how often each pair of items occurs.

    Args:
        contexts: int32 [n, l].
        targets_mr: out-neighbours of each item and of the padding, padded with -1.
    """

    def __init__(self, contexts: Contexts, targets_mr: Tensor) -> None:
        m, device = len(targets_mr) - 1, targets_mr.device
        nodes = contexts.astype(np.int64)
        pairs = nodes[:, :, np.newaxis] * m + nodes[:, np.newaxis, :]
        counts = np.bincount(pairs.ravel(), minlength=m * m).reshape(m, m)
        self.counts_mm = torch.from_numpy(counts).to(device, torch.float32)  # exact below 2**24
        self.targets_mr = targets_mr[:-1]
        self.actual = self._over_edges(self.counts_mm, slice(None))

    def score(self, layer: Layer | OwnLane, above: float | None = None) -> float:
        """Micro-F1; ``above`` is ignored, since all pairs are scored anyway."""
        assert isinstance(layer, Layer)
        X_1dm = layer.X_md[:-1].unsqueeze(0).transpose(1, 2)
        m, h = X_1dm.shape[2], layer.h
        Q, K = (torch.bmm(W.unsqueeze(0), X_1dm).view(h, -1, m) for W in (layer.W_Q, layer.W_K))
        at_once = PAIRS_AT_ONCE_ON_CPU if Q.device.type == "cpu" else PAIRS_AT_ONCE_ON_GPU
        rows, tp, predicted = max(1, at_once // (h * m)), 0, 0
        for first in range(0, m, rows):
            part = slice(first, first + rows)
            S_pm = torch.bmm(Q[:, :, part].transpose(1, 2), K).amax(0)
            counts_pm = S_pm.gt_(layer.tau).mul_(self.counts_mm[part])
            tp += self._over_edges(counts_pm, part)
            predicted += int(counts_pm.sum(1).double().sum())  # float32 is exact only for a row
        return micro_f1(tp, predicted, self.actual)

    def _over_edges(self, counts_pm: Tensor, part: slice) -> int:
        """The sum of the counts of some sources' pairs, over those pairs that are edges."""
        targets_pr = self.targets_mr[part]
        counts_pr = counts_pm.gather(1, targets_pr.clamp(min=0)).mul_(targets_pr >= 0)
        return int(counts_pr.sum(1).double().sum())


class _InContexts:
    """The combined scores of one lane in one set of contexts.

    Contexts are padded to whole registers, so that a context's scores have the same bits in any
    order. Queries and keys depend on the item alone, so all items are projected once.

    Args:
        contexts: int32 [n, l].
        targets_mr: out-neighbours of each item and of the padding, padded with -1.
    """

    def __init__(self, contexts: Contexts, targets_mr: Tensor) -> None:
        nodes = torch.from_numpy(contexts).to(targets_mr.device).long()
        self.length = nodes.shape[1]
        extra = padded(self.length, REGISTER) - self.length
        self.nodes = pad(nodes, (0, extra), value=len(targets_mr) - 1)
        self.edges = labels(nodes, targets_mr)

    def at_once(self, h: int) -> int:
        """How many contexts are scored at once."""
        on_cpu = self.nodes.device.type == "cpu"
        scores = SCORES_AT_ONCE_ON_CPU if on_cpu else SCORES_AT_ONCE_ON_GPU
        return max(1, scores // (h * self.nodes.shape[1] ** 2))

    def scorer_of(self, layer: Layer | OwnLane) -> Callable[[Tensor], Tensor]:
        """A function from the numbers of some contexts, [n], to their scores, [n, l, l]."""
        if isinstance(layer, Layer):
            return partial(self._combined, layer, layer.project())
        return lambda block: layer.scores(self.nodes[block, : self.length])

    def _combined(self, layer: Layer, projected: tuple[Tensor, Tensor], block: Tensor) -> Tensor:
        """Scores of some contexts from the queries and keys of all items."""
        nodes, h = self.nodes[block], layer.h
        n, l_padded = nodes.shape
        by_head = (h * n, l_padded, -1)
        Q, K = (P.index_select(1, nodes.flatten()).view(by_head) for P in projected)
        S_hnll = torch.bmm(Q, K.transpose(1, 2)).view(h, n, l_padded, l_padded)
        return layer.combine(S_hnll[:, :, : self.length, : self.length])


class ContextScorer(_InContexts):
    """Micro-F1 of one lane over one set of contexts, scored again and again.

    Attributes:
        errors: wrong pairs of each context when it was last scored.
    """

    def __init__(self, contexts: Contexts, targets_mr: Tensor) -> None:
        super().__init__(contexts, targets_mr)
        self.actual = int(self.edges.sum())
        self.errors = torch.zeros(len(contexts), dtype=torch.int64, device=targets_mr.device)

    def score(self, layer: Layer | OwnLane, above: float | None = None) -> float | None:
        """Micro-F1, or None if it is certainly not above ``above``."""
        order = torch.argsort(self.errors, descending=True, stable=True)
        score_block, at_once = self.scorer_of(layer), self.at_once(layer.h)
        tp = predicted = errors = 0
        for block in order.split(at_once if above is None else min(at_once, BETWEEN_LOOKS)):
            called = score_block(block) > layer.tau
            edges = self.edges[block]
            self.errors[block] = (called ^ edges).sum((1, 2))
            errors += int(self.errors[block].sum())
            if above is not None and f1_cannot_exceed(self.actual, errors, above):
                return None
            tp, predicted = tp + int((called & edges).sum()), predicted + int(called.sum())
        return micro_f1(tp, predicted, self.actual)


class ErrorScorer(_InContexts):
    """Mean squared error of one lane of model ``value`` over one set of contexts (Sec. 7.2).

    Args:
        V_mv: messages.
    """

    def __init__(self, contexts: Contexts, targets_mr: Tensor, V_mv: Tensor) -> None:
        super().__init__(contexts, targets_mr)
        self.V_mv, self.retrieves = V_mv, self.edges.any(2)

    def score(self, layer: Layer | OwnLane, above: float | None = None) -> float:
        """Mean squared error over the positions whose target is present; 0.0 if there are none.

        Args:
            above: ignored; here because ``ContextScorer`` takes it.
        """
        score_block, total = self.scorer_of(layer), 0.0
        every = torch.arange(len(self.nodes), device=self.nodes.device)
        for block in every.split(self.at_once(layer.h)):
            V_nlv = self.V_mv[self.nodes[block, : self.length]]
            S_nll = score_block(block).sub_(self.edges[block].to(V_nlv))
            errors_nl = torch.bmm(S_nll, V_nlv).square_().sum(2).double()
            total += float(errors_nl[self.retrieves[block]].sum())
        return total / max(1, int(self.retrieves.sum()))
