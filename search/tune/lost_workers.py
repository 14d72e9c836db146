"""What ended a trial in error, and how many trials each probe has lost: it is trained again until
it has lost too many."""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal

from rgr_dist.search.protocol import Probe, ProbeKey

Cause = Literal["died", "out of memory", "overdue"]
"""Why a worker was lost: it died, or was killed for its memory or because it gave no answer."""

LOW_ON_MEMORY = "running low on memory"
"""What Ray says of a worker that it killed for its memory."""

UNKNOWN = "Ray Tune does not tell a searcher what ended this trial"


def is_final(error: str) -> bool:
    """Whether another try would end the same: by Ray's message, the trainable's own code raised.

    If the error is unknown, Tune has already made the tries that its failure config allows.
    """
    return error == UNKNOWN or re.search(r"ray::\w+\.\w+\(\)", error) is not None


def in_a_line(error: str) -> str:
    """What ended a trial, such as ``RuntimeError: out of memory``."""
    lines = [line for line in error.splitlines() if line.strip()] or [""]
    if not is_final(error):
        return lines[0].strip()
    # An exception follows the last frame of its traceback, whose lines are indented.
    frames = [number for number, line in enumerate(lines) if line.lstrip().startswith("File ")]
    after = lines[frames[-1] :] if frames else []
    raised = next((line for line in after if not line[0].isspace()), lines[-1])
    return re.sub(r"^[\w.]+\.(?=\w+(:|$))", "", raised)


class LostWorkers:
    """Counts the trials that each seed of a probe has lost, with their workers or otherwise.

    Attributes:
        attempts: the number of lost trials of one seed at which its probe has failed.
    """

    attempts = 3

    def __init__(self) -> None:
        self._lost: Counter[tuple[str, ProbeKey, int]] = Counter()
        self._causes: dict[tuple[str, ProbeKey], Cause] = {}

    def add(self, probe: Probe) -> bool:
        """Count a lost trial; returns whether its probe has failed."""
        self._lost.update((probe.cell, probe.key, seed) for seed in probe.seeds)
        return self.count(probe) >= self.attempts

    def count(self, probe: Probe) -> int:
        """How many trials a probe has lost: the most that any of its seeds has."""
        return max((self._lost[probe.cell, probe.key, seed] for seed in probe.seeds), default=0)

    def note(self, probe: Probe, cause: Cause) -> None:
        """Note why a probe loses a worker, if the worker does not just die."""
        if self.cause(probe) != "out of memory":  # the cause that the user can do something about
            self._causes[probe.cell, probe.key] = cause

    def cause(self, probe: Probe) -> Cause:
        """Why a probe lost workers: memory if that ever was a cause, else the last cause noted."""
        return self._causes.get((probe.cell, probe.key), "died")
