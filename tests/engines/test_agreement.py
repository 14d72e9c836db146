"""The engines against each other: each has a gradient of its own, autograd's or by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rgr_dist.engines.api import Engine
from rgr_dist.engines.choose import ENGINES, make_engine
from rgr_dist.engines.fused.engine import FusedEngine
from rgr_dist.engines.lanes.engine import LanesEngine
from rgr_dist.engines.lanes.evaluation import Evaluation
from rgr_dist.engines.lanes.state import Lanes
from rgr_dist.engines.reference.engine import ReferenceEngine
from rgr_dist.models.edges import labels, weighted_logistic_loss
from rgr_dist.models.heads import SCORES
from rgr_dist.models.value_retrieval import retrieval_loss
from rgr_dist.study import assets
from rgr_dist.study.cell import Cell
from rgr_dist.study.models import MODELS
from rgr_dist.study.run import Run
from tests.engines.lane_state import unpadded
from tests.engines.shapes import assert_close

CPU = torch.device("cpu")
SHAPES = {  # m, d_model, length, h, d_k, and the graph where it is no permutation
    "one narrow head": (16, 8, 5, 1, 1),
    "many heads of width one": (20, 17, 7, 5, 1),
    "odd everything": (23, 17, 5, 3, 7),
    "context holds the whole graph": (9, 16, 9, 2, 3),
    "pairs": (12, 3, 2, 2, 2),
    "the paper's context": (64, 16, 16, 4, 5),
    "a derangement": (23, 17, 5, 3, 7, "1-regular"),
    "three targets": (20, 17, 7, 5, 1, "3-regular"),
    "eight targets of the paper's context": (64, 16, 16, 4, 5, "8-regular"),
    "all others are targets": (9, 16, 9, 2, 3, "8-regular"),
    "any degrees": (21, 7, 11, 2, 3, "uneven"),
    "contexts without an edge": (40, 5, 3, 2, 2, "one edge"),
    "contexts of edges alone": (12, 5, 2, 2, 2, "cliques"),
}
CASES = {
    f"{model}, {name}": (model, shape)
    for model, record in MODELS.items()
    for name, shape in SHAPES.items()
    if record.task == "edges"
    if len(shape) == 5 or not record.one_target
}
cases = pytest.mark.parametrize(("model", "shape"), CASES.values(), ids=CASES.keys())


def graph_of(kind: str, m: int) -> dict[str, Any]:
    """The keys of an r-regular graph, or of a list of edges.

    uneven: p -> q where q divides p + 1; cliques: all pairs of each half, self-loops too.
    """
    if kind.endswith("-regular"):
        return {"family": "regular", "degree": int(kind.removesuffix("-regular"))}
    all_pairs = [(p, q) for p in range(m) for q in range(m)]
    lists = {
        "uneven": [(p, q) for p, q in all_pairs if q and (p + 1) % q == 0 and p % 3],
        "cliques": [(p, q) for p, q in all_pairs if p * 2 // m == q * 2 // m],
        "one edge": [(0, 1)],
    }
    pairs = np.array(lists[kind], dtype=np.int32)
    degree = int(np.bincount(pairs[:, 0]).max())
    keys = {"edges": len(pairs), "degree": degree, "items": int(pairs.max()) + 1}
    return {"family": "edges", "digest": assets.add(pairs), **keys}


def runs_of(
    shape: tuple[Any, ...], seeds: tuple[int, ...], model: str = "max", **training: Any
) -> list[Run]:
    m, d_model, length, h, d_k, *kind = shape
    graph = graph_of(kind[0], m) if kind else {}
    context = {"length": length}
    sizes = {"model": model, "m": m, "d_model": d_model}
    cell = Cell(**sizes, graph=graph, context=context, training=training)
    return [Run(cell=cell, h=h, d_k=d_k, seed=seed) for seed in seeds]


@cases
def test_lanes_of_distinct_seeds_equal_solo_runs_of_the_reference(
    model: str, shape: tuple[Any, ...]
) -> None:
    runs = runs_of(shape, (0, 3, 7), model)
    together = LanesEngine(dtype=torch.float64).weights_after(runs, 40)
    assert not np.allclose(together[0]["W_Q"], together[1]["W_Q"])
    alone = ReferenceEngine(torch.float64).weights_after(runs, 40)
    for weights, expected in zip(together, alone, strict=True):
        assert_close(weights, expected, 1e-10)


@cases
def test_the_hand_written_gradient_is_autograds(model: str, shape: tuple[Any, ...]) -> None:
    """AdamW hides the size of a gradient, so that equal weights do not show it."""
    runs, before = runs_of(shape, (1, 2), model), 30
    record, lanes = runs[0].cell.record, Lanes(runs, CPU, torch.float64)
    lanes.advance(before)
    parameters = [
        [torch.from_numpy(p).requires_grad_() for p in lanes.weights(lane).values()]
        for lane in range(2)
    ]
    lanes.advance(1)
    for lane, (W_Q, W_K, tau) in enumerate(parameters):
        task = lanes.tasks[lane]
        nodes = torch.from_numpy(task.training_contexts(before, 1)[0]).long()
        X = torch.from_numpy(task.embedding)[nodes]
        S = SCORES[record.heads](X, W_Q, W_K, runs[0].h)
        y = labels(nodes, torch.from_numpy(task.graph.table))
        if record.loss == "messages":
            tau.grad = torch.zeros_like(tau)
            retrieval_loss(S, y, torch.from_numpy(task.messages)[nodes]).backward()
        else:
            balanced = task.cell.graph.balanced
            weighted_logistic_loss(S, y, tau, 10.0, balanced).backward()
        assert W_Q.grad is not None
        assert W_K.grad is not None
        by_hand, tau_by_hand = unpadded(lanes, lanes.gradients, lane)
        expected = torch.cat([W_Q.grad, W_K.grad], dim=1)
        torch.testing.assert_close(by_hand, expected, rtol=1e-10, atol=1e-13)
        assert tau.grad is not None
        assert float(tau_by_hand) == pytest.approx(float(tau.grad), rel=1e-10, abs=0)


SMALL = (16, 32, 8, 1, 8)
QUICK = {"learning_rate": 0.003, "check_every": 50, "patience": 2} | {
    "validation_contexts": 50,
    "test_contexts": 100,
}
ENDINGS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "converged": ("max", SMALL, {"max_steps": 1_000}),
    "max_steps on a check": ("max", SMALL, {"max_steps": 100}),
    "fewer steps than a check": ("max", SMALL, {"max_steps": 3}),
    "too narrow": ("max", (16, 8, 8, 1, 1), {"max_steps": 200}),
    "two targets": ("max", (16, 32, 8, 2, 8, "2-regular"), {"max_steps": 600}),
    "any degrees": ("max", (16, 32, 8, 2, 8, "uneven"), {"max_steps": 600}),
    "one edge": ("max", (16, 32, 8, 2, 8, "one edge"), {"max_steps": 600}),
    "softmax": ("softmax", SMALL, {"stop_score": 0.7, "max_steps": 1_000}),
    "value": ("value", SMALL, {"tolerance": 0.05, "max_steps": 1_000}),
}


@pytest.mark.parametrize(("model", "shape", "training"), ENDINGS.values(), ids=ENDINGS.keys())
def test_runs_end_as_those_of_the_reference(
    model: str, shape: tuple[Any, ...], training: dict[str, Any]
) -> None:
    runs = runs_of(shape, (0, 1, 3), model, **QUICK | training)
    assert_runs_end_as_those_of_the_reference(runs, LanesEngine(), FusedEngine())


def assert_runs_end_as_those_of_the_reference(runs: list[Run], *engines: Engine) -> None:
    expected = ReferenceEngine().train(runs)
    for engine in engines:
        for run, solo in zip(engine.train(runs), expected, strict=True):
            assert (run.stop_reason, run.steps) == (solo.stop_reason, solo.steps)
            assert run.score == pytest.approx(solo.score, abs=0.01)
            assert run.val_score == pytest.approx(solo.val_score, abs=0.01)
            assert run.tau == (None if solo.tau is None else pytest.approx(solo.tau, rel=0.01))


@pytest.mark.parametrize("engine", [ReferenceEngine(), LanesEngine()], ids=lambda e: e.name)
def test_training_stops_after_enough_good_checks_in_a_row(engine: Engine) -> None:
    rule = {"check_every": 10, "stop_score": 0.98, "patience": 2}
    (run,) = runs_of(SMALL, (0,), **QUICK | rule | {"learning_rate": 0.01})
    lane = Lanes([run], CPU, torch.float32)
    scored = []
    while len(scored) < 2 or min(scored[-2:]) <= 0.98:
        lane.advance(10)
        scored.append(Evaluation(lane).score(0, lane.tasks[0].validation))
    good = [score > 0.98 for score in scored]
    assert good[:-2].count(True) > 0, "a good check before a bad one, which must not count"
    outcome = engine.train([run])[0]
    assert (outcome.stop_reason, outcome.steps) == ("converged", 10 * len(scored))
    assert outcome.val_score == pytest.approx(scored[-1], abs=0.01)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_starts_from_weights_of_the_initial_scale(engine: str) -> None:
    shape = SHAPES["pairs"]
    (plain,) = make_engine(engine).weights_after(runs_of(shape, (3,)), 0)
    (scaled,) = make_engine(engine).weights_after(runs_of(shape, (3,), initial_scale=4), 0)
    np.testing.assert_array_equal(scaled["W_Q"], 4 * plain["W_Q"])
    np.testing.assert_array_equal(scaled["W_K"], 4 * plain["W_K"])
