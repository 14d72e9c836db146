"""A layer of one's own on the command line, from ``rgr init --layer`` to what is stored."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from rgr_dist.cli import call
from rgr_dist.engines.check_layers import check_layers
from rgr_dist.study.study_file import load_study
from tests.small_study import Refused, Rgr, write_study

TEMPERATE = {"file": "mine.py", "temperature": 0.5}


def test_a_new_model_is_written_once_and_can_be_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(["init", "my_own", "--layer"]) == 0
    assert capsys.readouterr().out == "wrote my_own.py; in a study it is model: my_own.py\n"
    text = Path("my_own.py").read_text()
    assert "class MyOwn:" in text
    assert "NAME" not in text
    write_study(tmp_path, model="my_own.py")
    study = load_study("small.yaml")
    check_layers(study)
    assert study.cells[0].model_name == "my_own(temperature=1.0)"
    assert call(["init", "my_own", "--layer"]) == 2
    assert "my_own.py: File exists" in capsys.readouterr().err
    assert Path("my_own.py").read_text() == text


@pytest.mark.parametrize("name", ["two words", "../up", "1x", "_", "", "é"])
def test_a_name_that_no_layer_can_have_is_refused(refused: Refused, name: str) -> None:
    refused("cannot name a layer", "init", "--layer", "--", name)


def test_a_layer_that_cannot_be_trained_is_refused_before_anything_is(
    refused: Refused, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["init", "mine", "--layer"]) == 0
    capsys.readouterr()
    path = tmp_path / "mine.py"
    path.write_text(path.read_text().replace("return logits.softmax(-1).sum(-3)", "return logits"))
    write_study(tmp_path, model="mine.py")
    refused("h = 1, d_k = 1: scores have shape (3, 1, 8, 8)", "run", "small.yaml")
    write_study(tmp_path, model="groupd")
    refused("{zoo: grouped}", "run", "small.yaml")
    write_study(tmp_path, model={"zoo": "grouped", "group": 2})
    refused("did you mean 'groups'?", "plan", "small.yaml")


@pytest.mark.slow  # is compiled first
@pytest.mark.timeout(900)
def test_a_study_of_a_file_stores_what_its_layer_costs_and_knows_when_it_changed(
    rgr_here: Rgr, tmp_path: Path
) -> None:
    assert rgr_here("init", "mine", "--layer", cwd=tmp_path).returncode == 0
    write_study(tmp_path, model=TEMPERATE)
    done = rgr_here("run", "small.yaml", "--cpus", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = pd.concat(map(pd.read_parquet, (tmp_path / "results/runs").glob("*.parquet")))
    assert (rows["parameters"] == 2 * rows["d_model"] * rows["D_K"]).all()
    assert (rows["cached"] == rows["D_K"]).all()
    assert set(rows["model"]) == {"file"}
    told = json.loads(rgr_here("thresholds", "small.yaml", "--format", "json", cwd=tmp_path).stdout)
    assert {row["model"] for row in told["thresholds"]} == {"mine(temperature=0.5)"}
    again = rgr_here("run", "small.yaml", cwd=tmp_path)
    assert "nothing was left to train" in again.stdout
    explained = rgr_here("explain", "small.yaml", "--cell", "16,16", cwd=tmp_path)
    assert "another text" not in explained.stdout
    path = tmp_path / "mine.py"
    path.write_text(path.read_text() + "# changed\n")
    explained = rgr_here("explain", "small.yaml", "--cell", "16,16", cwd=tmp_path)
    assert f"mine.py: changed since {len(rows)} stored runs" in explained.stdout
