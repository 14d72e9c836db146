"""What all errors have in common that a user can put right."""

import os
from collections.abc import Callable
from contextlib import suppress


class UserError(Exception):
    """Bad input, or a fault outside the program: the command line tells it in one line."""


class RunBroken(UserError, RuntimeError):
    """What a study ran on broke half-way: what is stored is kept, and the same call goes on."""


LAST_RESORT: list[Callable[[RunBroken], None]] = []
"""How the command line leaves where a run broke in code that nothing can be raised in; for a thread
to call."""
RESUME: list[str] = []
"""How the command line's run goes on, in words, once it has been ended."""
WITNESSES: list[int] = []
"""Pipes to who says so should this process end without a word (``running.witness``)."""


def dismiss_witnesses() -> None:
    """Let them say nothing: this process says itself why it ends."""
    while WITNESSES:
        with suppress(OSError):
            os.write(WITNESSES[-1], b"dismissed\n")
            os.close(WITNESSES[-1])
        WITNESSES.pop()
