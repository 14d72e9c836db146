"""The laws that every engine obeys on every task: one table, a row for an engine and a task."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from rgr_dist.engines.api import LaneEngine, Outcome
from rgr_dist.engines.checks import Checks
from rgr_dist.engines.compiled import CompiledEngine
from rgr_dist.engines.fused.engine import EdgeLane, FusedEngine
from rgr_dist.engines.reference import ReferenceEngine
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from tests.engines.shapes import SHAPES, assert_close, by_shape, runs_of, same
from tests.facts.made_up import database, run_of
from tests.marks import SLOW_IN_CI

QUICK = {"check_every": 20, "patience": 2, "validation_contexts": 20, "test_contexts": 30}
EDGES = {"learning_rate": 0.03, "max_steps": 200, "stop_score": 0.6}


def of_edges(model: str, **more: Any) -> Callable[..., list[Run]]:
    def runs(seeds: tuple[int, ...], **training: Any) -> list[Run]:
        return runs_of((12, 8, 5, 2, 3), seeds, model, **QUICK | EDGES | more | training)

    return runs


def of_blocks(seeds: tuple[int, ...], **training: Any) -> list[Run]:
    keys = {"check_every": 20, "validation_contexts": 20, "test_contexts": 30}
    keys |= {"learning_rate": 0.03, "max_steps": 100, "batch_size": 8, "weight_decay": 0.1}
    return runs_of((12, 8, 3, 2, 3), seeds, "transformer", **keys | training)


def of_facts(seeds: tuple[int, ...], **training: Any) -> list[Run]:
    keys = {"check_every": 20, "learning_rate": 0.03, "max_steps": 200, "batch_size": 7}
    own = {"database": database("function", 6, 3, 5), "d_model": 8, "training": keys | training}
    return [run_of(2, 3, 4, seed, **own) for seed in seeds]


TASKS: dict[str, Callable[..., list[Run]]] = {
    "max": of_edges("max"),
    "softmax": of_edges("softmax", stop_score=0.5),
    "value": of_edges("value", stop_score=0.995, tolerance=0.2),
    "a layer of the zoo": of_edges("zoo cosine"),
    "max on trained embeddings": of_edges("max", embeddings="trained", relations=2),
    "softmax on trained embeddings": of_edges(
        "softmax", embeddings="trained", relations=2, stop_score=0.5
    ),
    "transformer": of_blocks,
    "facts": of_facts,
}
ENGINES: dict[str, LaneEngine] = {
    "reference": ReferenceEngine(),
    "compiled": CompiledEngine(),
    "fused": FusedEngine(),
}
ROWS = [
    *(("reference", task) for task in TASKS),
    *(("compiled", task) for task in TASKS if not task.startswith("softmax")),
    *(("fused", task) for task in TASKS if task not in ("a layer of the zoo", "facts")),
]
IN_CI = [("compiled", "max"), ("fused", "transformer")]  # compiled for ten seconds or more


def marks_of(engine: str, task: str) -> tuple[pytest.MarkDecorator, ...]:
    if (engine, task) in IN_CI:
        return SLOW_IN_CI
    is_slow = engine == "compiled" or task.startswith("softmax on")
    return (pytest.mark.slow,) if is_slow else ()


row = pytest.mark.parametrize(
    ("engine", "task"),
    [pytest.param(*one, marks=marks_of(*one)) for one in ROWS],
    ids=lambda part: part.replace(" ", "-"),
)
SEEDS = (0, 3, 7)


def timeless(outcomes: list[Outcome]) -> list[Outcome]:
    return [replace(outcome, seconds=0.0) for outcome in outcomes]


@cache
def trained(engine: str, task: str) -> list[Outcome]:
    return timeless(ENGINES[engine].train(TASKS[task](SEEDS)))


@row
def test_weights_are_those_of_the_reference(engine: str, task: str) -> None:
    runs = TASKS[task](SEEDS, learning_rate=0.003)
    exact = ReferenceEngine(torch.float64).weights_after(runs, 45)
    for given, expected in zip(ENGINES[engine].weights_after(runs, 45), exact, strict=True):
        assert_close(given, expected, 2e-4)


@row
def test_runs_end_as_those_of_the_reference(engine: str, task: str) -> None:
    for one, expected in zip(trained(engine, task), trained("reference", task), strict=True):
        assert (one.stop_reason, one.steps) == (expected.stop_reason, expected.steps)
        for name in ("score", "val_score", "tau", "null_rate"):
            value, wanted = getattr(one, name), getattr(expected, name)
            assert value == (None if wanted is None else pytest.approx(wanted, abs=0.02)), name
        assert (one.parameters, one.cached) == (expected.parameters, expected.cached)


@row
def test_no_run_depends_on_its_neighbours_nor_on_steps_taken_at_once(
    engine: str, task: str
) -> None:
    own = ENGINES[engine]
    wild = TASKS[task]((1,), learning_rate=1e30)
    beside = own.train([*wild, *TASKS[task](SEEDS[::-1])])
    assert timeless(beside)[:0:-1] == trained(engine, task)
    (run,) = TASKS[task](SEEDS[:1])
    lane = own.lane(run)
    for count in (1, 7, 37):
        lane.advance(count)
    (whole,) = own.weights_after([run], 45)
    assert same(lane.weights(), whole)


@row
def test_seeds_differ_and_are_repeated_to_the_bit(engine: str, task: str) -> None:
    runs = TASKS[task]((0, 1, 0))
    first, other, again = ENGINES[engine].weights_after(runs, 0)
    assert same(first, again)
    assert not any(same({name: first[name]}, other) for name in first if name.startswith("W"))


@row
def test_a_run_that_diverges_says_so_at_its_check(engine: str, task: str) -> None:
    (outcome,) = ENGINES[engine].train(TASKS[task]((0,), learning_rate=1e30))
    assert (outcome.stop_reason, outcome.steps) == ("diverged", 20)
    assert (outcome.score, outcome.val_score, outcome.tau) == (None, None, None)


@row
def test_smaller_limits_are_read_off_a_longer_run(engine: str, task: str) -> None:
    runs, limits = TASKS[task](SEEDS[:2]), [20, 60, 80]
    together = ENGINES[engine].train_through(runs, limits)
    for run, outcomes in zip(runs, together, strict=True):
        apart = [ENGINES[engine].train([run.with_limit(limit)])[0] for limit in limits]
        assert timeless(outcomes[:-1]) == timeless(apart)
        assert [one.seconds for one in outcomes] == sorted(one.seconds for one in outcomes)
    assert timeless([outcomes[-1] for outcomes in together]) == trained(engine, task)[:2]


@row
def test_schedules_and_the_initial_scale_are_those_of_the_reference(engine: str, task: str) -> None:
    for keys in (
        {"schedule": "warmup", "warmup_steps": 30, "initial_scale": 2},
        {"schedule": "cosine", "max_steps": 40},
    ):
        runs = TASKS[task]((3,), **{"learning_rate": 0.003} | keys)
        (expected,) = ReferenceEngine(torch.float64).weights_after(runs, 40)
        (given,) = ENGINES[engine].weights_after(runs, 40)
        assert_close(given, expected, 2e-4)


def test_tasks_end_in_more_than_one_way() -> None:
    reasons = {task: {one.stop_reason for one in trained("reference", task)} for task in TASKS}
    assert reasons.pop("transformer") == {"max_steps"}
    assert all("converged" in ends for ends in reasons.values()), reasons


# What the fused engine does by hand, on every shape.

SHAPED = [
    by_shape(model, name)
    for model in ("max", "softmax", "value")
    for name, shape in SHAPES.items()
    if model != "value" or len(shape) == 5
]


@pytest.mark.parametrize(("model", "name"), SHAPED)
def test_fused_steps_are_those_of_the_reference_on_every_shape(model: str, name: str) -> None:
    runs = runs_of(SHAPES[name], (0, 3), model)
    exact = ReferenceEngine(torch.float64).weights_after(runs, 60)
    rounded = ReferenceEngine().weights_after(runs, 60)
    for given, *both in zip(FusedEngine().weights_after(runs, 60), exact, rounded, strict=True):
        apart = []
        for expected in both:  # where two heads tie to a rounding, the two may part
            try:
                assert_close(given, expected, 2e-4)
            except AssertionError as error:
                apart.append(error)
        assert len(apart) < 2, apart


@pytest.mark.parametrize("model", ["max", "softmax", "value"])
def test_the_gradient_by_hand_is_autograds(model: str) -> None:
    """AdamW hides the size of a gradient; its first moment shows it."""
    (run,) = runs_of(SHAPES["odd everything"], (1,), model)
    fused, oracle = EdgeLane(run), ReferenceEngine(torch.float64).lane(run)
    fused.advance(1)
    oracle.advance(1)
    moments = [oracle.optimizer.state[oracle.theta[name]]["exp_avg"] for name in ("W_Q", "W_K")]
    expected = torch.cat(moments, 1).T.numpy()
    rows = fused.theta.first.reshape(fused.sizes.C, -1)[: len(expected), : run.cell.d_model]
    np.testing.assert_allclose(rows, expected, rtol=1e-4, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("model", ["max", "softmax", "value"])
def test_fused_lanes_in_threads_have_the_same_bits(model: str) -> None:
    lanes = [EdgeLane(run) for run in runs_of(SHAPES["the paper's context"], (0, 1, 2), model)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda lane: lane.advance(300), lanes))
    for lane in lanes:
        (alone,) = FusedEngine().weights_after([lane.run], 300)
        assert same(alone, lane.weights())


def test_of_equal_heads_the_first_learns() -> None:
    """One rule in every engine: heads that start equal stay so but for the first."""
    (run,) = runs_of(SHAPES["odd everything"], (0,))
    oracle, lane = ReferenceEngine().lane(run), EdgeLane(run)
    k = run.d_k
    with torch.no_grad():
        for name in ("W_Q", "W_K"):
            oracle.theta[name][:, k : 2 * k] = oracle.theta[name][:, :k]
    columns = lane.theta.W.reshape(lane.sizes.C, -1)
    for half in (0, run.D_K):
        columns[half + k : half + 2 * k] = columns[half : half + k]
    oracle.advance(1)
    lane.advance(1)
    assert_close(lane.weights(), oracle.weights(), 1e-4)


def test_a_run_stops_after_enough_good_checks_in_a_row() -> None:
    cell = Cell(m=64, d_model=16, training={"check_every": 10, "patience": 2, "max_steps": 100})
    checks, steps = Checks(cell, [20, 40]), 0
    ends = []
    for score in (0.999, 0.2, 0.999, None, 0.996, 0.997):
        steps += checks.steps_to_next(steps)
        ends += [(steps, reason) for reason in checks.after(steps, score)]
    assert ends == [(20, "max_steps"), (40, "max_steps"), (60, "converged")]
