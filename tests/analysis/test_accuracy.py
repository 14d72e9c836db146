"""Accuracy at every split, with gains paired by seed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from scipy import stats

from rgr_dist.analysis.accuracy import accuracy
from rgr_dist.analysis.load import StudyResults
from rgr_dist.cli.listing import plain
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up

ALONE = [0.50, 0.56, 0.61]


def splits(
    scores: Mapping[tuple[int, int], list[float | None]],
    nulls: Mapping[tuple[int, int], list[float]],
) -> StudyResults:
    """Runs of one cell by (h, D_K); a score of None is a run that diverged."""
    study = parse_study(
        {
            "name": "made-up",
            "model": "transformer",
            "cells": [{"m": 64, "d_model": 16}],
            "context": {"length": 8},
            "search": {"mode": "grid", "D_K": [8, 16], "heads": [1, 2, 4], "seeds": 3},
        }
    )
    rows = []
    for (h, D_K), values in scores.items():
        rates = nulls.get((h, D_K), [0.0] * len(values))
        for seed, (score, null_rate) in enumerate(zip(values, rates, strict=True)):
            end = {"stop_reason": "diverged", "null_rate": None} if score is None else {}
            row = made_up.run_row(study.cells[0], h, D_K // h, seed, score, null_rate=null_rate)
            rows.append(row | {"stop_reason": "max_steps"} | end)
    return made_up.results_of(study, rows, [])


def test_a_table_of_splits_known_by_hand() -> None:
    nulls = {(1, 8): [0.0, 0.2, 0.4], (2, 8): [0.5, 0.1]}
    one, two = plain(accuracy(splits({(1, 8): [*ALONE], (2, 8): [0.75, 0.05]}, nulls)))
    low, high = stats.t.interval(0.95, 2, np.mean(ALONE), stats.sem(ALONE))
    assert one["accuracy"] == pytest.approx(np.mean(ALONE))
    assert (one["low"], one["high"]) == (pytest.approx(low), pytest.approx(high))
    assert (one["n_seeds"], one["n_pairs"], one["gain"], one["gain_low"]) == (3, 0, None, None)
    gain = stats.t.interval(0.95, 1, -0.13, stats.sem([0.25, -0.51]))
    assert (two["low"], two["high"]) == (0.0, 1.0)  # it ends where an accuracy does
    assert (two["n_pairs"], two["gain"]) == (2, pytest.approx(-0.13))
    assert (two["gain_low"], two["gain_high"]) == tuple(map(pytest.approx, gain))
    assert (one["null_rate"], two["null_rate"]) == (pytest.approx(0.2), pytest.approx(0.3))


def test_a_run_that_diverged_answers_nothing_right_and_has_no_null_share() -> None:
    (row,) = plain(accuracy(splits({(1, 8): [0.6, None, 0.6]}, {(1, 8): [0.1, 0.0, 0.3]})))
    assert row["accuracy"] == pytest.approx(0.4)
    assert row["null_rate"] == pytest.approx(0.2)


def test_no_run_makes_an_empty_table() -> None:
    assert accuracy(splits({}, {})).empty
