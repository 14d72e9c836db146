"""``rgr all-pairs`` of studies whose cells have one size: no training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgr_dist.store.store import Store
from rgr_dist.study.run import Run
from rgr_dist.study.study_file import parse_study
from tests.cli.test_theory_verbs import listed
from tests.planning.made_up_runs import trained


@pytest.mark.parametrize(
    ("keys", "search", "told_by"),
    [
        ({"graph": {"family": "regular", "degree": [1, 2]}}, {}, "degree"),
        ({}, {"retest_steps": 2}, "cell"),
    ],
)
def test_all_pairs_tells_cells_of_one_size_apart(
    keys: dict[str, Any],
    search: dict[str, Any],
    told_by: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    search = {"heads": [2], "seeds": 2, "max_D_K": 24, "intervals": False, **search}
    study = parse_study({"name": "s", "cells": [{"m": 16, "d_model": 8}], "search": search, **keys})
    Path("s.yaml").write_text(study.to_yaml())
    rows = trained(study)
    Store("results").append(rows)

    def recovered(engine: Any, run: Run, steps: int, precisions: list[str]) -> Any:
        names = ("cell_id", "run_id", "m", "d_model", "h", "d_k", "D_K", "seed")
        own = next(row for row in rows if row["run_id"] == run.run_id)
        scores = {"score": 1.0, "f1": 1.0, "failed_pairs": 0, "margin": 0.1}
        at = {"precision": precisions[0], "bits": 8, **scores}
        return [{name: own[name] for name in names} | at]

    monkeypatch.setattr("rgr_dist.engines.recovered.recovered", recovered)
    found = listed(capsys, "all-pairs", "s.yaml", "--precision", "int8")["rows"]
    of_cells = {"degree": [1, 2], "cell": [study.name_of(cell) for cell in study.cells]}
    assert [row[told_by] for row in found] == of_cells[told_by]
    assert len(found) == 2
