"""D_K* and h* of a cell: ties, the paired test, saturated cells, missing data, records."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.thresholds.best_heads import best_of, pool_of
from rgr_dist.analysis.thresholds.listing import best_records, threshold_records
from rgr_dist.analysis.thresholds.section import section
from tests.analysis import made_up


def cell_of(scores: dict[tuple[int, int], list[float]]) -> Any:
    """One cell whose heads (h, d_k) were found with these per-seed scores."""
    study = made_up.study_of([(64, 16)], heads=sorted(h for h, _ in scores))
    (cell,) = study.cells
    thresholds = [
        made_up.threshold_row(cell, h, d_k, mean_score=float(np.mean(own)) if own else None)
        for (h, d_k), own in scores.items()
    ]
    return made_up.results_of(study, made_up.probe_rows(cell, scores), thresholds)


def one_best(results: Any) -> dict[str, Any]:
    (row,) = best_of(results).to_dict("records")
    return row


def pool_by_h(results: Any) -> dict[int, dict[str, Any]]:
    return {row["h"]: row for row in pool_of(results).to_dict("records")}


NOISE = [0.001, -0.002, 0.0005, 0.003, -0.001, 0.002, -0.0015, 0.0, 0.001, -0.002]


@pytest.mark.parametrize(
    ("scores", "h_star"),
    [
        ({(1, 25): 0.999, (4, 5): 0.991}, 4),  # the smallest width, whatever its score
        ({(2, 10): 0.992, (4, 5): 0.995}, 4),  # of equals the larger mean
        ({(2, 10): 0.995, (4, 5): 0.992}, 2),
        ({(2, 10): 0.995, (4, 5): 0.995}, 2),  # then fewer heads
    ],
)
def test_which_head_count_is_best(scores: dict[tuple[int, int], float], h_star: int) -> None:
    row = one_best(cell_of({head: [score] * 10 for head, score in scores.items()}))
    assert (row["D_K"], row["h_star"], row["d_k"]) == (20, h_star, 20 // h_star)


@pytest.mark.parametrize("gap", [0.0002, 0.004])
def test_a_candidate_is_kept_by_scipys_paired_test(gap: float) -> None:
    rng = np.random.default_rng(3)
    ours = list(0.993 + rng.normal(0, 0.001, 10))
    theirs = [score + gap + noise for score, noise in zip(ours, NOISE, strict=True)]
    results = cell_of({(4, 5): ours, (2, 11): theirs})
    row = pool_by_h(results)[2]
    expected = stats.ttest_rel(theirs, ours).pvalue
    assert row["p_value"] == pytest.approx(expected, rel=1e-9)
    assert row["retained"] == (expected > 0.05)
    assert row["rule"] == "paired t-test"
    found = one_best(results)
    assert (found["h_low"], found["h_high"]) == ((2, 4) if expected > 0.05 else (4, 4))


def test_two_common_seeds_are_enough_for_a_test() -> None:
    ours, theirs = [0.993, 0.992, 0.991], [0.994, 0.995]
    row = pool_by_h(cell_of({(4, 5): ours, (2, 11): theirs}))[2]
    assert (row["n_common"], row["rule"]) == (2, "paired t-test")
    assert row["p_value"] == pytest.approx(stats.ttest_rel(theirs, ours[:2]).pvalue)
    assert row["mean_difference"] == pytest.approx(0.002)


@pytest.mark.parametrize(
    ("scores", "rule", "retained"),
    [
        ([1.0] * 10, "identical", True),
        ([0.998] * 10, "constant gap", False),
        ([0.999], "too few seeds", True),
        ([], "too few seeds", True),
    ],
)
def test_where_no_test_can_be_made_a_rule_decides(
    scores: list[float], rule: str, retained: bool
) -> None:
    row = pool_by_h(cell_of({(4, 5): [1.0] * 10, (2, 11): scores}))[2]
    assert (row["rule"], row["retained"]) == (rule, retained)
    assert pd.isna(row["p_value"])


@pytest.mark.parametrize("keep_within", [0.0, 0.1, 0.2, None])
def test_the_margin_is_the_papers_whatever_the_search_kept(keep_within: float | None) -> None:
    study = made_up.study_of([(64, 16)], heads=[1, 2, 4], keep_within=keep_within)
    widths = {4: 5, 2: 11, 1: 23}
    rows = [made_up.threshold_row(study.cells[0], h, d_k) for h, d_k in widths.items()]
    results = made_up.results_of(study, [], rows)
    assert set(pool_by_h(results)) == {2, 4}


@pytest.mark.parametrize(("d_k", "candidate"), [(11, True), (12, False)])
def test_an_inconsistent_head_is_a_candidate_where_it_was_seen_to_pass(
    d_k: int, candidate: bool
) -> None:
    study = made_up.study_of([(64, 16)], heads=[2, 4])
    cell = study.cells[0]
    passed = {"d_k": d_k, "D_K": 2 * d_k, "mean_score": 0.992, "n_seeds": 3}
    certificate = json.dumps({"pass": passed, "fail": passed | {"d_k": d_k + 1}})
    thresholds = [
        made_up.threshold_row(cell, 4, 5),
        made_up.threshold_row(cell, 2, None, status="inconsistent", certificate=certificate),
    ]
    scores = {(4, 5): [0.995, 0.991, 0.993], (2, d_k): [0.993, 0.992, 0.991]}
    runs = made_up.probe_rows(cell, scores)
    results = made_up.results_of(study, runs, thresholds)
    pool = pool_by_h(results)
    assert set(pool) == ({2, 4} if candidate else {4})
    assert one_best(results)["h_low"] == (2 if candidate else 4)
    if candidate:
        expected = stats.ttest_rel(scores[2, d_k], scores[4, 5]).pvalue
        assert pool[2]["p_value"] == pytest.approx(expected)


FOUND: dict[str, Any] = {"status": "found", "D_K_low": 20}


def bound(status: str, low: int | None = None, high: int | None = None) -> dict[str, Any]:
    return {"status": status, "D_K_low": low, "D_K_high": high}


@pytest.mark.parametrize(
    ("heads", "listed", "status", "ends"),
    [
        # the ends are the smallest of found and pruned heads
        (
            {
                1: (22, bound("found", 17)),
                2: (11, bound("found", 20, 26)),
                4: (5, bound("found", None, 28)),
                8: (None, bound("pruned", 8)),
            },
            None,
            "found",
            (20, 8, 26),
        ),
        # without a threshold, of all heads, if each excludes something
        ({1: (None, bound("open", 30, 60)), 2: (None, bound("open", 20, 80))}, None, "open",
         (None, 20, 60)),
        ({1: (None, bound("open", 30, 60)), 4: (None, bound("open", None, 70))}, None, "open",
         (None, None, 60)),
        ({1: (None, bound("censored", 30))}, [1, 8], "open", (None, None, None)),
        ({}, [1, 2], "open", (None, None, None)),
        # the status follows from the heads
        ({1: (20, FOUND), 2: (None, bound("pruned", 30))}, None, "found", (20, 20, 20)),
        ({1: (20, FOUND), 2: (None, bound("censored", 30))}, None, "found", (20, 20, 20)),
        ({1: (20, FOUND), 2: (None, bound("open", 30))}, None, "open", (20, 20, 20)),
        ({1: (None, bound("censored", 20)), 2: (None, bound("censored", 30))}, None, "censored",
         (None, 20, None)),
        ({1: (None, bound("censored", 20)), 2: (None, bound("open", 30))}, None, "open",
         (None, 20, None)),
        ({1: (None, bound("censored", 20)), 2: (None, bound("inconsistent", 30))}, None,
         "inconsistent", (None, 20, None)),
        # an inconsistent head matters where it might be better than the best, an open one always
        ({1: (20, FOUND), 2: (None, bound("inconsistent", 19, 40))}, None, "inconsistent", None),
        ({1: (20, FOUND), 2: (None, bound("inconsistent", 20, 40))}, None, "found", None),
        ({1: (20, FOUND), 2: (None, bound("inconsistent", None, 40))}, None, "inconsistent", None),
        ({1: (20, FOUND), 2: (None, bound("inconsistent", 1)), 4: (None, {})}, None, "open", None),
        ({1: (20, FOUND), 2: (None, bound("inconsistent", 1))}, [1, 2, 4], "open", None),
        # of all heads those that were tried make the cell
        ({3: (None, bound("censored", 33)), 5: (None, bound("censored", 35))}, "all", "censored",
         (None, 33, None)),
        ({3: (None, bound("censored", 33)), 7: (3, {})}, "all", "found", None),
        ({}, "all", "open", (None, None, None)),
    ],
)  # fmt: skip
def test_a_cell_follows_from_its_heads(
    heads: dict[int, tuple[int | None, dict[str, Any]]],
    listed: Any,
    status: str,
    ends: tuple[int | None, ...] | None,
) -> None:
    """By head count its d_k and what else is known; D_K and its ends."""
    study = made_up.study_of([(64, 16)], heads=listed or sorted(heads))
    rows = [made_up.threshold_row(study.cells[0], h, d_k, **own) for h, (d_k, own) in heads.items()]
    row = one_best(made_up.results_of(study, [], rows))
    assert row["status"] == status
    if ends is not None:
        told = [row[name] for name in ("D_K", "D_K_low", "D_K_high")]
        assert [None if pd.isna(value) else value for value in told] == list(ends)


def test_rows_of_other_studies_and_the_order_of_rows_do_not_matter() -> None:
    wide = made_up.study_of([(64, 16), (64, 32), (128, 64)])
    narrow = made_up.study_of([(64, 32)])
    everything, alone = made_up.search_all(wide), made_up.search_all(narrow)
    thresholds, runs = (
        table.sample(frac=1, random_state=1) for table in (everything.thresholds, everything.runs)
    )
    from_all = best_of(StudyResults(narrow, runs, thresholds))
    pd.testing.assert_frame_equal(from_all, best_of(alone))


THRESHOLD_KEYS = (
    "model", "graph", "degree", "m", "d_model", "h", "d_k", "D_K", "D_K_low", "D_K_high",
    "status", "mean_score", "n_seeds", "certificate", "max_steps", "confirmed", "D_K_first",
    "bits_per_parameter", "proved_draws", "decided_draws", "possible_D_K", "possible_h",
    "possible_source", "exact_D_K", "exact_source", "limited_by",
)  # fmt: skip
BEST_KEYS = (
    "m", "d_model", "degree", "D_K", "D_K_low", "D_K_high", "h_star", "h_low", "h_high", "d_k",
    "max_steps", "confirmed", "D_K_first", "bits_per_parameter", *THRESHOLD_KEYS[-8:],
)  # fmt: skip


def test_records_have_the_published_keys_and_are_plain_json() -> None:
    study = made_up.study_of([(64, 16), (64, 32)])
    searched = made_up.search_all(study)
    extra = [made_up.threshold_row(study.cells[0], 3, None, D_K_low=None, D_K_high=None)]
    thresholds = pd.concat([searched.thresholds, made_up.results_of(study, [], extra).thresholds])
    records = threshold_records(replace(searched, thresholds=thresholds))
    for record in records:
        assert tuple(record) == ("cell", *THRESHOLD_KEYS)
        assert all(type(record[key]) in (int, type(None)) for key in ("d_k", "D_K", "D_K_low"))
        assert isinstance(record["certificate"], dict) == (record["status"] == "found")
    assert records[-1]["mean_score"] is None
    bests = best_records(searched)
    assert all(tuple(record) == ("cell", *BEST_KEYS) for record in bests)
    whole = set(BEST_KEYS[:11])
    assert all(type(record[key]) is int for record in bests for key in whole)
    assert [(record["confirmed"], record["D_K_first"]) for record in bests] == [
        (None, 20),
        (None, 6),
    ]
    text = json.dumps({"thresholds": records, "best": bests}, allow_nan=False)
    assert json.loads(text) == {"thresholds": records, "best": bests}


def test_the_page_says_where_the_papers_rule_gives_another_threshold() -> None:
    searched = made_up.search_all(made_up.study_of([(64, 16), (64, 32)], confirm_seeds=2))
    rule = f"The paper's rule, the first {searched.study.search.seeds} seeds alone, gives"
    assert section(searched).words == [f"{rule} the same thresholds."]
    first = searched.thresholds.assign(
        D_K_first=lambda rows: rows["D_K_first"].where(rows["D_K"] != 20, 18)
    )
    assert section(replace(searched, thresholds=first)).words == [f"{rule} 18 at (64, 16), not 20."]


@settings(max_examples=40, deadline=None)
@given(
    heads=st.dictionaries(
        st.sampled_from([1, 2, 4, 8, 16]),
        st.tuples(
            st.sampled_from(["found", "pruned", "censored", "open", "inconsistent"]),
            st.integers(1, 12),
            st.lists(st.sampled_from([0.99, 0.992, 0.995, 1.0]), max_size=4),
        ),
    )
)
def test_h_star_is_in_its_interval_and_no_found_head_is_narrower(
    heads: dict[int, tuple[str, int, list[float]]],
) -> None:
    study = made_up.study_of([(64, 16)], heads=[1, 2, 4, 8, 16])
    cell = study.cells[0]
    thresholds, runs = [], []
    for h, (status, d_k, scores) in heads.items():
        own = {"status": status, "mean_score": float(np.mean(scores)) if scores else None}
        found = status == "found"
        thresholds.append(made_up.threshold_row(cell, h, d_k if found else None, **own))
        runs += [made_up.run_row(cell, h, d_k, seed, score) for seed, score in enumerate(scores)]
    results = made_up.results_of(study, runs, thresholds)
    row = one_best(results)
    widths = {h: h * d_k for h, (status, d_k, _) in heads.items() if status == "found"}
    (record,) = best_records(results)
    json.dumps(record, allow_nan=False)
    json.dumps(threshold_records(results), allow_nan=False)
    if not widths:
        assert pd.isna(row["D_K"])
        assert row["status"] != "found"
        return
    assert row["D_K"] == min(widths.values()) == widths[row["h_star"]]
    assert row["h_low"] <= row["h_star"] <= row["h_high"]
    kept = {h for h, member in pool_by_h(results).items() if member["retained"]}
    D_K = row["D_K"]  # within 10 % of it, or one step of their own d_k above it
    assert kept <= {h for h, width in widths.items() if width <= 1.1 * D_K or 0 < width - h <= D_K}
    assert (min(kept), max(kept)) == (row["h_low"], row["h_high"])
