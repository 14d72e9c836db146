"""Errors that the command line reports in one line, and text that is safe to print."""

import re


class UserError(Exception):
    """Bad input, or a fault outside the program; the message is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(on_one_line(message))


class RunBroken(UserError, RuntimeError):
    """What a study ran on broke half-way; stored runs are kept, and the same call resumes."""


EXIT_BROKEN = 4
"""Exit status of a process whose study ended with ``RunBroken`` or ``RayDied``."""


class RayDied(BaseException):
    """Ray died; the message says which part of it.

    Not an ``Exception``, since Tune would then ask the dead Ray to tidy up, and wait for ever.
    """


def shown(text: str) -> str:
    """The text made safe to print: control characters escaped, passwords in URIs masked."""
    text = re.sub(r"://[^\s@/:]*:(?:[^\s@]{0,300}@)+", "://***@", text)
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def on_one_line(text: str) -> str:
    """The lines of a text joined into one, made safe to print."""
    return shown(" ".join(part.strip() for part in text.strip().splitlines()))
