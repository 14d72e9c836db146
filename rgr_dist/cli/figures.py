"""The verb that draws a study's figures as files, for a paper."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from rgr_dist.cli.options import Out, Set, StudyName, check_output
from rgr_dist.cli.results import stored_results
from rgr_dist.faults import UserError, shown


def figures(
    study: StudyName,
    figure: Annotated[
        list[str] | None, typer.Option(help="One of the report's figures; all by default.")
    ] = None,
    kind: Annotated[
        Literal["pdf", "svg", "png"], typer.Option("--format", help="What to draw.")
    ] = "pdf",
    width: Annotated[
        float | None,
        typer.Option(
            min=1, max=50, help="Inches; by default one column of a paper (3.3), or two (6.9)."
        ),
    ] = None,
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write.")] = Path(),
    out: Out = "results",
    set_: Set = None,
) -> None:
    """Draw the figures of a study's report as files, with fonts embedded; prints their names."""
    os.environ.pop("MPLBACKEND", None)  # files need no window, nor one that is there
    from rgr_dist.analysis.figures.style import as_file
    from rgr_dist.analysis.report import figures_named
    from rgr_dist.store.storage import write_atomically

    with stored_results(study, set_, out) as (results, _):
        drawn = figures_named(results, figure or ())
    paths = [to / f"{results.study.name}-{each.name}.{kind}" for each in drawn]
    for path in paths:
        check_output("--to", path)
    files = [as_file(each, kind, width) for each in drawn]
    for file, path in zip(files, paths, strict=True):
        try:
            to.mkdir(parents=True, exist_ok=True)
            write_atomically(path, file, sync=False)
        except OSError as error:
            raise UserError(f"--to {to}: cannot be written to: {error.strerror}") from None
        print(shown(str(path)))
