"""Counting bounds against exact integers."""

from __future__ import annotations

import math

import pytest

from rgr_dist.theory.bounds import counting_bound, graph_bits


@pytest.mark.parametrize("edges", [13, 16])
def test_more_edges_than_fit_without_loops_are_counted_with_loops(edges: int) -> None:
    counted = math.log2(math.comb(16, edges))
    assert graph_bits(4, edges, "all") == pytest.approx(counted, abs=1e-9)


@pytest.mark.parametrize(("m", "edges"), [(4, 3), (64, 64), (100, 0), (30, 870), (512, 5120)])
def test_counts_are_exact(m: int, edges: int) -> None:
    counted = math.log2(math.comb(m * (m - 1), edges))
    assert graph_bits(m, edges, "all") == pytest.approx(counted)
    assert graph_bits(m, m, "permutations") == pytest.approx(math.log2(math.factorial(m)))


@pytest.mark.parametrize(("m", "edges"), [(10**7, 1), (10**8, 10), (2**31 - 1, 1000)])
def test_few_edges_of_many_items_are_counted_without_cancellation(m: int, edges: int) -> None:
    counted = math.fsum(math.log2((m * (m - 1) - i) / (i + 1)) for i in range(edges))
    assert graph_bits(m, edges, "all") == pytest.approx(counted, rel=1e-9)


def test_the_bound_is_the_smallest_width_with_enough_bits() -> None:
    bits = graph_bits(64, 64, "all")
    for b in (1, 4, 16):
        D_K = math.ceil(counting_bound(bits, 16, b))
        assert b * (2 * 16 * D_K + 1) >= bits
        assert b * (2 * 16 * (D_K - 1) + 1) < bits
    assert counting_bound(bits, 16, 1) == pytest.approx((bits - 1) / 32)
    assert counting_bound(0.5, 16, 1) == 0


def test_a_trained_embedding_holds_a_part_for_each_of_its_relations() -> None:
    bits, (m, d_model, b) = graph_bits(64, 64, "permutations"), (64, 16, 2)
    for relations in (1, 2, 16, 128):
        share = m * d_model / relations
        D_K = math.ceil(counting_bound(bits, d_model, b, share))
        numbers = relations * (2 * d_model * D_K + 1) + m * d_model
        assert b * numbers >= relations * bits
        fewer = relations * (2 * d_model * (D_K - 1) + 1) + m * d_model
        assert D_K == 0 or b * fewer < relations * bits
    assert counting_bound(bits, d_model, b, m * d_model) == 0
