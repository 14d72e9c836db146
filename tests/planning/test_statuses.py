"""Every status of a head, from runs that were really trained."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

from rgr_dist.planning.portfolio import open_portfolio, stored_runs
from rgr_dist.planning.tables import decision_rows, threshold_rows
from rgr_dist.store.store import Store
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.run_here import search_here, thresholds_here
from tests.small_study import SMALL


def study_of(steps: int = 2000, **search: Any) -> Study:
    cells = [{"m": 16, "d_model": 8, "training": {"max_steps": steps}}]
    return parse_study({**SMALL, "cells": cells, "search": {**SMALL["search"], **search}})


def statuses(study: Study, store: Store) -> dict[int, str]:
    return {row["h"]: row["status"] for row in thresholds_here(study, store)}


def test_found_pruned_censored_and_open(tmp_path: Path) -> None:
    store = Store(tmp_path)
    rows = {row["h"]: row for row in thresholds_here(study_of(heads=[1, 2, 4, 16]), store)}
    best = min(row["D_K"] for row in rows.values() if row["status"] == "found")
    assert {row["status"] for row in rows.values()} == {"found", "pruned"}
    low = study_of(max_D_K=best // 2, heads=[1, 2])
    assert set(statuses(low, store).values()) == {"censored"}
    unseen = study_of(heads=[1, 3])
    rows = threshold_rows(unseen, open_portfolio(unseen, store.runs().head(0)))
    assert {row["status"] for row in rows} == {"open"}


def test_a_target_that_noise_straddles_is_inconsistent_until_more_seeds_settle_it(
    tmp_path: Path,
) -> None:
    """Two widths whose real means lie the wrong way round, and a target between them."""
    store = Store(tmp_path)
    widths = list(range(1, 13))
    grid = {"mode": "grid", "heads": [1], "D_K": widths, "extra_seeds": 0, "steps": 200}
    search_here(study_of(**grid), store)
    means = store.runs().groupby("d_k")["score"].mean()
    low, high = max(combinations(widths, 2), key=lambda pair: means[pair[0]] - means[pair[1]])
    assert means[low] > means[high], means
    target = float((means[low] + means[high]) / 2)
    study = study_of(**grid, target=target)
    (row,) = thresholds_here(study, store)
    assert row["status"] == "inconsistent"
    assert row["d_k"] is None
    shown = json.loads(row["certificate"])
    assert shown["pass"]["d_k"] < shown["fail"]["d_k"]
    assert shown["pass"]["mean_score"] >= study.search.target > shown["fail"]["mean_score"]

    retested = study_of(**{**grid, "extra_seeds": 4}, target=target)
    portfolio = search_here(retested, store)
    decisions = decision_rows(retested, portfolio)
    again = [d for d in decisions if d["reason"].startswith("retest")]
    assert {d["n_seeds"] for d in again} == {7}
    assert {shown["pass"]["d_k"], shown["fail"]["d_k"]} <= {d["d_k"] for d in again}


def test_a_store_replays_to_the_bit_wherever_it_was_cut(tmp_path: Path) -> None:
    study = study_of(retest_steps=2)
    whole = Store(tmp_path / "whole")
    portfolio = search_here(study, whole)
    cut = Store(tmp_path / "cut")
    search_here(study, cut, probes=4)
    search_here(study, cut)
    replayed = open_portfolio(study, stored_runs(study, cut))
    assert threshold_rows(study, replayed) == threshold_rows(study, portfolio)
    assert decision_rows(study, replayed) == decision_rows(study, portfolio)
