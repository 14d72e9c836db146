"""Ranks against exact algebra, and attempts to break Propositions 2.1 and 3.5."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from scipy.special import softmax

from rgr_dist.facts.cell import Database
from rgr_dist.facts.databases import sample_triples, tensor
from rgr_dist.facts.layer import all_logits
from rgr_dist.facts.ranks import (
    exact_rank,
    layer_rank_bound,
    logits_rank,
    places_of_largest,
    summed_rank_bound,
    triples_rank,
    unfoldings,
)

sides = st.integers(1, 5)
whole_matrices = st.tuples(sides, sides).flatmap(
    lambda shape: st.lists(
        st.lists(st.integers(-3, 3), min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    )
)


@given(whole_matrices, st.booleans())
@settings(max_examples=60, deadline=None)
def test_exact_ranks_are_those_of_rational_algebra(rows: list[list[int]], doubled: bool) -> None:
    matrix = np.array(rows, dtype=np.int64)
    if doubled:  # wide, of ones and zeros: by its Gram matrix
        matrix = np.tile((matrix > 0).astype(np.int64), (1, 6))
    assert exact_rank(matrix) == sympy.Matrix(matrix.tolist()).rank()


@st.composite
def any_triples(draw: st.DrawFn) -> tuple[np.ndarray, tuple[int, int, int]]:
    """Any set of triples, also with several values of a pair."""
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6)))
    places = st.tuples(*(st.integers(0, side - 1) for side in shape))
    rows = sorted(draw(st.sets(places, min_size=1, max_size=60)))
    return np.array(rows, dtype=np.int64), shape


@given(any_triples())
@settings(max_examples=80, deadline=None)
def test_no_database_breaks_proposition_2_1(
    drawn: tuple[np.ndarray, tuple[int, int, int]],
) -> None:
    """Its upper bound is a sum of so many terms that is D; no unfolding has a higher rank."""
    triples, shape = drawn
    dense = tensor(triples, shape).astype(float)
    found = triples_rank(triples)
    unfolded = [int(np.linalg.matrix_rank(matrix)) for matrix in unfoldings(dense)]
    assert found.lower == max(unfolded)
    for kept, other in ((0, 1), (1, 0)):  # by key and value; by query and value
        pairs = {(int(t[kept]), int(t[2])) for t in triples}
        total = np.zeros(shape)
        for one, value in pairs:
            units = [np.zeros(side) for side in shape]
            units[kept][one] = units[2][value] = 1
            units[other][triples[(triples[:, kept] == one) & (triples[:, 2] == value), other]] = 1
            total += np.einsum("k,q,v->kqv", *units)
        assert (total == dense).all()
        assert found.lower <= found.upper <= len(pairs)


@st.composite
def layers(draw: st.DrawFn) -> tuple[dict[str, np.ndarray], int, bool]:
    """Weights of any size and scale, some of them whole numbers or repeated rows."""
    keys, queries, values, d = (draw(st.integers(1, 7)) for _ in range(4))
    h, d_qk, d_vo = (draw(st.integers(1, 3)) for _ in range(3))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    scale = draw(st.sampled_from([0.01, 1.0, 30.0]))
    kind = draw(st.sampled_from(["normal", "whole", "repeated"]))

    def made(*shape: int) -> np.ndarray:
        drawn = scale * rng.standard_normal(shape)
        if kind == "whole":
            return np.sign(drawn) * (np.abs(drawn) > scale)
        return np.repeat(drawn[:1], shape[0], axis=0) if kind == "repeated" else drawn

    weights = {
        "X_K": made(keys, d), "X_Q": made(queries, d), "W_Q": made(d, h * d_qk),
        "W_K": made(d, h * d_qk), "W_V": made(d, h * d_vo), "W_O": made(h * d_vo, d),
        "U": made(d, values),
    }  # fmt: skip
    return weights, h, draw(st.booleans())


def terms_of_the_proof(weights: dict[str, np.ndarray], h: int, residual: bool) -> list[Any]:
    """Rank-one terms whose sum is L, as in the proof of Proposition 3.5."""
    X_K, X_Q, W_V, W_O = (weights[name] for name in ("X_K", "X_Q", "W_V", "W_O"))
    d_qk, d_vo = weights["W_Q"].shape[1] // h, W_V.shape[1] // h
    mixed = []
    for i in range(h):
        columns = slice(i * d_qk, (i + 1) * d_qk)
        queries = X_Q @ weights["W_Q"][:, columns] / np.sqrt(d_qk)
        own = (queries * (X_Q @ weights["W_K"][:, columns])).sum(1)
        s = np.clip(X_K @ weights["W_K"][:, columns] @ queries.T - own, -700, 700)
        A = (1 / (1 + np.exp(-s)))[:, :, None]
        head = W_V[:, i * d_vo : (i + 1) * d_vo]
        mixed.append(A * (X_K @ head)[:, None] + (1 - A) * (X_Q @ head)[None])
    M = np.concatenate(mixed, axis=2)
    left, sizes, right = np.linalg.svd(W_O @ weights["U"], full_matrices=False)
    kept = min(len(W_O), X_K.shape[1])  # of a product through d_model; the rest is rounding
    M, rows = M @ (left * sizes)[:, :kept], right[:kept]
    terms = []
    for j, row in enumerate(rows):
        a, size, b = np.linalg.svd(M[:, :, j], full_matrices=False)
        terms += [(a[:, t] * size[t], b[t], row) for t in range(len(size))]
    if residual:
        a, size, b = np.linalg.svd(X_Q @ weights["U"], full_matrices=False)
        most = min(len(size), X_K.shape[1])
        terms += [(np.ones(len(X_K)), a[:, t] * size[t], b[t]) for t in range(most)]
    return terms


@given(layers())
@settings(max_examples=80, deadline=None)
def test_no_layer_breaks_proposition_3_5(
    layer: tuple[dict[str, np.ndarray], int, bool],
) -> None:
    """Its logits are a sum of no more terms than stated, and no unfolding has a higher rank."""
    weights, h, residual = layer
    logits = all_logits(weights, h, residual)
    d_model, d_vo = len(weights["W_V"]), weights["W_V"].shape[1] // h
    bound = layer_rank_bound(logits.shape, h, d_vo, d_model, residual)
    assert logits_rank(logits) <= bound <= summed_rank_bound(logits.shape[1], h, d_vo, d_model)
    terms = terms_of_the_proof(weights, h, residual)
    total = sum(np.einsum("k,q,v->kqv", *term) for term in terms)
    np.testing.assert_allclose(total, logits, rtol=0, atol=1e-9 * max(1, np.abs(logits).max()))
    keys, queries, values = logits.shape
    smaller = min(keys, queries)
    embedded = min(queries, values, d_model) if residual else 0
    assert len(terms) <= min(h * d_vo, d_model) * smaller + embedded
    of_values = np.linalg.matrix_rank(unfoldings(logits)[2], rtol=1e-9)
    assert of_values <= min(d_model, h * d_vo + embedded)
    places = np.argwhere(softmax(logits, axis=2) >= 0.51)
    assert triples_rank(places).lower <= triples_rank(places).upper


def test_the_rank_of_logits_is_none_of_rounding() -> None:
    """A is 1 - e^-40, and the queries' own answers are 10^8 times the keys'."""
    rng = np.random.default_rng(0)
    weights = {name: np.ones((1, 1)) for name in ("W_Q", "W_V", "W_O")}
    weights |= {"X_K": 1e-4 * rng.standard_normal((3, 1)), "U": rng.standard_normal((1, 10))}
    weights |= {"X_Q": 1e4 * (1 + rng.random((11, 1))), "W_K": np.full((1, 1), -4e-7)}
    logits = all_logits(weights, 1, residual=False)
    assert logits_rank(logits) <= layer_rank_bound(logits.shape, 1, 1, 1, residual=False)
    X_K, X_Q = (weights[name].astype(np.longdouble) for name in ("X_K", "X_Q"))
    scores = -4e-7 * (X_K @ X_Q.T - (X_Q**2).T)
    mixed = X_K / (1 + np.exp(-scores)) + X_Q.T / (1 + np.exp(scores))
    expected = (mixed[:, :, None] * weights["U"][0]).astype(float)
    np.testing.assert_allclose(logits, expected, rtol=1e-12)


@pytest.mark.parametrize("size", [3, 7, 20])
def test_argmax_and_softmax_raise_a_rank_of_two_to_any(size: int) -> None:
    """L_kv = 2 k v - v^2 is largest at v = k: rank two, and its argmax is the identity."""
    k = np.arange(size, dtype=float)
    logits = (2 * np.outer(k, k) - k**2)[:, None, :]
    assert logits_rank(logits) == 2
    assert triples_rank(places_of_largest(logits)).lower == size
    places = np.argwhere(softmax(8 * logits, axis=2) >= 0.99)
    assert triples_rank(places).lower == size


@pytest.mark.parametrize(("keys", "queries", "values"), [(60, 5, 4), (40, 30, 3), (330, 8, 40)])
def test_ranks_of_crowded_databases_are_those_of_all_singular_values(
    keys: int, queries: int, values: int
) -> None:
    """Few values, so that many keys share an answer and most of the matrix is left to count."""
    given = {"family": "function", "keys": keys, "queries": queries, "values": values}
    triples = sample_triples(TypeAdapter(Database).validate_python(given), "problem", 0)
    dense = tensor(triples, (keys, queries, values)).astype(float)
    expected = max(int(np.linalg.matrix_rank(matrix)) for matrix in unfoldings(dense))
    assert triples_rank(triples).lower == expected
