"""The fits against numpy and known data, and what the paper's own figures say of its fits."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import pytest
from statsmodels.regression.linear_model import OLS
from statsmodels.tools import add_constant

from rgr_dist import paper
from rgr_dist.analysis.laws.scaling_laws import (
    Law,
    by_name,
    distinct,
    fit_laws,
    power_law,
)
from rgr_dist.paper import capacity_scale
from rgr_dist.study.search import Search

HEADS = Search().heads
PLACES = list(paper.IMPLIED)


def cells(values: dict[tuple[int, int], tuple[float, float]], degree: int = 1) -> pd.DataFrame:
    """A table of finished cells with these (D_K*, h*)."""
    rows = [
        {"m": m, "d_model": d, "D_K": D_K, "D_K_low": D_K, "h_star": h, "status": "found"}
        | {"degree": degree, "n_edges": degree * m, "cell_id": f"{m}-{d}", "max_steps": 20_000}
        | {"certificate": json.dumps({"fail": {"d_k": max(0, D_K // h - 1)}})}
        | {"largest": True, "protocol": ""}
        for (m, d), (D_K, h) in values.items()
    ]
    columns = ["m", "d_model", "degree", "n_edges", "D_K", "D_K_low", "h_star", "status"]
    columns += ["cell_id", "max_steps", "certificate", "largest", "protocol"]
    return pd.DataFrame(rows, columns=columns).astype({"largest": "bool"})


def fitted(table: pd.DataFrame) -> list[Law]:
    return fit_laws(table, HEADS)


def test_edges_not_items_drive_the_law() -> None:
    values = {place: (0.46 * 8 * capacity_scale(*place), 2.0) for place in PLACES}
    law = by_name(fitted(cells(values, degree=8)))["D_K"]
    assert law.slope == pytest.approx(0.46)


def test_denser_graphs_have_a_law_of_degrees_up_to_the_papers_and_one_of_information() -> None:
    tables = []
    for degree in (1, 4, 16, 32):
        bits = degree * 128 * math.log2(128 / degree) / 32
        tables.append(cells({(128, 32): (0.8 * bits, 2.0)}, degree))
    laws = by_name(fitted(pd.concat(tables)))
    assert laws["D_K_bits"].slope == pytest.approx(0.8)
    assert laws["D_K_bits"].r2_centred == pytest.approx(1)
    assert (laws["D_K"].n, laws["D_K_sparse"].n) == (4, 3)
    assert laws["D_K"].slope < laws["D_K_sparse"].slope
    always = {"D_K", "D_K_wide", "h", "D_K_power", "D_K_power_wide", "h_power"}
    assert set(by_name(fitted(pd.concat(tables[:3])))) == {*always, "D_K_bits"}
    assert set(by_name(fitted(tables[0]))) == always


def test_a_fit_of_a_part_that_is_all_is_told_once() -> None:
    laws = fitted(cells(paper.IMPLIED))
    assert distinct(laws) == laws
    wide = {place: values for place, values in paper.IMPLIED.items() if place[1] > 16}
    told = [law.name for law in distinct(fitted(cells(wide)))]
    assert told == ["D_K", "h", "D_K_power", "h_power"]


def test_unfinished_cells_do_not_count() -> None:
    table = cells(paper.IMPLIED)
    table.loc[0, "status"] = "open"
    table.loc[1, ["status", "D_K", "h_star"]] = ["censored", None, None]
    assert by_name(fitted(table))["D_K"].n == 10


def test_a_constant_response_has_no_centred_r2() -> None:
    flat = dict.fromkeys(PLACES, (10.0, 1.0))
    laws = by_name(fitted(cells(flat)))
    assert laws["h"].r2 is None
    assert laws["h"].slope == pytest.approx(0, abs=1e-12)
    assert laws["D_K"].r2_centred is None


def test_laws_survive_json() -> None:
    for table in (cells(paper.IMPLIED), cells({})):
        laws = fitted(table)
        text = json.dumps([asdict(law) for law in laws], allow_nan=False)
        assert [Law(**record) for record in json.loads(text)] == laws


def test_the_implied_base_grid_alone_does_not_give_the_papers_fits() -> None:
    """What Table 1 implies fits to 1.40 and 0.943, not to the printed 1.19 and 0.966."""
    laws = by_name(fitted(cells(paper.IMPLIED)))
    assert laws["D_K"].slope == pytest.approx(1.401, abs=1e-3)
    assert laws["D_K"].r2_uncentred == pytest.approx(0.9655, abs=1e-4)
    assert laws["D_K"].r2_centred == pytest.approx(0.9469, abs=1e-4)
    assert laws["D_K_wide"].slope == pytest.approx(0.943, abs=1e-3)
    assert laws["D_K_wide"].r2_uncentred == pytest.approx(0.9877, abs=1e-4)
    assert (laws["h"].slope, laws["h"].intercept) == pytest.approx((2.048, -6.505), abs=1e-3)
    assert laws["h"].r2 == pytest.approx(0.9249, abs=1e-4)


def test_with_the_larger_cells_slopes_and_uncentred_r2_are_all_the_papers() -> None:
    """One set of plausible D_K* for the larger cells gives all four printed figures at once."""
    larger = {
        (1024, 128): (72, 1),
        (2048, 256): (60, 1),
        (4096, 512): (92, 1),
        (1024, 32): (320, 1),
    }
    laws = by_name(fitted(cells({**paper.IMPLIED, **larger})))
    for name in ("D_K", "D_K_wide"):
        law, printed = laws[name], paper.LAWS[name]
        digits = 2 if name == "D_K" else 3
        assert round(float(law.slope or math.nan), digits) == printed.slope
        assert round(float(law.r2_uncentred or math.nan), 3) == printed.r2
        assert round(float(law.r2_centred or math.nan), 3) != printed.r2


LINES: dict[str, dict[str, Any]] = {
    "D_K": {
        "response": "D_K*",
        "predictor": "m' log2(m) / d_model",
        "through_origin": True,
        "estimator": "the paper's: least squares through the origin",
    },
    "h": {
        "response": "h*",
        "predictor": "m' / d_model",
        "through_origin": False,
        "estimator": "least squares with an intercept",
    },
}


@pytest.mark.parametrize("name", LINES)
def test_every_number_of_a_fit(name: str) -> None:
    """The record of each line of four cells, with statsmodels' numbers."""
    table = cells({(64, 16): (21, 5), (64, 32): (10, 2), (128, 16): (80, 9), (128, 64): (14, 1)})
    law = by_name(fitted(table))[name]
    if name == "D_K":
        x, y = np.array([24.0, 12, 56, 14]), np.array([21.0, 10, 80, 14])
        fit = OLS(y, x[:, None]).fit()
        intercept = (0.0, None, None)
    else:
        x, y = np.array([4.0, 2, 8, 2]), np.array([5.0, 2, 9, 1])
        fit = OLS(y, add_constant(x)).fit()
        intercept = (fit.params[0], *fit.conf_int()[0])
    none = ("factor", "exponent", "bootstrap", "scatter", "max_steps", "protocol", "reason")
    expected = {
        field.name: None for field in dataclasses.fields(Law) if field.name.startswith(none)
    }
    expected |= LINES[name] | {
        "name": name,
        "cells": "all cells",
        "n": 4,
        "n_censored": 0,
        "status": "fitted",
        "slope": fit.params[-1],
        **dict(zip(("slope_low", "slope_high"), fit.conf_int()[-1], strict=True)),
        **dict(zip(("intercept", "intercept_low", "intercept_high"), intercept, strict=True)),
        "r2": fit.rsquared,
        "r2_centred": 1 - fit.ssr / ((y - y.mean()) ** 2).sum(),
        "r2_uncentred": 1 - fit.ssr / (y**2).sum(),
        "sigma": math.sqrt(fit.mse_resid),
        "x_mean": 0.0 if name == "D_K" else x.mean(),
        "x_square_sum": ((x - (0.0 if name == "D_K" else x.mean())) ** 2).sum(),
    }
    assert asdict(law) == pytest.approx(expected)


