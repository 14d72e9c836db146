"""Embeddings that are trained, and shared by relations."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
import torch

from rgr_dist.engines.check_layers import check_layers
from rgr_dist.engines.checks import worst
from rgr_dist.engines.compiled import CompiledEngine, CompiledLane, unflat
from rgr_dist.engines.fused.engine import FusedEngine, SharedLane
from rgr_dist.engines.reference import ReferenceEngine
from rgr_dist.problem.edge_task import Task, initial_projections
from rgr_dist.study.cell import Cell
from rgr_dist.study.layer_file import zoo
from rgr_dist.study.run import Run
from rgr_dist.study.study_file import parse_study
from tests.engines.shapes import SHAPES, assert_close, by_shape, runs_of
from tests.marks import SLOW_IN_CI
from tests.oracles.shared_embedding import train

FEW = {"check_every": 20, "validation_contexts": 20, "test_contexts": 30}


def run_of(shape: Any, relations: int, model: str = "max", seed: int = 0, **training: Any) -> Run:
    keys = {"embeddings": "trained", "relations": relations, **FEW, **training}
    return runs_of(shape, (seed,), model, **keys)[0]


@pytest.mark.parametrize("relations", [1, 3])
def test_the_reference_is_a_plain_loop(relations: int) -> None:
    run, steps = run_of((9, 6, 4, 2, 3), relations, learning_rate=0.01), 12
    tasks = [Task.of(run.cell, run.seed, r) for r in range(relations)]
    W_Q, W_K = zip(*(initial_projections(run, r) for r in range(relations)), strict=True)
    contexts = np.stack([task.training_contexts(0, steps) for task in tasks])
    targets = [task.targets for task in tasks]
    expected = train(tasks[0].embedding, targets, contexts, [*W_Q], [*W_K], 2, 10.0, 0.01)
    (given,) = ReferenceEngine(torch.float64).weights_after([run], steps)
    assert_close(given, expected, 1e-9)


def test_relation_0_is_the_frozen_runs_and_others_are_their_own() -> None:
    run, frozen = run_of((16, 8, 5, 2, 3), 3), runs_of((16, 8, 5, 2, 3), (0,), **FEW)[0]
    one, *tasks = [Task.of(run.cell, 0, r) for r in range(3)]
    alone = Task.of(frozen.cell, 0)
    assert one.train == alone.train
    np.testing.assert_array_equal(one.targets, alone.targets)
    for W, other in zip(initial_projections(run), initial_projections(frozen), strict=True):
        np.testing.assert_array_equal(W, other)
    for r, task in enumerate(tasks, 1):
        np.testing.assert_array_equal(task.embedding, alone.embedding)
        assert (task.targets != alone.targets).any()
        assert (task.training_contexts(0, 9) != alone.training_contexts(0, 9)).any()
        assert (initial_projections(run, r)[0] != initial_projections(run)[0]).all()


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        by_shape("max", "odd everything"),
        pytest.param("softmax", "odd everything", marks=SLOW_IN_CI),
        by_shape("max", "three targets"),
        pytest.param("softmax", "three targets", marks=pytest.mark.slow),  # kernels of its own
        by_shape("max", "longer than a register"),
    ],
)
def test_fused_steps_are_those_of_the_reference(model: str, shape: str) -> None:
    run = run_of(SHAPES[shape], 3, model)
    (expected,) = ReferenceEngine(torch.float64).weights_after([run], 45)
    (given,) = FusedEngine().weights_after([run], 45)
    assert_close(given, expected, 2e-4)


@pytest.mark.parametrize("embedding", ["gaussian", "binary"])
def test_the_gradient_of_the_embedding_is_autograds(embedding: str) -> None:
    """AdamW hides the size of a gradient; its first moment shows it. Binary rows may be short."""
    cell = run_of((23, 17, 5, 3, 7), 2).cell.model_dump() | {"embedding": {"family": embedding}}
    run = Run(cell=Cell.model_validate(cell), h=3, d_k=7, seed=1)
    oracle, fused = ReferenceEngine(torch.float64).lane(run), FusedEngine().lane(run)
    assert isinstance(fused, SharedLane)
    oracle.advance(1)
    fused.advance(1)
    expected = oracle.optimizer.state[oracle.theta["E"]]["exp_avg"].numpy()
    rows = fused.E.first.reshape(23, -1)[:, :17]
    np.testing.assert_allclose(rows, expected, rtol=1e-4, atol=1e-6 * np.abs(expected).max())


@pytest.mark.slow  # torch compiles it first
def test_compiled_gradients_are_autograds_in_double_precision() -> None:
    run = run_of((12, 8, 5, 2, 3), 2, "max")
    oracle = ReferenceEngine(torch.float64).lane(run)
    lane: CompiledLane = CompiledEngine(dtype=torch.float64).lane(run)
    assert lane.program is not None
    oracle.advance(1)
    lane.advance(1)
    moments = unflat(lane.state[1], lane.task.theta)
    for name, p in oracle.theta.items():
        torch.testing.assert_close(moments[name], oracle.optimizer.state[p]["exp_avg"])


def test_a_check_asks_for_the_worst_relation_and_a_test_for_the_mean() -> None:
    run = run_of((16, 8, 5, 2, 3), 4, learning_rate=0.03)
    lanes = [FusedEngine().lane(run), ReferenceEngine().lane(run)]
    for lane in lanes:
        lane.advance(60)
    fused = lanes[0]
    assert isinstance(fused, SharedLane)
    scores = [one.validation.score() for one in fused.relations]
    assert len({*scores}) > 1
    for lane in lanes:
        assert lane.check(None) == min(scores)
        assert lane.check(min(scores) - 1e-9) == min(scores)
        assert lane.check(0.995) is None
        outcome = lane.outcome("max_steps", None)
        tests = [one.outcome("max_steps", None).score for one in fused.relations]
        assert outcome.score == pytest.approx(fmean(score or 0.0 for score in tests))
        assert outcome.steps == 60


def test_the_relation_that_stops_a_check_is_asked_first_by_the_next() -> None:
    order, scores = [0, 1, 2], [0.9, None, 0.8]
    assert worst(order, lambda r: scores[r]) is None
    assert order == [1, 0, 2]
    assert worst(order, lambda r: 1 - r / 10) == 0.8


def test_a_relation_gets_the_gradient_that_it_would_get_alone_a_module_too() -> None:
    alone, beside = (run_of((16, 8, 5, 2, 3), count) for count in (1, 3))
    one, several = ReferenceEngine().weights_after([alone, beside], 1)
    for name in ("W_Q", "W_K", "tau"):
        np.testing.assert_allclose(several[name][0], one[name][0], rtol=1e-5)
    modules = [module_run(count) for count in (1, 2)]
    one, several = ReferenceEngine().weights_after(modules, 1)
    assert several.keys() - one.keys() == {"q.weight 1", "k.weight 1", "tau 1"}
    for name in ("q.weight 0", "k.weight 0", "tau 0"):
        np.testing.assert_allclose(several[name], one[name], rtol=1e-5)
    assert (several["q.weight 1"] != several["q.weight 0"]).any()
    (outcome,) = CompiledEngine().train(modules[1:])
    assert outcome.steps == 40
    assert outcome.parameters == 2 * 12 * 8


@pytest.mark.parametrize("name", zoo())
def test_every_layer_of_the_zoo_learns_on_embeddings_that_are_trained(name: str) -> None:
    run = run_of((16, 12, 5, 2, 4), 2, f"zoo {name}")
    start, trained = (ReferenceEngine().weights_after([run], steps)[0] for steps in (0, 3))
    assert all(np.isfinite(p).all() for p in trained.values())
    assert (trained["E"] != start["E"]).any()


def module_run(relations: int) -> Run:
    training = {**FEW, "embeddings": "trained", "relations": relations, "max_steps": 40}
    file = str(Path(__file__).parent / "layers" / "keeps_its_map.py")
    cells = [{"m": 20, "d_model": 12, "context": {"length": 7}, "training": training}]
    study = parse_study({"name": "x", "model": file, "cells": cells, "search": {"heads": [2]}})
    check_layers(study)
    return Run(cell=study.cells[0], h=2, d_k=4, seed=3)
