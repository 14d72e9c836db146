"""Mean squared error of a lane of model ``value`` over a set of contexts (Sec. 7.2).

Every check tells the error itself, so it cannot end early. Where items are few, all pairs of
them are scored once a check, and contexts look their scores up; where they are fewer still,
errors are summed over triples of items rather than over contexts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rgr_dist.engines.cooccurrence import asks_of, form_of_errors, meetings_pay
from rgr_dist.engines.fused.error_kernels import (
    error_by_meetings,
    error_in_contexts,
    score_all_pairs,
)
from rgr_dist.engines.fused.kernels import project_items
from rgr_dist.engines.fused.lane import Lane, padded, zeros
from rgr_dist.engines.fused.tiles import WIDTH


class ErrorScorer:
    """Scores one lane over one set of contexts.

    Args:
        contexts: int32 [n, l].
        often: whether to prepare for many scores rather than one.

    Attributes:
        scores, form: of pairs and of triples of items; empty where those do not pay.
    """

    def __init__(self, lane: Lane, contexts: npt.NDArray[np.int32], often: bool = False) -> None:
        self.lane, self.contexts = lane, contexts
        m, E, sizes = lane.run.cell.m, lane.sizes.E, lane.sizes
        targets = lane.task.targets
        self.asks = asks_of(contexts, targets)
        by_pairs = m * m <= contexts.size * contexts.shape[1]
        L = padded(m, WIDTH) if by_pairs else 0
        self.sizes = sizes._replace(length=m, L=L)
        self.items_t, self.P = zeros(E, L), zeros(sizes.C, L)
        self.items_t.reshape(E, L)[:, :m] = lane.items.reshape(-1, E)[:m].T if by_pairs else 0
        self.scores, self.winner = zeros(L, L), zeros(L, L)
        self.table = zeros(0 if by_pairs else lane.items.size // E, sizes.T)
        by_triples = often and by_pairs and meetings_pay(m, contexts)
        self.form = zeros(0)
        if by_triples:
            self.form = form_of_errors(contexts, targets, lane.task.messages, L).ravel()

    def score(self, above: float | None = None) -> float:
        """Mean squared error over the positions whose target is present; 0.0 if there is none.

        It is told whatever it is ``above``.
        """
        lane = self.lane
        if self.scores.size:
            score_all_pairs(lane.theta, self.sizes, self.items_t, self.P, self.scores, self.winner)
        else:
            project_items(lane.theta, lane.scratch, lane.sizes, lane.items, self.table)
        if self.form.size:
            error = error_by_meetings(self.sizes, lane.task.targets, self.scores, self.form)
            error = 0.0 if error < 0 else error  # rounding may leave a little less; NaN stays
        else:
            error = error_in_contexts(
                lane.theta,
                lane.scratch,
                lane.sizes,
                lane.items,
                lane.messages,
                lane.task.targets,
                self.contexts,
                *self.asks,
                self.table,
                self.scores,
                self.sizes.L,
            )
        return float(error) / max(1, len(self.asks.positions))
