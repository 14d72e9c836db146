"""The verbs on a study of facts: trained, stopped, resumed, told and refused, as any other is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from rgr_dist.cli import call
from rgr_dist.store.store import Store
from rgr_dist.study.study_file import load_study
from tests.run_here import search_here, thresholds_here

STUDY = {
    "name": "facts-here",
    "model": "facts",
    "cells": [
        {"database": {"family": "predicates", "keys": [8, 16], "queries": 4, "values": 8,
                      "per_query": 2}, "d_model": 8},
    ],
    "training": {"max_steps": 200},
    "search": {"axis": "d_vo", "per": {"d_qk": [1, 4]}, "seeds": 2, "target": 0.9},
}  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the study, trained in this process by the compiled engine."""
    folder = tmp_path_factory.mktemp("facts-here")
    (folder / "mine.yaml").write_text(yaml.safe_dump(STUDY))
    store = Store(folder / "results")
    search_here(load_study(str(folder / "mine.yaml")), store)
    return folder


@pytest.fixture
def here(trained: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(trained)
    return trained


def test_a_search_that_was_stopped_goes_on_to_the_same_thresholds(
    here: Path, tmp_path: Path
) -> None:
    study = load_study("mine.yaml")
    whole = thresholds_here(study, Store("results"))
    assert any(row["status"] == "found" for row in whole)
    search_here(study, Store(tmp_path), probes=3)
    begun = set(Store(tmp_path).runs()["run_id"])
    assert thresholds_here(study, Store(tmp_path)) == whole
    assert begun < set(Store(tmp_path).runs()["run_id"]) == set(Store("results").runs()["run_id"])


def test_every_verb_tells_of_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: str) -> str:
        assert call(arguments) == 0
        return capsys.readouterr().out

    told = json.loads(said("thresholds", "mine.yaml", "--format", "json"))
    assert [(row["facts"], row["d_qk"]) for row in told["thresholds"]] == [
        (32, 1), (32, 4), (64, 1), (64, 4),
    ]  # fmt: skip
    for row in told["thresholds"]:
        if row["status"] == "found":
            assert row["certificate"]["pass"]["d_vo"] == row["d_vo"]
    assert "d_vo" in said("thresholds", "mine.yaml")
    said("run", "mine.yaml")
    assert json.loads(said("plan", "mine.yaml", "--format", "json"))["runs_left"] == 0
    assert not json.loads(said("plan", "mine.yaml", "--format", "json"))["runs_left"]
    runs = json.loads(said("runs", "mine.yaml", "--heads", "4", "--format", "json"))["runs"]
    assert {row["d_qk"] for row in runs} == {4}
    assert all(row["rank_logits"] >= 1 for row in runs)
    assert "bisect" in said("explain", "mine.yaml", "--cell", "facts=32,d_model=8")
    page = Path(said("report", "mine.yaml").strip()).read_text("utf-8")
    assert "figure" in page
    assert said("verify").count("problem") == 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("tune", "mine.yaml"), "is tuned"),
        (("fit", "mine.yaml"), "finds no D_K*"),
        (("compare", "mine.yaml", "--by", "model"), "do not differ in it"),
        (("run", "mine.yaml", "--gpus", "1"), "trains on CPUs alone"),
        (("explain", "mine.yaml", "--cell", "facts=32", "--heads", "3"), "d_qk = 3: not in facts"),
    ],
)
def test_what_it_cannot_do_is_told_in_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], line: str
) -> None:
    before = sorted(Path().rglob("*"))
    assert call(arguments) == 2
    told = capsys.readouterr()
    assert line in told.err
    assert (told.err.count("\n"), told.out) == (1, "")
    assert sorted(Path().rglob("*")) == before
