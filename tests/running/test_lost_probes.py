"""What is stored of a probe that a worker could not train, or not all of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from rgr_dist.engines.api import Outcome
from rgr_dist.engines.reference.engine import ReferenceEngine
from rgr_dist.running import run_study
from rgr_dist.running.execution import Execution
from rgr_dist.running.worker import train_rows
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
    told = "EngineError: --engine fsued: unknown; valid: auto, reference, lanes, fused"
    assert summary.failed == len(store.runs()) == 1
    assert all(told in line for line in summary.failures)
    assert store.runs()["error"].str.endswith(told).all()


class FailsAtOne(ReferenceEngine):
    """Raises where seed 1 is one of the runs."""

    def train_through(self, runs: Sequence[Run], budgets: Sequence[int]) -> list[list[Outcome]]:
        if any(run.seed == 1 for run in runs):
            raise ArithmeticError("of seed 1")
        return super().train_through(runs, budgets)


def test_a_seed_that_raises_costs_the_others_of_its_wave_nothing() -> None:
    cell = parse_study(SMALL).cells[0].with_limit(10)
    rows = train_rows(FailsAtOne(), [Run(cell=cell, h=1, d_k=2, seed=seed) for seed in range(3)])
    assert [row["stop_reason"] for row in rows] == ["max_steps", "failed", "max_steps"]
    assert rows[1]["error"].endswith("ArithmeticError: of seed 1")
