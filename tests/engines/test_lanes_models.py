"""Lanes of the other models: each as if it were alone, of whatever width its neighbours are."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rgr_dist.engines.lanes import errors as lanes_errors
from rgr_dist.engines.lanes.blocks import Layer
from rgr_dist.engines.lanes.engine import Lanes, LanesEngine
from rgr_dist.engines.reference.edges import ReferenceEngine, _Trainer
from rgr_dist.study.study import Cell, Run
from tests.engines.test_lanes import CPU, QUICK, disturb, end, lanes_of, runs_of, shapes, state
from tests.engines.test_lanes_widths import MKL, WIDTHS, assert_as_alone

models = pytest.mark.parametrize("model", ["softmax", "value"])
OTHER_MODELS = {"softmax": {"stop_score": 0.7}, "value": {"tolerance": 0.05}}


def mixed_runs(shape: tuple[int, ...], model: str) -> list[Run]:
    """One run of each width; every other one shares its seed with the one before."""
    m, d_model, length, h, _ = shape
    cell = Cell(model=model, m=m, d_model=d_model, context={"length": length})
    return [Run(cell=cell, h=h, d_k=d_k, seed=i // 2) for i, d_k in enumerate(WIDTHS)]


@models
@shapes
def test_a_lane_is_the_same_alone_beside_others_and_after_they_left(
    shape: tuple[int, ...], model: str
) -> None:
    alone = state(lanes_of(shape, [5], 60, model), 0)
    for seeds in ([1, 5], [0, 1, 2, 5, 3, 4, 6]):
        assert torch.equal(state(lanes_of(shape, seeds, 60, model), seeds.index(5)), alone), seeds
    compacted = lanes_of(shape, range(6), 25, model)
    compacted.keep([1, 5])
    compacted.advance(35)
    assert torch.equal(state(compacted, 1), alone)


@models
@shapes
def test_disturbing_or_losing_one_lane_leaves_the_others_as_they_were(
    shape: tuple[int, ...], model: str
) -> None:
    quiet = lanes_of(shape, range(3), 40, model)
    for by in (0.1, float("nan"), float("inf")):
        disturbed = lanes_of(shape, range(3), 10, model)
        disturb(disturbed, 1, by)
        disturbed.advance(30)
        assert disturbed.is_finite() == [True, bool(np.isfinite(by)), True]
        for lane in (0, 2):
            assert torch.equal(state(disturbed, lane), state(quiet, lane))
            validation = quiet.tasks[lane].validation[:40]
            assert disturbed.score(lane, validation) == quiet.score(lane, validation)
        assert not torch.equal(state(disturbed, 1), state(quiet, 1))


@models
@shapes
def test_lanes_of_several_widths_equal_solo_runs(shape: tuple[int, ...], model: str) -> None:
    """A softmax is scaled by each lane's own d_k, not by the width that it is padded to."""
    runs = mixed_runs(shape, model)
    together = LanesEngine(dtype=torch.float64).weights_after(runs, 60)
    for run, beside in zip(runs, together, strict=True):
        (alone,) = LanesEngine(dtype=torch.float64).weights_after([run], 60)
        assert_as_alone(beside, alone, 0.0 if MKL else 1e-10)
        (expected,) = ReferenceEngine(torch.float64).weights_after([run], 60)
        for one, other in [(beside.W_Q, expected.W_Q), (beside.W_K, expected.W_K)]:
            assert np.abs(one - other).max() <= 1e-10 * np.abs(other).max()


@models
@shapes
def test_padding_never_moves(shape: tuple[int, ...], model: str) -> None:
    lanes = Lanes(mixed_runs(shape, model), CPU, torch.float32)
    lanes.advance(20)
    d = lanes.cell.d_model
    for tensors in (lanes.parameters, lanes.first, lanes.second, lanes.gradients):
        for W_LDd in tensors[:2]:
            for d_k, W_hkd in zip(WIDTHS, W_LDd.unflatten(1, (lanes.h, -1)), strict=True):
                assert not W_hkd[:, d_k:].any()
                assert not W_hkd[..., d:].any()
                assert W_hkd[:, :d_k, :d].any()
        assert not tensors[2][:, 1:].any()
        assert bool(tensors[2][:, 0].all()) == (model == "softmax")
        assert bool(tensors[2][:, 0].any()) == (model == "softmax")


@models
def test_each_lane_stops_for_itself(model: str) -> None:
    runs = runs_of((16, 32, 8, 1, 8), range(3), model, **QUICK | OTHER_MODELS[model])
    together = LanesEngine().train(runs)
    assert len({outcome.steps for outcome in together}) > 1
    assert "converged" in {outcome.stop_reason for outcome in together}
    for run, beside in zip(runs, together, strict=True):
        assert end(beside) == end(LanesEngine().train([run])[0])
        (solo,) = ReferenceEngine().train([run])
        assert (beside.steps, beside.stop_reason) == (solo.steps, solo.stop_reason)
        assert beside.score == pytest.approx(solo.score, rel=1e-3)
        assert beside.val_score == pytest.approx(solo.val_score, rel=1e-3)
        assert beside.tau == (None if model == "value" else pytest.approx(solo.tau, rel=1e-4))


@shapes
@pytest.mark.parametrize("at_once", [1_000, 2**18])
def test_errors_are_the_same_looked_up_or_computed(
    shape: tuple[int, ...], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By triples or pairs of items or by contexts, and in one part or many."""
    monkeypatch.setattr(lanes_errors, "SCORES_AT_ONCE_ON_CPU", at_once)
    (run,) = runs_of(shape, [1], "value")
    lanes, trainer = Lanes([run], CPU, torch.float32), _Trainer(run, torch.float32)
    lanes.advance(100)
    for name, W in zip(("W_Q", "W_K"), lanes.weights(0), strict=True):
        getattr(trainer, name).data = W
    task, V_mv = lanes.tasks[0], lanes.contexts.V_Lmv[0]
    layer = Layer(lanes.contexts.X_Lmd[0], *(W[0] for W in lanes.parameters), lanes.h)
    ways = []
    for count, often in ((500, True), (500, False), (1, False)):
        contexts = task.validation[:count]
        scorer = lanes_errors.ErrorScorer(contexts, task, V_mv, often)
        ways.append((scorer.form is not None, scorer.places is not None))
        expected = trainer.score(torch.from_numpy(contexts).long())
        assert scorer.score(layer) == pytest.approx(expected, rel=1e-5)
        assert scorer.score(layer) == pytest.approx(expected, rel=1e-5), "and again"
    assert ways == [(True, False), (False, True), (False, False)]
