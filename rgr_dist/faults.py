"""What all errors have in common that a user can put right."""

import re


class UserError(Exception):
    """Bad input, or a fault outside the program: the command line says it in one line."""


class RunBroken(UserError, RuntimeError):
    """What a study ran on broke half-way: what is stored is kept, and the same call goes on."""


EXIT_BROKEN = 4
"""Exit status of a process whose study ended so."""


class RayDied(BaseException):
    """Ray died; the message says which part of it.

    It is no ``Exception``, at which Tune would ask the dead Ray to tidy up, and wait for ever.
    """


def shown(text: str) -> str:
    """A text that is safe to print: control characters escaped, passwords in URIs left out."""
    text = re.sub(r"://[^\s@/:]*:(?:[^\s@]{0,300}@)+", "://***@", text)
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
