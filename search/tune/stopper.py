"""Ends trials: all of them once nothing more is needed, and one that has reached a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ray import tune


class UntilDone(tune.Stopper):
    """Ends all trials once a search needs nothing more, the speculative ones too.

    Args:
        is_done: whether it needs nothing more.
        at: reported numbers at which a single trial ends, if any.
    """

    def __init__(self, is_done: Callable[[], bool], at: Mapping[str, float] | None = None) -> None:
        self.is_done = is_done
        self.at = dict(at or {})

    def __getstate__(self) -> dict[str, Any]:
        """Nothing of a search is pickled: running it again resumes it."""
        return {}

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Whether this trial has reached one of its numbers."""
        return any(key in result and result[key] >= end for key, end in self.at.items())

    def stop_all(self) -> bool:
        """Whether the search needs nothing more."""
        return self.is_done()
