"""Many cells, one pool of slots: who is probed next.

``ask`` hands out a probe that some cell needs; when every such probe is already being run,
an idle slot takes one that a cell will need if a running one passes or fails (k-section).
Speculation changes when a result arrives, never which.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from search.cell_search import replay
from search.cell_state import CellState, Evidence
from search.protocol import CellPlan, Need, Probe, Signal, Verdict
from search.seed_test import SeedTest

Key = tuple[int, int]


class Portfolio:
    """Ask/tell over a list of cells; the first has priority.

    Args:
        plans: the cells, in order of priority: the longest first keeps slots busy to the end.
        test: the test of a probe.
        look_ahead: how many outcomes of running probes to suppose, per cell, for idle slots.
    """

    def __init__(self, plans: Sequence[CellPlan], test: SeedTest, look_ahead: int = 64) -> None:
        self.plans = {plan.cell: plan for plan in plans}
        if len(self.plans) != len(plans):
            raise ValueError("two plans name the same cell")
        self.test = test
        self.look_ahead = look_ahead
        self._evidence: dict[str, Evidence] = {cell: {} for cell in self.plans}
        self._failed: dict[str, set[Key]] = {cell: set() for cell in self.plans}
        self._states: dict[str, CellState] = {}
        self._guesses: dict[str, Iterator[Need]] = {}
        self._running: dict[tuple[str, Key], bool] = {}  # probe → every seed is wanted

    def tell(self, cell: str, h: int, d_k: int, seed: int, score: float) -> None:
        """Take in the score of one run; telling it again, even another score, changes nothing.

        Raises:
            ValueError: the score is not a number between 0 and 1.
            KeyError: no plan has that cell.
        """
        if not 0.0 <= score <= 1.0:
            raise ValueError(f"score {score} of {cell}, h={h}, d_k={d_k}, seed={seed}: not in 0…1")
        self._evidence[cell].setdefault((h, d_k), {}).setdefault(seed, score)
        self._changed(cell)

    def tell_failed(self, cell: str, h: int, d_k: int) -> None:
        """A run of this probe could not be trained: its head stays open."""
        self._failed[cell].add((h, d_k))
        self._changed(cell)

    def release(self, cell: str, h: int, d_k: int) -> None:
        """Nobody runs this probe any more."""
        self._running.pop((cell, (h, d_k)), None)
        self._guesses.pop(cell, None)

    def scores(self, cell: str, h: int, d_k: int) -> dict[int, float]:
        """Every score that is known of a probe, by seed."""
        return dict(self._evidence[cell].get((h, d_k), {}))

    def state(self, cell: str) -> CellState:
        """A cell's search as far as the evidence carries it."""
        if cell not in self._states:
            self._states[cell] = replay(
                self.plans[cell], self.test, self._evidence[cell], self._failed[cell]
            )
        return self._states[cell]

    @property
    def is_done(self) -> bool:
        """Whether every cell is finished."""
        return all(self.state(cell).is_done for cell in self.plans)

    def ask(self) -> Probe | Signal:
        """The next probe to run, or that there is none for now, or none any more."""
        for cell in self.plans:
            for need in self.state(cell).needs:
                if (cell, (need.h, need.d_k)) not in self._running:
                    return self._hand_out(cell, need, speculative=False)
        for cell in self.plans:
            guesses = self._guesses.setdefault(cell, self._speculate(cell))
            for need in guesses:
                if (cell, (need.h, need.d_k)) not in self._running:
                    return self._hand_out(cell, need, speculative=True)
        return Signal.DONE if self.is_done else Signal.WAIT

    def is_wanted(self, cell: str, h: int, d_k: int) -> bool:
        """Whether more seeds of a probe could still tell the search something."""
        if (h, d_k) in self._failed[cell]:
            return False
        scores, complete = self.scores(cell, h, d_k), self._running.get((cell, (h, d_k)), False)
        if not self.test.next_wave(scores, complete):
            return False
        state = self.state(cell)
        if any((need.h, need.d_k) == (h, d_k) for need in state.needs):
            return True
        bracket = state.brackets[h]
        inside = bracket.low < d_k <= state.cap(h) and (bracket.high is None or d_k < bracket.high)
        return inside and not state.is_done

    def _changed(self, cell: str) -> None:
        """Forget what followed from the evidence of a cell."""
        self._states.pop(cell, None)
        self._guesses.pop(cell, None)

    def _hand_out(self, cell: str, need: Need, speculative: bool) -> Probe:
        self._running[cell, (need.h, need.d_k)] = need.complete
        scores = self.scores(cell, need.h, need.d_k)
        return Probe(
            cell=cell,
            h=need.h,
            d_k=need.d_k,
            scores=tuple(sorted(scores.items())),
            complete=need.complete,
            speculative=speculative,
            reason=need.reason,
        )

    def _speculate(self, cell: str) -> Iterator[Need]:
        """Probes that will be needed under some outcomes of those that run, nearest first."""
        queue: deque[dict[Key, Verdict]] = deque([{}])
        for _ in range(self.look_ahead):
            if not queue:
                return
            assumed = queue.popleft()
            state = replay(
                self.plans[cell], self.test, self._evidence[cell], self._failed[cell], assumed
            )
            yield from state.needs
            open_needs = [need for need in state.needs if not need.complete]
            for need in open_needs[:1]:
                for verdict in ("fail", "pass"):
                    queue.append({**assumed, (need.h, need.d_k): verdict})
