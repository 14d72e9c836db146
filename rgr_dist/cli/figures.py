"""The verb that draws a study's figures as files, for a paper."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rgr_dist.cli.comparing import side_by_side
from rgr_dist.cli.options import CELL, Out, Set, StudyName, check_output
from rgr_dist.cli.results import stored_results
from rgr_dist.faults import UserError, shown

if TYPE_CHECKING:
    from rgr_dist.analysis.load import StudyResults
    from rgr_dist.analysis.page.section import Section


def figures(
    study: StudyName,
    other: Annotated[
        str | None, typer.Argument(metavar="[OTHER]", help="Draw the comparison of both instead.")
    ] = None,
    figure: Annotated[
        list[str] | None, typer.Option(help="One of the report's figures; all by default.")
    ] = None,
    kind: Annotated[
        Literal["pdf", "svg", "png"], typer.Option("--format", help="What to draw.")
    ] = "pdf",
    cell: Annotated[
        str | None, typer.Option(metavar=CELL, help="Only the panels of one cell, such as 64,16.")
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(min=1, max=50, help="Inches; by default a column (3.4) or a page (7)."),
    ] = None,
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write.")] = Path(),
    out: Out = "results",
    set_: Set = None,
) -> None:
    """Draw the figures of a study's report as files, with fonts embedded; prints their names."""
    os.environ.pop("MPLBACKEND", None)  # files need no window, nor one that is there
    from rgr_dist.analysis.drawing.plot import as_file
    from rgr_dist.analysis.report import contents
    from rgr_dist.analysis.report.comparison.section import compared
    from rgr_dist.store.storage import write_atomically

    anchors, of = None, ""
    if other is None:
        with stored_results(study, set_, out) as (results, _):
            stem, sections = results.study.name, contents.sections(results)
            if cell is not None:
                anchors = _drawn(results, sections, cell)
                of = "-" + re.sub(r"[^\w.=+-]+", "-", cell).strip("-")
            drawn = contents.figures(sections, figure or (), anchors)
    else:
        if cell is not None:
            raise UserError("--cell: takes one study, since a comparison has no panels by cell")
        with side_by_side([study, other], [out], set_) as (pair, names, _):
            stem = "-".join(results.study.name for results in pair)
            drawn = contents.figures(compared(pair, names), figure or ())
    paths = [to / f"{stem}-{each.name}{of}.{kind}" for each in drawn]
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


def _drawn(results: StudyResults, sections: Sequence[Section], text: str) -> set[str]:
    """The anchors of the cells of that name.

    Raises:
        UserError: no figure has a panel of such a cell.
        StudyError: the study has no such cell.
    """
    from rgr_dist.analysis.rows import names_of
    from rgr_dist.study.select import cells_named

    study = results.study
    anchors = {cell: names_of(results)[cell.cell_id]["anchor"] for cell in study.cells}
    asked = {anchors[cell] for cell in cells_named(study, text)}
    figures = [figure for section in sections for figure in section.figures]
    drawn = {panel.cell for figure in figures for panel in figure.panels} - {None}
    if not drawn:
        raise UserError("--cell: no figure of this study has panels by cell")
    if not asked & drawn:
        has = "; ".join(study.name_of(cell) for cell in study.cells if anchors[cell] in drawn)
        limits = " (only the largest of several step limits)" if study.has_budgets else ""
        raise UserError(f"--cell {text}: no figure has it; they have {has}{limits}")
    return asked
