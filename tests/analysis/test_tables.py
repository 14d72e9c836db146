"""Thresholds and the best of a cell: ties, the paired test, statuses, and what is listed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.tables import (
    BEST,
    THRESHOLD,
    best,
    heads_alike,
    listed,
    thresholds,
)
from rgr_dist.cli.listing import plain
from tests.analysis import made_up

NOISE = [0.001, -0.002, 0.0005, 0.003, -0.001, 0.002, -0.0015, 0.0, 0.001, -0.002]


def cell_of(scores: dict[tuple[int, int], list[float]]) -> StudyResults:
    """One cell whose heads (h, d_k) were found with these scores by seed."""
    study = made_up.study_of([(64, 16)], heads=sorted(h for h, _ in scores))
    (cell,) = study.cells
    rows = [
        made_up.threshold_row(cell, h, d_k, mean_score=float(np.mean(own)) if own else None)
        for (h, d_k), own in scores.items()
    ]
    return made_up.results_of(study, made_up.probe_rows(cell, scores), rows)


def one_best(results: StudyResults) -> dict[str, Any]:
    (row,) = plain(best(results))
    return row


def span_of(results: StudyResults) -> tuple[int, int]:
    (span,) = heads_alike(results).values()
    return span


@pytest.mark.parametrize(
    ("scores", "h_star"),
    [
        ({(1, 25): 0.999, (4, 5): 0.991}, 4),  # the smallest D_K, whatever its score
        ({(2, 10): 0.992, (4, 5): 0.995}, 4),  # of equals the larger mean
        ({(2, 10): 0.995, (4, 5): 0.992}, 2),
        ({(2, 10): 0.995, (4, 5): 0.995}, 2),  # then fewer heads
    ],
)
def test_which_head_count_is_best(scores: dict[tuple[int, int], float], h_star: int) -> None:
    results = cell_of({head: [score] * 10 for head, score in scores.items()})
    row = one_best(results)
    assert (row["D_K"], row["h_star"], row["d_k"]) == (20, h_star, 20 // h_star)
    table = thresholds(results)
    assert table.loc[table["is_best"], "h"].tolist() == [h_star]


@pytest.mark.parametrize("gap", [0.0002, 0.004])
def test_a_head_count_is_kept_by_scipys_paired_test(gap: float) -> None:
    rng = np.random.default_rng(3)
    ours = list(0.993 + rng.normal(0, 0.001, 10))
    theirs = [score + gap + noise for score, noise in zip(ours, NOISE, strict=True)]
    results = cell_of({(4, 5): ours, (2, 11): theirs})
    expected = stats.ttest_rel(theirs, ours).pvalue
    assert span_of(results) == ((2, 4) if expected > 0.05 else (4, 4))


@pytest.mark.parametrize(
    ("scores", "kept"),
    [([1.0] * 10, True), ([0.998] * 10, False), ([0.999], True), ([], True)],
)
def test_equal_scores_and_no_evidence_keep_it_and_a_gap_at_every_seed_does_not(
    scores: list[float], kept: bool
) -> None:
    results = cell_of({(4, 5): [1.0] * 10, (2, 11): scores})
    assert span_of(results) == ((2, 4) if kept else (4, 4))


@pytest.mark.parametrize("keep_within", [0.0, 0.1, 0.2])
def test_the_margin_is_the_papers_whatever_the_search_kept(keep_within: float) -> None:
    study = made_up.study_of([(64, 16)], heads=[1, 2, 4], keep_within=keep_within)
    widths = {4: 5, 2: 11, 1: 23}  # 20, 22 and 23, which is more than 10 % above
    rows = [made_up.threshold_row(study.cells[0], h, d_k) for h, d_k in widths.items()]
    assert span_of(made_up.results_of(study, [], rows)) == (2, 4)


def bound(status: str, low: int | None = None) -> dict[str, Any]:
    return {"status": status, "D_K_low": low, "D_K_high": None}


@pytest.mark.parametrize(
    ("heads", "listed_heads", "status", "width"),
    [
        ({1: (22, {}), 2: (11, {"D_K_low": 20}), 8: (None, bound("pruned", 8))}, None, "found",
         (22, 8)),
        ({1: (20, {}), 2: (None, bound("censored", 30))}, None, "found", (20, 20)),
        ({1: (20, {}), 2: (None, bound("open", 30))}, None, "open", (20, 20)),
        ({1: (20, {})}, [1, 2], "open", (20, 20)),
        # without a threshold, the least that no head count rules out, if each rules out something
        ({1: (None, bound("open", 30)), 2: (None, bound("open", 20))}, None, "open", (None, 20)),
        ({1: (None, bound("open", 30)), 4: (None, bound("open"))}, None, "open", (None, None)),
        ({1: (None, bound("censored", 30))}, [1, 8], "open", (None, None)),
        ({1: (None, bound("censored", 20)), 2: (None, bound("censored", 30))}, None, "censored",
         (None, 20)),
        ({}, [1, 2], "open", (None, None)),
    ],
)  # fmt: skip
def test_a_cell_follows_from_its_heads(
    heads: dict[int, tuple[int | None, dict[str, Any]]],
    listed_heads: list[int] | None,
    status: str,
    width: tuple[int | None, int | None],
) -> None:
    """By head count its d_k and what else is known; D_K and its lower end."""
    study = made_up.study_of([(64, 16)], heads=listed_heads or sorted(heads))
    rows = [made_up.threshold_row(study.cells[0], h, d_k, **own) for h, (d_k, own) in heads.items()]
    row = one_best(made_up.results_of(study, [], rows))
    assert (row["status"], row["D_K"], row["D_K_low"]) == (status, *width)


def test_rows_of_other_studies_and_the_order_of_rows_do_not_matter() -> None:
    wide = made_up.study_of([(64, 16), (64, 32), (128, 64)])
    narrow = made_up.study_of([(64, 32)])
    everything, alone = made_up.search_all(wide), made_up.search_all(narrow)
    rows, runs = (
        table.sample(frac=1, random_state=1) for table in (everything.thresholds, everything.runs)
    )
    from_all = best(StudyResults(narrow, runs, rows))
    pd.testing.assert_frame_equal(from_all, best(alone))


def test_what_is_listed_are_the_published_keys_as_plain_json() -> None:
    study = made_up.study_of([(64, 16), (64, 32)])
    searched = made_up.search_all(study)
    rows = plain(listed(thresholds(searched), THRESHOLD, study))
    for row in rows:
        assert list(row) == THRESHOLD
        assert all(type(row[key]) in (int, type(None)) for key in ("d_k", "D_K", "D_K_low"))
        assert isinstance(row["certificate"], dict) == (row["status"] == "found")
        assert isinstance(row["fails_above"], list)
    bests = plain(listed(best(searched), BEST, study))
    assert all(list(row) == BEST for row in bests)
    assert all(type(row[key]) is int for row in bests for key in BEST[:-1])
    text = json.dumps({"thresholds": rows, "best": bests}, allow_nan=False)
    assert json.loads(text) == {"thresholds": rows, "best": bests}


def test_the_best_is_that_of_the_search_itself() -> None:
    searched = made_up.search_all(made_up.study_of([(64, 16), (64, 32), (128, 64)]))
    assert searched.search is not None
    for row in plain(best(searched)):
        key = searched.search.search(row["cell_id"]).best()
        assert key == (row["h_star"], row["d_k"])


def test_cells_of_one_size_are_named() -> None:
    cells = [{"m": 64, "d_model": 16}, {"m": 64, "d_model": 16, "training": {"max_steps": 4000}}]
    study = made_up.parse_study({"name": "x", "cells": cells, "search": {"heads": [1]}})
    rows = [made_up.threshold_row(cell, 1, 20) for cell in study.cells]
    table = listed(best(made_up.results_of(study, [], rows)), BEST, study)
    assert table["cell"].nunique() == 2


@settings(max_examples=40, deadline=None)
@given(
    heads=st.dictionaries(
        st.sampled_from([1, 2, 4, 8, 16]),
        st.tuples(
            st.sampled_from(["found", "pruned", "censored", "open"]),
            st.integers(1, 12),
            st.lists(st.sampled_from([0.99, 0.992, 0.995, 1.0]), max_size=4),
        ),
    )
)
def test_h_star_is_in_its_span_and_no_found_head_is_narrower(
    heads: dict[int, tuple[str, int, list[float]]],
) -> None:
    study = made_up.study_of([(64, 16)], heads=[1, 2, 4, 8, 16])
    cell = study.cells[0]
    rows, runs = [], []
    for h, (status, d_k, scores) in heads.items():
        own = {"status": status, "mean_score": float(np.mean(scores)) if scores else None}
        rows.append(made_up.threshold_row(cell, h, d_k if status == "found" else None, **own))
        runs += [made_up.run_row(cell, h, d_k, seed, score) for seed, score in enumerate(scores)]
    results = made_up.results_of(study, runs, rows)
    row = one_best(results)
    widths = {h: h * d_k for h, (status, d_k, _) in heads.items() if status == "found"}
    if not widths:
        assert row["D_K"] is None
        assert row["status"] != "found"
        return
    assert row["D_K"] == min(widths.values()) == widths[row["h_star"]]
    assert row["h_low"] <= row["h_star"] <= row["h_high"]
    near = {h for h, D_K in widths.items() if 1.1 * row["D_K"] >= D_K or D_K - h <= row["D_K"]}
    assert {row["h_low"], row["h_high"]} <= near
