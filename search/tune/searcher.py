"""Ray Tune asks, the portfolio answers: one trial trains some seeds of one probe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ray.tune.search import Searcher

from rgr_dist.search.old_portfolio import Portfolio
from rgr_dist.search.protocol import Probe, Signal
from rgr_dist.search.tune.lost_workers import LOW_ON_MEMORY, UNKNOWN, Losses, is_final


class NoScore(Exception):
    """A trial that ended has no score, and would have none if it ran again."""


class Unsaved:
    """What Tune does not save: running a search again resumes it from its store."""

    def __getstate__(self) -> dict[str, Any]:
        """Nothing is copied."""
        return {}


class ProbeSearcher(Unsaved, Searcher):
    """Maps ``Portfolio.ask`` to Tune's ``suggest``: a config, None (wait) or FINISHED.

    A trial's last result is taken in as it completes. A probe whose trial ends in error, or
    without a score that is still wanted, is handed out again, without the seeds that have a score
    by then; after three such ends it has failed.

    Args:
        portfolio: the search.
        to_config: the trial's config for a probe.
        take_in: stores what a trial reported last, and tells the portfolio of it. An error that it
            raises, other than ``NoScore``, ends the search and is kept in ``fault``.
        on_error: called for each trial that ends in error, with its probe and the error's text.
        on_failed: called for each probe that has failed, with the error if another try would end
            the same, else with the cause: "died", or what ``losses.causes`` holds.
        slots: how many trials run at once; asked before each trial.

    Attributes:
        probes: the probe of each trial that has not ended.
        losses: the trials that each probe has lost, and why.
        fault: what ended the search, if anything did.
        is_stuck: whether no trial goes on, so that Tune must stop them all; set from outside.
    """

    def __init__(
        self,
        portfolio: Portfolio,
        to_config: Callable[[Probe], dict[str, Any]],
        take_in: Callable[[str, Probe, dict[str, Any]], None],
        on_error: Callable[[Probe, str], None] = lambda probe, error: None,
        on_failed: Callable[[Probe, str], None] = lambda probe, why: None,
        slots: Callable[[], int] = lambda: 1,
    ) -> None:
        super().__init__()
        self.portfolio = portfolio
        self.to_config, self.take_in = to_config, take_in
        self.on_error, self.on_failed, self.slots = on_error, on_failed, slots
        self.losses = Losses()
        self.probes: dict[str, Probe] = {}
        self.fault: Exception | None = None
        self.is_stuck = False
        self._spared: set[str] = set()
        self._in_error: list[str] = []
        self._suspects: list[Probe] = []  # each is tried alone

    @property
    def is_done(self) -> bool:
        """Whether no trial is needed any more."""
        return self.fault is not None or self.portfolio.is_done

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """Take the user's ``max_concurrent_trials``; Tune then leaves counting to the searcher."""
        self.slots = lambda: max_concurrent
        return True

    def suggest(self, trial_id: str) -> Any:
        """The next trial's config, None to wait, or FINISHED (Tune types only the first two)."""
        self.settle()
        if self.is_done:
            return Searcher.FINISHED
        if len(self.probes) >= (1 if self._suspects else self._room()):
            return None
        answer = self._suspects[0] if self._suspects else self._ask()
        if not isinstance(answer, Probe):
            return None
        self.probes[trial_id] = answer
        return self.to_config(answer)

    def _room(self) -> int:
        """How many trials may run at once."""
        return max(1, self.slots())

    def _ask(self) -> Probe | Signal:
        answer = self.portfolio.ask()
        if answer is Signal.WAIT and not self.probes:
            raise RuntimeError("the search waits although no probe is being run")
        return answer

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Take in the last result of a trial, and free its probe."""
        probe = self.probes.get(trial_id)
        if probe is None:
            return
        if error:
            self._in_error.append(trial_id)
            return
        if result and result.get("done") and trial_id not in self._spared and not self.fault:
            try:
                self.take_in(trial_id, probe, result)
            except NoScore as reason:
                self.on_error(probe, str(reason))
                self._end(trial_id, is_lost=True, final=str(reason))
                return
            except Exception as fault:
                # Tune would only log it; the search must end instead, and say why.
                self.fault = fault
        self._end(trial_id, is_lost=self.portfolio.is_wanted(probe))

    def explain(self, trial_id: str, error: str) -> None:
        """Take in what ended a trial in error, which Tune itself does not tell a searcher."""
        probe = self.probes.get(trial_id)
        if probe is None:
            return
        if LOW_ON_MEMORY in error:
            self.losses.causes[probe.cell, probe.key] = "out of memory"
        self.on_error(probe, error)
        self._end(trial_id, is_lost=True, final=error if is_final(error) else "")

    def settle(self) -> None:
        """Take in trials that ended in error without an explanation, as errors of unknown cause."""
        for trial_id in self._in_error:
            self.explain(trial_id, UNKNOWN)
        self._in_error.clear()

    def _end(self, trial_id: str, is_lost: bool, final: str = "") -> None:
        """Free the probe of a trial; it has failed if ``losses`` says so."""
        probe = self.probes.pop(trial_id)
        self._spared.discard(trial_id)
        self._suspects = [one for one in self._suspects if one != probe]
        self.portfolio.release(probe)
        if not is_lost or self.is_stuck or self.fault is not None:
            return
        if (why := self.losses.add(probe, final)) is not None:
            self.portfolio.tell_failed(probe.cell, probe.key, probe.seeds)
            try:
                self.on_failed(probe, why)
            except Exception as fault:
                self.fault = fault

    def spare(self, trial_id: str) -> bool:
        """Whether a trial can tell nothing more; if so, it is stopped and has no score."""
        probe = self.probes.get(trial_id)
        if probe is None or self.portfolio.is_wanted(probe):
            return False
        self._spared.add(trial_id)
        return True

    def killed_for_memory(self) -> None:
        """Take in that a worker was killed for its memory; Tune ended all trials, not saying which.

        If several ran, each is tried again, one at a time: the one at fault is then lost alone.
        Until it has run alone, each is held back from the portfolio, which is asked for no other.
        """
        if len(self.probes) == 1:
            self.explain(next(iter(self.probes)), LOW_ON_MEMORY)
        self._suspects += self.probes.values()
        self.probes.clear()
