"""Trained weights on all pairs, and what rounding does to them."""

from __future__ import annotations

import numpy as np
import pytest

from rgr_dist.engines.choose import make_engine
from rgr_dist.engines.recovered import PRECISIONS, recovered, rounded
from rgr_dist.problem.edge_task import Task
from rgr_dist.store.schema import BITS
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from rgr_dist.theory.all_pairs import score_all_pairs
from rgr_dist.theory.layer import Layer


def test_weights_trained_again_have_the_score_of_their_run() -> None:
    quick = {"max_steps": 10_000, "validation_contexts": 50, "test_contexts": 300}
    run = Run(cell=Cell(m=32, d_model=16, training=quick), h=2, d_k=8, seed=1)
    engine = make_engine("fused")
    (outcome,) = engine.train([run])
    found = {row["precision"]: row for row in recovered(engine, run, outcome.steps, PRECISIONS)}
    assert outcome.score is not None
    assert found["float32"]["score"] == pytest.approx(outcome.score, abs=2e-4)
    assert found["float32"]["f1"] > 0.9
    assert found["int4"]["margin"] < found["int8"]["margin"] < 1
    task, (weights,) = Task.of(run.cell, 1), engine.weights_after([run], outcome.steps)
    wrong = score_all_pairs(
        Layer(weights["W_Q"], weights["W_K"], 2, float(weights["tau"])), task.embedding, task.graph
    )
    assert found["float32"]["failed_pairs"] == wrong.failed_pairs
    sizes = {"m": 32, "d_model": 16, "h": 2, "d_k": 8, "D_K": 16, "seed": 1}
    ids = {"run_id": run.run_id, "cell_id": run.cell.cell_id}
    assert all(row.items() >= (sizes | ids).items() for row in found.values())
    assert [row["bits"] for row in found.values()] == [32, 16, 16, 8, 7, 6, 5, 4, 3]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_rounding_is_to_the_nearest_of_as_many_values_as_the_bits_allow(precision: str) -> None:
    W = np.random.default_rng(0).standard_normal((40, 30)).astype(np.float32)
    held = rounded(W, precision)
    np.testing.assert_array_equal(rounded(held, precision), held)
    if precision == "float32":
        np.testing.assert_array_equal(held, W)
    elif precision == "float16":
        np.testing.assert_array_equal(held, W.astype(np.float16).astype(np.float32))
    elif precision == "bfloat16":
        assert np.abs(held / W - 1).max() <= 2.0**-8
        assert not (held.view(np.uint32) & 0xFFFF).any()  # the lower half of a float32 is gone
    else:
        steps = 2 ** (BITS[precision] - 1) - 1
        step = np.abs(W).max() / steps
        assert np.abs(held - W).max() <= step / 2 * (1 + 1e-5)
        np.testing.assert_allclose(held / step, np.round(held / step), atol=1e-3)


def test_zeros_stay_zeros() -> None:
    for precision in PRECISIONS:
        assert not rounded(np.zeros((2, 3)), precision).any()
