"""The power of m by which transitions narrow: known ones are found again."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit, log_expit

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.runs import scored
from rgr_dist.analysis.thresholds.best import best
from rgr_dist.analysis.transitions.probes import probes
from rgr_dist.analysis.transitions.transition_fits import transitions
from rgr_dist.analysis.transitions.width_scaling import WidthScaling, width_scaling
from rgr_dist.study.from_yaml import parse_study
from tests.analysis import made_up

PLACES = {(64, 16): 16, (128, 32): 20, (256, 64): 26}
SEEDS = 100


def searched(places: dict) -> StudyResults:
    """Runs of every width within an octave of each D_K*, without their scores."""
    study = made_up.study_of(list(places), heads=[1], seeds=SEEDS)
    runs, thresholds = [], []
    for cell in study.cells:
        D_K = places[cell.m, cell.d_model]
        for d_k in range(D_K // 2, 2 * D_K):
            runs += [made_up.run_row(cell, 1, d_k, seed, 0.9) for seed in range(SEEDS)]
        thresholds.append(made_up.threshold_row(cell, 1, D_K))
    return made_up.results_of(study, runs, thresholds)


def drawn(results: StudyResults, exponent: float, chance: int, places: dict) -> tuple:
    """Seeds that pass by a logistic curve of width 0.1 (m / 128)^exponent about each D_K*."""
    draw, study, runs = np.random.default_rng(chance), results.study, results.runs
    D_K = np.array([places[size] for size in zip(runs["m"], runs["d_model"], strict=True)])
    width = 0.1 * (runs["m"].to_numpy() / 128) ** exponent
    share = expit((np.log2(runs["d_k"].to_numpy() / D_K) + 2 * width) / width)
    runs = runs.assign(score=np.where(draw.random(len(runs)) < share, 1.0, 0.9))
    table = probes(runs, study)
    fits = transitions(runs, study, table)
    return table, width_scaling(table, fits, best(results.thresholds, runs, study))


def made(exponent: float, chance: int, places: dict = PLACES) -> tuple:
    """One draw with its own runs."""
    return drawn(searched(places), exponent, chance, places)


def scipys(table, found: WidthScaling) -> float:
    """The exponent by minimising the joint likelihood over every middle, the width and itself."""
    cells = [part for _, part in table.groupby("cell_id", sort=False)]
    log_m = np.log([float(part["m"].iloc[0]) for part in cells])
    offset = log_m - log_m.mean()

    def lost(at: np.ndarray) -> float:
        total = 0.0
        for middle, part, m in zip(at[2:], cells, offset, strict=True):
            z = (np.log2(part["D_K"].to_numpy(float)) - middle) / math.exp(at[0] + at[1] * m)
            good = part["passing"].to_numpy(float)
            total -= (good * log_expit(z) + (part["n_seeds"] - good) * log_expit(-z)).sum()
        return total

    middles = [math.log2(D_K) for D_K in PLACES.values()]
    best = optimize.minimize(lost, [math.log(found.width), 0.0, *middles], method="Nelder-Mead",
                             options={"maxiter": 20_000, "xatol": 1e-5, "fatol": 1e-8})  # fmt: skip
    return float(best.x[1])


@pytest.mark.parametrize(
    ("model", "scores", "passing"),
    [("max", [0.99, 0.9899, 1.0, 0.0], 2), ("value", [0.99, 0.9901, 1.2, 0.0], 2)],
)
def test_a_seed_passes_from_the_target_on(model: str, scores: list[float], passing: int) -> None:
    """Of model max a score is at least the target, of model value an error at most."""
    cells = [{"m": 64, "d_model": 16}]
    search = {"heads": [2], "seeds": 4, "target": 0.99}
    study = parse_study({"name": "made-up", "model": model, "cells": cells, "search": search})
    (cell,) = study.cells
    runs = [made_up.run_row(cell, 2, 8, seed, score) for seed, score in enumerate(scores)]
    (probe,) = probes(made_up.results_of(study, runs, []).runs, study).to_dict("records")
    assert (probe["passing"], probe["n_seeds"]) == (passing, 4)


def test_the_exponent_is_that_of_the_joint_likelihood() -> None:
    table, found = made(-0.5, 0)
    assert found.exponent == pytest.approx(scipys(table, found), abs=0.01)
    assert found.exponent_low < -0.5 < found.exponent_high < 0
    assert (found.degrees, list(found.cells["m"])) == (1, [64, 128, 256])
    assert found.p_value > 0.01


@pytest.mark.slow
def test_its_interval_covers() -> None:
    """Of 100 draws, the 95 % interval misses the truth in 13 or more with probability 0.0015."""
    missed, results = 0, searched(PLACES)
    for chance in range(100):
        _, found = drawn(results, -0.3, chance, PLACES)
        missed += not found.exponent_low <= -0.3 <= found.exponent_high
    assert missed < 13


def test_equal_widths_need_no_power_and_two_sizes_give_none() -> None:
    _, equal = made(0.0, 1)
    assert equal.exponent_low < 0 < equal.exponent_high
    assert made(0.0, 1, dict(list(PLACES.items())[:2]))[1] is None


def test_the_seeds_of_a_transition_count_in_its_curves_and_in_no_verdict() -> None:
    study = made_up.study_of([(64, 16)], heads=[1], seeds=10, transition_seeds=40)
    (cell,) = study.cells
    runs = [
        made_up.run_row(cell, 1, d_k, seed, 1.0 if seed % 4 < d_k - 9 else 0.9)
        for d_k in range(10, 14)
        for seed in range(40)
    ]
    runs += [made_up.run_row(cell, 1, 20, seed, 1.0) for seed in range(10)]
    results = made_up.results_of(study, runs, [made_up.threshold_row(cell, 1, 13)])
    table = probes(results.runs, study).set_index("d_k")
    assert table["n_seeds"].to_dict() == {10: 40, 11: 40, 12: 40, 13: 40, 20: 10}
    assert table["passing"].to_dict() == {10: 10, 11: 20, 12: 30, 13: 40, 20: 10}
    assert table["complete"].all()
    assert (table["mean_low"] == table["mean_score"]).all()
    assert len(scored(results.runs, study)) == 50
