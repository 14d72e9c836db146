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

from rgr_dist.analysis.thresholds.best import best, best_of, head_pool
from rgr_dist.analysis.thresholds.listing import best_records, threshold_records
from rgr_dist.analysis.transitions.probes import probes as curves
from tests.analysis import made_up


def cell_of(scores: dict[tuple[int, int], list[float]]) -> Any:
    """One cell whose heads (h, d_k) were found with these per-seed scores."""
    study = made_up.study_of([(64, 16)], heads=sorted(h for h, _ in scores))
    cell = study.cells[0]
    runs = [
        made_up.run_row(cell, h, d_k, seed, score)
        for (h, d_k), own in scores.items()
        for seed, score in enumerate(own)
    ]
    thresholds = [
        made_up.threshold_row(cell, h, d_k, mean_score=float(np.mean(own)) if own else None)
        for (h, d_k), own in scores.items()
    ]
    return made_up.results_of(study, runs, thresholds)


def one_best(results: Any) -> dict[str, Any]:
    (row,) = best(results.thresholds, results.runs, results.study).to_dict("records")
    return row


def pool_of(results: Any) -> dict[int, dict[str, Any]]:
    table = head_pool(results.thresholds, results.runs, results.study)
    return {row["h"]: row for row in table.to_dict("records")}


NOISE = [0.001, -0.002, 0.0005, 0.003, -0.001, 0.002, -0.0015, 0.0, 0.001, -0.002]


def test_the_smallest_width_wins_whatever_its_score() -> None:
    row = one_best(cell_of({(1, 25): [0.999] * 10, (4, 5): [0.991] * 10}))
    assert (row["D_K"], row["h_star"], row["d_k"]) == (20, 4, 5)


@pytest.mark.parametrize(
    ("few", "many", "h_star"), [(0.992, 0.995, 4), (0.995, 0.992, 2), (0.995, 0.995, 2)]
)
def test_a_tie_goes_to_the_larger_mean_then_to_fewer_heads(
    few: float, many: float, h_star: int
) -> None:
    row = one_best(cell_of({(2, 10): [few] * 10, (4, 5): [many] * 10}))
    assert (row["D_K"], row["h_star"]) == (20, h_star)


@pytest.mark.parametrize("gap", [0.0002, 0.004])
def test_a_candidate_is_kept_by_scipys_paired_test(gap: float) -> None:
    rng = np.random.default_rng(3)
    ours = list(0.993 + rng.normal(0, 0.001, 10))
    theirs = [score + gap + noise for score, noise in zip(ours, NOISE, strict=True)]
    results = cell_of({(4, 5): ours, (2, 11): theirs})
    row = pool_of(results)[2]
    expected = stats.ttest_rel(theirs, ours).pvalue
    assert row["p_value"] == pytest.approx(expected, rel=1e-9)
    assert row["retained"] == (expected > 0.05)
    assert row["rule"] == "paired t-test"
    found = one_best(results)
    assert (found["h_low"], found["h_high"]) == ((2, 4) if expected > 0.05 else (4, 4))


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
    row = pool_of(cell_of({(4, 5): [1.0] * 10, (2, 11): scores}))[2]
    assert (row["rule"], row["retained"]) == (rule, retained)
    assert pd.isna(row["p_value"])


def test_candidates_lie_within_the_kept_margin() -> None:
    scores = {(4, 5): [0.99] * 10, (2, 11): [0.99] * 10, (1, 23): [0.99] * 10}
    assert set(pool_of(cell_of(scores))) == {2, 4}


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
    runs = [
        made_up.run_row(cell, h, width, seed, score)
        for (h, width), own in scores.items()
        for seed, score in enumerate(own)
    ]
    results = made_up.results_of(study, runs, thresholds)
    pool = pool_of(results)
    assert set(pool) == ({2, 4} if candidate else {4})
    assert one_best(results)["h_low"] == (2 if candidate else 4)
    if candidate:
        expected = stats.ttest_rel(scores[2, d_k], scores[4, 5]).pvalue
        assert pool[2]["p_value"] == pytest.approx(expected)


@pytest.mark.parametrize("keep_within", [0.0, 0.2, None])
def test_the_margin_is_the_papers_whatever_the_search_kept(keep_within: float | None) -> None:
    study = made_up.study_of([(64, 16)], heads=[1, 2, 4], keep_within=keep_within)
    widths = {4: 5, 2: 11, 1: 23}
    rows = [made_up.threshold_row(study.cells[0], h, d_k) for h, d_k in widths.items()]
    results = made_up.results_of(study, [], rows)
    assert set(pool_of(results)) == {2, 4}


