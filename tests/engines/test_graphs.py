"""Engines on graphs that are no permutations, and on embeddings that are not Gaussian."""

from __future__ import annotations

from typing import Any

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
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from tests.engines.reference_of import lane_and_reference, reference_with
from tests.engines.shapes import assert_close
from tests.engines.test_agreement import SHAPES, runs_of

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
        assert_close(given, wanted, 1e-4)


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
        assert_close(given, wanted, 1e-4)


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
