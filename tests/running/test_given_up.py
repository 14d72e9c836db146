"""A study whose hopeless runs are given up finds what it finds without, in fewer steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rgr_dist.planning.budgets import trained_steps
from rgr_dist.store.store import Store
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.run_here import thresholds_here

BAR = 0.8


def study_of(**training: Any) -> Study:
    training |= {"learning_rate": 3e-3, "check_every": 250, "max_steps": [5_000, 15_000]}
    search = {"heads": [1, 2], "intervals": False}
    cells = [{"m": 24, "d_model": 12}]
    document = {"name": "given-up", "cells": cells, "training": training, "search": search}
    return parse_study(document)


def test_runs_that_are_given_up_change_no_verdict(tmp_path: Path) -> None:
    plain, ending = Store(tmp_path / "plain"), Store(tmp_path / "ending")
    without, with_rule = study_of(), study_of(give_up_below=BAR)
    one, other = thresholds_here(without, plain), thresholds_here(with_rule, ending)
    told = ("max_steps", "h", "d_k", "status")
    found = [[[row[key] for key in told] for row in rows] for rows in (one, other)]
    assert found[0] == found[1]
    runs = ending.runs()
    given_up = runs[runs["stop_reason"] == "given_up"]
    assert set(given_up["max_steps"]) == {5_000, 15_000}
    assert (given_up["score"] < BAR).all()
    assert (given_up["steps"] < given_up["max_steps"]).all()
    assert trained_steps(runs).sum() < trained_steps(plain.runs()).sum()
