"""Errors that the command line reports in one line, and text that is safe to print."""

import os
import re
import shlex

LONGEST_MESSAGE = 2_000
"""Characters to which a message is cut."""


class UserError(Exception):
    """Bad input, or a fault outside the program; the message is one line, cut in the middle."""

    def __init__(self, message: str) -> None:
        line = on_one_line(message)
        if len(line) > LONGEST_MESSAGE:
            half = (LONGEST_MESSAGE - 3) // 2
            line = f"{line[:half]} … {line[-half:]}"
        super().__init__(line)


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


def typed(*words: str) -> str:
    """Words as they are typed in a shell; bash and zsh know the escapes of unprintable ones."""
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    escaped = os.fsencode(word).decode("latin-1").encode("unicode_escape").decode()
    return "$'" + escaped.replace("'", "\\'") + "'"
