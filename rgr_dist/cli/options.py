"""What the verbs of the command line share: arguments, exit statuses, words on standard error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rgr_dist.cli.listing import Format
from rgr_dist.store.store import Store

EXIT_BAD_INPUT, EXIT_FAILED_RUNS, EXIT_INTERRUPTED = 2, 3, 130

StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="A shipped study, or a YAML file.")]
Out = Annotated[str, typer.Option("--out", help="The store: a folder, or a URI pyarrow opens.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="A.B=C", help="Override a key of the study.")
]
How = Annotated[Format, typer.Option("--format", help="How to print.")]


def say_error(text: str) -> None:
    """One line on standard error."""
    print(f"rgr: {text}", file=sys.stderr)


def tell_damaged(store: Store) -> None:
    """A line for each part of the store that cannot be read."""
    for path in store.damaged:
        say_error(f"{Path(path).name} in {store.root} is damaged and was left out")