def test_the_ends_are_the_smallest_of_found_and_pruned_heads() -> None:
    study = made_up.study_of([(64, 16)], heads=[1, 2, 4, 8])
    cell = study.cells[0]
    rows = [
        made_up.threshold_row(cell, 1, 22, D_K_low=17, D_K_high=None),
        made_up.threshold_row(cell, 2, 11, D_K_low=20, D_K_high=26),
        made_up.threshold_row(cell, 4, 5, D_K_low=None, D_K_high=28),
        made_up.threshold_row(cell, 8, None, status="pruned", D_K_low=8, D_K_high=None),
    ]
    row = one_best(made_up.results_of(study, [], rows))
    assert (row["D_K"], row["D_K_low"], row["D_K_high"], row["status"]) == (20, 8, 26, "found")


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ("found", "pruned", "found"),
        ("found", "censored", "found"),
        ("found", "open", "open"),
        ("censored", "censored", "censored"),
        ("censored", "open", "open"),
        ("censored", "inconsistent", "inconsistent"),
    ],
)
def test_the_status_of_a_cell_follows_from_its_heads(first: str, second: str, status: str) -> None:
    study = made_up.study_of([(64, 16)], heads=[1, 2])
    cell = study.cells[0]
    d_k = 20 if first == "found" else None
    rows = [
        made_up.threshold_row(cell, 1, d_k, status=first, D_K_low=20, D_K_high=None),
        made_up.threshold_row(cell, 2, None, status=second, D_K_low=30, D_K_high=None),
    ]
    row = one_best(made_up.results_of(study, [], rows))
    assert row["status"] == status
    assert pd.isna(row["D_K"]) == (first != "found")


@pytest.mark.parametrize(("low", "status"), [(16, "inconsistent"), (24, "found")])
def test_an_inconsistent_head_matters_only_if_it_might_be_the_best(low: int, status: str) -> None:
    study = made_up.study_of([(64, 16)], heads=[1, 2])
    cell = study.cells[0]
    doubt = {"status": "inconsistent", "D_K_low": low, "D_K_high": 40}
    rows = [made_up.threshold_row(cell, 1, 20), made_up.threshold_row(cell, 2, None, **doubt)]
    assert one_best(made_up.results_of(study, [], rows))["status"] == status


def test_a_cell_without_a_threshold_stays() -> None:
    study = made_up.study_of([(64, 16), (64, 32), (128, 16)], heads=[1, 2])
    bounds = {"D_K_low": 30, "D_K_high": None, "status": "censored"}
    rows = [made_up.threshold_row(study.cells[1], h, None, **bounds) for h in (1, 2)]
    table = best(*_tables(made_up.results_of(study, [], rows)))
    assert table["cell_id"].tolist() == [cell.cell_id for cell in study.cells]
    assert table["status"].tolist() == ["open", "censored", "open"]
    assert table["D_K"].isna().all()
    assert table["D_K_low"].astype("object").where(table["D_K_low"].notna(), None).tolist() == [
        None,
        30,
        None,
    ]


