"""How the lanes of a program are scored: checks as they train, and a test when they stop.

Micro-F1: where items are few, every pair of them is scored once and counts as often as it occurs;
where they are many, or a pair's score depends on its context, each context is scored. A check
that only asks whether F1 exceeds a value looks first at the contexts that were wrong the last
time, and ends as soon as the answer is no. ``retrieval_error`` scores model ``value``. In all
cases only a lane's own numbers enter its score.

Shapes in names: L lanes, n contexts of l items, m items (and one of padding), p some of the
items, d = d_model, h heads, k = d_k, D = h * k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad

from rgr_dist.engines.api import Outcome, StopReason, f1_cannot_exceed
from rgr_dist.engines.lanes.batches import REGISTER, padded
from rgr_dist.engines.lanes.retrieval_error import (
    SCORES_AT_ONCE_ON_CPU,
    SCORES_AT_ONCE_ON_GPU,
    ErrorScorer,
)
from rgr_dist.engines.lanes.state import Lanes, Layer
from rgr_dist.models.f1 import micro_f1
from rgr_dist.models.labels import labels

Contexts = npt.NDArray[np.int32]

PAIRS_AT_ONCE_ON_CPU, PAIRS_AT_ONCE_ON_GPU = 2**20, 2**28
"""Scores of pairs of items that are held at once: what fits in a core's cache, or a GiB."""
PAIRS_AT_MOST = 2**21
"""Pairs that are counted for each lane; a bound on memory."""
FIRST_LOOK = 16
"""Contexts scored before a check first asks whether it can still be passed."""


class Evaluation:
    """Scores lanes, and keeps what their checks need from one to the next."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.counts: dict[int, Tensor] = {}  # of pairs, [m, m], by run index
        self.scorers: dict[int, ContextScorer | ErrorScorer] = {}  # by run index

    def validate(self, lanes: Sequence[int], above: float | None = None) -> list[float | None]:
        """Scores of lanes over their validation contexts; on a GPU many lanes at once.

        An F1 that is certainly not above a value may be None.
        """
        state = self.lanes
        self._forget()
        if not self._by_pairs(state.tasks[0].validation):
            return [self._validation(lane).score(state.layer(lane), above) for lane in lanes]
        some = lanes_at_once(state.device, state.h, state.cell.m)
        groups = [list(lanes[i : i + some]) for i in range(0, len(lanes), some)]
        counts = [torch.stack([self._counts(lane) for lane in group]) for group in groups]
        scores = [self._score_pairs(*both) for both in zip(groups, counts, strict=True)]
        return [f1 for group in scores for f1 in group]

    def score(self, lane: int, contexts: Contexts) -> float:
        """Score of a lane over a set of contexts."""
        if self._by_pairs(contexts):
            counts = count_pairs(self.lanes.cell.m, contexts).to(self.lanes.device)
            return self._score_pairs([lane], counts.unsqueeze(0))[0]
        score = self._scorer(lane, contexts).score(self.lanes.layer(lane))
        assert score is not None
        return score

    def outcome(self, lane: int, stop_reason: StopReason, val_score: float | None) -> Outcome:
        """How a lane ended, tested unless it diverged; the engine fills in its time."""
        state, diverged = self.lanes, stop_reason == "diverged"
        has_tau = state.cell.record.has_tau and not diverged
        return Outcome(
            score=None if diverged else self.score(lane, state.tasks[lane].test),
            val_score=val_score,
            tau=state.tau(lane) if has_tau else None,
            steps=state.steps,
            stop_reason=stop_reason,
            seconds=0.0,
        )

    def _by_pairs(self, contexts: Contexts) -> bool:
        cell = self.lanes.cell
        if cell.record.score != "F1" or cell.record.heads != "max":
            return False  # what is scored is no pair, or a pair scores differently in each context
        return pairs_pay(cell.m, cell.d_model, contexts, self.lanes.device)

    def _forget(self) -> None:
        """Drop what belonged to lanes that have left."""
        for index in {*self.counts, *self.scorers} - {*self.lanes.indices}:
            self.counts.pop(index, None)
            self.scorers.pop(index, None)

    def _counts(self, lane: int) -> Tensor:
        state, index = self.lanes, self.lanes.indices[lane]
        if index not in self.counts:
            counts = count_pairs(state.cell.m, state.tasks[lane].validation)
            self.counts[index] = counts.to(state.device)
        return self.counts[index]

    def _validation(self, lane: int) -> ContextScorer | ErrorScorer:
        index = self.lanes.indices[lane]
        if index not in self.scorers:
            validation = self.lanes.tasks[lane].validation
            self.scorers[index] = self._scorer(lane, validation, often=True)
        return self.scorers[index]

    def _scorer(
        self, lane: int, contexts: Contexts, often: bool = False
    ) -> ContextScorer | ErrorScorer:
        batches = self.lanes.batches
        if self.lanes.cell.record.score == "error":
            return ErrorScorer(contexts, self.lanes.tasks[lane], batches.V_Lmv[lane], often)
        return ContextScorer(contexts, batches.labels.of_lane(lane))

    def _score_pairs(self, lanes: Sequence[int], counts_Lmm: Tensor) -> list[float]:
        state, batches = self.lanes, self.lanes.batches
        W_Q, W_K, tau = (p[lanes] for p in state.parameters)
        X_Lmd = batches.X_Lmd[lanes, : state.cell.m]

        def sum_edges(values_Lpm: Tensor, part: slice) -> Tensor:
            return batches.labels.sum_edges(values_Lpm, lanes, part)

        return score_pairs(counts_Lmm, sum_edges, X_Lmd, W_Q, W_K, tau[:, 0], state.h)


def pairs_pay(m: int, d_model: int, contexts: Contexts, device: torch.device) -> bool:
    """Whether scoring all pairs of items is faster than scoring the contexts one by one.

    On a CPU if they are no more than the pairs of the contexts, since either way items are
    projected once. On a GPU if they are less work than contexts that are projected anew, since
    there one product scores all pairs of many lanes.
    """
    n, length = contexts.shape
    if device.type == "cpu":
        length = padded(length, REGISTER)
        return bool(m * m <= min(PAIRS_AT_MOST, n * length * length))
    by_contexts = n * length * (length + 2 * d_model)
    return m * m <= PAIRS_AT_MOST and m * (m + 2 * d_model) <= by_contexts


def lanes_at_once(device: torch.device, h: int, m: int) -> int:
    """Lanes to score together: one on a CPU, where its numbers must not depend on others."""
    return 1 if device.type == "cpu" else max(1, PAIRS_AT_ONCE_ON_GPU // (h * m * m))


def count_pairs(m: int, contexts: Contexts) -> Tensor:
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
        counts_Lmm: how often each pair of items occurs.
        sum_edges: sums values of the pairs of some sources, [L, p, m], over the edges, to [L].
        W_Q, W_K: projections, transposed: [L, D, d].
    """
    L, m, _ = X_Lmd.shape
    Q, K = (torch.bmm(W, X_Lmd.transpose(1, 2)).view(L * h, -1, m) for W in (W_Q, W_K))
    totals = torch.zeros(3, L, dtype=torch.float64, device=X_Lmd.device)
    at_once = PAIRS_AT_ONCE_ON_CPU if X_Lmd.device.type == "cpu" else PAIRS_AT_ONCE_ON_GPU
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


