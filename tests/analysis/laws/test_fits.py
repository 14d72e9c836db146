"""Every fit of a study, recomputed by statsmodels and scipy; and what cannot be fitted."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, special, stats
from statsmodels.regression.linear_model import WLS
from statsmodels.tools import add_constant

from rgr_dist import paper
from rgr_dist.analysis.heads.by_heads import by_heads_of
from rgr_dist.analysis.laws import conclusions
from rgr_dist.analysis.laws.fits import Fits, fits_of
from rgr_dist.analysis.laws.predict import predict_sizes
from rgr_dist.analysis.laws.scaling_laws import by_name
from rgr_dist.analysis.laws.section import law_words, which_law
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.report.contents import sections
from rgr_dist.paper import IMPLIED, capacity_scale, compression
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up


@pytest.fixture(scope="module")
def results() -> StudyResults:
    searched: StudyResults = made_up.search_all(made_up.study_of(list(IMPLIED)))
    return searched


@pytest.fixture(scope="module")
def fits(results: StudyResults) -> Fits:
    return fits_of(results)


def scales(cells: pd.DataFrame) -> np.ndarray:
    pairs = zip(cells["m"], cells["d_model"], strict=True)
    return np.array([capacity_scale(int(m), int(d)) for m, d in pairs])


def test_lack_of_fit_is_chi_square_of_a_weighted_fit(fits: Fits) -> None:
    cells = fits.cells
    low, high = np.log(cells["D_K_fails"]), np.log(cells["D_K_passes"])
    variance = cells["seed_sd"] ** 2 + (high - low) ** 2 / 12
    x = np.log(scales(cells))
    tests = {test.law: test for test in fits.lack_of_fit}
    weighted = WLS((low + high) / 2, add_constant(x), weights=1 / variance).fit()
    chi2 = float((weighted.resid**2 / variance).sum())
    assert tests["D_K_power"].chi2 == pytest.approx(chi2)
    assert tests["D_K_power"].p_value == pytest.approx(stats.chi2.sf(chi2, len(x) - 2))
    mean = np.average((low + high) / 2 - x, weights=1 / variance)
    chi2 = float((((low + high) / 2 - x - mean) ** 2 / variance).sum())
    assert tests["D_K"].chi2 == pytest.approx(chi2)
    assert tests["D_K"].degrees == len(x) - 1


def test_a_law_that_its_lack_of_fit_test_rejects_is_told(
    results: StudyResults, fits: Fits, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_law = {test.law: test for test in fits.lack_of_fit}
    tests = [replace(by_law["D_K_power"], p_value=0.2), replace(by_law["D_K"], p_value=0.012)]
    told = replace(fits, lack_of_fit=tests)
    rejected = (
        "The lack-of-fit test rejects m′ log₂ m / d_model itself (p = 0.012): seeds and the "
        "resolution of d_k do not explain how far D_K* scatters about it."
    )
    assert conclusions.sentences(told)[1] == rejected
    monkeypatch.setattr(conclusions, "fits_of", lambda results: told)
    every, wide, tested = conclusions.headline(results)
    assert f"{every[:-1]}; w{wide[1:]}" == conclusions.growth(told)
    assert tested == rejected
    assert conclusions.lack_of_fit(replace(fits, lack_of_fit=tests[:1])) == ""
    monkeypatch.setattr("rgr_dist.analysis.laws.section.fits_of", lambda results: told)
    section = which_law(results)
    assert section is not None
    notes = {row["name"]: row["reason"] for row in section.shown[0].rows}
    assert notes["m log m/d"] == "rejected by its lack-of-fit test"
    assert notes["(m log m/d)^a"] is None
    listed = law_words(by_name(fits.laws)["D_K"], told.rejected)
    assert listed == f"{law_words(by_name(fits.laws)['D_K'])}, rejected by its lack-of-fit test"


def test_predictions_hold_the_fitted_cells_and_warn_outside(fits: Fits) -> None:
    inside = predict_sizes(fits, 256, 32)
    assert inside.warnings == []
    first = inside.rows[0]
    assert first["D_K_low"] <= 64 <= first["D_K_high"]
    assert first["h"] is not None
    assert first["d_k"] == math.ceil(first["D_K"] / first["h"])
    theirs = inside.rows[-1]
    width = math.ceil(1.19 * capacity_scale(256, 32))
    assert (theirs["law"], theirs["D_K"]) == ("the paper", width)
    outside = predict_sizes(fits, 4096, 32, 8192)
    assert outside.warnings == [
        "m = 4096 is outside the fitted cells, which go from 64 to 512",
        "m′/d_model = 256 is outside the fitted cells, which go from 1 to 32",
        "m′/m = 2 is outside the fitted cells, which are all 1",
    ]
    no_heads = replace(by_name(fits.laws)["h_power"], factor=None, reason="2 cells, too few")
    laws = [no_heads if law.name == "h_power" else law for law in fits.laws]
    without = predict_sizes(replace(fits, laws=laws), 256, 32)
    assert {row["h"] for row in without.rows[:-1]} == {None}
    assert without.warnings == ["no law of h*: 2 cells, too few"]
    wide = outside.rows[0]
    assert wide["D_K_high"] / wide["D_K_low"] > first["D_K_high"] / first["D_K_low"]


@pytest.mark.parametrize("size", [(256, 32, 256), (64, 64, 64), (512, 16, 1024)])
def test_the_predicted_heads_are_those_of_scipys_likelihood(
    fits: Fits, size: tuple[int, int, int]
) -> None:
    own = fits.cells[fits.cells["h_star"].notna()]
    with np.errstate(divide="ignore"):  # h* at the fewest heads listed is open below
        x, low, high = np.log(own[["compression", "h_above", "h_below"]].to_numpy().T)

    def loss(unknown: np.ndarray) -> float:
        a, b, log_sigma = unknown
        ends = [(end - a - b * x) / np.exp(log_sigma) for end in (low, high)]
        share = special.ndtr(ends[1]) - special.ndtr(ends[0])
        return -float(np.log(np.maximum(share, 1e-300)).sum())

    options = {"xatol": 1e-7, "fatol": 1e-9, "maxiter": 4000}
    best = optimize.minimize(loss, [0, 1, -1], method="Nelder-Mead", options=options)
    a, b, log_sigma = best.x
    at, n = math.log(compression(*size)), int(np.isfinite([low, high]).all(axis=0).sum())
    centre, t = a + b * at, stats.t.ppf(0.975, n - 2)

    def fall(centre: float) -> float:
        """Above the cut-off, with the line through a centre at the new size."""

        def held(unknown: np.ndarray) -> float:
            return loss(np.array([centre - unknown[0] * at, *unknown]))

        least = optimize.minimize(held, [b, log_sigma], method="Nelder-Mead", options=options)
        return float(2 * (least.fun - best.fun) - n * math.log1p(t**2 / (n - 2)))

    line = [optimize.brentq(fall, centre, centre + way * 4, xtol=1e-4) for way in (-1, 1)]
    scatter = t * math.exp(log_sigma) * math.sqrt(n / (n - 2))
    ends = (-math.hypot(centre - line[0], scatter), math.hypot(line[1] - centre, scatter))
    wanted = [max(1, round(math.exp(centre + end))) for end in (0, *ends)]
    prediction = predict_sizes(fits, *size)
    for row in prediction.rows[:-1]:
        assert row["h"] == wanted[0]
        assert [row["h_low"], row["h_high"]] == pytest.approx(wanted[1:], rel=2e-3)
        for width, each in (("D_K", "d_k"), ("D_K_low", "d_k_low"), ("D_K_high", "d_k_high")):
            assert row[each] == math.ceil(row[width] / wanted[0])
    theirs = prediction.rows[-1]
    line = paper.LAWS["h"].intercept + paper.LAWS["h"].slope * compression(*size)
    assert (theirs["h"], theirs["h_low"], theirs["D_K_high"]) == (max(1, round(line)), None, None)
    assert theirs["formula"] == "1.19 · m′ log₂ m / d_model"


def of_heads(*heads: dict[str, Any]) -> StudyResults:
    """Cells of one head, with what is known of each."""
    study = made_up.study_of(list(IMPLIED)[: len(heads)], heads=[1])
    rows = [
        made_up.threshold_row(cell, 1, None, **own)
        for cell, own in zip(study.cells, heads, strict=True)
    ]
    return made_up.results_of(study, [], rows)


def test_without_a_threshold_there_is_no_law() -> None:
    fits = fits_of(of_heads({}, {}))
    growth, which, left_out = conclusions.sentences(fits)
    assert growth.startswith("No law of D_K*: no cell with a threshold; a fit needs 3 cells, of 2")
    assert which.startswith("These cells cannot tell which law holds: AICc needs 4 cells")
    assert left_out == "The laws leave out 2 cells: 2 open."
    assert predict_sizes(fits, 64, 16).reason == "0 cells with a threshold, too few for a law"
    fits = fits_of(of_heads(*[{"status": "censored", "D_K_low": 97, "D_K_high": None}] * 12))
    said = conclusions.sentences(fits)
    assert said[0].startswith("No law of D_K*: 0 cells; a fit needs 3 cells")
    assert by_name(fits.laws)["D_K_power"].n_censored == 12


def test_one_seed_is_fitted_but_does_not_tell_its_noise() -> None:
    fits = fits_of(made_up.search_all(made_up.study_of(list(IMPLIED)[:6], seeds=1)))
    assert by_name(fits.laws)["D_K_power"].n == 6
    assert fits.cells["seed_sd"].isna().all()
    assert fits.lack_of_fit == []


def test_a_half_done_study_counts_its_finished_cells(results: StudyResults) -> None:
    cut = results.study.cells[0].cell_id
    rest = results.thresholds[results.thresholds["cell_id"] != cut]
    fits = fits_of(StudyResults(results.study, results.runs, rest))
    assert by_name(fits.laws)["D_K_power"].n == 11
    assert "The laws leave out 1 cell: 1 open." in conclusions.sentences(fits)


def test_no_two_laws_of_a_study_are_called_the_same() -> None:
    cells = [{"m": m, "d_model": d, "training": {"max_steps": [5_000, 20_000]}} for m, d in IMPLIED]
    study = parse_study({"name": "s", "cells": cells, "search": {"heads": [1], "seeds": 2}})
    rows = [
        made_up.threshold_row(one, 1, IMPLIED[one.m, one.d_model][0] + one.training.max_steps)
        for one in study.cells
    ]
    laws = fits_of(made_up.results_of(study, [], rows)).laws
    called = [(law.response, law.predictor, law.cells, law.estimator) for law in laws]
    assert len(set(called)) == len(called)
    assert by_name(laws)["D_K_power_5000_steps"].cells == "5,000 steps"


def test_an_extension_that_is_no_better_is_not_ruled_out(fits: Fits) -> None:
    (law, extension), rest = fits.candidates[:2], fits.candidates[2:]
    law = replace(law, supported=True)
    others = [replace(one, supported=False, gap=7.0) for one in (extension, *rest)]
    near = [replace(others[0], gap=3.6), *others[1:]]
    far, close = (
        " ".join(conclusions.best_law(law, replace(fits, candidates=[law, *own])))
        for own in (others, near)
    )
    assert "The data rule the others out." in far
    assert "rule the others out" not in close
    assert "Laws that extend it are not better by enough to count." in close


def test_heads_known_by_hand() -> None:
    study = made_up.study_of([(64, 16), (64, 32)], heads=[1, 2, 4, 8])
    one, two = study.cells
    rows = [
        made_up.threshold_row(two, 1, None, status="censored", D_K_low=30, D_K_high=None),
        made_up.threshold_row(one, 4, None, status="pruned", D_K_low=25, D_K_high=None),
        made_up.threshold_row(one, 8, None, D_K_low=None, D_K_high=40),
        made_up.threshold_row(one, 2, 10, D_K_low=18, D_K_high=24),
        made_up.threshold_row(one, 1, 25, certificate=None),
    ]
    results = made_up.results_of(study, [], rows)
    table = by_heads_of(results)
    first = {"cell_id": one.cell_id, "m": 64, "d_model": 16, "degree": 1, "max_steps": 20_000}
    none = {"is_best": False, "arrow": False}
    expected = [
        {**first, **none, "h": 1, "status": "found", "D_K": 25, "D_K_low": 25, "D_K_high": 25,
         "times_best": 1.25},
        {**first, "h": 2, "status": "found", "D_K": 20, "D_K_fails": 18, "D_K_low": 18,
         "D_K_high": 24, "is_best": True, "times_best": 1.0, "arrow": False},
        {**first, "h": 4, "status": "pruned", "at_least": 25, "is_best": False,
         "times_best": 1.25, "arrow": True},
        {**first, **none, "h": 8, "status": "open"},
        {**first, "cell_id": two.cell_id, "d_model": 32, "h": 1, "status": "censored",
         "max_steps": two.training.max_steps, "at_least": 30, "is_best": False, "arrow": True},
    ]  # fmt: skip
    rows = table.astype("object").where(table.notna(), None).to_dict("records")
    assert rows == [dict.fromkeys(table.columns) | row for row in expected]


def test_protocols_are_never_taken_together() -> None:
    """The laws are of the protocol that most cells have; the other has fits of its own."""
    places = [(64, 32), (64, 16), (128, 32), (128, 16)]
    sizes = [{"m": m, "d_model": d} for m, d in places]
    slower = [size | {"training": {"learning_rate": 1e-4}} for size in sizes[:3]]
    search = {"heads": [1], "seeds": 2}
    study = parse_study({"name": "two", "cells": [*slower, *sizes], "search": search})
    rows = [
        made_up.threshold_row(cell, 1, round(times * capacity_scale(cell.m, cell.d_model)))
        for cell, times in zip(study.cells, [6.0] * 3 + [2.0] * 4, strict=True)
    ]
    results = made_up.results_of(study, [], rows)
    fits = fits_of(results)
    laws = by_name(fits.laws)
    assert (laws["D_K"].n, len(fits.cells)) == (4, 4)
    assert laws["D_K"].slope == pytest.approx(2, rel=0.02)
    other = laws["D_K_learning_rate=0.0001"]
    assert (other.n, other.cells) == (3, "learning_rate = 0.0001")
    assert other.slope == pytest.approx(6, rel=0.02)
    assert laws["D_K_power_learning_rate=0.0001"].factor == pytest.approx(6, rel=0.1)
    said = " ".join(conclusions.sentences(fits))
    assert "Cells with another protocol than most have laws of their own." in said


@pytest.mark.parametrize(
    ("models", "search"),
    [
        (["softmax", "max"], {}),  # which takes keys that softmax does not
        (["softmax", {"construction": "2"}], {"mode": "widest"}),  # which is not trained
    ],
)
def test_models_of_different_keys_share_a_report(models: list[Any], search: dict[str, Any]) -> None:
    cells = [{"m": [16, 32], "d_model": 8}]
    search = {"heads": [1], "seeds": 2, **search}
    study = parse_study({"name": "s", "model": models, "cells": cells, "search": search})
    rows = [made_up.threshold_row(cell, 1, 8) for cell in study.cells]
    assert len(sections(made_up.results_of(study, [], rows))) > 5
