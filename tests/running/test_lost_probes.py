"""What is stored of a probe that a worker could not begin to train."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgr_dist.engines.choose import make_engine
from rgr_dist.faults import RunBroken
from rgr_dist.running import run_study, worker
from rgr_dist.running.cluster import Execution
from rgr_dist.store.store import Store
from rgr_dist.study.run import Run
from rgr_dist.study.study_file import parse_study
from tests.small_study import SMALL


@pytest.mark.usefixtures("_ray")
def test_the_reason_of_what_a_worker_raised_before_it_trained_is_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_study, "check_engine", lambda *asked: None)  # the workers' own raises
    one = {"cells": [{"m": 16, "d_model": 8}], "search": {"heads": [1], "seeds": 1}}
    study, store = parse_study(SMALL | one), Store(tmp_path)
    summary = run_study.run_study(study, store, execution=Execution(1, "local", "fsued"))
    told = "EngineError: --engine fsued: unknown; valid: auto, reference, compiled, fused"
    assert summary.failed == len(store.runs()) == 1
    assert all(told in line for line in summary.failures)
    assert store.runs()["error"].str.endswith(told).all()


@pytest.mark.slow
@pytest.mark.usefixtures("_ray")
def test_a_study_whose_trials_say_nothing_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_study, "STALLED_AFTER", -1.0)
    study, store = parse_study(SMALL), Store(tmp_path)
    with pytest.raises(RunBroken, match="no trial was heard of"):
        run_study.run_study(study, store, execution=Execution(1, "local"))
    monkeypatch.undo()
    assert run_study.run_study(study, store, execution=Execution(1, "local")).left_failed == 0


@pytest.mark.usefixtures("_ray")
def test_a_trial_says_that_it_is_there_while_it_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "HEARTBEAT", 0.001)
    cell = parse_study(SMALL).cells[0]
    trial = worker.ProbeTrainable(
        {
            "cell": cell.model_dump_json(),
            "sizes": {"h": 1, "d_k": 2},
            "seeds": [0, 1],
            "budgets": [],
            "engine": "auto",
            "device": "cpu",
        }
    )
    results = [trial.train()]
    while not results[-1]["done"]:
        results.append(trial.train())
    assert [("rows" in result) for result in results] == [False] * (len(results) - 1) + [True]
    assert len(results) > 2
    (one, two) = results[-1]["rows"]
    plain = worker.train_rows(make_engine(), [Run(cell=cell, h=1, d_k=2, seed=0)])[0]
    assert {key: one[key] for key in ("run_id", "score", "steps")} == {
        key: plain[key] for key in ("run_id", "score", "steps")
    }
    assert two["seed"] == 1
