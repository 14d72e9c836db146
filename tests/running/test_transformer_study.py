"""A study of the transformer from the command line: real Ray, real training, a small cell."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from safetensors.numpy import save_file

from rgr_dist.cli import call
from tests.small_study import Rgr

STUDY = {
    "name": "tiny",
    "model": "transformer",
    "cells": [{"m": 16, "d_model": 16}],
    "embedding": {"family": "vectors", "file": "model.safetensors"},
    "context": {"length": 2},
    "training": {
        "learning_rate": 0.01,
        "max_steps": 120,
        "check_every": 40,
        "batch_size": 32,
        "validation_contexts": 50,
        "test_contexts": 200,
    },
    "search": {"mode": "grid", "D_K": [4, 8], "heads": [1, 4], "seeds": 2},
}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    table = np.random.default_rng(0).normal(size=(20, 16)).astype(np.float32)
    save_file({"wte.weight": table}, tmp_path / "model.safetensors")
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(STUDY))
    return path


@pytest.mark.slow
def test_a_study_of_the_transformer_trains_in_workers_and_reports_accuracy(
    study: Path, tmp_path: Path, rgr_here: Rgr
) -> None:
    done = rgr_here("run", study, "--cpus", 2, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "At m = 16, d_model = 16, accuracy is " in done.stdout
    assert re.search(
        r"of 8 runs collapsed: they score below a random guess among .* NULL",
        done.stdout.replace("\n", " "),
    )
    runs = pd.read_parquet(tmp_path / "results/runs")
    assert len(runs) == 8
    assert set(runs["engine"]) == {"fused"}, "what auto took is said in the row"
    assert set(runs["embedding"]) == {"vectors"}, "and the workers were handed its rows"
    assert runs["null_rate"].between(0, 1).all()
    assert runs["threshold_tau"].isna().all()
    assert (runs["steps"] == 120).all()
    page = (tmp_path / "results/studies/tiny/report/index.html").read_text()
    assert "Accuracy against width" in page
    again = rgr_here("run", study, cwd=tmp_path)
    assert "nothing was left to train" in again.stdout
    plan = rgr_here("plan", study, "--format", "json", cwd=tmp_path)
    assert json.loads(plan.stdout)["runs_left"] == 0


def test_plan_counts_every_step_of_every_split(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["plan", str(study), "--store", str(tmp_path / "none"), "--format", "json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["runs_left"], plan["steps_left"]) == (8, 8 * 120)
