"""Findings: short, with a number and its interval, for every kind of study."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rgr_dist.analysis.findings import caveat, finding, noise_sentence, which_law
from rgr_dist.analysis.growth import groups
from rgr_dist.analysis.layers import costs
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.tables import best
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up
from tests.analysis.studies import made
from tests.analysis.test_growth import GRID, of_law, study_of
from tests.analysis.test_layers import study_of as layers_of

INTERVAL = re.compile(r"\[[^\]]+( to |–)[^\]]+\]")


def longer(limits: list[int]) -> StudyResults:
    study = study_of(GRID[:4], max_steps=limits)
    rows = []
    for cell in study.cells:
        shorter = cell.training.max_steps == limits[0]
        widths = {1: 40 if shorter else 30 + cell.m % 3, 2: 30, 4: 30, 8: 30}
        rows += [made_up.threshold_row(cell, h, d_k) for h, d_k in widths.items()]
    return made_up.results_of(study, [], rows)


def split() -> StudyResults:
    document = {
        "name": "x",
        "model": "transformer",
        "cells": [{"m": 64, "d_model": 16}],
        "search": {"mode": "grid", "D_K": [8, 16], "heads": [1, 2, 4], "seeds": 3},
    }
    study = parse_study(document)
    scores = {(1, 8): [0.50, 0.56, 0.61], (2, 4): [0.4, 0.5, 0.5], (4, 2): [0.70, 0.74, 0.84]}
    runs = [
        made_up.run_row(study.cells[0], h, d_k, seed, score, null_rate=0.0)
        for (h, d_k), own in scores.items()
        for seed, score in enumerate(own)
    ]
    return made_up.results_of(study, runs, [])


STUDIES: dict[str, Any] = {
    "many cells": lambda: of_law(study_of(GRID)),
    "a power": lambda: of_law(study_of(GRID), power=1.4),
    "six cells": lambda: of_law(study_of(GRID[:6])),
    "step limits": lambda: longer([4000, 16_000]),
    "splits": split,
}


@pytest.mark.parametrize("kind", STUDIES)
def test_a_finding_is_a_short_sentence_with_an_interval(kind: str) -> None:
    words = finding(STUDIES[kind]())
    assert len(words.split()) <= 20, words
    assert words.endswith(".")
    assert len(INTERVAL.findall(words)) == 1, words


@pytest.mark.parametrize("status", ["open", "censored"])
def test_a_study_without_a_threshold_says_so(status: str) -> None:
    study = study_of(GRID[:2])
    rows = [
        made_up.threshold_row(cell, h, None, status=status)
        for cell in study.cells
        for h in (1, 2, 4, 8)
    ]
    words = finding(made_up.results_of(study, [], rows))
    assert len(words.split()) <= 20
    assert not re.search(r"D_K\* [≈=]", words)


def test_one_cell_and_a_few_have_a_finding_without_a_law() -> None:
    one = finding(of_law(study_of(GRID[:1])))
    few = finding(of_law(study_of(GRID[:2])))
    assert str(of_law(study_of(GRID[:1])).thresholds["D_K"].min())[:2] in one
    assert all(len(words.split()) <= 20 for words in (one, few))


def of_lengths(lengths: list[int]) -> StudyResults:
    """Cells of one size, whose contexts are of these lengths and D_K twice as much."""
    cells = [{"m": 64, "d_model": 16, "context": {"length": length}} for length in lengths]
    study = parse_study({"name": "x", "cells": cells, "search": {"heads": [1, 2]}})
    rows = [made_up.threshold_row(cell, 2, cell.context.length) for cell in study.cells]
    return made_up.results_of(study, [], rows)


@pytest.mark.parametrize("n", [2, 3])
def test_of_a_few_cells_the_width_of_each_is_told(n: int) -> None:
    results = of_lengths([4, 8, 16][:n])
    told = finding(results)
    for row in best(results).to_dict("records"):
        assert f"{row['D_K']} at {row['cell']}" in told


def test_cells_of_one_scale_are_told_by_the_least_and_the_largest_width() -> None:
    numbers = re.findall(r"\d+", finding(of_lengths([16, 4, 32, 8])))
    assert numbers == ["8", "64", "4"]


def test_the_gain_of_longer_training_is_a_geometric_mean_with_a_t_interval() -> None:
    results = longer([4000, 16_000])
    by_limit = best(results).pivot(index=["m", "d_model"], columns="max_steps", values="D_K")
    logs = [math.log(row[16_000] / row[4000]) for _, row in by_limit.iterrows()]
    low, high = stats.t.interval(0.95, len(logs) - 1, np.mean(logs), stats.sem(logs))
    falls = [round(-100 * math.expm1(end)) for end in (np.mean(logs), high, low)]
    numbers = re.findall(r"[\d,]*\d", finding(results))
    assert [*map(int, numbers[:3])] == falls
    assert numbers[3:] == ["4,000", "16,000", f"{len(logs)}"]


def test_without_a_second_seed_the_best_accuracy_is_told() -> None:
    study = split().study
    scores = {(1, 8): 0.5, (2, 4): 0.61, (4, 4): 0.74, (1, 16): 0.68}
    runs = [
        made_up.run_row(study.cells[0], h, d_k, 0, score, null_rate=0.0)
        for (h, d_k), score in scores.items()
    ]
    told = finding(made_up.results_of(study, runs, []))
    assert re.findall(r"[\d.]*\d", told) == ["64", "16", "4", "16", "0.740"]


def test_the_best_layer_beside_the_next_by_relations_per_cached_number() -> None:
    results = made("layers")
    table = costs(results)
    table = table[table["max_steps"] == 20_000].pivot(index="m", columns="model")["per_cached"]
    logs = np.log(table["multi_query"].astype(float) / table["max"].astype(float))
    sign = 1 if logs.mean() > 0 else -1
    told = finding(results)
    assert told.startswith("multi_query" if sign > 0 else "max")
    assert f"{math.exp(sign * logs.mean()):.3g}" in told
    assert told.endswith(f"{len(logs)} sizes.")


@pytest.mark.parametrize("passing", [True, False])
def test_a_layer_that_passes_nowhere_does_not_hide_one_that_passes(passing: bool) -> None:
    study = layers_of(["max", {"zoo": "multi_query"}])
    rows = []
    for cell, h in itertools.product(study.cells, study.search.heads):
        is_found = passing and cell.layer is None and cell.m == 16
        own = {} if is_found else {"status": "censored", "D_K_low": 50}
        row = made_up.threshold_row(cell, h, 5 if is_found else None, **own)
        rows.append(row | {"model": cell.model_name})
    runs = [made_up.run_row(cell, 1, 5, 0, 0.9) for cell in study.cells]
    told = finding(made_up.results_of(study, runs, rows))
    assert re.findall(r"\d+", told) == (["8", "12", "0", "12"] if passing else ["24"])
    assert passing == ("max" in told) == ("multi_query" in told)


def test_the_sentence_on_noise_has_the_laws_scatter_and_the_seeds() -> None:
    searched = made_up.search_all(made_up.study_of(GRID[:6]))
    (group,) = (one for one in groups(searched) if one.max_steps is None)
    assert group.noise is not None
    shares = [f"{100 * share:.0f}" for share in (group.laws[0].scatter, group.noise)]
    assert re.findall(r"(\d+) %", noise_sentence(searched)) == shares


def test_the_laws_are_weighed_only_where_cells_are_enough() -> None:
    few, many = of_law(study_of(GRID[:6])), of_law(study_of(GRID))
    assert "6" in which_law(few)
    assert "d_model" not in which_law(few)
    assert "d_model" in which_law(many)


def test_noise_is_said_only_where_it_is_known() -> None:
    assert noise_sentence(of_law(study_of(GRID[:6]))) == ""  # no runs to draw seeds from
    searched = made_up.search_all(made_up.study_of(GRID[:6]))
    assert noise_sentence(searched).count("%") == 2


def test_the_papers_nine_cells_have_a_sentence_where_there_are_others() -> None:
    words = caveat(of_law(study_of(GRID)))
    assert "9 cells" in words
    assert "0.966" in words
    wide = [(m, d_model) for m, d_model in GRID if d_model > 16]
    assert caveat(of_law(study_of(wide))) == ""
