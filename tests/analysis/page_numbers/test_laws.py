"""The laws on the page, against the rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from statsmodels.regression.linear_model import OLS
from statsmodels.tools import add_constant

from tests.analysis.page_numbers.by_hand import HEADS, Array, Cell, Size, fit_law, limits, shown
from tests.analysis.page_numbers.reading import agree, all_agree, numbers, table, words

Columns = dict[str, Array]
"""Of the cells: the ends of log D_K*, ``m′ log₂ m / d_model``, ``m′/d_model``, D_K* and h*."""


def columns(cells: list[Cell]) -> Columns:
    with np.errstate(divide="ignore"):
        low = np.log([float(cell.fails) for cell in cells])
    rows = [(math.log(cell.D_K), cell.scale, cell.load, cell.D_K, cell.h) for cell in cells]
    names = ("high", "scale", "load", "D_K", "h")
    parts = dict(zip(names, np.array(rows, dtype=float).T, strict=True))
    return parts | {"low": low, "design": add_constant(np.log(parts["scale"]))}


@pytest.fixture(scope="module")
def every(cells: dict[Size, Cell]) -> Columns:
    return columns(list(cells.values()))


@pytest.fixture(scope="module")
def wide(cells: dict[Size, Cell]) -> Columns:
    return columns([c for c in cells.values() if not (c.size[1] == 16 and c.size[0] > 64)])


def power_law(data: Columns) -> tuple[Array, Array, Array]:
    return data["low"], data["high"], data["design"]


def heads_law(data: Columns) -> tuple[Array, Array, Array]:
    """h* lies between the geometric means with its neighbours in the list, open at either end."""
    listed = np.array(HEADS, dtype=float)
    between = np.concatenate([[-np.inf], np.log(listed[1:] * listed[:-1]) / 2, [np.inf]])
    at = np.array([HEADS.index(int(h)) for h in data["h"]])
    return between[at], between[at + 1], add_constant(np.log(data["load"]))


def test_every_fit(page: str, every: Columns, wide: Columns) -> None:
    rows = table(page, "table-laws")
    assert [row["n"] for row in rows] == ["12", "9", "12", "12", "9", "12"]
    powers = power_law(every), power_law(wide), heads_law(every)
    for row, law in zip(rows[:3], powers, strict=True):
        values, _ = fit_law(*law)
        expected = [math.exp(values[0]), values[1], *limits(*law, 1)]
        assert all_agree(numbers(row["fit"]), expected), (row, expected)
    lines = (
        (every["D_K"], every["scale"][:, None]),
        (wide["D_K"], wide["scale"][:, None]),
        (every["h"], add_constant(every["load"])),
    )
    for row, (y, X) in zip(rows[3:], lines, strict=True):
        fit = OLS(y, X).fit()
        ends = fit.conf_int()
        expected = [fit.params[-1], *ends[-1]]
        if X.shape[1] == 2:
            expected += [fit.params[0], *ends[0]]
        assert all_agree(numbers(row["fit"]), expected), (row, expected)
        assert agree(row["R²"], fit.rsquared)
        assert agree(row["R², centred"], 1 - fit.ssr / ((y - y.mean()) ** 2).sum())


def test_how_it_grows(page: str, every: Columns, wide: Columns) -> None:
    told = []
    for data in (every, wide):
        (_, exponent, _), _ = fit_law(*power_law(data))
        low, high = limits(*power_law(data), 1)
        told.append((f"{exponent:#.3g}", f"95 % interval {low:#.3g} to {high:#.3g}"))
        if data is every:
            rejects = low > 1 or high < 1
    verdict = (
        ": the data reject proportionality"
        if rejects
        else ": these cells leave open whether it is proportional"
    )
    said = words(page, "summary")
    assert (
        f"DK* grows as (m′ log₂ m / dmodel) to the power {told[0][0]} ({told[0][1]} over 12 "
        f"cells){verdict}."
    ) in said
    assert (
        f"Without the cells of dmodel = 16, m > 64 the power is {told[1][0]} ({told[1][1]} over 9 "
        "cells)."
    ) in said


def test_the_part_of_each_cell(page: str, every: Columns, cells: dict[Size, Cell]) -> None:
    rows = table(page, "table-parts")
    assert [row["cell"] for row in rows] == [shown(size) for size in cells]
    low, high, X = power_law(every)
    predicted = X @ fit_law(low, high, X)[0][:2]
    hats = [
        OLS(every["D_K"], design).fit().get_influence().hat_matrix_diag
        for design in (X, every["scale"][:, None])
    ]
    for i, row in enumerate(rows):
        D_K, others = every["D_K"][i], np.arange(len(rows)) != i
        assert row["DK*"] == f"{D_K:.0f}"
        assert agree(row["ratio"], D_K / every["scale"][i])
        assert agree(row["power law"], math.exp(predicted[i]), slack=0.1)
        assert agree(row["residual"], (low[i] + high[i]) / 2 - predicted[i], slack=0.1)
        assert agree(row["resolution"], (high[i] - low[i]) / math.sqrt(12))
        assert agree(row["leverage"], hats[0][i])
        assert agree(row["the paper’s"], hats[1][i])
        without = fit_law(low[others], high[others], X[others])[0][1]
        assert agree(row["without it"], without, slack=0.1)
