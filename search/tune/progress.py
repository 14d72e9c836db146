"""How far a threshold search is, in one line."""

from __future__ import annotations

import sys
from typing import Self

CLEARED = "\r\x1b[K"
"""Moves a terminal's cursor to the beginning of its line, and clears the line."""


class ProgressLine:
    """Shows on standard error how far a search is; a context manager.

    In a terminal the line is overwritten; elsewhere each new bracket gets a line of its own.
    """

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._live and self._shown:
            print(CLEARED, end="", file=sys.stderr, flush=True)

    def show(self, bracket: str, trained: int, running: int) -> None:
        """Bring the line up to date.

        Args:
            bracket: what is known.
            trained, running: how many trials.
        """
        text = f"{bracket}; {trained} trained, {running} run" if self._live else bracket
        if text != self._shown:
            ends = (CLEARED, "") if self._live else ("", "\n")
            print(ends[0] + text, end=ends[1], file=sys.stderr, flush=True)
            self._shown = text
