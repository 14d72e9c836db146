"""A thread block for each lane: needs a CUDA device, and is tried wherever there is one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rgr_dist.engines.cuda.kernels import KernelError, Plan
from rgr_dist.engines.cuda.lanes import CudaEvaluation, CudaLanes, shape_of
from rgr_dist.engines.lanes.engine import LanesEngine
from rgr_dist.engines.reference.engine import ReferenceEngine
from rgr_dist.models.f1 import micro_f1
from tests.engines.reference_of import reference_with
from tests.engines.shapes import BENCHMARK_SHAPES, assert_close, flat, make_run
from tests.engines.test_agreement import (
    ENDINGS,
    QUICK,
    assert_runs_end_as_those_of_the_reference,
    cases,
    runs_of,
)

pytestmark = pytest.mark.gpu
models = pytest.mark.parametrize("model", ["max", "softmax", "value"])


@cases
def test_weights_on_every_kind_of_graph(model: str, shape: tuple[Any, ...]) -> None:
    runs = runs_of(shape, (0, 3, 7), model)
    engine = LanesEngine("cuda")
    given = engine.weights_after(runs, 40)
    assert engine.name == "lanes, in blocks"
    for weights, expected in zip(given, ReferenceEngine().weights_after(runs, 40), strict=True):
        assert_close(weights, expected, 1e-3)


@pytest.mark.parametrize(("model", "shape", "training"), ENDINGS.values(), ids=ENDINGS.keys())
def test_runs_end_as_those_of_the_reference(
    model: str, shape: tuple[Any, ...], training: dict[str, Any]
) -> None:
    runs = runs_of(shape, (0, 1, 3), model, **QUICK | training)
    assert_runs_end_as_those_of_the_reference(runs, LanesEngine("cuda"))


@models
def test_a_lane_has_the_same_bits_beside_others_and_with_other_threads(model: str) -> None:
    runs = [make_run(64, 16, 4, 5, seed=seed, model=model) for seed in range(200)]
    together, bits = CudaLanes(runs), []
    together.advance(300)
    together.keep([3, 150])
    together.advance(77)
    for threads in (64, 128, 256):
        alone = CudaLanes(runs[150:151], Plan(shape_of(runs[0]), threads))
        alone.advance(377)
        bits.append(flat(alone.weights(0)).tobytes())
    assert set(bits) == {flat(together.weights(1)).tobytes()}


@models
@pytest.mark.parametrize(
    "shape",
    [(64, 16, 4, 5), (23, 33, 5, 4, 23), (23, 33, 1, 4, 7), (70, 12, 2, 9, 70), (99, 16, 1, 1, 90)],
    ids=str,
)
def test_scores_are_those_of_the_reference(shape: tuple[int, ...], model: str) -> None:
    runs = [make_run(*shape, seed=s, model=model, validation_contexts=60) for s in range(3)]
    lanes = CudaLanes(runs)
    lanes.advance(300)
    evaluation = CudaEvaluation(lanes)
    outcomes = evaluation.outcomes([(lane, "max_steps", None) for lane in (0, 2)])
    for lane, run in enumerate(runs):
        trainer = reference_with(run, lanes.weights(lane))
        tolerance = {"rel": 1e-5} if model == "value" else {"abs": 2e-3}
        expected = trainer.check()
        given = evaluation.validate(lane)
        assert given == pytest.approx(expected, **tolerance)
        if model != "value":
            assert evaluation.validate(lane, expected + 0.01) in (None, given)
            assert evaluation.validate(lane, expected - 0.01) == given
        if lane != 1:
            score = outcomes[lane // 2].score
            assert score == pytest.approx(trainer.score(trainer.task.test), **tolerance)


def test_a_check_ends_once_it_cannot_be_passed() -> None:
    lanes = CudaLanes([make_run(64, 16, 4, 5)])
    evaluation = CudaEvaluation(lanes)
    scorer = evaluation.validation
    _, _, wrong, complete = scorer.count([0], 0.9)[0]
    every = scorer.count([0])[0]
    assert not complete
    assert wrong < every[2]
    assert micro_f1(every[0], every[1], int(scorer.actual[0])) == evaluation.validate(0)


def test_a_shape_that_no_block_holds_is_trained_as_a_graph() -> None:
    run = make_run(*BENCHMARK_SHAPES[4])
    with pytest.raises(KernelError):
        CudaLanes([run])
    engine = LanesEngine("cuda")
    engine.weights_after([run], 2)
    assert engine.name == "lanes"
    assert engine.device == torch.device("cuda")


def test_a_run_that_diverges_is_told() -> None:
    wild = [make_run(64, 16, 4, 5, max_steps=100, learning_rate=1e30)]
    (lost,) = LanesEngine("cuda").train(wild)
    assert (lost.stop_reason, lost.score) == ("diverged", None)
