"""What users and their code said, made fit for a message: on one line, cut, safe to print."""

from __future__ import annotations

import reprlib
from typing import Any

LONGEST = 300
"""Characters of a message."""


class _Quoted(reprlib.Repr):
    def repr_int(self, x: int, level: int) -> str:
        """Python refuses to write an integer of very many digits."""
        try:
            return super().repr_int(x, level)
        except ValueError:
            return "a huge integer"


_QUOTED = _Quoted()
_QUOTED.maxlist = _QUOTED.maxtuple = _QUOTED.maxdict = 20
_QUOTED.maxstring = _QUOTED.maxother = _QUOTED.maxlong = LONGEST // 2


def printable(text: str) -> str:
    """A text whose control characters, line breaks aside, are escaped.

    ``rgr_dist.faults.shown`` does so too; the search stands on its own, without the rest of us.
    """
    return "".join(
        char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text
    )


def escaped(text: str) -> str:
    """A text on one line, its line breaks escaped too: a path, which must stay as it is."""
    return printable(text).replace("\n", "\\n")


def one_line(text: str) -> str:
    """A text on one line of at most ``LONGEST`` characters."""
    return printable(" ".join(text.split()))[:LONGEST]


def quoted(value: Any) -> str:
    """An argument as a message quotes it; of what is long or deeply nested, a part."""
    return one_line(_QUOTED.repr(value))
