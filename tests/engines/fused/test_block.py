"""Compiled training of the transformer block, against the reference and the plain forward pass."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rgr_dist.engines.api import Weights
from rgr_dist.engines.fused.block import attention, columns
from rgr_dist.engines.fused.block.lane import BlockLane
from rgr_dist.engines.fused.block.step import Sizes
from rgr_dist.engines.fused.engine import FusedEngine
from rgr_dist.engines.fused.simd import WIDTH
from rgr_dist.engines.fused.simd_memory import zeros
from rgr_dist.engines.reference import ReferenceEngine
from rgr_dist.models import transformer
from rgr_dist.models.transformer import block_logits, count_answers, superpose
from rgr_dist.problem.matching_task import Examples, MatchingTask
from tests.engines.shapes import assert_close, runs_of
from tests.marks import slow_in_ci

SHAPES = {  # m, d_model, slots, h, d_k
    "one head": (12, 8, 3, 1, 4),
    "odd widths": (23, 15, 5, 3, 7),
    "wide": (40, 36, 16, 4, 9),
}
QUICK = {
    "check_every": 20, "validation_contexts": 40, "test_contexts": 60, "max_steps": 120,
    "learning_rate": 0.01, "batch_size": 32, "weight_decay": 0.01,
}  # fmt: skip
EASY, WIDE = (8, 16, 2, 2, 4), (12, 32, 3, 4, 8)


def scored(weights: Weights, task: MatchingTask, examples: Examples, h: int) -> tuple[float, float]:
    """Accuracy and share of NULL by the model's plain forward pass."""
    theta = {name: torch.from_numpy(value) for name, value in weights.items()}
    E, given = torch.from_numpy(task.table).float(), torch.from_numpy(examples).long()
    right, nulls = count_answers(block_logits(superpose(E, given), E, theta, h), given[:, -1])
    return right / len(examples), nulls / len(examples)


@slow_in_ci
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_steps_are_those_of_the_reference(shape: tuple[int, ...]) -> None:
    runs = runs_of(
        shape, (0, 3), "transformer", learning_rate=0.003, batch_size=19, weight_decay=0.5
    )
    exact = ReferenceEngine(torch.float64).weights_after(runs, 60)
    for weights, expected in zip(FusedEngine().weights_after(runs, 60), exact, strict=True):
        assert_close(weights, expected, 1e-4)


@slow_in_ci
def test_what_is_tested_is_the_first_check_of_best_validation() -> None:
    runs = runs_of(EASY, (0, 1, 2, 3), "transformer", **QUICK | {"learning_rate": 0.1})
    shows = 0
    for run, end in zip(runs, FusedEngine().train(runs), strict=True):
        lane, seen = BlockLane(run), []
        while lane.steps < 120:
            lane.advance(20)
            task, weights = lane.task, lane.weights()
            seen.append(
                [scored(weights, task, part, run.h) for part in (task.validation, task.test)]
            )
        validation = [check[0][0] for check in seen]
        best = validation.index(max(validation))
        shows += seen[best] != seen[-1]
        assert (end.val_score, end.score, end.null_rate) == (validation[best], *seen[best][1])
        assert end.steps == 120
    assert shows, "the last check is always the best"


@slow_in_ci
def test_a_block_learns_the_task_and_one_that_answers_null_is_seen() -> None:
    (run,) = runs_of(WIDE, (0,), "transformer", **QUICK | {"max_steps": 600})
    (end,) = FusedEngine().train([run])
    assert end.score is not None
    assert end.score > 0.9
    lane = BlockLane(run)
    lane.arrays.parts.b_2[: run.cell.d_model] = 1000 * lane.task.table[-1]
    lane.check(None)
    collapsed = lane.outcome("max_steps", None)
    assert (collapsed.score, collapsed.null_rate) == (0.0, 1.0)


def test_gelu_and_its_slope_are_torchs() -> None:
    x = np.concatenate([np.linspace(-12, 12, 40 * WIDTH - 2), [0.0, 100.0]])
    given, out, slope = zeros(len(x)), zeros(len(x)), zeros(len(x))
    given[:], slope[:] = x, 1.0
    columns.gelu(given, out, 40)
    columns.gelu_backward(given, slope, 40)
    exact = torch.from_numpy(given).double().requires_grad_()
    expected = torch.nn.functional.gelu(exact)
    expected.sum().backward()
    assert np.abs(out - expected.detach().numpy()).max() < 1e-5
    np.testing.assert_allclose(out[:-1], expected.detach().numpy()[:-1], atol=1e-6)
    assert exact.grad is not None
    np.testing.assert_allclose(slope, exact.grad.numpy(), atol=1e-6)


def test_a_score_is_one_sum_however_many_heads_and_positions_there_are() -> None:
    """Whether a pair fills a tile, whose rows the processor sets, changes no bit of its sum."""
    d, E = 37, 40
    X, Z = zeros(16 * E, WIDTH).reshape(16, E, WIDTH), zeros(16 * E, WIDTH).reshape(16, E, WIDTH)
    draw = np.random.default_rng(0)
    X[:, :d], Z[:, :d] = draw.standard_normal((2, 16, d, WIDTH))

    def sums(h: int, n: int) -> np.ndarray:
        out = zeros(h * n, WIDTH)
        sizes = Sizes(h=h, k=1, v=1, d=d, E=E, n=n, f=1, V=1)
        attention.pair_sums(out.ravel(), X[:h].ravel(), Z[:n].ravel(), sizes)
        return out.reshape(h, n, WIDTH)

    whole = sums(16, 16)
    exact = np.einsum("hiw,niw->hnw", X.astype(float), Z.astype(float))
    np.testing.assert_allclose(whole, exact, rtol=0, atol=1e-5)
    for h, n in ((4, 7), (3, 8), (8, 5), (3, 7), (4, 12), (1, 1)):
        np.testing.assert_array_equal(sums(h, n), whole[:h, :n], f"h = {h}, n = {n}")


def test_the_layer_norm_is_that_of_the_model() -> None:
    assert columns.EPSILON == transformer.EPSILON
