"""What the verbs share: arguments, exit statuses, opening a study and its store."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from rgr_dist.cli.listing import Format, nowhere
from rgr_dist.faults import UserError, on_one_line, shown

if TYPE_CHECKING:
    from rgr_dist.store.store import Store
    from rgr_dist.study.study import Study

EXIT_BAD_INPUT, EXIT_FAILED_RUNS, EXIT_INTERRUPTED = 2, 3, 130
CELL = "M,D_MODEL"
LARGEST = 2**31 - 1
"""The largest size, as in a study."""

StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="A shipped study, or a YAML file.")]
Out = Annotated[str, typer.Option("--store", help="Where runs are kept: a folder, or a URI.")]
Stores = Annotated[
    list[str] | None,
    typer.Option("--store", help="Where results are; twice to compare two stores."),
]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="A.B=C", help="Override a key of the study.")
]
How = Annotated[Format, typer.Option("--format", help="How to print.")]
OneCell = Annotated[
    str | None, typer.Option("--cell", metavar=CELL, help="One cell, such as 64,16.")
]
Heads = Annotated[list[int] | None, typer.Option("--heads", min=1, help="Head counts.")]
Cpus = Annotated[int | None, typer.Option(min=1, help="Workers; one for each core by default.")]
Address = Annotated[
    str,
    typer.Option(envvar="RAY_ADDRESS", help="local; or auto, on a node of a running Ray cluster."),
]


@contextmanager
def opened(
    study: str, overrides: Sequence[str] | None, out: str, may_be_new: bool = False
) -> Iterator[tuple[Study, Store]]:
    """The study and its store, which must exist unless it may be new.

    On exit, reports the parts that were left out.
    """
    from rgr_dist.store.store import Store

    store = Store(out)
    resolved = store.study(study, overrides or ())
    if not (may_be_new or store.exists):
        raise UserError(
            f"--store {out}: there is no store; rgr run {as_typed(study, out, overrides)} makes it"
        )
    yield resolved, store
    for line in store.left_out:
        say_error(line)


def no_runs(study: str, out: str, set_: Sequence[str] | None = None) -> tuple[str, str]:
    """For ``say_error``: that the store has no run of a study, and the command that trains them."""
    return f"{out} holds no run of {study};", f"rgr run {as_typed(study, out, set_)} trains them"


def as_typed(study: str, out: str, set_: Sequence[str] | None = None) -> str:
    """A study with its options, as a user types them."""
    where = [] if out == "results" else ["--store", out]
    given = [word for one in set_ or () for word in ("--set", one)]
    return shown(shlex.join([study, *given, *where]))


LONGEST_LINE = 500
"""Characters to which a line on standard error is cut."""


def say_error(text: str, command: str = "") -> None:
    """Print one line on standard error; if that takes no more, the exit status must do.

    Characters that could control a terminal are escaped, and a long text is cut in the middle.

    Args:
        command: a command to copy, which ends the line and is never cut.
    """
    line = f"rgr: {on_one_line(text)}"
    if len(line) > LONGEST_LINE:
        line = f"{line[: LONGEST_LINE // 2]} … {line[-LONGEST_LINE // 2 + 3 :]}"
    if command:
        line += f" {shown(command)}"
    try:
        print(line, file=sys.stderr)
    except OSError:
        sys.stderr = nowhere()  # what the old one still buffers would fail again at exit
