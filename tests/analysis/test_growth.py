"""How D_K* grows: which cells are pooled, what is ranked, the paper's line, predictions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from rgr_dist.analysis.growth import (
    LEAST_CELLS,
    cells,
    groups,
    laws,
    main_cells,
    papers_line,
    predictions,
    with_numbers,
)
from rgr_dist.analysis.laws import PAPERS, POWER
from rgr_dist.analysis.load import StudyResults
from rgr_dist.paper import capacity_scale
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up

GRID = [(m, d_model) for m in (64, 128, 256, 512) for d_model in (16, 32, 64)]


def of_law(study: Study, power: float = 1.0, censored: int = 0) -> StudyResults:
    """Every cell with the D_K of a power law, rounded up to its heads; the last ones censored."""
    rows = []
    for at, cell in enumerate(study.cells):
        D_K = 0.7 * capacity_scale(cell.m, cell.d_model) ** power
        h = max(1, min(8, int(D_K // 16)))
        more: dict[str, Any] = {}
        if at >= len(study.cells) - censored:
            more = {"status": "censored", "D_K_low": int(D_K), "D_K_high": None}
        d_k = None if more else math.ceil(D_K / h)
        for head in (1, 2, 4, 8):
            own = d_k if head == max(one for one in (1, 2, 4, 8) if one <= h) else None
            state = {} if own else {"status": "pruned", "D_K_low": int(2 * D_K)}
            rows.append(made_up.threshold_row(cell, head, own, **(more or state)))
    return made_up.results_of(study, [], rows)


def study_of(places: list[tuple[int, int]], **training: Any) -> Study:
    return parse_study(
        {
            "name": "x",
            "cells": [{"m": m, "d_model": d_model} for m, d_model in places],
            "training": training,
            "search": {"heads": [1, 2, 4, 8]},
        }
    )


def test_a_cell_lies_between_the_sides_of_its_certificate_or_above_its_bound() -> None:
    table = cells(of_law(study_of(GRID), censored=2)).set_index("cell")
    found = table[table["D_K"].notna()]
    assert (found["D_K_passes"] == found["D_K"]).all()
    assert (found["D_K_fails"] == found["D_K"] - found["h_star"]).all()
    beyond = table[table["D_K"].isna()]
    assert len(beyond) == 2
    assert (beyond["D_K_fails"] == of_bound(beyond) - 1).all()
    assert beyond["ratio"].isna().all()
    assert (found["ratio"] == found["D_K"] / found["scale"]).all()
    assert np.isinf(beyond["D_K_passes"].astype(float)).all()


def of_bound(table: pd.DataFrame) -> Any:
    """What ``of_law`` says that cells without a threshold need at least."""
    return np.floor(0.7 * table["scale"].astype(float))


def test_protocols_and_step_limits_are_never_pooled() -> None:
    study = study_of(GRID[:5], learning_rate=[1e-3, 3e-4], max_steps=[4000, 16_000])
    results = of_law(study)
    told = [(one.protocol, one.max_steps, len(one.cells)) for one in groups(results)]
    rates = {protocol for protocol, _, _ in told}
    assert len(rates) == 2
    assert "" in rates
    assert told == [(rate, limit, 5) for rate in sorted(rates) for limit in (None, 4000, 16_000)]
    for one in groups(results):
        assert one.cells["max_steps"].nunique() == 1
        assert one.cells["protocol"].nunique() == 1
    assert len(main_cells(results)) == 5
    table = laws(results)
    assert set(table["protocol"]) == rates
    assert table.groupby(["protocol", "max_steps"], dropna=False).ngroups == 6


@pytest.mark.parametrize("n", [2, 3, LEAST_CELLS - 1, LEAST_CELLS])
def test_with_fewer_than_ten_cells_nothing_is_ranked(n: int) -> None:
    table = laws(of_law(study_of(GRID[:n]), power=1.3))
    if n < 3:
        assert table.empty
    elif n < LEAST_CELLS:
        assert table["formula"].tolist() == [PAPERS, POWER]
        assert table[["aicc", "loo"]].isna().all().all()
    else:
        assert len(table) > 4
        assert table["aicc"].is_monotonic_increasing
        assert table["loo"].notna().all()
        assert table["formula"].iloc[0] != PAPERS


def test_a_law_has_its_numbers_as_data() -> None:
    (row, _) = laws(of_law(study_of(GRID[:5]))).to_dict("records")
    assert set(row["parameters"]) == {"c"}
    assert row["low"]["c"] < row["parameters"]["c"] < row["high"]["c"]
    assert row["scatter"] > 0


def test_the_papers_line_is_least_squares_through_the_origin() -> None:
    table = main_cells(of_law(study_of(GRID), power=1.2))
    line = papers_line(table)
    expected = sm.OLS(table["D_K"].to_numpy(float), table[["scale"]].to_numpy(float)).fit()
    assert line is not None
    assert line.slope == pytest.approx(expected.params[0])
    assert (line.low, line.high) == pytest.approx(tuple(expected.conf_int()[0]))
    assert line.r2 == pytest.approx(expected.rsquared)
    assert papers_line(table.iloc[:1]) is None


def test_predictions_of_measured_sizes_hold_what_was_measured() -> None:
    results = of_law(study_of(GRID), power=1.3)
    table = main_cells(results)
    at = table[["m", "d_model", "n_edges"]].astype("int64")
    told = predictions(results, at)
    own = told[told["D_K_low"].notna()]
    both = own.merge(table[["m", "d_model", "D_K"]], on=["m", "d_model"], suffixes=("", "_seen"))
    inside = (both["D_K_low"] <= both["D_K_seen"]) & (both["D_K_seen"] <= both["D_K_high"])
    assert inside.mean() > 0.9
    assert own["inside"].all()
    assert (own["h"] * own["d_k"] >= own["D_K"]).all()
    assert told.loc[told["D_K_low"].isna(), ["h", "d_k"]].isna().all().all()


def test_no_head_count_is_advised_that_only_an_easier_cell_had() -> None:
    results = of_law(study_of(GRID), power=1.3)
    measured = main_cells(results)
    sizes = [(100, 20, 100), (300, 48, 300), (500, 17, 500), (5000, 16, 5000), (100, 32, 290)]
    for m, d_model, edges in [*sizes, *((m, d_model, m) for m, d_model in GRID)]:
        at = pd.DataFrame({"m": [m], "d_model": [d_model], "n_edges": [edges]})
        row = predictions(results, at).iloc[0]
        hard = (edges / d_model, edges * math.log(m) / d_model**2)
        harder = sorted(
            (one["m"] / one["d_model"], one["m"] * math.log(one["m"]) / one["d_model"] ** 2, h)
            for one in measured.to_dict("records")
            if pd.notna(h := one["h_star"])
        )
        h_star = [h for *own, h in harder if own[0] >= hard[0] and own[1] >= hard[1] - 1e-12]
        assert pd.isna(row["h"]) == pd.isna(row["d_k"]) == (not h_star)
        assert not h_star or row["h"] == h_star[0]
        assert not h_star or row["d_k"] == math.ceil(row["D_K"] / h_star[0])


def test_a_size_is_inside_if_each_measure_of_it_is() -> None:
    results = of_law(study_of([(64, 16), (128, 16), (128, 32), (256, 32)]))
    sizes = {(64, 16, 64): True, (100, 20, 100): True, (63, 16, 63): False, (257, 32, 257): False}
    sizes |= {(128, 15, 128): False, (128, 33, 128): False, (64, 32, 64): False}
    sizes |= {(128, 32, 512): False, (256, 16, 256): False, (256, 32, 256): True}
    at = pd.DataFrame([*sizes], columns=["m", "d_model", "n_edges"])
    told = predictions(results, at)
    ours = told[told["D_K_low"].notna()].drop_duplicates(["m", "d_model", "n_edges"])
    assert ours["inside"].tolist() == [*sizes.values()]


def test_a_study_without_a_law_predicts_nothing() -> None:
    at = pd.DataFrame({"m": [64], "d_model": [16], "n_edges": [64]})
    assert predictions(of_law(study_of(GRID[:2])), at).empty


def test_a_law_is_written_with_its_numbers() -> None:
    group = groups(of_law(study_of(GRID)))[0]
    for law in group.laws:
        words = with_numbers(law)
        assert not any(f" {name} " in f" {words} " for name in "cakb")
        assert "d_model" in words
