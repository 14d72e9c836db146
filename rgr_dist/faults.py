"""What all errors have in common that a user can put right."""

from collections.abc import Callable


class UserError(Exception):
    """Bad input, or a fault outside the program: the command line tells it in one line."""


UNANSWERED = "waits for storage"
"""Name of a thread that asks storage for something, which it may never be told."""


class RunBroken(UserError, RuntimeError):
    """What a study ran on broke half-way: what is stored is kept, and the same call goes on."""


LAST_RESORT: list[Callable[[RunBroken], None]] = []
"""How the command line leaves where a run broke in code that nothing can be raised in; for a thread
to call."""
