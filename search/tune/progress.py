"""How far a threshold search is, in one line."""

from __future__ import annotations

import math
import sys
import time
from typing import Any, Self

from rgr_dist.search.tune.setting_search import SettingSearch

CLEARED = "\r\x1b[K"
"""Brings a terminal back to the beginning of its line, which is then empty."""


class ProgressLine:
    """Shows on standard error how far a search is; a context manager.

    In a terminal the line is written over; elsewhere there is a new one for each new bracket.
    """

    def __init__(self, search: SettingSearch) -> None:
        self.search = search
        self._live = sys.stderr.isatty()
        self._shown, self._began, self._known = "", time.monotonic(), len(search.kept.scores)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._live:
            print(CLEARED, end="", file=sys.stderr, flush=True)

    def show(self, running: dict[str, Any]) -> None:
        """Bring the line up to date."""
        first, *others = self.search.brackets() or [""]
        text = first + (f"; {len(others)} more settings are open" if others else "")
        if self._live:
            text += f"; {len(self.search.kept.scores)} trained, {len(running)} run{self._left()}"
        if text and text != self._shown:
            ends = (CLEARED, "") if self._live else ("", "\n")
            print(ends[0] + text, end=ends[1], file=sys.stderr, flush=True)
            self._shown = text

    def _left(self) -> str:
        """How long the rest takes, if each trial takes as long as those that have ended."""
        ended = len(self.search.kept.scores) - self._known
        if not ended:
            return ""
        minutes = (time.monotonic() - self._began) / ended * self.search.trials_left() / 60
        return f"; about {math.ceil(minutes)} min left"
