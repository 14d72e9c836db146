"""What all errors have in common that a user can put right."""


class UserError(Exception):
    """Bad input, or a fault outside the program: the command line tells it in one line."""


UNANSWERED = "waits for storage"
"""Name of a thread that asks storage for something, which it may never be told."""
