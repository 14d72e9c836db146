"""What a study's cells are called on a page: in a sentence, beside a point, in an address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rgr_dist.study.cell import Cell
from rgr_dist.study.families import Edges
from rgr_dist.study.study import Study


@dataclass(frozen=True)
class CellName:
    """Names of one cell.

    Attributes:
        anchor: its id on a page, ``m64-d16``.
        short: ``(64, 16)``, with what tells it from cells of its size.
        full: ``(m, d_model) = (64, 16)``, likewise.
    """

    anchor: str
    short: str
    full: str


def cell_names(study: Study) -> Mapping[str, CellName]:
    """The names of each cell of a study by its cell_id; no two are the same."""
    names: dict[str, CellName] = {}
    taken: set[str] = set()
    for cell in study.cells:
        anchor, more = f"m{cell.m}-d{cell.d_model}", _more(cell)
        if more:
            anchor += f"-r{more[1]}" if more[0] == "r" else f"-e{more[1]}"
        differs = study.differences[cell.cell_id]
        parts = [f"{more[0]} = {more[1]}"] if more else []
        inside = "".join(f", {part}" for part in [*parts, *([differs] if differs else [])])
        unique, n = anchor, 1
        while unique in taken:
            n += 1
            unique = f"{anchor}-{n}"
        taken.add(unique)
        if cell.database is not None:
            size = f"{cell.m} facts, {cell.d_model}{inside}"
            names[cell.cell_id] = CellName(unique, f"({size})", f"(|D|, d_model) = ({size})")
            continue
        short = f"({cell.m}, {cell.d_model}{inside})"
        signs = f", {more[0]}" if more else ""
        values = f"({cell.m}, {cell.d_model}" + (f", {more[1]})" if more else ")")
        full = f"(m, d_model{signs}) = {values}" + (f" with {differs}" if differs else "")
        names[cell.cell_id] = CellName(unique, short, full)
    return names


def _more(cell: Cell) -> tuple[str, int] | None:
    """What the size leaves open of the graph: the number of edges of a file, or the degree."""
    if isinstance(cell.graph, Edges):
        return "m′", cell.n_edges
    return None if cell.graph.degree == 1 else ("r", cell.graph.degree)