def test_the_laws_of_part_of_the_cells_say_which() -> None:
    tables = [cells({(128, 32): (20.0 * degree, 2.0)}, degree) for degree in (1, 16, 17)]
    laws = fitted(pd.concat([*tables, cells({(128, 16): (88, 8), (64, 16): (20, 4)})]))
    told = [(law.name, law.response, law.predictor, law.cells, law.n) for law in laws]
    scale, bits = "m' log2(m) / d_model", "m' log2(m²/m') / d_model"
    assert told == [
        ("D_K", "D_K*", scale, "all cells", 5),
        ("D_K_wide", "D_K*", scale, "all but d_model = 16, m > 64", 4),
        ("D_K_sparse", "D_K*", scale, "degrees up to 16", 4),
        ("D_K_bits", "D_K*", bits, "all cells", 5),
        ("h", "h*", "m' / d_model", "all cells", 5),
        ("D_K_power", "D_K*", scale, "all cells", 5),
        ("D_K_power_wide", "D_K*", scale, "all but d_model = 16, m > 64", 4),
        ("h_power", "h*", "m' / d_model", "all cells", 5),
    ]
    lines = [law for law in laws if law.slope is not None]
    assert all(law.through_origin == (law.response == "D_K*") for law in lines)


@pytest.mark.parametrize(
    ("places", "why"),
    [
        ([], "0 cells with a threshold"),
        ([(64, 16)], "1 cell with a threshold"),
        ([(64, 16), (64, 32)], "2 cells with a threshold"),
        ([(64, 16), (128, 32), (256, 64)], "3 cells with a threshold, all of one compression"),
    ],
)
def test_why_there_is_no_fit(places: list[tuple[int, int]], why: str) -> None:
    laws = by_name(fitted(cells(dict.fromkeys(places, (20, 4)))))
    few = None if len(places) == 3 else f"{why}; a fit needs 3 cells"
    assert laws["D_K"].reason == few
    assert laws["h"].reason == f"{why}; a fit needs 3 cells of 2 compressions"
    assert (laws["h"].status, laws["h"].slope, laws["h"].r2) == ("too few cells", None, None)


def test_three_cells_of_two_compressions_give_a_law_of_h() -> None:
    law = by_name(fitted(cells({(64, 16): (20, 4), (64, 32): (6, 1), (128, 64): (7, 3)})))["h"]
    assert law.slope == pytest.approx(1.0)
    assert law.intercept == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        ([], "no cell with a threshold"),
        ([2.0], "1 cell"),
        ([2.0, 2.0], "2 cells, all of one size"),
        ([2.0, 4.0], "2 cells"),
        ([2.0, 2.0, 2.0], "3 cells, all of one size"),
        ([2.0, 2.0, 4.0], None),
    ],
)
def test_a_power_law_takes_three_cells_of_two_sizes(sizes: list[float], why: str | None) -> None:
    table = pd.DataFrame({"x": sizes, "fails": sizes, "status": "found"})
    table["passes"] = table["fails"] + 1
    law = power_law("any", ("Y*", "x"), "these", table, "x", ("fails", "passes"))
    needs = "a fit needs 3 cells, of 2 or more sizes, with Y* bounded on both sides"
    assert law.reason == (None if why is None else f"{why}; {needs}")
    assert law.status == ("fitted" if why is None else "too few cells")
    assert (law.exponent is None) == (why is not None)
