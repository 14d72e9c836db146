"""How often a probe that loses its worker is tried, and what ended its trial, by Ray's message."""

from __future__ import annotations

import re
from collections import Counter

from rgr_dist.search.protocol import Probe, ProbeKey
from rgr_dist.search.tune.one_line import one_line

ATTEMPTS = 3
"""Trials that a seed of a probe has lost when the probe has failed."""
LOW_ON_MEMORY = "running low on memory"
"""What Ray says of a worker that it killed for its memory."""
UNKNOWN = "Ray Tune does not tell a searcher what ended this trial"


class Losses:
    """The trials that each probe has lost.

    Attributes:
        causes: why a probe lost a worker that did not just die, by cell and key: "out of memory",
            or what others write here.
    """

    def __init__(self) -> None:
        self.causes: dict[tuple[str, ProbeKey], str] = {}
        self._lost: Counter[tuple[str, ProbeKey, int]] = Counter()

    def add(self, probe: Probe, final: str = "") -> str | None:
        """Count a lost trial: its probe is tried again, unless this returns why it has failed.

        Args:
            final: the error, if another try would end the same.
        """
        self._lost.update((probe.cell, probe.key, seed) for seed in probe.seeds)
        if final or self.of(probe) >= ATTEMPTS:
            return final or self.causes.get((probe.cell, probe.key), "died")
        return None

    def of(self, probe: Probe) -> int:
        """How many trials a probe has lost: the most that any of its seeds has."""
        return max((self._lost[probe.cell, probe.key, seed] for seed in probe.seeds), default=0)


def is_final(error: str) -> bool:
    """Whether another try would end the same: by Ray's message, the trainable's own code raised.

    If the error is unknown, Tune has already made the tries that its failure config allows.
    """
    return error == UNKNOWN or re.search(r"ray::\w+\.\w+\(\)", error) is not None


def in_a_line(error: str) -> str:
    """What ended a trial, such as ``RuntimeError: out of memory``."""
    lines = [line for line in error.splitlines() if line.strip()] or [""]
    if not is_final(error):
        return one_line(lines[0])
    # An exception follows the last frame of its traceback, whose lines are indented.
    frames = [number for number, line in enumerate(lines) if line.lstrip().startswith("File ")]
    after = lines[frames[-1] :] if frames else []
    raised = next((line for line in after if not line[0].isspace()), lines[-1])
    return one_line(re.sub(r"^[\w.]+\.(?=\w+(:|$))", "", raised))
