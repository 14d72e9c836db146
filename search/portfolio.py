"""Many cells, one pool of slots: which probe is run next, with which seeds.

``ask`` hands out seeds of a probe that some cell needs. When all of those are being run, an idle
slot takes more seeds of such a probe, or a probe that a cell will need if a running one passes or
fails. Running ahead of need changes when results arrive, never what they are.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rgr_dist.search.seed_test import Verdict
from rgr_dist.search.threshold import Key, Need, Plan, Search, Want

Seeds = tuple[int, ...]
Assumed = dict[tuple[Key, Want], Verdict]


@dataclass(frozen=True)
class Probe:
    """What ``Portfolio.ask`` hands out: train these seeds of (cell, arm, value)."""

    cell: str
    arm: int
    value: int
    seeds: Seeds

    @property
    def key(self) -> Key:
        """What identifies the probe within its cell."""
        return Key(self.arm, self.value)


class Signal(Enum):
    """What ``Portfolio.ask`` answers when it has no probe to give."""

    WAIT = "everything that is needed is being run"
    DONE = "every cell is finished"


class Portfolio:
    """Ask and tell over many cells; the first has priority.

    Args:
        plans: the cells by name, in order of priority: the longest first keeps slots busy.
        slots: probes that run at once. Where they outnumber the open cells, the seeds of a
            probe are handed out separately.
        look_ahead: how many sets of outcomes of running probes to assume per cell, for idle slots.
        together: the most seeds to hand out at once; no limit if not given.
    """

    def __init__(
        self,
        plans: Mapping[str, Plan],
        slots: int = 1,
        look_ahead: int = 64,
        together: int | None = None,
    ) -> None:
        self.plans = dict(plans)
        self.slots, self.look_ahead, self.together = slots, look_ahead, together
        self._evidence: dict[str, dict[Key, dict[int, float]]] = {cell: {} for cell in plans}
        self._failed: dict[str, dict[Key, set[int]]] = {cell: {} for cell in plans}
        self._searches: dict[str, Search] = {}
        self._ahead: dict[str, Iterator[tuple[Need, Seeds, Assumed]]] = {}
        self._assumed: dict[Probe, Assumed] = {}  # of what is being run ahead of need
        self._running: dict[tuple[str, Key], set[int]] = defaultdict(set)
        self._open = dict.fromkeys(self.plans)  # cells that may not be finished, in order
        self._busy: set[str] = set()  # cells whose needs are all being run

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the generators of what is run ahead, which follow from the rest."""
        return {**self.__dict__, "_ahead": {}}

    def tell(self, cell: str, key: Key, scores: Mapping[int, float]) -> None:
        """Take in scores of a probe, by seed; later scores of the same runs are ignored.

        Raises:
            ValueError: a score is not a number, or outside its bounds.
        """
        known = self._evidence[cell].setdefault(key, {})
        for seed, score in scores.items():
            self.plans[cell].test.check(score)
            known.setdefault(seed, score)
        self._changed(cell)

    def forget(self, probe: Probe) -> None:
        """Take back the scores of a probe's seeds, which were not what they seemed."""
        for seed in probe.seeds:
            self._evidence[probe.cell].get(probe.key, {}).pop(seed, None)
        self._changed(probe.cell)

    def tell_failed(self, cell: str, key: Key, seeds: Iterable[int]) -> None:
        """Note seeds of a probe that could not be run: if it needs them, its arm stays open."""
        self._failed[cell].setdefault(key, set()).update(seeds)
        self._changed(cell)

    def release(self, probe: Probe) -> None:
        """Mark the seeds of a probe as no longer running."""
        self._assumed.pop(probe, None)
        running = self._running[probe.cell, probe.key]
        running.difference_update(probe.seeds)
        if not running:
            del self._running[probe.cell, probe.key]
        self._ahead.pop(probe.cell, None)
        self._busy.discard(probe.cell)

    def scores(self, cell: str, key: Key) -> dict[int, float]:
        """Every score that is known of a probe, by seed."""
        return dict(self._evidence[cell].get(key, {}))

    def search(self, cell: str) -> Search:
        """A cell's search, run up to where the evidence ends."""
        if cell not in self._searches:
            self._searches[cell] = self._replay(cell)
            if self._searches[cell].is_done:
                self._open.pop(cell, None)
        return self._searches[cell]

    @property
    def is_done(self) -> bool:
        """Whether every cell is finished."""
        return all(self.search(cell).is_done for cell in list(self._open))

    def ask(self) -> Probe | Signal:
        """The next probe to run, or a signal that there is none for now, or none any more."""
        for cell in list(self._open):
            if cell not in self._busy:
                search = self.search(cell)
                for need in search.needs:
                    if seeds := self._free(cell, need.key, search.wave(need)):
                        return self._hand_out(cell, need.key, seeds)
                self._busy.add(cell)
        for cell in list(self._open):
            for need, seeds, assumed in self._ahead.setdefault(cell, self._look_ahead(cell)):
                probe = self._hand_out(cell, need.key, seeds)
                self._assumed[probe] = assumed
                return probe
        return Signal.DONE if self.is_done else Signal.WAIT

    def is_wanted(self, probe: Probe) -> bool:
        """Whether the seeds of a probe that have no score could still tell the search something."""
        search = self.search(probe.cell)
        known = self._evidence[probe.cell].get(probe.key, {})
        failed = self._failed[probe.cell].get(probe.key, ())
        if all(seed in known or seed in failed for seed in probe.seeds):
            return False
        if any(need.key == probe.key for need in search.needs):
            return True
        assumed = self._assumed.get(probe, {})
        outcomes = {one: search.outcome(Need(*one, "assumed")) for one in assumed}
        return None in outcomes.values() and all(
            outcome in (None, assumed[one]) for one, outcome in outcomes.items()
        )

    def _replay(self, cell: str, assumed: Assumed | None = None) -> Search:
        return Search(self.plans[cell], self._evidence[cell], self._failed[cell], assumed)

    def _changed(self, cell: str) -> None:
        """Forget what was derived from the evidence of a cell, which has changed."""
        self._searches.pop(cell, None)
        self._ahead.pop(cell, None)
        self._busy.discard(cell)

    def _free(self, cell: str, key: Key, wave: Seeds) -> Seeds:
        """A share of the seeds of a wave that neither run nor failed; all while slots are few."""
        share = -(-len(wave) * len(self._open) // self.slots)
        taken = self._running.get((cell, key), set()) | self._failed[cell].get(key, set())
        most = max(1, min(share, self.together or share))
        return tuple(seed for seed in wave if seed not in taken)[:most]

    def _hand_out(self, cell: str, key: Key, seeds: Seeds) -> Probe:
        self._running[cell, key].update(seeds)
        return Probe(cell, key.arm, key.value, seeds)

    def _look_ahead(self, cell: str) -> Iterator[tuple[Need, Seeds, Assumed]]:
        """Seeds needed under some outcomes of the running probes, fewest assumptions first."""
        queue: deque[Assumed] = deque([{}])
        for _ in range(self.look_ahead):
            if not queue:
                return
            assumed = queue.popleft()
            search = self._replay(cell, assumed)
            for need in search.needs:
                while seeds := self._free(cell, need.key, search.wave(need)):
                    yield need, seeds, assumed
            for need in search.needs:
                # Unless it fails, a probe needs every seed in the end, or those of a first look.
                test, known = search.test_of(need.want), self._evidence[cell].get(need.key, {})
                rest = test.next_wave(known, complete=True)
                rest = tuple(seed for seed in rest if not test.look or seed < test.look)
                own = [known[seed] for seed in test.in_order if seed in known]
                while (not own or test.reaches(sum(own) / len(own))) and (
                    seeds := self._free(cell, need.key, rest)
                ):
                    yield need, seeds, assumed
            early = [need for need in search.needs if need.want in ("look", "verdict")]
            for need in early[:1]:
                for verdict in ("fail", "pass"):
                    queue.append({**assumed, (need.key, need.want): verdict})
