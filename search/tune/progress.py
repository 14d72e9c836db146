"""How far a threshold search is, in one line."""

from __future__ import annotations

import math
import sys
import time
from typing import Self

from rgr_dist.search.bracket import Bracket
from rgr_dist.search.tune.setting_search import SettingSearch
from rgr_dist.search.tune.threshold import name

CLEARED = "\r\x1b[K"
"""Moves a terminal's cursor to the beginning of its line, and clears the line."""


class ProgressLine:
    """Shows on standard error how far a search is; a context manager.

    In a terminal the line is overwritten; elsewhere each new bracket gets a line of its own.
    """

    def __init__(self, search: SettingSearch) -> None:
        self.search = search
        self._live = sys.stderr.isatty()
        self._shown, self._began, self._known = "", time.monotonic(), len(search.kept.scores)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._live and self._shown:
            print(CLEARED, end="", file=sys.stderr, flush=True)

    def show(self, running: int) -> None:
        """Bring the line up to date.

        Args:
            running: how many trials are running.
        """
        brackets = self.search.open_brackets()
        if not brackets:
            return
        setting, bracket = brackets[0]
        known = [f"fails at {bracket.low}"] * bool(bracket.low)
        known += [f"passes at {bracket.high}"] * (bracket.high is not None)
        text = f"{name(setting)}, " if setting else ""
        text += f"{self.search.question.axis}: "
        text += ", ".join(known) or f"{len(bracket.axis)} values"
        if len(brackets) > 1:
            text += f"; {len(brackets) - 1} more settings are open"
        if self._live:
            text += f"; {len(self.search.kept.scores)} trained, {running} run"
            text += self._left([one for _, one in brackets])
        if text != self._shown:
            ends = (CLEARED, "") if self._live else ("", "\n")
            print(ends[0] + text, end=ends[1], file=sys.stderr, flush=True)
            self._shown = text

    def _left(self, brackets: list[Bracket]) -> str:
        """Time left, at the pace so far: for all seeds of every value that bisection needs."""
        ended = len(self.search.kept.scores) - self._known
        if not ended:
            return ""
        within = [(len(b.axis) if b.above is None else b.above) - b.below for b in brackets]
        trials = self.search.question.seeds * sum(count.bit_length() for count in within)
        minutes = (time.monotonic() - self._began) / ended * trials / 60
        return f"; about {math.ceil(minutes)} min left"
