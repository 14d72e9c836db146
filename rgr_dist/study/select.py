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
    wanted, cells = _pairs(text), []
    for cell in study.cells:
        keys = {"degree": cell.graph.degree, **study.keys_of(cell)}
        others = ",".join(f"{key.split('.')[-1]}={value}" for key, value in keys.items())
        if wanted and wanted <= _pairs(study.name_of(cell)) | _pairs(others):
            cells.append(cell)
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
    if isinstance(name, Mapping):
        name = ",".join(f"{key}={value}" for key, value in name.items())
    text = name if isinstance(name, str) else ",".join(map(str, name))
    cells = cells_named(study, text)
    if len(cells) > 1 and not SIZES.fullmatch(text.strip()):
        cells = [one for one in cells if _pairs(study.name_of(one)) == _pairs(text)] or cells
    if len(cells) > 1:
        names = _names(study, cells)
        raise StudyError(f"cell {text}: names {len(cells)} cells; name one of {names}")
    return cells[0]


def heads_named(study: Study, heads: Sequence[int]) -> tuple[int, ...]:
    """The given head counts in the study's order.

    Raises:
        StudyError: one of them is not in the study.
    """
    listed = study.search.heads
    for h in heads:
        if h not in listed:
            has = ", ".join(map(str, listed))
            raise StudyError(f"h = {h}: not in {study.name}; it has {has}")
    return tuple(h for h in listed if h in heads)


def _pairs(name: str) -> set[tuple[str, str | float]]:
    """Keys and values, as numbers if they are, so that ``sharpness=10`` also matches 10.0."""
    if sizes := SIZES.fullmatch(name.strip()):
        name = f"m={sizes[2]},d_model={sizes[3]}"
    pairs: set[tuple[str, str | float]] = set()
    for pair in filter(None, ("".join(pair.split()) for pair in name.split(","))):
        key, _, value = pair.partition("=")
        try:
            pairs.add((key, float(value)))
        except ValueError:
            pairs.add((key, value))
    return pairs


def _names(study: Study, cells: Sequence[Cell]) -> str:
    return "; ".join(study.name_of(cell) for cell in cells)