def test_a_cell_known_by_hand() -> None:
    """Two heads are found within 10 % of each other; the paired test cannot tell them apart."""
    study = made_up.study_of([(64, 16)], heads=[1, 2, 4], seeds=3)
    (cell,) = study.cells
    scores = {(1, 22): [0.995, 0.991, 0.996], (2, 10): [0.993, 0.992, 0.994]}
    runs = [
        made_up.run_row(cell, h, d_k, seed, score)
        for (h, d_k), own in scores.items()
        for seed, score in enumerate(own)
    ]
    thresholds = [
        made_up.threshold_row(cell, 1, 22, mean_score=0.994, n_seeds=3, D_K_low=21, D_K_high=25),
        made_up.threshold_row(
            cell,
            2,
            10,
            mean_score=0.993,
            n_seeds=3,
            D_K_low=18,
            D_K_high=26,
            confirmed=True,
            D_K_first=18,
        ),
        made_up.threshold_row(cell, 4, None, status="pruned", D_K_low=24, D_K_high=None),
    ]
    results = made_up.results_of(study, runs, thresholds)
    expected = pd.DataFrame(
        {
            "cell_id": [cell.cell_id],
            "model": ["max"],
            "graph": ["permutation"],
            "m": [64],
            "d_model": [16],
            "degree": [1],
            "n_edges": [64],
            "D_K": [20],
            "D_K_low": [18],
            "D_K_high": [25],
            "h_star": [2],
            "h_low": [1],
            "h_high": [2],
            "d_k": [10],
            "status": ["found"],
            "mean_score": [0.993],
            "n_seeds": [3],
            "certificate": [thresholds[1]["certificate"]],
            "max_steps": [20_000],
            "confirmed": [True],
            "D_K_first": [18],
        }
    )
    text = ["cell_id", "model", "graph", "status", "certificate", "confirmed"]
    whole = [name for name in expected if name not in (*text, "mean_score")]
    expected = expected.astype(dict.fromkeys(text, "object") | dict.fromkeys(whole, "Int64"))
    pd.testing.assert_frame_equal(best(*_tables(results)), expected)
    pd.testing.assert_frame_equal(best_of(results), expected)

    same = {"cell_id": [cell.cell_id] * 2, "m": [64] * 2, "d_model": [16] * 2, "degree": [1] * 2}
    p_value = stats.ttest_rel(scores[1, 22], scores[2, 10]).pvalue
    pool = pd.DataFrame(
        {
            **same,
            "h": [1, 2],
            "d_k": [22, 10],
            "D_K": [22, 20],
            "mean_score": [0.994, 0.993],
            "n_common": [3, 3],
            "mean_difference": [0.001, 0.0],
            "p_value": [p_value, np.nan],
            "retained": [True, True],
            "rule": ["paired t-test", "best"],
        }
    )
    whole = ["m", "d_model", "degree", "h", "d_k", "D_K", "n_common"]
    pool = pool.astype(dict.fromkeys(["cell_id", "rule"], "object") | dict.fromkeys(whole, "Int64"))
    pd.testing.assert_frame_equal(head_pool(*_tables(results)), pool)


def test_without_a_threshold_the_bounds_are_the_smallest_of_all_heads() -> None:
    study = made_up.study_of([(64, 16)], heads=[1, 2, 4])
    (cell,) = study.cells
    bounds = {1: (30, 60), 2: (20, 80), 4: (None, 70)}
    rows = [
        made_up.threshold_row(cell, h, None, D_K_low=low, D_K_high=high)
        for h, (low, high) in bounds.items()
    ]
    row = one_best(made_up.results_of(study, [], rows))
    assert (row["D_K_high"], row["status"]) == (60, "open")
    assert pd.isna(row["D_K_low"]), "h = 4 excludes nothing"
    two = made_up.study_of([(64, 16)], heads=[1, 2])
    assert one_best(made_up.results_of(two, [], rows))["D_K_low"] == 20
    four = made_up.study_of([(64, 16)], heads=[1, 2, 8])
    row = one_best(made_up.results_of(four, [], rows))
    assert pd.isna(row["D_K_low"]), "h = 8 was not tried"


def test_of_all_heads_those_that_were_tried_make_the_cell() -> None:
    study = made_up.study_of([(64, 16)], heads="all")
    (cell,) = study.cells
    censored = {"status": "censored", "D_K_high": None}
    rows = [made_up.threshold_row(cell, h, None, D_K_low=30 + h, **censored) for h in (3, 5)]
    row = one_best(made_up.results_of(study, [], rows))
    assert (row["status"], row["D_K_low"]) == ("censored", 33)
    assert one_best(made_up.results_of(study, [], []))["status"] == "open"
    found = [*rows, made_up.threshold_row(cell, 7, 3)]
    assert one_best(made_up.results_of(study, [], found))["status"] == "found"


@pytest.mark.parametrize(
    ("low", "status"), [(19, "inconsistent"), (20, "found"), (None, "inconsistent")]
)
def test_an_inconsistent_head_is_doubtful_only_below_D_K(low: int | None, status: str) -> None:
    study = made_up.study_of([(64, 16)], heads=[2, 4])
    doubt = {"status": "inconsistent", "D_K_low": low, "D_K_high": 40}
    cell = study.cells[0]
    rows = [made_up.threshold_row(cell, 2, 10), made_up.threshold_row(cell, 4, None, **doubt)]
    assert one_best(made_up.results_of(study, [], rows))["status"] == status


