"""A construction behind the interface of an engine, and in a study from file to report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from rgr_dist.engines.choose import make_engine
from rgr_dist.engines.constructions import ConstructionEngine
from rgr_dist.problem.edge_task import Task
from rgr_dist.study.cell import Cell
from rgr_dist.study.errors import StudyError
from rgr_dist.study.run import Run
from rgr_dist.study.study_file import load_study, parse_study
from tests.small_study import Rgr


def study_of(model: object, **more: object) -> dict[str, object]:
    return {"name": "made", "model": model, "cells": [{"m": 64, "d_model": 16}], **more}


def test_a_run_is_scored_on_every_pair_of_the_task_that_a_trained_run_has() -> None:
    cell = Cell(model="ours", m=64, d_model=16, training={"test_contexts": 50})
    trained = Cell(m=64, d_model=16, training={"test_contexts": 50})
    (outcome,) = ConstructionEngine().train([Run(cell=cell, h=3, d_k=6, seed=2)])
    assert (outcome.score, outcome.val_score, outcome.stop_reason) == (1.0, 1.0, "converged")
    assert outcome.steps > 1
    (weights,) = ConstructionEngine().weights_after([Run(cell=cell, h=3, d_k=6, seed=2)], 0)
    task = Task.of(trained, 2)
    Q, K = ((task.embedding @ W).reshape(64, 3, 6) for W in (weights["W_Q"], weights["W_K"]))
    scores = np.einsum("ihk,jhk->hij", Q, K).max(axis=0)
    np.testing.assert_array_equal(scores > weights["tau"], task.graph.matrix)
    assert outcome.tau == weights["tau"]


def test_no_more_projections_are_made_than_a_study_says() -> None:
    study = parse_study(study_of({"construction": "ours", "iterations": 2}))
    (outcome,) = ConstructionEngine().train([Run(cell=study.cells[0], h=1, d_k=2, seed=0)])
    assert outcome.steps == 2
    assert outcome.seconds > 0
    assert outcome.score is not None
    assert outcome.score < 1


def test_a_layer_that_errs_has_the_f1_of_all_pairs() -> None:
    cell = Cell(model="algorithm-1", m=64, d_model=16)
    (outcome,) = make_engine("auto", model="algorithm-1").train(
        [Run(cell=cell, h=4, d_k=8, seed=0)]
    )
    assert outcome.steps == 1
    assert 0 < outcome.score < outcome.val_score < 1  # contexts hold fewer pairs that are no edge


@pytest.mark.parametrize("algorithm", ["1", "2", "4", "5"])
def test_every_construction_runs(algorithm: str) -> None:
    cell = Cell(model=f"algorithm-{algorithm}", m=32, d_model=16, training={"test_contexts": 20})
    (first, again), both = (
        ConstructionEngine().train([Run(cell=cell, h=4, d_k=8, seed=0)] * 2),
        ConstructionEngine().train_through([Run(cell=cell, h=4, d_k=8, seed=0)], [5]),
    )
    assert first.score == again.score == both[0][0].score == both[0][1].score


@pytest.mark.parametrize("name", [1, "5", "ours", "one-head"])
def test_a_study_names_a_construction(name: int | str) -> None:
    study = parse_study(study_of({"construction": name}, search={"heads": [1]}))
    (cell,) = study.cells
    assert cell.record.algorithm == str(name)
    assert study.search.target == 1.0
    assert parse_study(yaml.safe_load(study.to_yaml())) == study
    trained = parse_study(study_of("max", search={"heads": [1]})).cells[0]
    assert cell.problem_json == trained.problem_json  # the same graphs and embeddings


def test_ours_takes_a_number_of_iterations() -> None:
    (few, many) = (
        parse_study(study_of({"construction": "ours", "iterations": n})).cells[0] for n in (4, 1000)
    )
    assert few.construction.iterations == 4
    assert many.cell_id == parse_study(study_of({"construction": "ours"})).cells[0].cell_id
    with pytest.raises(StudyError, match="iterations"):
        parse_study(study_of({"construction": 1, "iterations": 4}))


def test_shipped_constructions_are_those_of_the_base_grid() -> None:
    made, trained = load_study("constructions"), load_study("base-grid")
    assert {(c.m, c.d_model) for c in made.cells} == {(c.m, c.d_model) for c in trained.cells}
    assert {c.problem_json for c in made.cells} == {c.problem_json for c in trained.cells}
    assert made.search.seeds == 30
    assert made.search.target == 1.0


@pytest.mark.slow
def test_a_study_of_a_construction_runs_to_its_report(tmp_path: Path, rgr_here: Rgr) -> None:
    search = {"heads": [1, 2, 3], "seeds": 3, "confirm_seeds": 0}
    (tmp_path / "made.yaml").write_text(
        yaml.safe_dump(study_of({"construction": "ours"}, search=search))
    )
    done = rgr_here("run", "made.yaml", "--cpus", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    listing = json.loads(
        rgr_here("thresholds", "made.yaml", "--format", "json", cwd=tmp_path).stdout
    )
    (best,) = listing["best"]
    assert best["D_K"] <= 18
    row = next(row for row in listing["thresholds"] if row["h"] == best["h_star"])
    assert row["model"] == "ours"
    assert row["certificate"]["pass"]["mean_score"] == 1.0
    assert row["certificate"]["fail"]["mean_score"] < 1.0
    assert (tmp_path / "results/studies/made/report/index.html").exists()
    plan = json.loads(rgr_here("plan", "made.yaml", "--format", "json", cwd=tmp_path).stdout)
    assert plan["runs_left"] == 0
