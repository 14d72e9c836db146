"""Ray Tune asks, the portfolio answers: one trial trains some seeds of one probe."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from ray.tune.search import Searcher

from rgr_dist.search.portfolio import Portfolio, Probe, Signal

ATTEMPTS = 3
"""Trials that a seed of a probe has lost when the probe has failed."""
LOW_ON_MEMORY = "running low on memory"
"""What Ray says of a worker that it killed for its memory."""
UNKNOWN = "Ray Tune does not tell a searcher what ended this trial: see its error.txt"


class NoScore(Exception):
    """A trial has no score, and would have none if it ran again."""


class Unsaved:
    """What Tune does not save: running a search again resumes it from its store."""

    def __getstate__(self) -> dict[str, Any]:
        """Nothing is copied."""
        return {}


class ProbeSearcher(Unsaved, Searcher):
    """Maps ``Portfolio.ask`` to Tune's ``suggest``: a config, None (wait) or FINISHED.

    A trial's last result is taken in as it completes. A probe whose trial ends in error, or
    without a score that is still wanted, is handed out again, without the seeds that have a score
    by then. It has failed after three such ends, or at once if another try would end the same.

    Args:
        portfolio: the search.
        to_config: the trial's config for a probe.
        take_in: stores what a trial reported last, and tells the portfolio of it. What it raises
            ends the search, but for ``NoScore``.
        on_failed: called for each probe that has failed, with the last error's text.
        slots: how many trials run at once; asked before each trial.

    Attributes:
        probes: the probe of each trial that has not ended.
        fault: what ended the search, if anything did.
    """

    def __init__(
        self,
        portfolio: Portfolio,
        to_config: Callable[[Probe], dict[str, Any]],
        take_in: Callable[[str, Probe, dict[str, Any]], None],
        on_failed: Callable[[Probe, str], None] = lambda probe, error: None,
        slots: Callable[[], int] = lambda: 1,
    ) -> None:
        super().__init__()
        self.portfolio, self.to_config, self.take_in = portfolio, to_config, take_in
        self.on_failed, self.slots = on_failed, slots
        self.probes: dict[str, Probe] = {}
        self.fault: Exception | None = None
        self._lost: Counter[Any] = Counter()
        self._spared: set[str] = set()
        self._in_error: list[str] = []
        self._suspects: list[Probe] = []  # each is tried alone

    @property
    def is_done(self) -> bool:
        """Whether no trial is needed any more."""
        return self.fault is not None or self.portfolio.is_done

    def suggest(self, trial_id: str) -> Any:
        """The next trial's config, None to wait, or FINISHED (Tune types only the first two)."""
        self.settle()
        if self.is_done:
            return Searcher.FINISHED
        if len(self.probes) >= (1 if self._suspects else max(1, self.slots())):
            return None
        answer = self._suspects[0] if self._suspects else self.portfolio.ask()
        if isinstance(answer, Signal):
            return None
        self.probes[trial_id] = answer
        return self.to_config(answer)

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Take in the last result of a trial, and free its probe."""
        if trial_id not in self.probes:
            return
        if error:
            self._in_error.append(trial_id)
            return
        probe, final = self.probes[trial_id], ""
        if result and result.get("done") and trial_id not in self._spared and not self.fault:
            try:
                self.take_in(trial_id, probe, result)
            except NoScore as reason:
                final = str(reason)
            except Exception as fault:
                # Tune would only log it; the search must end instead, and say why.
                self.fault = fault
        if final or self.portfolio.is_wanted(probe):
            self._lose(trial_id, final or "the trial ended without a score", bool(final))
        else:
            self._free(trial_id)

    def explain(self, trial_id: str, error: str) -> None:
        """Take in what ended a trial in error, which Tune itself does not tell a searcher."""
        if trial_id in self.probes:
            self._lose(trial_id, error, is_final(error))

    def settle(self) -> None:
        """Take in trials that ended in error without an explanation, as errors of unknown cause."""
        for trial_id in self._in_error:
            self.explain(trial_id, UNKNOWN)
        self._in_error.clear()

    def _free(self, trial_id: str) -> Probe:
        probe = self.probes.pop(trial_id)
        self._spared.discard(trial_id)
        self._suspects = [one for one in self._suspects if one != probe]
        self.portfolio.release(probe)
        return probe

    def _lose(self, trial_id: str, error: str, is_final: bool) -> None:
        probe = self._free(trial_id)
        if self.fault is not None:
            return
        seeds = [(probe.cell, probe.key, seed) for seed in probe.seeds]
        self._lost.update(seeds)
        if is_final or max(self._lost[seed] for seed in seeds) >= ATTEMPTS:
            self.portfolio.tell_failed(probe.cell, probe.key, probe.seeds)
            try:
                self.on_failed(probe, error)
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

        If several ran, each is tried again, alone: the one at fault is then the one that is lost.
        """
        if len(self.probes) == 1:
            self.explain(next(iter(self.probes)), LOW_ON_MEMORY)
        self._suspects += self.probes.values()
        self.probes.clear()


def is_final(error: str) -> bool:
    """Whether another try would end the same: by Ray's message, the trainable's own code raised.

    If the error is unknown, Tune has already made the tries that its failure config allows.
    """
    return error == UNKNOWN or re.search(r"ray::\w+\.\w+\(\)", error) is not None


def in_a_line(error: str) -> str:
    """What ended a trial, such as ``RuntimeError: no GPU``; what Ray itself says of it is whole."""
    if not is_final(error):
        return " ".join(error.split())
    # An exception follows the last frame of its traceback, whose lines are indented.
    _, _, after = f"\n{error}".rpartition("\n  File ")
    lines = after.splitlines()[1:]
    raised = next((line for line in lines if line[:1].strip()), error)
    return " ".join(re.sub(r"^[\w.]+\.(?=\w+(:|$))", "", raised).split())
