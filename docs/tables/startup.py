"""How long a command keeps its user waiting, from what the benchmark printed."""

from __future__ import annotations

from collections.abc import Callable

from tables.benchmarks import printed
from tables.markdown import table

COMMANDS = {
    "help": "`rgr --help`",
    "thresholds": "`rgr thresholds quickstart`",
    "run, unchanged": "`rgr run quickstart`, with nothing left to train",
    "run, empty store": "`rgr run quickstart`, from an empty store",
    "import ray": "`import ray` in Python alone",
}


def waits() -> str:
    """A table of the commands."""
    rows = {row["command"]: row for row in printed("startup")["rows"]}
    return table(
        ["command", "seconds", "its own processor time, s"],
        [
            [said, f"{rows[name]['seconds']:g}", f"{rows[name]['processor']:g}"]
            for name, said in COMMANDS.items()
        ],
    )


def quickstart() -> str:
    """Seconds of ``rgr run quickstart`` from an empty store, its kernels compiled."""
    rows = {row["command"]: row for row in printed("startup")["rows"]}
    return f"{rows['run, empty store']['seconds']:.0f}"


def load() -> str:
    """How many programs wanted a core before."""
    return f"{printed('startup')['load']:.1f}"


PIECES: dict[str, Callable[[], str]] = {
    "startup": waits,
    "startup load": load,
    "startup quickstart": quickstart,
}
