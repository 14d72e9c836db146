"""Many cells, one pool of slots: which probe is run next, with which seeds.

``ask`` hands out seeds of a probe that some cell needs. When all of those are being run, an
idle slot takes more seeds of such a probe, or a probe that a cell will need if a running one
passes or fails (k-section). Speculation changes when results arrive, never what they are.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rgr_dist.search.cell_search import replay
from rgr_dist.search.cell_state import Assumed, CellState, Evidence
from rgr_dist.search.probe_verdict import SeedTest, Verdict
from rgr_dist.search.protocol import CellPlan, Need, Probe, ProbeKey, Signal, Want

Seeds = tuple[int, ...]


class Portfolio:
    """Ask/tell over a list of cells; the first has priority.

    Args:
        plans: the cells, in order of priority: the longest first keeps slots busy to the end.
        test: the test of a probe.
        slots: probes that run at once. Where they outnumber the open cells, the seeds of a
            probe are handed out separately.
        look_ahead: how many sets of outcomes of running probes to assume per cell, for idle slots.
        together: the most seeds to hand out at once; no limit if not given.
    """

    def __init__(
        self,
        plans: Sequence[CellPlan],
        test: SeedTest,
        slots: int = 1,
        look_ahead: int = 64,
        together: int | None = None,
    ) -> None:
        self.plans = {plan.cell: plan for plan in plans}
        if len(self.plans) != len(plans):
            raise ValueError("two plans name the same cell")
        self._followers: dict[str, list[str]] = defaultdict(list)
        for plan in plans:
            for guide in plan.guides:
                self._followers[guide].append(plan.cell)
        self.test = replace(test, look=0)  # when to look first, each search decides
        self.slots = slots
        self.look_ahead = look_ahead
        self.together = together or test.seeds + test.extra
        self._evidence: dict[str, Evidence] = {cell: {} for cell in self.plans}
        self._failed: dict[str, dict[ProbeKey, set[int]]] = {cell: {} for cell in self.plans}
        self._states: dict[str, CellState] = {}
        self._guesses: dict[str, Iterator[tuple[Need, Seeds, Assumed]]] = {}
        self._assumed: dict[Probe, Assumed] = {}  # for what is being run ahead of need
        self._running: dict[tuple[str, ProbeKey], set[int]] = defaultdict(set)
        self._open = dict.fromkeys(self.plans)  # cells that may not be finished, in order
        self._busy: set[str] = set()  # cells whose needs are all being run

    def __getstate__(self) -> dict[str, Any]:
        """Everything except the guesses, which follow from the rest."""
        return {**self.__dict__, "_guesses": {}}

    def tell(self, cell: str, arm: int, value: int, seed: int, score: float) -> None:
        """Take in the score of one run; later scores of that run, even other ones, are ignored.

        Raises:
            ValueError: the score is not a number, or outside its bounds.
            KeyError: no plan has that cell.
        """
        self.tell_probe(cell, ProbeKey(arm, value), {seed: score})

    def tell_probe(self, cell: str, key: ProbeKey, scores: Mapping[int, float]) -> None:
        """Take in the scores of several runs of a probe, by seed, as ``tell`` does for one run.

        Raises:
            ValueError: a score is not a number, or outside its bounds.
            KeyError: no plan has that cell.
        """
        known = self._evidence[cell].setdefault(key, {})
        for seed, score in scores.items():
            try:
                self.test.check(score)
            except ValueError as error:
                at = f"{cell}, arm {key.arm}, value {key.value}, seed {seed}"
                raise ValueError(f"{at}: {error}") from None
            known.setdefault(seed, score)
        self._changed(cell)

    def tell_failed(self, cell: str, key: ProbeKey, seeds: Iterable[int]) -> None:
        """Note seeds of a probe that could not be run, to count as ``CellPlan.unrunnable`` says."""
        self._failed[cell].setdefault(key, set()).update(seeds)
        self._changed(cell)

    def hold(self, probe: Probe) -> None:
        """Mark the seeds of a probe as running: an earlier search has already handed them out."""
        self._running[probe.cell, probe.key].update(probe.seeds)
        self._guesses.pop(probe.cell, None)

    def release(self, probe: Probe) -> None:
        """Mark the seeds of a probe as no longer running."""
        self._assumed.pop(probe, None)
        running = self._running[probe.cell, probe.key]
        running.difference_update(probe.seeds)
        if not running:
            del self._running[probe.cell, probe.key]
        self._guesses.pop(probe.cell, None)
        self._busy.discard(probe.cell)

    def scores(self, cell: str, key: ProbeKey) -> dict[int, float]:
        """Every score that is known of a probe, by seed."""
        return dict(self._evidence[cell].get(key, {}))

    def state(self, cell: str) -> CellState:
        """A cell's search, run up to where the evidence ends."""
        if cell not in self._states:
            state = self._replay(cell)
            self._states[cell] = state
            if state.is_done:
                self._open.pop(cell, None)
        return self._states[cell]

    def _replay(self, cell: str, assumed: Assumed | None = None) -> CellState:
        """Replay a cell's search, given the searches that it follows."""
        plan, known = self.plans[cell], (self._evidence[cell], self._failed[cell])
        guides = {name: self.state(name) for name in plan.guides}
        done = {name: state for name, state in guides.items() if state.is_done}
        test = self.test if plan.target is None else replace(self.test, target=plan.target)
        return replay(plan, test, *known, assumed, done)

    @property
    def is_done(self) -> bool:
        """Whether every cell is finished."""
        return all(self.state(cell).is_done for cell in list(self._open))

    def ask(self) -> Probe | Signal:
        """The next probe to run, or a signal that there is none for now, or none any more."""
        for cell in list(self._open):
            if cell not in self._busy:
                for need in self.state(cell).needs:
                    if seeds := self._free(cell, need.key, self._states[cell].wave(need)):
                        return self._hand_out(cell, need.key, seeds)
                self._busy.add(cell)
        for cell in list(self._open):
            guesses = self._guesses.setdefault(cell, self._speculate(cell))
            for need, seeds, assumed in guesses:
                probe = self._hand_out(cell, need.key, seeds)
                self._assumed[probe] = assumed
                return probe
        return Signal.DONE if self.is_done else Signal.WAIT

    def is_wanted(self, probe: Probe) -> bool:
        """Whether the seeds of a probe that have no score could still tell the search something."""
        cell, key = probe.cell, probe.key
        known, failed = self._evidence[cell].get(key, {}), self._failed[cell].get(key, ())
        if all(seed in known or seed in failed for seed in probe.seeds):
            return False
        state = self.state(cell)
        if any(need.key == key and state.wave(need) for need in state.needs):
            return True
        if state.is_done:
            return False
        if self._may_be_needed(probe):
            return True
        wave = state.test_of(key).next_wave(known)
        if not wave or state.failed_of(key, wave):
            return False
        bracket = state.brackets[key.arm]
        below = key.value <= state.cap(key.arm)
        return bracket.low < key.value and below and key.value < (bracket.high or key.value + 1)

    def _may_be_needed(self, probe: Probe) -> bool:
        """Whether the outcomes under which a probe was handed out are open, and may come true."""
        state, assumed = self.state(probe.cell), self._assumed.get(probe, {})
        known = {one: state.outcome(Need(one[0], "assumed", one[1])) for one in assumed}
        return None in known.values() and all(
            outcome in (None, assumed[one]) for one, outcome in known.items()
        )

    def _changed(self, cell: str) -> None:
        """Forget what was derived from the evidence of a cell, which has changed."""
        self._states.pop(cell, None)
        self._guesses.pop(cell, None)
        self._busy.discard(cell)
        for follower in self._followers[cell]:
            if follower in self._states:
                self._open[follower] = None
                self._changed(follower)

    def _free(self, cell: str, key: ProbeKey, wave: Seeds) -> Seeds:
        """A share of the seeds of a wave that neither run nor failed; all while slots are few."""
        searched = sum(not self.state(open_cell).is_waiting for open_cell in list(self._open))
        share = -(-len(wave) * searched // self.slots)
        taken = self._running.get((cell, key), set()) | self._failed[cell].get(key, set())
        return tuple(seed for seed in wave if seed not in taken)[
            : max(1, min(share, self.together))
        ]

    def _hand_out(self, cell: str, key: ProbeKey, seeds: Seeds) -> Probe:
        self._running[cell, key].update(seeds)
        return Probe(cell, key.arm, key.value, seeds)

    def _speculate(self, cell: str) -> Iterator[tuple[Need, Seeds, Assumed]]:
        """Seeds needed under some outcomes of the running probes, fewest assumptions first."""
        queue: deque[dict[tuple[ProbeKey, Want], Verdict]] = deque([{}])
        for _ in range(self.look_ahead):
            if not queue:
                return
            assumed = queue.popleft()
            state = self._replay(cell, assumed)
            for need in state.needs:
                while seeds := self._free(cell, need.key, state.wave(need)):
                    yield need, seeds, assumed
            for need in state.needs:
                # Unless it fails, a probe needs every seed in the end, or those of a first look.
                test = state.test_of(need.key, need.want)
                rest = test.next_wave(self._evidence[cell].get(need.key, {}), complete=True)
                rest = tuple(seed for seed in rest if not test.look or seed < test.look)
                while self._may_pass(cell, need) and (seeds := self._free(cell, need.key, rest)):
                    yield need, seeds, assumed
            open_needs = [need for need in state.needs if need.ends_early]
            for need in open_needs[:1]:
                for verdict in ("fail", "pass"):
                    queue.append({**assumed, (need.key, need.want): verdict})

    def _may_pass(self, cell: str, need: Need) -> bool:
        """Whether the mean of a probe's known scores reaches the target; true if none is known."""
        known = self._evidence[cell].get(need.key, {})
        known = {seed: score for seed, score in known.items() if seed < self.test.seeds}
        return not known or self.test.reaches(self.test.mean(known))
