"""How the lanes of a program are scored: checks as they train, and a test when they stop.

Where items are few, every pair of them is scored once and counts as often as it occurs; where
they are more, pairs are scored source by source; where they are many, or a score hangs on the
context, each context is scored. What a model that mixes messages is scored by is their error.
Any way a lane's own numbers alone go into its score.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rgr_dist.engines.engine import Outcome, StopReason
from rgr_dist.engines.lanes.blocks import BlockScorer, Layer
from rgr_dist.engines.lanes.contexts import WIDTHS, padded
from rgr_dist.engines.lanes.errors import ErrorScorer
from rgr_dist.engines.lanes.scoring import count_pairs, lanes_at_once, pairs_pay, score_pairs
from rgr_dist.engines.lanes.sources import SourceScorer, sources_pay

if TYPE_CHECKING:
    from rgr_dist.engines.lanes.state import Lanes


Scorer = BlockScorer | SourceScorer | ErrorScorer


class Checks:
    """Scores lanes, and keeps what their checks need from one to the next."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.counts: dict[int, Tensor] = {}  # of pairs, [m, m], by the place of a lane
        self.scorers: dict[int, Scorer] = {}  # by the place of a lane

    def validate(self, lanes: Sequence[int], above: float | None = None) -> list[float | None]:
        """Scores of lanes over their validation contexts; on a GPU many lanes at once.

        A score that is certainly not above a value may be None.
        """
        state = self.lanes
        self._forget()
        if not self._by_pairs(state.tasks[0].validation):
            return [self._scorer(lane).score(self._layer(lane), above) for lane in lanes]
        some = lanes_at_once(state.device, state.h, state.cell.m)
        groups = [list(lanes[i : i + some]) for i in range(0, len(lanes), some)]
        counts = [torch.stack([self._counts(lane) for lane in group]) for group in groups]
        scores = [self._score_pairs(*both) for both in zip(groups, counts, strict=True)]
        return [f1 for group in scores for f1 in group]

    def score(self, lane: int, contexts: npt.NDArray[np.int32]) -> float:
        """Score of a lane over a set of contexts."""
        if self._by_pairs(contexts):
            counts = count_pairs(self.lanes.cell.m, contexts).to(self.lanes.device)
            return self._score_pairs([lane], counts.unsqueeze(0))[0]
        state = self.lanes
        scorer: Scorer
        if state.cell.model == "value":
            scorer = ErrorScorer(contexts, state.tasks[lane], state.contexts.V_Lmv[lane])
        else:
            scorer = BlockScorer(contexts, self._targets(lane))
        score = scorer.score(self._layer(lane))
        assert score is not None
        return score

    def outcome(self, lane: int, stop_reason: StopReason, val_score: float | None) -> Outcome:
        """How a lane ended, tested unless it diverged; its time is for the engine to fill in."""
        diverged = stop_reason == "diverged"
        return Outcome(
            score=None if diverged else self.score(lane, self.lanes.tasks[lane].test),
            val_score=val_score,
            tau=None if diverged or self.lanes.cell.model == "value" else self.lanes.tau(lane),
            steps=self.lanes.steps,
            stop_reason=stop_reason,
            seconds=0.0,
        )

    def _by_pairs(self, contexts: npt.NDArray[np.int32]) -> bool:
        if self.lanes.cell.model != "max":
            return False  # a pair has another score in each context, or is not what is scored
        return pairs_pay(self.lanes.cell.m, self.lanes.cell.d_model, contexts, self.lanes.device)

    def _forget(self) -> None:
        """Drop what belonged to lanes that have left."""
        for place in {*self.counts, *self.scorers} - {*self.lanes.places}:
            self.counts.pop(place, None)
            self.scorers.pop(place, None)

    def _counts(self, lane: int) -> Tensor:
        place, state = self.lanes.places[lane], self.lanes
        if place not in self.counts:
            counts = count_pairs(state.cell.m, state.tasks[lane].validation)
            self.counts[place] = counts.to(state.device)
        return self.counts[place]

    def _scorer(self, lane: int) -> Scorer:
        state, place = self.lanes, self.lanes.places[lane]
        if place not in self.scorers:
            validation = state.tasks[lane].validation
            if state.cell.model == "value":
                task, V_mv = state.tasks[lane], state.contexts.V_Lmv[lane]
                self.scorers[place] = ErrorScorer(validation, task, V_mv, often=True)
            elif state.cell.model == "max" and sources_pay(state.cell.m, validation, state.device):
                self.scorers[place] = SourceScorer(validation, self._targets(lane))
            else:
                self.scorers[place] = BlockScorer(validation, self._targets(lane))
        return self.scorers[place]

    def _targets(self, lane: int) -> Tensor:
        return self.lanes.contexts.labels.of_lane(lane)

    def _projections(self, lanes: Sequence[int]) -> tuple[Tensor, Tensor]:
        """W_Q and W_K, [L, D, d]; of a single lane at its own width, as if it were alone."""
        width = padded(max(self.lanes.widths[lane] for lane in lanes), WIDTHS)
        W_Q, W_K = (
            W[lanes].unflatten(1, (self.lanes.h, -1))[:, :, :width].flatten(1, 2)
            for W in self.lanes.parameters[:2]
        )
        return W_Q, W_K

    def _layer(self, lane: int) -> Layer:
        W_Q, W_K = self._projections([lane])
        tau, X_Lmd = self.lanes.parameters[2][lane, 0], self.lanes.contexts.X_Lmd
        softmax = self.lanes.cell.model == "softmax"
        scale = self.lanes.widths[lane] ** -0.5 if softmax else None
        return Layer(X_Lmd[lane], W_Q[0], W_K[0], tau, self.lanes.h, scale)

    def _score_pairs(self, lanes: Sequence[int], counts_Lmm: Tensor) -> list[float]:
        state, feed = self.lanes, self.lanes.contexts
        X_Lmd, tau_L = feed.X_Lmd[lanes, : state.cell.m], state.parameters[2][lanes, 0]

        def sum_edges(values_Lpm: Tensor, part: slice) -> Tensor:
            return feed.labels.sum_edges(values_Lpm, lanes, part)

        return score_pairs(counts_Lmm, sum_edges, X_Lmd, *self._projections(lanes), tau_L, state.h)
