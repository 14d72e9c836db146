"""Lanes of different d_k side by side: padded with zeros, and yet each as if it were alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from rgr_dist.engines.api import Weights
from rgr_dist.engines.lanes.engine import Lanes, LanesEngine
from rgr_dist.engines.reference.edges import ReferenceEngine
from rgr_dist.study.study import Cell, Run

CPU = torch.device("cpu")
SHAPES = {  # m, d_model, length, h
    "one head": (16, 8, 5, 1),
    "odd everything": (23, 17, 5, 3),
    "the paper's context": (64, 32, 16, 4),
    "many heads": (40, 16, 16, 16),
    "longer than a register": (40, 5, 33, 2),
}
shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
WIDTHS = [3, 1, 8, 20, 9, 2]
MKL = torch.backends.mkl.is_available()


def runs_of(shape: tuple[int, ...], widths: Sequence[int], **training: Any) -> list[Run]:
    """One run of each width; every other one shares its seed with the one before."""
    m, d_model, length, h = shape
    cell = Cell(m=m, d_model=d_model, context={"length": length}, training=training)
    return [Run(cell=cell, h=h, d_k=d_k, seed=i // 2) for i, d_k in enumerate(widths)]


def assert_as_alone(beside: Weights, alone: Weights, relative: float = 0.0) -> None:
    for one, other in [(beside.W_Q, alone.W_Q), (beside.W_K, alone.W_K)]:
        assert one.shape == other.shape
        assert np.abs(one - other).max() <= relative * np.abs(other).max()
    assert beside.tau == pytest.approx(alone.tau, rel=relative)


@shapes
def test_a_lane_beside_wider_ones_is_the_same_as_alone(shape: tuple[int, ...]) -> None:
    runs = runs_of(shape, WIDTHS)
    together = LanesEngine(dtype=torch.float64).weights_after(runs, 60)
    for run, beside in zip(runs, together, strict=True):
        (alone,) = LanesEngine(dtype=torch.float64).weights_after([run], 60)
        assert beside.W_Q.shape == (shape[1], shape[3] * run.d_k)
        assert_as_alone(beside, alone, 1e-10)


@pytest.mark.skipif(not MKL, reason="only MKL is known to sum a padded product in the same order")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@shapes
def test_with_mkl_it_is_the_same_to_the_last_bit(
    shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    runs = runs_of(shape, WIDTHS)
    together = LanesEngine(dtype=dtype).weights_after(runs, 60)
    for run, beside in zip(runs, together, strict=True):
        (alone,) = LanesEngine(dtype=dtype).weights_after([run], 60)
        assert_as_alone(beside, alone)


@shapes
def test_mixed_widths_equal_solo_runs_of_the_reference(shape: tuple[int, ...]) -> None:
    runs = runs_of(shape, WIDTHS)
    together = LanesEngine(dtype=torch.float64).weights_after(runs, 60)
    for run, beside in zip(runs, together, strict=True):
        (alone,) = ReferenceEngine(torch.float64).weights_after([run], 60)
        assert_as_alone(beside, alone, 1e-10)


@shapes
def test_padding_of_narrow_lanes_never_moves(shape: tuple[int, ...]) -> None:
    lanes = Lanes(runs_of(shape, WIDTHS), CPU, torch.float32)
    lanes.advance(20)
    for tensors in (lanes.parameters, lanes.first, lanes.second, lanes.gradients):
        for W_LDd in tensors[:2]:
            for d_k, W_hkd in zip(WIDTHS, W_LDd.unflatten(1, (lanes.h, -1)), strict=True):
                assert not W_hkd[:, d_k:].any()
                assert W_hkd[:, :d_k].any()


@shapes
def test_columns_go_with_the_last_lane_that_used_them(shape: tuple[int, ...]) -> None:
    runs = runs_of(shape, WIDTHS)
    undisturbed, compacted = (Lanes(runs, CPU, torch.float64) for _ in range(2))
    undisturbed.advance(40)
    compacted.advance(15)
    compacted.keep([0, 1, 2])  # widths 3, 1 and 8
    assert compacted.width == 8
    compacted.advance(25)
    assert compacted.places == [0, 1, 2]
    for lane in range(3):
        for one, other in zip(compacted.weights(lane), undisturbed.weights(lane), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_outcomes_are_those_of_each_run_alone() -> None:
    quick = {"learning_rate": 0.003, "check_every": 50, "patience": 2, "max_steps": 1_000}
    tests = {"validation_contexts": 50, "test_contexts": 100}
    runs = runs_of((16, 32, 8, 1), [8, 3, 12, 1, 8, 2], **quick, **tests)
    together = LanesEngine().train(runs)
    assert {outcome.stop_reason for outcome in together} == {"converged", "max_steps"}
    for run, beside in zip(runs, together, strict=True):
        (alone,) = LanesEngine().train([run])
        assert (beside.steps, beside.stop_reason) == (alone.steps, alone.stop_reason)
        assert beside.score == pytest.approx(alone.score, abs=1e-3)
        assert beside.val_score == pytest.approx(alone.val_score, abs=1e-3)
        assert beside.tau == pytest.approx(alone.tau, rel=1e-4)
