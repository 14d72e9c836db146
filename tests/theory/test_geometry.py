"""Restricted self-incoherence against the definition: every set, one by one."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from rgr_dist.problem.embeddings import sample_embedding
from rgr_dist.study.cell import Cell
from rgr_dist.theory.geometry import geometry


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_suprema_are_those_over_every_set(scale: float) -> None:
    X = scale * np.random.default_rng(0).standard_normal((6, 3))
    found = geometry(X)
    delta = X @ X.T / found.mu - np.eye(6)
    assert found.mu == pytest.approx((X**2).sum(axis=1).mean())
    assert found.epsilon_d == pytest.approx(np.abs(delta.diagonal()).max())
    for B in range(1, 7):
        sets = [s for size in range(1, B + 1) for s in itertools.combinations(range(6), size)]
        rho = max(sum(delta[i, s] ** 2 for s in S) for i in range(6) for S in sets if i not in S)
        gamma = max(
            abs(sum(delta[i, a] * delta[j, a] for a in S))
            for i in range(6)
            for j in range(6)
            for S in sets
        )
        assert found.rho[B - 1] == pytest.approx(rho)
        assert found.gamma[B - 1] == pytest.approx(gamma)


def test_one_hot_rows_leak_nothing_and_allow_every_block() -> None:
    found = geometry(np.eye(8))
    assert found.epsilon_d == 0
    assert not found.rho.any()
    assert not found.gamma.any()
    assert found.largest_block() == 8


def test_the_largest_block_meets_the_theorem_and_the_next_one_does_not() -> None:
    found = geometry(sample_embedding(Cell(m=128, d_model=256), 0))
    limit = 1 / np.log(128)
    B = found.largest_block()
    assert B is not None
    assert found.rho[B - 1] <= limit
    assert found.gamma[B - 1] <= limit
    assert found.rho[B] > limit or found.gamma[B] > limit
    assert geometry(sample_embedding(Cell(m=64, d_model=16), 0)).largest_block() is None


def test_a_block_at_the_bound_is_allowed() -> None:
    """A zero row among three items: gamma is 1, which is c / ln m at c = ln 3."""
    X = np.array([[1.0, 0.0], [0.5, np.sqrt(0.75)], [0.0, 0.0]])
    found = geometry(X)
    assert found.epsilon_d == 1
    at = float(max(found.rho[0], found.gamma[0])) * np.log(3)
    bounds = replace(found, epsilon_d=at)
    assert bounds.largest_block(np.nextafter(at, 2)) is not None
    assert bounds.largest_block(np.nextafter(at, 0)) is None
    assert (
        replace(found, epsilon_d=0.5, rho=found.rho * 0, gamma=found.gamma * 0).largest_block(0.5)
        == 3
    )