class ContextScorer:
    """Micro-F1 of one lane over one set of contexts, scored again and again.

    Contexts are padded to whole registers, so that the scores of one have the same bits in
    any order. Queries and keys depend on the item alone, so a check projects all items once.

    Args:
        contexts: int32 [n, l].
        targets_m: out-neighbours, as ``models.labels`` takes them; the last row is of the padding.

    Attributes:
        errors: wrong pairs of each context when it was last scored.
    """

    def __init__(self, contexts: Contexts, targets_m: Tensor) -> None:
        nodes = torch.from_numpy(contexts).to(targets_m.device).long()
        self.length = nodes.shape[1]
        extra = padded(self.length, REGISTER) - self.length
        self.nodes = pad(nodes, (0, extra), value=len(targets_m) - 1)
        self.edges = labels(nodes, targets_m)
        self.actual = int(self.edges.sum())
        self.errors = torch.zeros(len(nodes), dtype=torch.int64, device=nodes.device)

    def score(self, layer: Layer, above: float | None = None) -> float | None:
        """Micro-F1, or None if it is certainly not above a value.

        A number always comes from the queries and keys of all items at once, so it does not
        depend on the order of the contexts, nor on whether a check could end early.
        """
        order = torch.argsort(self.errors, descending=True, stable=True)
        n, pairs = self.nodes.shape[0], self.nodes.shape[1] ** 2
        if above is not None and FIRST_LOOK * self.nodes.shape[1] < len(layer.X_md):
            first = order[:FIRST_LOOK]
            nodes = self.nodes[first]
            rows = torch.arange(nodes.numel(), device=nodes.device).view_as(nodes)
            self._count(layer, layer.project(nodes.flatten()), first, rows)
            if f1_cannot_exceed(self.actual, int(self.errors[first].sum()), above):
                return None
        table = layer.project()
        on_cpu = order.device.type == "cpu"
        at_once = SCORES_AT_ONCE_ON_CPU if on_cpu else SCORES_AT_ONCE_ON_GPU
        at_once = max(1, at_once // (layer.h * pairs))
        tp = predicted = errors = done = 0
        while done < n:
            until = done + (at_once if above is None else min(at_once, max(done, FIRST_LOOK)))
            block = order[done:until]
            counts = self._count(layer, table, block, self.nodes[block])
            tp, predicted = tp + counts[0], predicted + counts[1]
            errors += int(self.errors[block].sum())
            if above is not None and f1_cannot_exceed(self.actual, errors, above):
                return None
            done = until
        return micro_f1(tp, predicted, self.actual)

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
