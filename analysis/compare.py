"""Two studies, or the parts of one, cell by cell: what the second needs more or less."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rgr_dist.analysis.accuracy import accuracy
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.tables import best
from rgr_dist.analysis.wording import number, plural, three_digits
from rgr_dist.planning.budgets import records
from rgr_dist.search.seed_test import t_interval
from rgr_dist.study.cell import Cell
from rgr_dist.study.errors import StudyError
from rgr_dist.study.study import Study

Row = dict[str, Any]

BESIDE = ("D_K", "D_K_low", "D_K_high", "h_star", "d_k", "status")
"""What a row has of both cells."""


@dataclass(frozen=True)
class Side:
    """Cells of a study that are compared with those of another side.

    Attributes:
        name: what a table calls it.
    """

    name: str
    results: StudyResults
    cells: Sequence[Cell]


def sides_by(results: StudyResults, key: str) -> list[Side]:
    """A study's cells by their value of a key, such as ``model`` or ``max_steps``, in its order.

    Raises:
        StudyError: the cells do not differ in that key.
    """
    study, groups = results.study, dict[str, list[Cell]]()
    for cell in study.cells:
        keys = study.keys_of(cell)
        full = next((own for own in keys if own.rpartition(".")[2] == key), key)
        groups.setdefault(str(keys.get(full)), []).append(cell)
    if len(groups) < 2:
        differ = sorted(_telling(study, study.cells))
        valid = f"; valid: {', '.join(differ)}" if differ else ""
        raise StudyError(f"--by {key}: the cells of {study.name} do not differ in it{valid}")
    return [Side(value, results, cells) for value, cells in groups.items()]


def compare(sides: Sequence[Side]) -> pd.DataFrame:
    """Every other side beside the first one.

    Cells of one size are compared. If a side has several of a size, the two must agree in the
    keys that tell those apart, such as the step limit.

    Returns:
        A row for each cell that both have: ``cell, m, d_model, first, second`` (the names of the
        sides); ``D_K_a, D_K_low_a, …, D_K_b, …``; and ``ratio``, D_K* of the second over that of
        the first, with ``ratio_low, ratio_high``, which both intervals allow. Null where a search
        is open or has no threshold. For studies of accuracy a row for each (cell, D_K, h) instead,
        with ``accuracy_a, accuracy_b, difference``.

    Raises:
        StudyError: they measure different things, or have no cell in common.
    """
    kinds = {cell.record.finds for side in sides for cell in side.cells}
    if len(kinds) > 1:
        raise StudyError("give two studies of thresholds D_K, or two of accuracy")
    row_of = _thresholds if kinds == {"D_K"} else _accuracies
    first, rows = sides[0], list[Row]()
    for second in sides[1:]:
        for one, other in _partners(first, second):
            named = {"cell": first.results.study.name_of(one), "m": one.m, "d_model": one.d_model}
            named |= {"first": first.name, "second": second.name}
            beside = row_of(first.results, one, second.results, other)
            rows += [named | row for row in beside]
    if not rows:
        raise StudyError(f"{first.name} and {sides[-1].name} have no cell in common")
    return pd.DataFrame(rows).convert_dtypes()


def _partners(first: Side, second: Side) -> Iterable[tuple[Cell, Cell]]:
    for one in first.cells:
        alike = [cell for cell in first.cells if cell.name == one.name]
        others = [cell for cell in second.cells if cell.name == one.name]
        telling = _telling(first.results.study, alike) | _telling(second.results.study, others)
        own, theirs = first.results.study.keys_of(one), second.results.study.keys_of
        same = [
            other
            for other in others
            if all(theirs(other).get(key) == own.get(key) for key in telling)
        ]
        if len(same) == 1:
            yield one, same[0]


def _telling(study: Study, cells: Sequence[Cell]) -> set[str]:
    """The keys in which cells of one size differ."""
    keys = [study.keys_of(cell) for cell in cells]
    return {key for own in keys for key in own if len({str(one.get(key)) for one in keys}) > 1}


def _thresholds(a: StudyResults, one: Cell, b: StudyResults, other: Cell) -> list[Row]:
    first, second = (
        next(row for row in records(best(results)) if row["cell_id"] == cell.cell_id)
        for results, cell in ((a, one), (b, other))
    )
    row = {
        f"{name}_{side}": own[name]
        for side, own in (("a", first), ("b", second))
        for name in BESIDE
    }
    is_known = "open" not in (first["status"], second["status"])
    for end, above, below in (
        ("ratio", "D_K", "D_K"),
        ("ratio_low", "D_K_low", "D_K_high"),
        ("ratio_high", "D_K_high", "D_K_low"),
    ):
        over, under = second[above], first[below]
        row[end] = over / under if is_known and over and under else None
    return [row]


def _accuracies(a: StudyResults, one: Cell, b: StudyResults, other: Cell) -> list[Row]:
    sizes = ["D_K", "h"]
    first, second = (
        table.loc[table["cell_id"] == cell.cell_id, [*sizes, "accuracy"]]
        for table, cell in ((accuracy(a), one), (accuracy(b), other))
    )
    beside = first.merge(second, on=sizes, suffixes=("_a", "_b"))
    return records(beside.assign(difference=beside["accuracy_b"] - beside["accuracy_a"]))


def sentence(table: pd.DataFrame) -> str:
    """What each second side needs against the first, on average over the cells of both.

    The mean of ratios is geometric. Cells of one size count as one: they are no independent
    evidence.
    """
    is_ratio = "ratio" in table
    what = "D_K* over that of" if is_ratio else "Accuracy minus that of"
    said = [_mean(own, is_ratio) for _, own in table.groupby("second", sort=False)]
    return f"{what} {table['first'].iloc[0]}: {', '.join(said)}."


def _mean(own: pd.DataFrame, is_ratio: bool) -> str:
    name, second = "ratio" if is_ratio else "difference", own["second"].iloc[0]
    known = own[own[name].notna()]
    if known.empty:
        return f"{second} not known in any cell"
    values = known[name].astype("float64")
    values = values.map(math.log) if is_ratio else values
    means = values.groupby([known["m"], known["d_model"]]).mean().to_list()

    def shown(value: float) -> str:
        return three_digits(math.exp(value)) if is_ratio else number(value, "+.3f")

    ends = t_interval(means)
    limits = "" if ends is None else f" [{shown(ends[0])} to {shown(ends[1])}]"
    cells = plural(len(known), "cell" if is_ratio else "split")
    return f"{second} {shown(float(np.mean(means)))}{limits} ({cells})"
