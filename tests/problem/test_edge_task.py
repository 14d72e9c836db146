"""What a run is given: one problem for all widths, unit rows, paired weights, pinned numbers."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from scipy import stats

from rgr_dist.problem.contexts import draw_contexts
from rgr_dist.problem.edge_task import Task, initial_projections
from rgr_dist.problem.streams import Stream
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run

FEW = {"validation_contexts": 40, "test_contexts": 50}


def cell_of(m: int = 64, d_model: int = 16, **parts: Any) -> Cell:
    return Cell(m=m, d_model=d_model, **parts)


def run_of(h: int, d_k: int, seed: int = 0, **cell: Any) -> Run:
    return Run(cell=cell_of(**cell), h=h, d_k=d_k, seed=seed)


def fingerprint(values: np.ndarray) -> str:
    little_endian = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
    return hashlib.sha256(little_endian.tobytes()).hexdigest()[:16]


def test_a_seed_means_the_same_problem_however_it_is_trained() -> None:
    slow = FEW | {"learning_rate": 1e-4, "max_steps": 7, "patience": 1, "sharpness": 3.0}
    one, other = Task.of(cell_of(training=FEW), 3), Task.of(cell_of(training=slow), 3)
    np.testing.assert_array_equal(one.targets, other.targets)
    np.testing.assert_array_equal(one.embedding, other.embedding)
    np.testing.assert_array_equal(one.validation, other.validation)
    np.testing.assert_array_equal(one.test, other.test)
    np.testing.assert_array_equal(one.training_contexts(5, 9), other.training_contexts(5, 9))


@pytest.mark.parametrize("role", ["W_Q", "W_K"])
def test_wider_layers_start_with_the_narrower_ones_columns(role: str) -> None:
    index = ["W_Q", "W_K"].index(role)
    wide = initial_projections(run_of(h=4, d_k=9))[index]
    for h, d_k in [(1, 1), (1, 7), (7, 1), (4, 5), (2, 18)]:
        narrow = initial_projections(run_of(h=h, d_k=d_k))[index]
        assert narrow.shape == (16, h * d_k)
        np.testing.assert_array_equal(narrow, wide[:, : h * d_k])


def test_every_seed_and_cell_has_its_own_problem() -> None:
    cells = [cell_of(64, d_model, training=FEW) for d_model in (16, 32)]
    tasks = [Task.of(cell, seed) for cell in cells for seed in range(3)]
    for part in ("targets", "test", "validation"):
        assert len({fingerprint(getattr(task, part)) for task in tasks}) == len(tasks)
    assert len({fingerprint(task.training_contexts(0, 9)) for task in tasks}) == len(tasks)
    assert len({fingerprint(task.embedding[:, :16]) for task in tasks}) == len(tasks)


def test_embedding_rows_are_uniform_on_the_unit_sphere() -> None:
    d = 16
    X = Task.of(cell_of(m=4_096, d_model=d, context={"length": 2}, training=FEW), 1).embedding
    np.testing.assert_allclose((X**2).sum(axis=1), 1.0, rtol=1e-12)
    for column in (0, d - 1):  # the square of a coordinate on the sphere is a Beta variable
        assert stats.kstest(X[:, column] ** 2, stats.beta(0.5, (d - 1) / 2).cdf).pvalue > 1e-3
    inner = np.sqrt(d) * (X[::2] * X[1::2]).sum(axis=1)
    assert abs(inner.mean()) < 4 / np.sqrt(len(inner))
    assert inner.var() == pytest.approx(1.0, abs=0.15)


def test_a_one_hot_item_has_a_dimension_of_its_own() -> None:
    X = Task.of(
        cell_of(m=20, d_model=20, embedding={"family": "onehot"}, training=FEW), 3
    ).embedding
    np.testing.assert_array_equal(X, np.eye(20))


@pytest.mark.parametrize("density", [0.5, 1.0, 2.0])
def test_binary_rows_have_independent_ones_at_the_papers_rate(density: float) -> None:
    m, d = 2_048, 44  # 11 binary digits of m
    parts = {"family": "binary", "density": density}
    X = Task.of(cell_of(m=m, d_model=d, embedding=parts, training=FEW), 1).embedding
    assert set(np.unique(X)) == {0.0, 1.0}
    p = density * 11 / d
    ones = X.sum(axis=1)
    law = stats.binom(d, p)
    cuts = law.ppf([0.1, 0.3, 0.5, 0.7, 0.9])
    shares = np.diff([0, *law.cdf(cuts), 1])
    counts = np.bincount(np.searchsorted(cuts, ones), minlength=6)
    assert stats.chisquare(counts, m * shares).pvalue > 1e-3
    correlation = np.corrcoef(X[:, :-1].ravel(), X[:, 1:].ravel())[0, 1]
    assert abs(correlation) < 4 / np.sqrt(m * (d - 1))


@pytest.mark.parametrize("d_model", [16, 20])
def test_the_papers_spread_is_read_as_a_deviation_or_as_a_variance(d_model: int) -> None:
    """N(0, 1/sqrt(d_model)), App. A.1: the second is wider by the fourth root of d_model."""
    parts: list[dict[str, Any]] = [{}, {"initial": "deviation"}, {"initial": "variance"}]
    draws = [
        initial_projections(run_of(h=8, d_k=50, d_model=d_model, training=part))[0]
        for part in parts
    ]
    np.testing.assert_array_equal(draws[0], draws[1])
    np.testing.assert_allclose(draws[2], d_model**0.25 * draws[0], rtol=1e-14)
    assert draws[0].std() == pytest.approx(d_model**-0.5, rel=0.03)
    assert draws[2].var() == pytest.approx(d_model**-0.5, rel=0.06)


def test_messages_are_frozen_projections_of_the_embeddings() -> None:
    cell = cell_of(training=FEW)
    one, other = Task.of(cell, 1), Task.of(cell, 2)
    W_V = Stream.of(cell.problem_json, "W_V", 1).normals(16 * 16).reshape(16, 16) / 4
    np.testing.assert_allclose(one.messages, one.embedding @ W_V, rtol=1e-12)
    assert not np.isclose(one.messages, other.messages).any()
    wide = Task.of(cell_of(d_model=64, training=FEW), 0)
    ratio = (wide.messages**2).sum() / (wide.embedding**2).sum()
    assert ratio == pytest.approx(1, abs=0.1), "messages are as long as embeddings on average"


def test_the_protocols_numbers_are_pinned() -> None:
    """Raise ``PROTOCOL`` before changing one of these: stored runs were trained on them."""
    task = Task.of(cell_of(), 0)
    assert task.targets[:8].tolist() == [36, 2, 58, 52, 61, 13, 31, 6]
    assert fingerprint(task.targets) == "3098cc9bc78d517d"
    first = [59, 7, 56, 5, 25, 31, 21, 8, 50, 36, 24, 20, 0, 57, 32, 46]
    assert task.training_contexts(0, 1)[0].tolist() == first
    assert fingerprint(task.training_contexts(0, 1_000)) == "c4195d430128da44"
    assert fingerprint(task.validation) == "573032b6591ca403"
    assert fingerprint(task.test) == "7d4cd9c70ac33c30"
    np.testing.assert_allclose(task.embedding[0, :2], [-0.47367071, -0.50739011], rtol=1e-7)
    W_Q, W_K = initial_projections(run_of(h=2, d_k=3))
    np.testing.assert_allclose(W_Q[:2, 0], [-0.33567269, -0.21548165], rtol=1e-7)
    np.testing.assert_allclose(W_K[0, :2], [-0.00427934, 0.15315357], rtol=1e-6)


def test_streams_are_named_by_the_problem_the_role_and_the_seed() -> None:
    cell = cell_of(training=FEW)
    problem = (
        '{"context":{"length":16,"positive_rate":0.5},"d_model":16,'
        '"embedding":{"family":"gaussian"},"graph":{"family":"permutation"},"m":64}'
    )
    task = Task.of(cell, 5)
    assert (task.cell, task.seed) == (cell, 5)
    assert task.train == Stream.of(problem, "train", 5)
    for role, contexts in (("validation", task.validation), ("test", task.test)):
        stream, count = Stream.of(problem, role, 5), len(contexts)
        drawn = draw_contexts(stream, 0, count, task.graph, 16, 0.5)
        np.testing.assert_array_equal(contexts, drawn)
    assert (len(task.validation), len(task.test)) == (40, 50)
