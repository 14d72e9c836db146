"""Engines on graphs that are no permutations, and on embeddings that are not Gaussian."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rgr_dist.engines.choose import make_engine
from rgr_dist.engines.fused.engine import FusedEngine
from rgr_dist.engines.fused.evaluation import (
    F1ByContexts,
    F1ByPairs,
)
from rgr_dist.engines.lanes import evaluation as lanes_evaluation
from rgr_dist.engines.lanes.engine import LanesEngine
from rgr_dist.engines.lanes.evaluation import Evaluation
from rgr_dist.engines.lanes.state import Lanes
from rgr_dist.engines.reference.engine import ReferenceEngine
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.study.cell import Cell, Run
from tests.engines.reference_of import lane_and_reference, reference_with
from tests.engines.test_agreement import SHAPES, assert_same_weights, runs_of

OTHER_GRAPHS = {name: shape for name, shape in SHAPES.items() if len(shape) > 5}
LONG = (90, 12, 40, 2, 9, "8-regular")  # longer than a register
graphs = pytest.mark.parametrize(
    "shape", [*OTHER_GRAPHS.values(), LONG], ids=[*OTHER_GRAPHS, "long contexts"]
)


@graphs
def test_compiled_runs_equal_those_of_the_reference(shape: tuple[Any, ...]) -> None:
    runs = runs_of(shape, (0, 3))
    expected = ReferenceEngine(torch.float64).weights_after(runs, 100)
    for given, wanted in zip(FusedEngine().weights_after(runs, 100), expected, strict=True):
        assert_same_weights(given, wanted, 1e-4)


@pytest.mark.parametrize("engine", ["fused", "lanes"])
@pytest.mark.parametrize(
    ("embedding", "d_model"),
    [
        ({"family": "onehot"}, 40),
        ({"family": "binary"}, 17),
        ({"family": "binary", "density": 2}, 16),
    ],
)
@pytest.mark.parametrize(
    "graph", [{}, {"family": "regular", "degree": 3}], ids=["permutation", "r=3"]
)
def test_other_embeddings_train_alike(
    engine: str, embedding: dict[str, Any], d_model: int, graph: dict[str, Any]
) -> None:
    cell = Cell(m=40, d_model=d_model, embedding=embedding, graph=graph, context={"length": 11})
    runs = [Run(cell=cell, h=3, d_k=5, seed=seed) for seed in (0, 1)]
    expected = ReferenceEngine(torch.float64).weights_after(runs, 100)
    for given, wanted in zip(make_engine(engine).weights_after(runs, 100), expected, strict=True):
        assert_same_weights(given, wanted, 1e-4)


@graphs
@pytest.mark.parametrize("kind", [F1ByPairs, F1ByContexts])
def test_compiled_scores_are_those_of_the_reference(shape: tuple[Any, ...], kind: type) -> None:
    (run,) = runs_of(shape, (1,), validation_contexts=200)
    lane, trainer = lane_and_reference(run, 300)
    expected = trainer.check()
    scorer = kind(lane, lane.task.validation)
    assert scorer.score() == pytest.approx(expected, abs=2e-3)
    assert scorer.score(above=0.0) == scorer.score()


@graphs
@pytest.mark.parametrize("way", ["pairs", "contexts"])
def test_scores_of_lanes_are_those_of_the_reference(
    shape: tuple[Any, ...], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes_evaluation, "pairs_pay", lambda *_: way == "pairs")
    runs = runs_of(shape, (0, 1, 2), validation_contexts=200)
    lanes = Lanes(runs, torch.device("cpu"), torch.float32)
    lanes.advance(300)
    lanes.keep([0, 2])
    found = [Evaluation(lanes).validate(lane) for lane in range(2)]
    trained = LanesEngine().weights_after(runs, 300)
    for lane, index in enumerate([0, 2]):
        expected = reference_with(runs[index], trained[index]).check()
        assert found[lane] == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("engine", ["fused", "lanes"])
@pytest.mark.parametrize("kind", ["2-regular", "uneven", "one edge"])
def test_runs_end_as_those_of_the_reference(engine: str, kind: str) -> None:
    quick = {"learning_rate": 0.003, "check_every": 50, "patience": 2, "max_steps": 600}
    quick |= {"validation_contexts": 50, "test_contexts": 100}
    runs = runs_of((16, 32, 8, 2, 8, kind), (0, 1), **quick)
    ends = zip(make_engine(engine).train(runs), ReferenceEngine().train(runs), strict=True)
    for given, expected in ends:
        assert (given.stop_reason, given.steps) == (expected.stop_reason, expected.steps)
        assert given.score == pytest.approx(expected.score, abs=0.02)
        assert given.tau == pytest.approx(expected.tau, rel=0.01)
    assert expected.score is not None
    assert expected.score > 0.9


def test_a_lane_of_a_regular_graph_is_the_same_beside_others() -> None:
    runs = runs_of(OTHER_GRAPHS["three targets"], (0, 1, 2, 5))
    beside = LanesEngine().weights_after(runs, 60)
    for run, weights in zip(runs, beside, strict=True):
        (alone,) = LanesEngine().weights_after([run], 60)
        assert_same_weights(weights, alone, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(("d_k", "verdict"), [(7, "fail"), (11, "pass")])
def test_verdicts_of_a_regular_graph_are_those_of_the_reference(d_k: int, verdict: str) -> None:
    """At (128, 32), r = 2 and four heads the threshold is at d_k = 9."""
    cell = Cell(m=128, d_model=32, graph={"family": "regular", "degree": 2})
    runs = [Run(cell=cell, h=4, d_k=d_k, seed=seed) for seed in range(3)]
    means = {}
    for name in ("reference", "fused", "lanes"):
        scores = [outcome.score or 0.0 for outcome in make_engine(name).train(runs)]
        assert SeedTest(0.99, 3).verdict(dict(enumerate(scores))) == verdict
        means[name] = float(np.mean(scores))
    error = 0.003 if verdict == "pass" else 0.03
    assert max(means.values()) - min(means.values()) < error
