"""Edges packed into matchings, one for each head (Lemma B.8, Corollary B.10).

In a matching each source and each target occurs at most once, which is what a head of the template
can serve. A directed graph can be read as bipartite, with sources on the left and targets on the
right; a matching is then a colour class of its edges.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import rustworkx
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from rgr_dist.problem.graphs import Neighbours
from rgr_dist.theory.layer import ConstructionError

Ints = npt.NDArray[np.int64]
Matching = Ints
"""Edges (source, target), int64 [edges, 2]."""


def edges_of(graph: Neighbours) -> Matching:
    """All edges of a graph, sorted by source."""
    return np.column_stack([graph.sources, graph.targets]).astype(np.int64)


def max_degree(graph: Neighbours) -> int:
    """Delta: the largest in- or out-degree."""
    ends = (graph.sources, graph.targets)
    return max((int(np.bincount(end).max()) for end in ends if end.size), default=0)


def blocks(graph: Neighbours, h: int) -> list[Matching]:
    """The edges of a permutation in h blocks of sources, at most ceil(m / h) each (Algorithm 1).

    Raises:
        ConstructionError: an item has several targets or sources.
    """
    if max_degree(graph) > 1:
        raise ConstructionError(
            f"the graph has an item with {max_degree(graph)} edges on one side, and this "
            "algorithm takes a permutation; algorithms 5 and ours take any graph"
        )
    return np.array_split(edges_of(graph), h)


def equitable(graph: Neighbours, h: int) -> list[Matching]:
    """h matchings whose sizes differ by at most one.

    By König, Delta colours suffice for a bipartite graph. With h = max(Delta, ceil(m' / B)) no
    matching exceeds B. Corollary B.10 takes that for granted, but cutting König's classes into
    blocks, as Lemma B.8 does, can need more heads. Two classes together form paths and even cycles,
    in which the colours alternate; exchanging the colours of a path that has one more edge of the
    larger class moves one edge to the smaller class (de Werra).

    Raises:
        ConstructionError: h is below Delta, so that no such matchings exist.

    >>> from rgr_dist.problem.graphs import Neighbours
    >>> star = Neighbours.of_edges(4, np.array([[0, 1], [0, 2], [0, 3], [1, 2]]))
    >>> sorted(len(matching) for matching in equitable(star, 3))
    [1, 1, 2]
    """
    classes = _colour_classes(graph)
    if h < len(classes):
        raise ConstructionError(
            f"{h} heads are fewer than the largest degree, {len(classes)}; a head takes one edge "
            f"of an item, so give at least {len(classes)}"
        )
    classes += [np.empty((0, 2), dtype=np.int64) for _ in range(h - len(classes))]
    while True:
        sizes = [len(matching) for matching in classes]
        large, small = int(np.argmax(sizes)), int(np.argmin(sizes))
        if sizes[large] - sizes[small] <= 1:
            return classes
        classes[large], classes[small] = _level(classes[large], classes[small])


def _colour_classes(graph: Neighbours) -> list[Matching]:
    """Delta matchings that together hold every edge once."""
    edges = edges_of(graph)
    bipartite = rustworkx.PyGraph()
    bipartite.add_nodes_from(range(2 * graph.m))
    bipartite.add_edges_from_no_data([(int(i), graph.m + int(j)) for i, j in edges])
    colours = rustworkx.graph_bipartite_edge_color(bipartite)
    by_edge = np.array([colours[edge] for edge in range(len(edges))], dtype=np.int64)
    return [edges[by_edge == colour] for colour in np.unique(by_edge)]


def _level(large: Matching, small: Matching) -> tuple[Matching, Matching]:
    """Two disjoint matchings with the same edges, whose sizes differ by at most one."""
    items = int(max(edges.max(initial=0) for edges in (large, small))) + 1
    sources, targets = np.concatenate([large, small]).T
    union = coo_array((np.ones(sources.size), (sources, items + targets)), shape=(2 * items,) * 2)
    n_paths, path_of = connected_components(union, directed=False)
    of_large, of_small = path_of[large[:, 0]], path_of[small[:, 0]]
    surplus = np.bincount(of_large, minlength=n_paths) - np.bincount(of_small, minlength=n_paths)
    in_order = [path for path in dict.fromkeys(of_large.tolist()) if surplus[path] > 0]
    exchanged = in_order[: (len(large) - len(small)) // 2]
    leave, come = np.isin(of_large, exchanged), np.isin(of_small, exchanged)
    return (
        _sorted(np.concatenate([large[~leave], small[come]])),
        _sorted(np.concatenate([small[~come], large[leave]])),
    )


def _sorted(edges: Matching) -> Matching:
    return edges[np.lexsort((edges[:, 1], edges[:, 0]))]
