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
    by then; after three such ends it has failed.

    Args:
        portfolio: the search.
        to_config: the trial's config for a probe.
        take_in: stores what a trial reported last, and tells the portfolio of it. An error that it
            raises, other than ``NoScore``, ends the search.
        on_error: called for each trial that ends in error, with its probe and the error's text.
        on_failed: called for each probe that has failed, with the error if another try would end
            the same, else with "died" or "out of memory".
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
        on_error: Callable[[Probe, str], None] = lambda probe, error: None,
        on_failed: Callable[[Probe, str], None] = lambda probe, why: None,
        slots: Callable[[], int] = lambda: 1,
    ) -> None:
        super().__init__()
        self.portfolio = portfolio
        self.to_config, self.take_in = to_config, take_in
        self.on_error, self.on_failed, self.slots = on_error, on_failed, slots
        self.probes: dict[str, Probe] = {}
        self.fault: Exception | None = None
        self._lost: Counter[Any] = Counter()
        self._for_memory: set[Any] = set()
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
            self._for_memory.add((probe.cell, probe.key))
        self.on_error(probe, error)
        self._end(trial_id, is_lost=True, final=error if is_final(error) else "")

    def settle(self) -> None:
        """Take in trials that ended in error without an explanation, as errors of unknown cause."""
        for trial_id in self._in_error:
            self.explain(trial_id, UNKNOWN)
        self._in_error.clear()

    def _end(self, trial_id: str, is_lost: bool, final: str = "") -> None:
        """Free the probe of a trial; a lost one has failed if another try would end the same."""
        probe = self.probes.pop(trial_id)
        self._spared.discard(trial_id)
        self._suspects = [one for one in self._suspects if one != probe]
        self.portfolio.release(probe)
        if not is_lost or self.fault is not None:
            return
        seeds = [(probe.cell, probe.key, seed) for seed in probe.seeds]
        self._lost.update(seeds)
        if final or max(self._lost[seed] for seed in seeds) >= ATTEMPTS:
            self.portfolio.tell_failed(probe.cell, probe.key, probe.seeds)
            is_memory = (probe.cell, probe.key) in self._for_memory
            try:
                self.on_failed(probe, final or ("out of memory" if is_memory else "died"))
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
    lines = [line for line in error.splitlines() if line.strip()] or [""]
    if not is_final(error):
        return " ".join(error.split())
    # An exception follows the last frame of its traceback, whose lines are indented.
    frames = [number for number, line in enumerate(lines) if line.lstrip().startswith("File ")]
    after = lines[frames[-1] :] if frames else []
    raised = next((line for line in after if not line[0].isspace()), lines[-1])
    return " ".join(re.sub(r"^[\w.]+\.(?=\w+(:|$))", "", raised).split())
