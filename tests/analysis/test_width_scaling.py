"""The power of m by which transitions narrow: known ones are found again."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.report.contents import sections
from rgr_dist.analysis.report.sections.summary import findings
from rgr_dist.analysis.runs import scored
from rgr_dist.analysis.transitions.probes import probes_of
from rgr_dist.analysis.transitions.transition_fits import transitions_of
from rgr_dist.analysis.transitions.width_scaling import width_scaling_of
from rgr_dist.analysis.wording import number
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up

PLACES = {(32, 8): 14, (64, 16): 16, (128, 32): 20, (256, 64): 26}
FOUR = tuple(PLACES)
SEEDS = 100

Sizes = tuple[tuple[int, int], ...]


@cache
def searched(sizes: Sizes, **training: tuple) -> StudyResults:
    """Runs of every width within an octave of each D_K*, without their scores."""
    cells = [{"m": m, "d_model": d_model} for m, d_model in sizes]
    search = {"heads": [1], "seeds": SEEDS}
    lists = {key: list(values) for key, values in training.items()}
    content = {"name": "made-up", "cells": cells, "training": lists, "search": search}
    study = parse_study(content)
    runs, thresholds = [], []
    for cell in study.cells:
        D_K = PLACES[cell.m, cell.d_model]
        for d_k in range(D_K // 2, 2 * D_K):
            first = made_up.run_row(cell, 1, d_k, 0, 0.9)
            runs += [first | {"seed": seed} for seed in range(SEEDS)]  # at one address
        thresholds.append(made_up.threshold_row(cell, 1, D_K))
    return made_up.results_of(study, runs, thresholds)


def drawn(results: StudyResults, exponent: float, chance: int, scatter: float = 0.0) -> tuple:
    """The transitions of runs that are drawn, and their scaling."""
    results = replace(results, runs=drawn_runs(results, exponent, chance, scatter))
    return transitions_of(results), width_scaling_of(results)


def drawn_runs(
    results: StudyResults, exponent: float, chance: int, scatter: float = 0.0
) -> pd.DataFrame:
    """Seeds that pass by a logistic curve of width 0.1 (m / 128)^exponent about each D_K*.

    Each cell's width is off that line by a normal deviate, ``scatter`` in its logarithm.
    """
    draw, runs = np.random.default_rng(chance), results.runs
    sizes = list(zip(runs["m"], runs["d_model"], strict=True))
    D_K = np.array([PLACES[size] for size in sizes])
    of_cells = list(dict.fromkeys(sizes))
    off = dict(zip(of_cells, draw.standard_normal(len(of_cells)) * scatter, strict=True))
    shift = np.exp([off[size] for size in sizes])
    width = 0.1 * shift * (runs["m"].to_numpy() / 128) ** exponent
    share = expit((np.log2(runs["d_k"].to_numpy() / D_K) + 2 * width) / width)
    return runs.assign(score=np.where(draw.random(len(runs)) < share, 1.0, 0.9))


def made(exponent: float, chance: int, sizes: Sizes = FOUR, scatter: float = 0.0) -> tuple:
    return drawn(searched(sizes), exponent, chance, scatter)


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
    (probe,) = probes_of(made_up.results_of(study, runs, [])).to_dict("records")
    assert (probe["passing"], probe["n_seeds"]) == (passing, 4)


def test_the_exponent_is_that_of_a_textbook_regression() -> None:
    """Slope and interval by scipy's own regression of the cells' widths, and its t of two cells."""
    fits, found = made(-0.5, 0)
    line = stats.linregress(np.log(fits["m"]), np.log(fits["share_width"]))
    off = 4.302653 * line.stderr  # Student's t(0.975) with 4 - 2 degrees
    assert found.exponent == pytest.approx(line.slope)
    assert found.exponent_low == pytest.approx(line.slope - off)
    assert found.exponent_high == pytest.approx(line.slope + off)
    missed = np.log(fits["share_width"]) - line.intercept - line.slope * np.log(fits["m"])
    assert found.scatter == pytest.approx(math.sqrt((missed**2).sum() / 2))
    assert (list(found.cells["m"]), found.heads) == ([32, 64, 128, 256], [1])


@pytest.mark.parametrize(
    ("key", "taken", "other"), [("max_steps", 2000, 1000), ("learning_rate", 0.002, 0.001)]
)
def test_a_size_counts_once_at_its_largest_limit_in_the_usual_protocol(
    key: str, taken: float, other: float
) -> None:
    results = searched(FOUR, **{key: (taken, other)})
    fits, found = drawn(results, -0.5, 0)
    assert len(fits) == 8
    of_taken = [c.cell_id for c in results.study.cells if getattr(c.training, key) == taken]
    fits = fits[fits["cell_id"].isin(of_taken)]
    line = stats.linregress(np.log(fits["m"]), np.log(fits["share_width"]))
    assert found.cells["cell_id"].tolist() == of_taken
    assert found.exponent == pytest.approx(line.slope)
    assert found.exponent_high == pytest.approx(line.slope + 4.302653 * line.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("scatter", [0.0, 0.4])
def test_its_interval_covers_whatever_the_scatter(scatter: float) -> None:
    """Of 100 draws, the 95 % interval misses the truth in 13 or more with probability 0.0015.

    A draw whose shares reject two of the four curves has no interval, and counts as a miss.
    """
    missed, results = 0, searched(FOUR)
    for chance in range(100):
        _, found = drawn(results, -0.3, chance, scatter)
        missed += found is None or not found.exponent_low <= -0.3 <= found.exponent_high
    assert missed < 13


@pytest.mark.parametrize(
    ("exponent", "said"),
    [(-0.5, "Transitions get sharper with m: "), (0.0, "No trend of sharpness with m: ")],
)
def test_a_study_of_transitions_opens_with_their_sharpness(exponent: float, said: str) -> None:
    results = searched(FOUR)
    search = results.study.search.model_copy(update={"transition_seeds": SEEDS})
    study = results.study.model_copy(update={"search": search})
    _, found = drawn(results, exponent, 1)
    results = replace(results, study=study, runs=drawn_runs(results, exponent, 1))
    title, *_ = findings(results)
    assert title.startswith(f"{said}their width, in doublings of D_K, scales as m^")
    assert title.endswith("] over 4 cells of m = 32 to 256.")
    assert f"m^{number(found.exponent, 'z.2f')} [{number(found.exponent_low, 'z.2f')} to " in title
    lead = sections(results)[1]
    assert (lead.name, lead.figures[0].name) == ("transitions", "shares")


def test_equal_widths_need_no_power_and_two_sizes_give_none() -> None:
    _, equal = made(0.0, 1, FOUR[1:])
    assert equal.exponent_low < 0 < equal.exponent_high
    assert made(0.0, 1, FOUR[1:3])[1] is None


def test_scatter_about_the_line_widens_the_interval() -> None:
    """However many seeds there are: one cell's width is off by a factor, and the line is not."""
    straight, off = (made(-0.5, 0, FOUR, scatter)[1] for scatter in (0.0, 1.0))
    assert off.scatter > 3 * straight.scatter
    wide, narrow = (one.exponent_high - one.exponent_low for one in (off, straight))
    assert wide > 3 * narrow


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
    table = probes_of(results).set_index("d_k")
    assert table["n_seeds"].to_dict() == {10: 40, 11: 40, 12: 40, 13: 40, 20: 10}
    assert table["passing"].to_dict() == {10: 10, 11: 20, 12: 30, 13: 40, 20: 10}
    assert table["complete"].all()
    assert (table["mean_low"] == table["mean_score"]).all()
    assert len(scored(results.runs, study)) == 50


def test_a_transition_whose_shares_reject_its_curve_does_not_count() -> None:
    """In the largest cell every fourth width fails, as no logistic curve does."""
    results = searched(FOUR)
    runs = drawn_runs(results, -0.5, 1)
    fails = (runs["m"] == 256) & (runs["d_k"] % 4 == 0)
    _, scaling = drawn(results, -0.5, 1)
    assert set(scaling.cells["m"]) == {32, 64, 128, 256}
    worse = replace(results, runs=runs.assign(score=np.where(fails, 0.9, runs["score"])))
    fits = transitions_of(worse)
    assert fits.loc[fits["m"] == 256, "share_width_low"].notna().all()
    left = width_scaling_of(worse)
    assert left is not None
    assert set(left.cells["m"]) == {32, 64, 128}