def test_an_open_head_keeps_the_cell_open_whatever_the_others_are() -> None:
    study = made_up.study_of([(64, 16)], heads=[1, 2, 4])
    cell = study.cells[0]
    doubt = made_up.threshold_row(cell, 2, None, status="inconsistent", D_K_low=1)
    rows = [made_up.threshold_row(cell, 1, 20), doubt, made_up.threshold_row(cell, 4, None)]
    assert one_best(made_up.results_of(study, [], rows))["status"] == "open"
    assert one_best(made_up.results_of(study, [], rows[:2]))["status"] == "open", "h = 4 is missing"


def test_two_common_seeds_are_enough_for_a_test() -> None:
    ours, theirs = [0.993, 0.992, 0.991], [0.994, 0.995]
    row = pool_of(cell_of({(4, 5): ours, (2, 11): theirs}))[2]
    assert (row["n_common"], row["rule"]) == (2, "paired t-test")
    assert row["p_value"] == pytest.approx(stats.ttest_rel(theirs, ours[:2]).pvalue)
    assert row["mean_difference"] == pytest.approx(0.002)


def _tables(results: Any) -> tuple[Any, Any, Any]:
    return results.thresholds, results.runs, results.study


def test_rows_of_other_studies_do_not_matter() -> None:
    wide = made_up.study_of([(64, 16), (64, 32), (128, 64)])
    narrow = made_up.study_of([(64, 32)])
    everything, alone = made_up.search_all(wide), made_up.search_all(narrow)
    from_all = best(everything.thresholds, everything.runs, narrow)
    pd.testing.assert_frame_equal(from_all, best(*_tables(alone)))


@pytest.mark.parametrize("places", [[(64, 16), (64, 32)], []])
def test_plain_rows_serve_as_well_as_stored_tables(places: list[tuple[int, int]]) -> None:
    study = made_up.study_of([(64, 16), (64, 32)])
    stored = made_up.search_all(study)
    if not places:
        stored = made_up.results_of(study, [], [])
    runs, thresholds = (
        pd.DataFrame(
            table.astype("object").where(table.notna(), None).to_dict("records"),
            columns=table.columns,
            dtype="object",
        )
        for table in (stored.runs, stored.thresholds)
    )
    pd.testing.assert_frame_equal(best(thresholds, runs, study), best(*_tables(stored)))
    untyped = replace(stored, thresholds=thresholds)
    assert threshold_records(untyped) == threshold_records(stored)
    plain = curves(runs, study).astype({"cell_id": "object"})
    pd.testing.assert_frame_equal(
        plain, curves(stored.runs, study).astype({"cell_id": "object"}), check_column_type=False
    )


def test_the_order_of_rows_does_not_matter() -> None:
    results = made_up.search_all(made_up.study_of([(64, 16), (64, 32)]))
    table = best(*_tables(results))
    shuffled = best(
        results.thresholds.sample(frac=1, random_state=1),
        results.runs.sample(frac=1, random_state=2),
        results.study,
    )
    pd.testing.assert_frame_equal(table, shuffled)


THRESHOLD_KEYS = (
    "model", "graph", "degree", "m", "d_model", "h", "d_k", "D_K", "D_K_low", "D_K_high",
    "status", "mean_score", "n_seeds", "certificate", "max_steps", "confirmed", "D_K_first",
    "bits_per_parameter",
)  # fmt: skip
BEST_KEYS = (
    "m", "d_model", "degree", "D_K", "D_K_low", "D_K_high", "h_star", "h_low", "h_high", "d_k",
    "max_steps", "confirmed", "D_K_first", "bits_per_parameter",
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
    whole = set(BEST_KEYS) - {"confirmed", "D_K_first", "bits_per_parameter"}
    assert all(type(record[key]) is int for record in bests for key in whole)
    assert [(record["confirmed"], record["D_K_first"]) for record in bests] == [
        (None, 20),
        (None, 6),
    ]
    text = json.dumps({"thresholds": records, "best": bests}, allow_nan=False)
    assert json.loads(text) == {"thresholds": records, "best": bests}


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
    kept = {h for h, member in pool_of(results).items() if member["retained"]}
    assert kept <= {h for h, width in widths.items() if width <= 1.1 * row["D_K"]}
    assert (min(kept), max(kept)) == (row["h_low"], row["h_high"])
