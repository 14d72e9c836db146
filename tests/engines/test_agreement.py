"""The engines against each other, and against the paper's loop in plain numpy."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from rgr_dist.engines import ENGINES, make_engine
from rgr_dist.engines.engine import Engine, Outcome, Weights
from rgr_dist.engines.lanes import Lanes, LanesEngine
from rgr_dist.engines.reference import ReferenceEngine
from rgr_dist.models.labels import labels
from rgr_dist.models.max_heads import max_scores, weighted_logistic_loss
from rgr_dist.problem import assets
from rgr_dist.problem.task import Task, initial_projections
from rgr_dist.study import Cell, Run

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
}
shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())


def graph_of(kind: str, m: int) -> dict[str, Any]:
    """The keys of an r-regular graph; of the edges p -> q where q divides p + 1; or of 0 -> 1."""
    if kind.endswith("-regular"):
        return {"family": "regular", "degree": int(kind.removesuffix("-regular"))}
    edges = [(p, q) for p in range(m) for q in range(m) if q and (p + 1) % q == 0 and p % 3]
    pairs = np.array(edges if kind == "uneven" else [(0, 1)], dtype=np.int32)
    degree = int(np.bincount(pairs[:, 0]).max())
    keys = {"edges": len(pairs), "degree": degree, "items": int(pairs.max()) + 1}
    return {"family": "edges", "digest": assets.add(pairs), **keys}


def runs_of(shape: tuple[Any, ...], seeds: tuple[int, ...], **training: Any) -> list[Run]:
    m, d_model, length, h, d_k, *kind = shape
    graph = graph_of(kind[0], m) if kind else {}
    context = {"length": length}
    cell = Cell(m=m, d_model=d_model, graph=graph, context=context, training=training)
    return [Run(cell=cell, h=h, d_k=d_k, seed=seed) for seed in seeds]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class PlainTraining:
    """App. A.1 in numpy and float64: softplus loss, hand-derived gradient, textbook AdamW."""

    def __init__(self, run: Run) -> None:
        self.run, self.task = run, Task.of(run.cell, run.seed)
        graph = self.task.graph
        self.edges = set(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
        W_Q, W_K = initial_projections(run)
        self.theta = {"Q": W_Q, "K": W_K, "tau": np.zeros(())}
        self.first = {name: np.zeros_like(value) for name, value in self.theta.items()}
        self.second = {name: np.zeros_like(value) for name, value in self.theta.items()}
        self.steps = 0

    def weight(self, nodes: np.ndarray) -> float:
        """Of a positive: l - 1 (App. A.1), or the negatives to a positive (App. A.3, Eq. 30)."""
        if self.run.cell.graph.family == "permutation":
            return len(nodes) - 1
        positives = sum((p, q) in self.edges for p in nodes for q in nodes)
        return (len(nodes) ** 2 - positives) / positives if positives else 0.0

    def loss(self, theta: dict[str, np.ndarray], nodes: np.ndarray) -> float:
        X, weight = self.task.embedding, self.weight(nodes)
        total, length, d_k = 0.0, len(nodes), self.run.d_k
        for p in nodes:
            for q in nodes:
                query, key = X[p] @ theta["Q"], X[q] @ theta["K"]
                heads = (query * key).reshape(self.run.h, d_k).sum(axis=1)
                z = self.run.cell.training.sharpness * (heads.max() - theta["tau"])
                edge = (p, q) in self.edges
                total += weight * np.logaddexp(0, -z) if edge else np.logaddexp(0, z)
        return float(total / length**2)

    def gradient(self, nodes: np.ndarray) -> dict[str, np.ndarray]:
        X, weight = self.task.embedding, self.weight(nodes)
        length, d_k, alpha = len(nodes), self.run.d_k, self.run.cell.training.sharpness
        result = {name: np.zeros_like(value) for name, value in self.theta.items()}
        for p in nodes:
            for q in nodes:
                query, key = X[p] @ self.theta["Q"], X[q] @ self.theta["K"]
                heads = (query * key).reshape(self.run.h, d_k).sum(axis=1)
                own = slice(d_k * int(heads.argmax()), d_k * (int(heads.argmax()) + 1))
                sigmoid = 1 / (1 + np.exp(-alpha * (heads.max() - self.theta["tau"])))
                slope = -weight * (1 - sigmoid) if (p, q) in self.edges else sigmoid
                slope *= alpha / length**2
                result["Q"][:, own] += slope * np.outer(X[p], key[own])
                result["K"][:, own] += slope * np.outer(X[q], query[own])
                result["tau"] -= slope
        return result

    def step(self) -> None:
        gradient = self.gradient(self.task.training_contexts(self.steps, 1)[0])
        self.steps += 1
        for name, g in gradient.items():
            self.first[name] = 0.9 * self.first[name] + 0.1 * g
            self.second[name] = 0.999 * self.second[name] + 0.001 * g**2
            mean = self.first[name] / (1 - 0.9**self.steps)
            square = self.second[name] / (1 - 0.999**self.steps)
            rate = self.run.cell.training.learning_rate
            self.theta[name] = self.theta[name] - rate * mean / (np.sqrt(square) + 1e-8)


def assert_same_weights(one: Weights, other: Weights, relative: float) -> None:
    for a, b in [(one.W_Q, other.W_Q), (one.W_K, other.W_K)]:
        assert a.shape == b.shape
        assert np.abs(a - b).max() <= relative * np.abs(b).max()
    assert one.tau == pytest.approx(other.tau, rel=relative)


def without_seconds(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    fields = [dataclasses.asdict(outcome) for outcome in outcomes]
    return [{name: field[name] for name in field if name != "seconds"} for field in fields]


@shapes
def test_the_plain_gradient_is_that_of_the_plain_loss(shape: tuple[int, ...]) -> None:
    plain = PlainTraining(runs_of(shape, (0,))[0])
    nodes, width = plain.task.training_contexts(0, 1)[0], 1e-6
    rng = np.random.default_rng(0)
    gradient = plain.gradient(nodes)
    for name in plain.theta:
        way = rng.normal(size=plain.theta[name].shape)
        ahead = {**plain.theta, name: plain.theta[name] + width * way}
        behind = {**plain.theta, name: plain.theta[name] - width * way}
        slope = (plain.loss(ahead, nodes) - plain.loss(behind, nodes)) / (2 * width)
        assert np.sum(gradient[name] * way) == pytest.approx(slope, rel=1e-5, abs=1e-8)


@shapes
@pytest.mark.parametrize("engine", [ReferenceEngine, LanesEngine])
def test_engines_follow_the_papers_loop(engine: type, shape: tuple[int, ...]) -> None:
    run = runs_of(shape, (4,))[0]
    plain = PlainTraining(run)
    for _ in range(20):
        plain.step()
    expected = Weights(plain.theta["Q"], plain.theta["K"], float(plain.theta["tau"]))
    assert_same_weights(engine(dtype=torch.float64).weights_after([run], 20)[0], expected, 1e-10)


@shapes
@pytest.mark.parametrize(("dtype", "relative"), [(torch.float32, 1e-4), (torch.float64, 1e-10)])
def test_lanes_of_distinct_seeds_equal_solo_runs_of_the_reference(
    shape: tuple[int, ...], dtype: torch.dtype, relative: float
) -> None:
    runs = runs_of(shape, (0, 3, 7))
    together = LanesEngine(dtype=dtype).weights_after(runs, 100)
    assert not np.allclose(together[0].W_Q, together[1].W_Q)
    for run, weights in zip(runs, together, strict=True):
        assert_same_weights(weights, ReferenceEngine(dtype).weights_after([run], 100)[0], relative)


@shapes
@pytest.mark.parametrize("before", [0, 30])
def test_the_hand_written_gradient_is_autograds(shape: tuple[int, ...], before: int) -> None:
    runs = runs_of(shape, (1, 2))
    lanes = Lanes(runs, CPU, torch.float64)
    lanes.advance(before)
    parameters = [
        [W.clone().requires_grad_() for W in (*lanes.weights(lane), lanes.theta[lane, lanes.size])]
        for lane in range(2)
    ]
    lanes.advance(1)
    for lane, (W_Q, W_K, tau) in enumerate(parameters):
        task = lanes.tasks[lane]
        nodes = torch.from_numpy(task.training_contexts(before, 1)[0]).long()
        S = max_scores(torch.from_numpy(task.embedding)[nodes], W_Q, W_K, runs[0].h)
        y = labels(nodes, torch.from_numpy(task.graph.table))
        balanced = task.cell.graph.balanced
        weighted_logistic_loss(S, y, tau, 10.0, balanced).backward()
        assert W_Q.grad is not None
        assert W_K.grad is not None
        expected = torch.cat([W_Q.grad, W_K.grad], dim=1)
        by_hand = lanes.projections(lanes.gradient)[lane]
        torch.testing.assert_close(by_hand, expected, rtol=1e-10, atol=1e-13)
        torch.testing.assert_close(lanes.gradient[lane, lanes.size], tau.grad, rtol=1e-10, atol=0)


SMALL = (16, 32, 8, 1, 8)
QUICK = {"learning_rate": 0.003, "check_every": 50, "patience": 2} | {
    "validation_contexts": 50,
    "test_contexts": 100,
}
ENDINGS = {
    "converged": (SMALL, {"max_steps": 1_000}),
    "max_steps": (SMALL, {"max_steps": 130}),
    "max_steps on a check": (SMALL, {"max_steps": 100}),
    "fewer steps than a check": (SMALL, {"max_steps": 3}),
    "too narrow": ((16, 8, 8, 1, 1), {"max_steps": 200}),
}


@pytest.mark.parametrize(("shape", "training"), ENDINGS.values(), ids=ENDINGS.keys())
def test_lanes_end_as_the_reference_does(shape: tuple[int, ...], training: dict[str, Any]) -> None:
    runs = runs_of(shape, (0, 1, 3), **QUICK | training)
    ends = zip(LanesEngine().train(runs), ReferenceEngine().train(runs), strict=True)
    for lane, solo in ends:
        assert (lane.stop_reason, lane.steps) == (solo.stop_reason, solo.steps)
        assert lane.score == pytest.approx(solo.score, abs=0.01)
        assert lane.val_score == pytest.approx(solo.val_score, abs=0.01)
        assert lane.tau == pytest.approx(solo.tau, rel=1e-3)


@pytest.mark.parametrize("engine", [ReferenceEngine(), LanesEngine()], ids=lambda e: e.name)
def test_training_stops_after_enough_good_checks_in_a_row(engine: Engine) -> None:
    rule = {"check_every": 10, "stop_score": 0.98, "patience": 2}
    (run,) = runs_of(SMALL, (0,), **QUICK | rule | {"learning_rate": 0.01})
    lane = Lanes([run], CPU, torch.float32)
    scored = []
    while len(scored) < 2 or min(scored[-2:]) <= 0.98:
        lane.advance(10)
        scored.append(lane.score(0, lane.tasks[0].validation))
    good = [score > 0.98 for score in scored]
    assert good[:-2].count(True) > 0, "a good check before a bad one, which must not count"
    outcome = engine.train([run])[0]
    assert (outcome.stop_reason, outcome.steps) == ("converged", 10 * len(scored))
    assert outcome.val_score == pytest.approx(scored[-1], abs=0.01)


@pytest.mark.parametrize("engine", [ReferenceEngine(), LanesEngine()], ids=lambda e: e.name)
@pytest.mark.parametrize("learning_rate", [1e6, 3e19])
def test_an_absurd_learning_rate_never_ends_in_a_number_that_is_none(
    engine: Engine, learning_rate: float
) -> None:
    quick = QUICK | {"max_steps": 100, "learning_rate": learning_rate}
    for end in engine.train(runs_of((16, 5, 5, 1, 2), (0, 1), **quick)):
        if end.stop_reason == "diverged":
            assert (end.score, end.val_score, end.tau) == (None, None, None)
        else:
            assert np.isfinite([end.score, end.val_score, end.tau]).all()
    assert (end.stop_reason == "diverged") == (learning_rate > 1e19)


def test_an_unknown_engine_is_named_beside_the_valid_ones() -> None:
    with pytest.raises(ValueError, match=r"lane'?: unknown; valid: auto, .*lanes"):
        make_engine("lane")
    assert [make_engine(name).name for name in ENGINES] == list(ENGINES)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_starts_from_weights_of_the_initial_scale(engine: str) -> None:
    shape = SHAPES["pairs"]
    (plain,) = make_engine(engine).weights_after(runs_of(shape, (3,)), 0)
    (scaled,) = make_engine(engine).weights_after(runs_of(shape, (3,), initial_scale=4), 0)
    np.testing.assert_array_equal(scaled.W_Q, 4 * plain.W_Q)
    np.testing.assert_array_equal(scaled.W_K, 4 * plain.W_K)
