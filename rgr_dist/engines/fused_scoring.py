"""Micro-F1 of a lane over a set of contexts, at a small share of the time of training.

Queries and keys depend on the item alone, so they are projected once a check. Where the
items are few, each pair of them is scored once and counts as often as it occurs. Where they
are many, each context is scored by itself, and a check that asks only whether the score is
above a value ends as soon as the answer is no.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rgr_dist.engines.fused_kernels import count_in_contexts, count_in_pairs, project_items
from rgr_dist.engines.fused_lane import Lane, padded, zeros
from rgr_dist.engines.fused_tiles import WIDTH

FIRST_LOOK = 16
"""Contexts scored before a check first asks whether it can still be passed."""


MOST_PAIRS = 2**20
"""Pairs counted at once; a bound on memory."""


class Scorer:
    """Scores one lane over one set of contexts.

    Args:
        contexts: int32 [n, l].
        often: whether to prepare for many scores rather than one.
    """

    def __init__(self, lane: Lane, contexts: npt.NDArray[np.int32], often: bool = False) -> None:
        n, length = contexts.shape
        m = lane.run.cell.m
        self.lane, self.contexts = lane, contexts
        present = np.zeros((n, m), dtype=bool)
        np.put_along_axis(present, contexts, True, axis=1)
        self.actual = int(np.take_along_axis(present, lane.task.targets[contexts], axis=1).sum())
        self.by_pairs = often and 2 * m * m <= n * length * length
        if self.by_pairs:
            self._prepare_pairs()
        else:
            self.errors = np.zeros(n, dtype=np.int64)
            self.table = zeros(lane.items.size // lane.sizes.E, lane.sizes.T)

    def score(self, above: float | None = None) -> float | None:
        """Micro-F1, or None if it is certainly not above a value."""
        return self._by_pairs() if self.by_pairs else self._by_contexts(above)

    def _micro_f1(self, true_positives: int, predicted: int) -> float:
        edges = predicted + self.actual
        return 2 * true_positives / edges if edges else 1.0

    def _prepare_pairs(self) -> None:
        """Count how often each pair occurs, and make room for all pairs at once."""
        lane, m = self.lane, self.lane.run.cell.m
        n_pairs = self.contexts.size * self.contexts.shape[1]
        E, L = lane.sizes.E, padded(m, WIDTH)
        L += WIDTH * (1 - L // WIDTH % 2)  # rows of an odd number of cache lines share no sets
        self.sizes = lane.sizes._replace(length=m, L=L)
        self.items_t, self.P = zeros(E, L), zeros(lane.sizes.C, L)
        self.items_t.reshape(E, L)[:, :m] = lane.items.reshape(-1, E)[:m].T
        self.scores, self.winner = zeros(L, L), zeros(L, L)
        self.times = zeros(m, L)
        for nodes in np.array_split(self.contexts.astype(np.int64), -(-n_pairs // MOST_PAIRS)):
            pairs = nodes[:, :, None] * L + nodes[:, None, :]
            self.times += np.bincount(pairs.ravel(), minlength=m * L).astype(np.float32)
        self.times[np.arange(m) * L + lane.task.targets] *= -1

    def _by_pairs(self) -> float:
        return self._micro_f1(
            *count_in_pairs(
                self.lane.theta,
                self.sizes,
                self.items_t,
                self.P,
                self.scores,
                self.winner,
                self.times,
            )
        )

    def _by_contexts(self, above: float | None) -> float | None:
        """Micro-F1, context by context; those that were wrong at the last look come first.

        E errors so far and A edges in all bound it by 2 A / (2 A + E), since
        F1 = 2 TP / (2 TP + FP + FN) and TP <= A.
        """
        lane = self.lane
        order = np.argsort(-self.errors, kind="stable")
        contexts, errors = self.contexts[order], self.errors[order]
        table = self.table[:0]
        true_positives, predicted = 0, 0
        done, until = 0, len(contexts) if above is None else FIRST_LOOK
        while done < len(contexts):
            block = slice(done, until)
            if not table.size and contexts[block].size > lane.run.cell.m:
                table = self.table
                project_items(lane.theta, lane.scratch, lane.sizes, lane.items, table)
            hits, calls = count_in_contexts(
                lane.theta,
                lane.scratch,
                lane.sizes,
                lane.items,
                lane.task.targets,
                contexts[block],
                table,
                errors[block],
            )
            true_positives += hits
            predicted += calls
            self.errors[order[block]] = errors[block]
            wrong = int(errors[:until].sum())
            if above is not None and wrong and 2 * self.actual / (2 * self.actual + wrong) <= above:
                return None
            done, until = until, 2 * until
        return self._micro_f1(true_positives, predicted)
