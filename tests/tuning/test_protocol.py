"""``rgr tune``: Optuna's trials on Ray Tune, their rows in the store, and going on later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import optuna
import pytest

from rgr_dist.planning.search_of import stored_search
from rgr_dist.planning.tables import threshold_rows
from rgr_dist.store.store import Store
from rgr_dist.study.study_file import load_study, parse_study
from rgr_dist.tuning.protocol import runs_to_tune, under
from tests.marks import slow_in_ci
from tests.small_study import Refused, Rgr, write_study


def test_a_protocol_is_tuned_just_below_each_cells_threshold(finished: Path) -> None:
    study, store = load_study(str(finished / "small.yaml")), Store(finished / "results")
    found = {
        (row["cell_id"], row["h"]): row["d_k"]
        for row in threshold_rows(study, stored_search(study, store).portfolio)
    }
    runs = runs_to_tune(study, store, study.cells)
    assert [run.seed for run in runs] == 2 * [0, 1, 2]
    assert all(run.d_k == max(1, found[run.cell.cell_id, run.h] - 1) for run in runs)


def test_where_nothing_is_known_it_is_tuned_where_the_paper_expects_the_threshold(
    tmp_path: Path,
) -> None:
    study = parse_study({"name": "x", "cells": [{"m": 64, "d_model": 16}]})
    run = runs_to_tune(study, Store(tmp_path), study.cells)[0]
    assert (run.h, run.d_k) == (1, 25), "0.9 of 1.19 · 64 · 6 / 16; and h* is below 1 there"
    other = under({"learning_rate": 0.1}, run)
    assert other.cell.training.learning_rate == 0.1
    assert other.run_id != run.run_id


@slow_in_ci
def test_trials_are_stored_and_a_later_command_goes_on(tmp_path: Path, rgr_here: Rgr) -> None:
    write_study(tmp_path)

    def tuned(trials: int) -> dict[str, Any]:
        ask = ("tune", "small.yaml", "--cell", "16,8", "--cpus", 1, "--format", "json")
        done = rgr_here(*ask, "--trials", trials, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    first = tuned(2)
    assert [row["state"] for row in first["trials"]] == ["complete"] * 2
    assert first["trials"][0]["learning_rate"] == 0.01, "the present protocol comes first"
    assert first["present_score"] == first["trials"][0]["score"] <= first["score"]
    store = Store(tmp_path / "results")
    assert len(store.runs()) == 2 * 3
    (name,) = optuna.get_all_study_names(f"sqlite:///{first['storage']}")
    kept = optuna.load_study(study_name=name, storage=f"sqlite:///{first['storage']}")
    kept.ask()  # as a driver that was killed leaves it
    more = tuned(3)
    states = [row["state"] for row in more["trials"]]
    assert states == ["complete", "complete", "fail", "complete"]
    assert more["trials"][:2] == first["trials"]
    protocols = {tuple(row[key] for key in first["training"]) for row in more["trials"][:2]}
    assert tuple(more["trials"][3][key] for key in first["training"]) not in protocols
    done = rgr_here(*more["to_use_it"].replace("rgr run", "plan").split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert tuned(3)["trials"] == more["trials"]


@pytest.mark.parametrize("study", ["facts", "phases"])
def test_only_what_is_trained_for_D_K_is_tuned(study: str, refused: Refused) -> None:
    refused("is tuned", "tune", study)
