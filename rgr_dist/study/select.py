"""Finds cells and heads of a study by the names that people give them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rgr_dist.study.cell import Cell
from rgr_dist.study.errors import StudyError
from rgr_dist.study.study import Study

SIZES = re.compile(r"(\()?\s*([0-9]+)\s*,\s*([0-9]+)\s*(?(1)\))")
"""``64,16`` and ``(64, 16)``: m and d_model."""

CellName = str | tuple[int, int] | Mapping[str, object]
"""``"m=64,d_model=16"``, ``"64,16"``, ``(64, 16)`` or ``{"m": 64, "d_model": 16}``."""


def cells_named(study: Study, text: str) -> list[Cell]:
    """The cells whose name has every ``key=value`` of a text such as ``m=64,d_model=16``.

    Keys that names leave out may be given: ``degree=1``, or any key of ``training`` or ``context``.

    Raises:
        StudyError: there is no such cell.
    """
    wanted = _pairs(text)
    named = {cell: _pairs(study.name_of(cell)) | _others(study, cell) for cell in study.cells}
    cells = [cell for cell, pairs in named.items() if wanted and wanted <= pairs]
    if not cells:
        raise StudyError(f"cell {text}: not in {study.name}; it has {_names(study, study.cells)}")
    return cells


def cell_named(study: Study, name: CellName | None) -> Cell:
    """The one cell with that name.

    The whole name of a cell, ``m=64,d_model=16``, selects it even if other names add keys to it;
    sizes alone, ``64,16``, must fit exactly one cell.

    Args:
        name: may be left out if the study has only one cell.

    Raises:
        StudyError: there is no such cell, or more than one.
    """
    if name is None:
        if len(study.cells) > 1:
            raise StudyError(f"--cell: missing; valid: {_names(study, study.cells)}")
        return study.cells[0]
    text = _text(name)
    cells = cells_named(study, text)
    if len(cells) > 1 and not SIZES.fullmatch(text.strip()):
        exact = [cell for cell in cells if _pairs(study.name_of(cell)) == _pairs(text)]
        cells = exact or cells
    if len(cells) > 1:
        raise StudyError(
            f"cell {text}: names {len(cells)} cells; name one of {_names(study, cells)}"
        )
    return cells[0]


def heads_named(study: Study, heads: Sequence[int]) -> tuple[int, ...]:
    """The given head counts, or other settings, in the study's order.

    Raises:
        StudyError: one of them is not in the study.
    """
    arms, name = study.search.heads, "h"
    listed = arms
    for h in heads:
        if h not in listed:
            raise StudyError(
                f"{name} = {h}: not in {study.name}; it has {', '.join(map(str, listed))}"
            )
    return tuple(h for h in listed if h in heads)


def _text(name: CellName) -> str:
    if isinstance(name, Mapping):
        return ",".join(f"{key}={value}" for key, value in name.items())
    return name if isinstance(name, str) else ",".join(map(str, name))


def _pairs(name: str) -> set[tuple[str, str | float]]:
    sizes = SIZES.fullmatch(name.strip())
    if sizes:
        return {("m", float(sizes[2])), ("d_model", float(sizes[3]))}
    return {_pair("".join(pair.split())) for pair in name.split(",") if pair.strip()}


def _pair(text: str) -> tuple[str, str | float]:
    """Key and value, as a number if it is one, so that ``sharpness=10`` also matches 10.0."""
    key, _, value = text.partition("=")
    try:
        return key, float(value)
    except ValueError:
        return key, value


def _others(study: Study, cell: Cell) -> set[tuple[str, str | float]]:
    keys = {"degree": cell.graph.degree, **study.keys_of(cell)}
    return {_pair(f"{key.split('.')[-1]}={value}") for key, value in keys.items()}


def _names(study: Study, cells: Sequence[Cell]) -> str:
    return "; ".join(study.name_of(cell) for cell in cells)
