"""From an algorithm's name and its free parameters to the weights of a layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from rgr_dist.problem.embeddings import sample_embedding
from rgr_dist.problem.graphs import Neighbours, sample_graph
from rgr_dist.problem.streams import Stream
from rgr_dist.study.cell import Cell
from rgr_dist.study.construction import Algorithm, Construction, kind_of, p_of
from rgr_dist.theory.all_pairs import find_tau
from rgr_dist.theory.layer import Built, ConstructionError, FloatArray, Layer
from rgr_dist.theory.matchings import Matching, batched, blocks, edges_of, equitable, max_degree
from rgr_dist.theory.one_head import decide
from rgr_dist.theory.projections import project
from rgr_dist.theory.template_weights import (
    Signatures,
    limit_layer,
    orthogonal,
    template_layer,
    trivial_layer,
)

Baseline = Literal["trivial", "limit"]
"""A head for each edge (B = 1), and the template for d_k → ∞: neither has a d_k to choose."""


@dataclass(frozen=True)
class Problem:
    """What a construction is made for.

    Attributes:
        X: embedding, [m, d_model].
        stream: the random stream of a role, such as ``signatures``.
    """

    X: FloatArray
    graph: Neighbours
    stream: Callable[[str], Stream]

    @property
    def scale(self) -> float:
        """mu of Definition B.4: the mean of |x_i|²."""
        return float((self.X**2).sum(axis=1).mean())


def problem_of(cell: Cell, seed: int) -> Problem:
    """The graph, embedding and streams for a cell's seed, the same as those of its trained run."""
    return Problem(
        X=sample_embedding(cell, seed),
        graph=sample_graph(cell, seed),
        stream=lambda role: Stream.of(cell.problem_json, role, seed),
    )


def signatures_of(algorithm: str, options: Construction) -> Signatures:
    """The law of an algorithm's random signatures, as asked or else as printed; not orthogonal."""
    kind = kind_of(algorithm, options)
    assert kind != "orthogonal"
    if kind == "rademacher":
        return Signatures("rademacher")
    return Signatures("bernoulli", p_of(algorithm, options))


def default_block(algorithm: str, graph: Neighbours, d_model: int) -> int:
    """The default block size: d_model, or for Algorithm 3 all edges in one head, as printed.

    For Algorithm 4 the paper prints none: Θ(d_model) for Gaussian rows (Cor. B.6), as here for
    all, and Θ(d_model / log m) for binary ones (Cor. B.7). ``ours`` takes one head by default.
    """
    return max(1, graph.targets.size) if algorithm in ("3", "ours") else d_model


def head_count(algorithm: str, graph: Neighbours, block_size: int, colouring: str) -> int:
    """The number of heads if each has at most B = ``block_size`` edges.

    It is ceil(m' / B), which for a permutation is ceil(m / B). Algorithm 5 and the limit have one
    head for each of their batches: at most ceil(m' / B) + Delta, or max(Delta, ceil(m' / B)) with
    an equitable colouring. ``trivial`` has one for each edge.
    """
    edges = graph.targets.size
    if algorithm == "trivial":
        return edges
    least = max(1, -(-edges // block_size))
    if algorithm not in ("5", "limit"):
        return least
    if colouring == "equitable":
        return max(max_degree(graph), least)
    return len(batched(graph, block_size))


def matchings_of(
    algorithm: str, graph: Neighbours, h: int, block_size: int | None = None
) -> list[Matching]:
    """The edges of each head: blocks of a permutation, or matchings of any graph.

    Args:
        block_size: Algorithm 5 cuts its colour classes at this size; without it, its matchings
            are as even as h heads allow.

    Raises:
        ConstructionError: the algorithm cannot serve this graph with h heads.
    """
    if algorithm != "5":
        return blocks(graph, h)
    return equitable(graph, h) if block_size is None else batched(graph, block_size)


def build(
    algorithm: Algorithm | Baseline,
    options: Construction,
    problem: Problem,
    h: int,
    d_k: int,
    block_size: int | None = None,
) -> Built:
    """The weights of a construction, with the best tau for F1 over all pairs if that is asked for.

    Algorithm 2 has the weights of Algorithm 1: whatever scores them applies the softmax, and its
    tau is always 1/2.

    Args:
        d_k: not used by a baseline.
        block_size: as in ``matchings_of``.

    Raises:
        ConstructionError: the algorithm cannot be used for this problem.
    """
    X, graph = problem.X, problem.graph
    if algorithm == "ours":
        built = project(X, graph, h, d_k, problem.stream("heads"), options.iterations)
    elif algorithm == "one-head":
        found = decide(X, graph)
        built = Built(found.nearest, settled=found.separable is not None)
    else:
        built = Built(_closed_form(algorithm, options, problem, h, d_k, block_size))
    if options.tau == "best" and algorithm != "2":
        built = replace(built, layer=replace(built.layer, tau=find_tau(built.layer, X, graph)))
    return built


def _closed_form(
    algorithm: Algorithm | Baseline,
    options: Construction,
    problem: Problem,
    h: int,
    d_k: int,
    block_size: int | None,
) -> Layer:
    """A layer of the template, or a baseline, at its printed tau."""
    X, graph = problem.X, problem.graph
    if algorithm == "trivial":
        return trivial_layer(X, edges_of(graph))
    if algorithm == "limit":
        kind = "5" if options.colouring == "equitable" or max_degree(graph) > 1 else "1"
        overlap = 0.0
        if options.signatures == "bernoulli":
            p = signatures_of(algorithm, options).p
            overlap = p / (1 - p)
        return limit_layer(X, matchings_of(kind, graph, h, block_size), problem.scale, overlap)
    if algorithm == "3" and not np.array_equal(X, np.eye(len(X))):
        raise ConstructionError("algorithm 3 takes one-hot embeddings, so give d_model = m")
    mu = problem.scale if algorithm == "4" else 1.0
    matchings = matchings_of(algorithm, graph, h, block_size)
    if options.signatures == "orthogonal":
        return template_layer(X, matchings, orthogonal(matchings, graph.m, d_k), 0.5, mu)
    law = signatures_of(algorithm, options)
    w = law.draw(problem.stream("signatures"), graph.m, d_k)
    tau = 0.5 if algorithm == "2" else law.printed_tau(d_k)
    return template_layer(X, matchings, w, tau, mu)
