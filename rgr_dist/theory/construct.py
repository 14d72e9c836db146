"""From an algorithm's name to the weights of a layer: Algorithms 1 to 5, ours, and one head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rgr_dist.problem.embeddings import sample_embedding
from rgr_dist.problem.graphs import Neighbours, sample_graph
from rgr_dist.problem.streams import Stream
from rgr_dist.study.cell import Cell
from rgr_dist.study.construction import Algorithm
from rgr_dist.theory.layer import Built, FloatArray
from rgr_dist.theory.matchings import blocks, equitable
from rgr_dist.theory.one_head import decide
from rgr_dist.theory.projections import project
from rgr_dist.theory.template_weights import printed_tau, signatures, template_layer

BERNOULLI = {"3": 1 / 4, "4": 1 / 20}
"""The p of the signatures of Algorithms 3 and 4; those of the others are Rademacher."""


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


def problem_of(cell: Cell, seed: int) -> Problem:
    """The graph, embedding and streams of a cell's seed, the same as those of its trained run."""
    return Problem(
        X=sample_embedding(cell, seed),
        graph=sample_graph(cell, seed),
        stream=lambda role: Stream.of(cell.problem_json, role, seed),
    )


def build(
    algorithm: Algorithm, problem: Problem, h: int, d_k: int, iterations: int = 1000
) -> Built:
    """The weights of a construction with h heads of width d_k.

    Algorithm 2 has the weights of Algorithm 1: whatever scores them applies the softmax, and its
    tau is 1/2. ``one-head`` has the width d_model.

    Args:
        iterations: the most projections that ``ours`` makes.

    Raises:
        ConstructionError: the algorithm cannot serve this graph with h heads.

    >>> from rgr_dist.theory.all_pairs import score_all_pairs
    >>> problem = problem_of(Cell(m=16, d_model=16, embedding={"family": "onehot"}), seed=0)
    >>> layer = build("3", problem, h=1, d_k=90).layer
    >>> layer.W_Q.shape
    (16, 90)
    >>> score_all_pairs(layer, problem.X, problem.graph).exact
    True
    """
    X, graph = problem.X, problem.graph
    if algorithm == "ours":
        return project(X, graph, h, d_k, problem.stream("heads"), iterations)
    if algorithm == "one-head":
        found = decide(X, graph)
        return Built(found.nearest, settled=found.separable is not None)
    p = BERNOULLI.get(algorithm)
    w = signatures(problem.stream("signatures"), graph.m, d_k, p)
    matchings = equitable(graph, h) if algorithm == "5" else blocks(graph, h)
    tau = 0.5 if algorithm == "2" else printed_tau(d_k, p)
    mu = float((X**2).sum(axis=1).mean()) if algorithm == "4" else 1.0
    return Built(template_layer(X, matchings, w, tau, mu))
