"""Ray Tune asks, the portfolio answers: one trial trains some seeds of one probe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ray.tune.search import Searcher

from rgr_dist.search.portfolio import Portfolio
from rgr_dist.search.protocol import Probe, Signal
from rgr_dist.search.tune.lost_workers import Cause, LostWorkers


class ThresholdSearcher(Searcher):
    """Maps ``Portfolio.ask`` to Tune's ``suggest``: a config, None (wait) or FINISHED.

    Scores reach the portfolio through the scheduler, as they arrive; a trial's end only
    frees its probe, or marks it as one that could not be run.

    A probe whose trial ends in error is handed out again, without the seeds that have a score by
    then; Tune's own retries would train them twice. So is one whose trial ends without a score
    that is still wanted. After ``attempts`` such ends the probe has failed.

    Attributes:
        probes: what each running trial trains.
        spared: trials stopped because nothing more could be learnt from them.
        lost: which probes have lost trials, and why.

    Args:
        portfolio: the search.
        to_config: the trial's config for a probe.
        on_lost: told of each probe that has failed, and why.
        attempts: trials that a probe may lose.
    """

    def __init__(
        self,
        portfolio: Portfolio,
        to_config: Callable[[Probe], dict[str, Any]],
        on_lost: Callable[[Probe, Cause], None] | None = None,
        attempts: int = 3,
    ) -> None:
        super().__init__()
        self.portfolio = portfolio
        self.to_config = to_config
        self.on_lost = on_lost
        self.lost = LostWorkers(attempts)
        self.probes: dict[str, Probe] = {}
        self.spared: set[str] = set()
        self.is_stopped = False

    def suggest(self, trial_id: str) -> Any:
        """The next trial's config, None to wait, or FINISHED (Tune types only the first two)."""
        if self.is_stopped:
            return Searcher.FINISHED
        answer = self.portfolio.ask()
        if answer is Signal.DONE:
            return Searcher.FINISHED
        if not isinstance(answer, Probe):
            if not self.probes:
                raise RuntimeError("the search waits although no probe is being run")
            return None
        self.probes[trial_id] = answer
        return self.to_config(answer)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Free the trial's probe."""
        probe = self.probes.pop(trial_id, None)
        if probe is None:
            return
        is_lost = error or self.portfolio.is_wanted(probe)  # some trials end in silence
        self.portfolio.release(probe)
        if is_lost and self.lost.add(probe, self.is_final(trial_id)):
            self.portfolio.tell_failed(probe.cell, probe.key)
            if self.on_lost is not None:
                self.on_lost(probe, self.lost.cause(probe))

    def is_final(self, trial_id: str) -> bool:
        """Whether a lost trial would be lost again: its probe has then failed at once."""
        return False

    def __getstate__(self) -> dict[str, Any]:
        """Nothing of a search is pickled: it is rebuilt from what it was told."""
        return {}

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the search is rebuilt from what it was told."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing: the search is rebuilt from what it was told."""
