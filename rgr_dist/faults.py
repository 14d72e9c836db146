"""What all errors have in common that a user can put right."""


class UserError(Exception):
    """Bad input, or a fault outside the program: the command line tells it in one line."""
