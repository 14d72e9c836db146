"""What is stored of a probe that a worker could not begin to train."""

from __future__ import annotations

from pathlib import Path

import pytest

from rgr_dist.running import run_study
from rgr_dist.running.execution import Execution
from rgr_dist.store.store import Store
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
    told = "EngineError: --engine fsued: unknown; valid: auto, reference, lanes, fused"
    assert summary.failed == len(store.runs()) == 1
    assert all(told in line for line in summary.failures)
    assert store.runs()["error"].str.endswith(told).all()
