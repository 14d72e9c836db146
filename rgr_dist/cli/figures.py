"""The verb that draws a study's figures as files, for a paper."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rgr_dist.cli.options import Out, Set, StudyName, check_output
from rgr_dist.cli.results import stored_results
from rgr_dist.faults import UserError, shown

if TYPE_CHECKING:
    from rgr_dist.analysis.figures.style import Figure


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
    from rgr_dist.analysis.report import figures_named

    with stored_results(study, set_, out) as (results, _):
        drawn = figures_named(results, figure or ())
    for path in write_files(drawn, results.study.name, to, kind, width):
        print(shown(str(path)))


def write_files(
    drawn: Sequence[Figure], stem: str, to: Path, kind: str = "pdf", width: float | None = None
) -> list[Path]:
    """Write figures into a folder as ``STEM-NAME.KIND``; returns the files.

    Raises:
        UserError: the folder cannot be written to.
    """
    os.environ.pop("MPLBACKEND", None)  # files need no window, nor one that is there
    from rgr_dist.analysis.figures.style import as_file

    paths = []
    for figure in drawn:
        path = to / f"{stem}-{figure.name}.{kind}"
        check_output("--to", path)
        file = as_file(figure, kind, width)
        try:
            to.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file)
        except OSError as error:
            raise UserError(f"--to {to}: cannot be written to: {error.strerror}") from None
        paths.append(path)
    return paths
