"""Which interval of D_K and of h each cell has, and which step limit counts."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rgr_dist.analysis.laws.points import points, with_protocols
from rgr_dist.analysis.laws.scaling_laws import by_name, fit_laws
from rgr_dist.paper import IMPLIED
from rgr_dist.study.search import Search
from rgr_dist.study.study_file import load_study, parse_study
from rgr_dist.study.training import Context

HEADS = Search().heads
SLOW = "learning_rate = 0.0003"
SIDES = json.dumps({"pass": {"d_k": 5}, "fail": {"d_k": 3}})


def best(**other: Any) -> dict[str, Any]:
    row = {"cell_id": "a", "m": 64, "d_model": 16, "degree": 1, "n_edges": 64, "D_K": 20}
    row |= {"D_K_low": 18, "h_star": 4, "status": "found", "max_steps": 20_000}
    return row | {"certificate": SIDES, "largest": True, "protocol": ""} | other


def one(**other: Any) -> Any:
    return points(pd.DataFrame([best(**other)]), HEADS).iloc[0]


@pytest.mark.parametrize(
    ("cell", "fails", "passes"),
    [
        ({}, 12, 20),  # the sides of its certificate
        ({"D_K": 4, "certificate": '{"pass": {"d_k": 1}, "fail": null}'}, 0, 4),
        ({"D_K": None, "h_star": None, "D_K_low": 97, "status": "censored"}, 96, math.inf),
    ],
)
def test_a_cell_lies_between_what_fails_and_what_passes(
    cell: dict[str, Any], fails: float, passes: float
) -> None:
    row = one(**cell)
    assert (row["D_K_fails"], row["D_K_passes"]) == (fails, passes)
    assert row["scale"] == 24
    assert row["ratio"] == pytest.approx((cell.get("D_K", 20) or math.nan) / 24, nan_ok=True)


@pytest.mark.parametrize("status", ["open", "inconsistent"])
def test_an_unsettled_cell_has_no_row(status: str) -> None:
    assert points(pd.DataFrame([best(status=status)]), HEADS).empty


def test_h_lies_between_the_listed_heads() -> None:
    assert (one()["h_above"], one()["h_below"]) == pytest.approx((math.sqrt(8), math.sqrt(32)))
    assert one(h_star=1)["h_above"] == 0
    assert one(h_star=64)["h_below"] == math.inf
    every = points(pd.DataFrame([best(h_star=3), best(h_star=1)]), "all")
    assert list(every["h_above"]) == [2.5, 0]
    assert list(every["h_below"]) == [3.5, 1.5]


def test_the_largest_step_limit_of_a_problem_counts() -> None:
    sizes = list(IMPLIED)[:6]
    rows = [
        best(m=m, d_model=d, n_edges=m, D_K=factor * IMPLIED[m, d][0], h_star=1, max_steps=steps)
        | {"largest": steps == 20_000}
        for steps, factor in ((5_000, 3), (20_000, 1))
        for m, d in sizes
    ]
    table = pd.DataFrame(rows)
    laws = by_name(fit_laws(table, HEADS))
    plain = by_name(fit_laws(table[table["largest"]], HEADS))
    assert laws["D_K_power"].exponent == plain["D_K_power"].exponent
    assert laws["D_K_power_20000_steps"].max_steps == 20_000
    assert laws["D_K_5000_steps"].slope == pytest.approx(3 * (plain["D_K"].slope or 0))
    assert laws["D_K_power_5000_steps"].exponent != laws["D_K_power"].exponent


def test_every_protocol_has_laws_at_each_of_its_step_limits() -> None:
    rows = [
        best(m=m, d_model=d, n_edges=m, D_K=factor * IMPLIED[m, d][0], h_star=1, max_steps=steps)
        | {"largest": steps == 20_000, "protocol": protocol}
        for protocol, steps, factor in (("", 20_000, 1), (SLOW, 5_000, 6), (SLOW, 20_000, 2))
        for m, d in list(IMPLIED)[:6]
    ]
    laws = by_name(fit_laws(pd.DataFrame(rows), HEADS))
    at = {law.max_steps: law.slope for law in laws.values() if law.name.startswith("D_K_learning")}
    plain = laws["D_K"].slope or 0
    assert at == pytest.approx({None: 2 * plain, 20_000: 2 * plain, 5_000: 6 * plain})
    law = laws["D_K_power_learning_rate=0.0003_5000_steps"]
    assert (law.max_steps, law.protocol, law.n) == (5_000, SLOW, 6)


def test_step_limits_that_differ_with_the_size_have_no_laws_of_their_own() -> None:
    rows = [best(max_steps=20_000), best(m=128, n_edges=128, max_steps=80_000)]
    assert all(law.max_steps is None for law in fit_laws(pd.DataFrame(rows), HEADS))


def test_cells_that_differ_in_more_than_the_step_limit_are_several_problems() -> None:
    cell = {"m": 64, "d_model": 16}
    alike = [
        {**cell, "training": {"max_steps": 5_000}},
        {**cell, "training": {"max_steps": 20_000}},
        {**cell, "context": {"length": 8}, "training": {"max_steps": 5_000}},
    ]
    study = parse_study({"name": "s", "cells": alike})
    table = pd.DataFrame({"cell_id": [one.cell_id for one in study.cells]})
    assert list(with_protocols(table, study)["largest"]) == [False, True, True]


def test_the_usual_protocol_is_that_of_most_problems_not_of_most_step_limits() -> None:
    study = load_study("contexts")
    table = pd.DataFrame({"cell_id": [one.cell_id for one in study.cells]})
    told = with_protocols(table, study)["protocol"]
    assert [told[i] for i, one in enumerate(study.cells) if one.context == Context()] == [""] * 4
    assert set(told) > {"length = 4", "positive_rate = 0.1"}


def test_an_empty_table_has_every_column() -> None:
    none = points(pd.DataFrame(columns=list(best())), HEADS)
    assert none.empty
    assert none["D_K_fails"].dtype == np.float64
