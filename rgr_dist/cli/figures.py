"""The verb that draws a study's figures as files, for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from rgr_dist.cli.options import CELL, Out, Set, StudyName
from rgr_dist.cli.results import side_by_side, stored_results
from rgr_dist.faults import UserError


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
    from rgr_dist.analysis.drawing.plot import as_file
    from rgr_dist.analysis.report import contents
    from rgr_dist.analysis.rows import names_of
    from rgr_dist.store.storage import write_atomically
    from rgr_dist.study.select import cells_named

    anchors = None
    if other is None:
        results, _ = stored_results(study, set_, out)
        stem, sections = results.study.name, contents.sections(results)
        if cell is not None:
            cells = cells_named(results.study, cell)
            anchors = {names_of(results)[one.cell_id].anchor for one in cells}
    else:
        if cell is not None:
            raise UserError("--cell: takes one study, since a comparison has no panels by cell")
        pair, names, _ = side_by_side([study, other], [out], set_)
        stem = "-".join(results.study.name for results in pair)
        sections = contents.compared(pair, names)
    for each in contents.figures(sections, figure or (), anchors):
        path = to / f"{stem}-{each.name}.{kind}"
        try:
            to.mkdir(parents=True, exist_ok=True)
            write_atomically(path, as_file(each, kind, width), sync=False)
        except OSError as error:
            raise UserError(f"--to {to}: cannot be written to: {error.strerror}") from None
        print(path)
