"""Tiles by value: the exponential, comparisons, sums, transposes, and a step of AdamW."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

from rgr_dist.engines.fused.adamw import adamw, update_tau
from rgr_dist.engines.fused.simd import (
    WIDTH,
    exponential,
    horizontal_max,
    horizontal_sum,
    where_above,
    where_above_or_nan,
    where_equal,
)
from rgr_dist.engines.fused.simd_memory import load, store, transpose
from rgr_dist.engines.schedule import adamw_factors
from rgr_dist.study.training import Training


def by_rows(operation: Callable[..., Any], *arrays: Any) -> np.ndarray:
    """An operation on tiles of one row, over arrays of whole rows."""

    @numba.njit
    def apply(given: Any, out: Any) -> None:
        for i in range(0, out.size, WIDTH):
            store(out, i, 0, operation(load(1, given[0], i, 0), load(1, given[1], i, 0)))

    given = [np.asarray(array, dtype=np.float32) for array in arrays]
    out = np.zeros_like(given[0])
    apply((given[0], given[-1]), out)
    return out


def test_the_exponential_is_that_of_numpy_up_to_its_clamp() -> None:
    z = np.linspace(-87, 87, 64 * WIDTH).astype(np.float32)
    of_one = numba.njit(lambda a, b: exponential(a))
    np.testing.assert_allclose(by_rows(of_one, z), np.exp(z.astype(np.float64)), rtol=2e-7)
    beyond = np.repeat(np.float32([-1e30, 88, np.inf, 0]), WIDTH // 4)
    expected = np.repeat(np.exp([-87.0, 87.0, 87.0, 0.0]), WIDTH // 4)
    np.testing.assert_allclose(by_rows(of_one, beyond), expected, rtol=2e-7)
    assert np.isnan(by_rows(of_one, np.full(WIDTH, np.nan))).all()


def test_comparisons_choose_number_by_number() -> None:
    a = np.tile([1.0, 2.0, 3.0, np.nan], 4)
    one, zero = np.float32(1), np.float32(0)
    chosen = {
        "above": numba.njit(lambda a, b: where_above(a, b, one, zero)),
        "above or nan": numba.njit(lambda a, b: where_above_or_nan(a, b, one, zero)),
        "equal": numba.njit(lambda a, b: where_equal(a, b, one, zero)),
    }
    expected = {
        "above": [0, 0, 1, 0],
        "above or nan": [0, 0, 1, 1],
        "equal": [0, 1, 0, 0],
    }
    for name, operation in chosen.items():
        found = by_rows(operation, a, np.full(WIDTH, 2.0))
        np.testing.assert_array_equal(found, np.tile(expected[name], 4), name)


def test_sums_and_largest_take_in_every_number_of_a_row() -> None:
    rows = np.full((WIDTH, WIDTH), -1.0) + np.diag(np.full(WIDTH, 6.0))
    sums = numba.njit(lambda a, b: where_equal(a, a, horizontal_sum(a), a))
    largest = numba.njit(lambda a, b: where_equal(a, a, horizontal_max(a), a))
    assert set(by_rows(sums, rows.ravel()).tolist()) == {5.0 - 15}
    assert set(by_rows(largest, rows.ravel()).tolist()) == {5.0}


def test_a_transpose_moves_every_number_to_its_place() -> None:
    a = np.arange(32 * 48, dtype=np.float32)
    out = np.zeros_like(a)
    transpose(a, 32, 48, out)
    np.testing.assert_array_equal(out.reshape(48, 32), a.reshape(32, 48).T)


def test_the_first_step_is_the_rate_and_half_of_it_where_a_gradient_is_epsilon() -> None:
    factors = adamw_factors(Training(learning_rate=0.25), 0, 1).astype(np.float32)
    rate, root, _ = factors[:, 0]
    step = numba.njit(lambda g, b: adamw(g, g * np.float32(0), g * np.float32(0), rate, root)[2])
    gradients = np.tile(np.float32([1.0, -4.0, 1e-8, -1e-8]), 4)
    expected = np.tile([0.25, -0.25, 0.125, -0.125], 4)
    np.testing.assert_allclose(by_rows(step, gradients), expected, rtol=1e-5)
    for gradient, moved in zip(gradients[:4], expected[:4], strict=True):
        tau = np.array([7.0, 0.0, 0.0], dtype=np.float64)
        update_tau(tau, float(gradient), rate, root)
        assert 7.0 - tau[0] == pytest.approx(moved, rel=1e-5)


def test_rates_and_roots_are_corrected_for_the_steps_done() -> None:
    rates, roots, decayed = adamw_factors(Training(learning_rate=0.5, weight_decay=0.1), 2, 2)
    np.testing.assert_allclose(rates, [0.5 / (1 - 0.9**3), 0.5 / (1 - 0.9**4)], rtol=1e-6)
    np.testing.assert_allclose(decayed, 0.95)
    np.testing.assert_allclose(roots, [(1 - 0.999**t) ** -0.5 for t in (3, 4)], rtol=1e-6)
