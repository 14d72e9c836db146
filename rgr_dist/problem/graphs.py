"""Graph families: which items each item relates to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rgr_dist.problem.kernel_cache import cached_kernel
from rgr_dist.problem.streams import SHIFT_32, Stream, below
from rgr_dist.study import assets
from rgr_dist.study.cell import Cell
from rgr_dist.study.families import Edges, Regular

Int32Array = npt.NDArray[np.int32]


class Neighbours(NamedTuple):
    """A directed graph as the concatenated lists of its items' out-neighbours.

    Attributes:
        starts: int32 [m + 1]; item i has the targets from starts[i] up to starts[i + 1].
        targets: int32 [m']; for a permutation, pi itself.
    """

    starts: Int32Array
    targets: Int32Array

    @classmethod
    def of_edges(cls, m: int, edges: npt.NDArray[np.integer]) -> Neighbours:
        """The graph of (source, target) pairs, [m', 2], which are sorted by source."""
        starts = np.searchsorted(edges[:, 0], np.arange(m + 1)).astype(np.int32)
        return cls(starts, np.ascontiguousarray(edges[:, 1], dtype=np.int32))

    @property
    def m(self) -> int:
        """Number of items."""
        return self.starts.size - 1

    @property
    def sources(self) -> Int32Array:
        """The source of each edge, int32 [m']."""
        return np.repeat(np.arange(self.m, dtype=np.int32), np.diff(self.starts))

    @property
    def table(self) -> Int32Array:
        """The out-neighbours of each item, int32 [m, r], padded with -1."""
        degrees = np.diff(self.starts)
        table = np.full((self.m, max(1, int(degrees.max()))), -1, dtype=np.int32)
        table[np.arange(table.shape[1]) < degrees[:, np.newaxis]] = self.targets
        return table

    @property
    def matrix(self) -> npt.NDArray[np.bool_]:
        """Whether each pair of items is an edge, bool [m, m]; rows are sources."""
        edges = np.zeros((self.m, self.m), dtype=bool)
        edges[self.sources, self.targets] = True
        return edges


def sample_graph(cell: Cell, seed: int, relation: int = 0) -> Neighbours:
    """The graph of a cell and seed; each relation has its own, but for those of a file.

    A permutation is uniformly random and may have fixed points (App. A.1); a regular graph is
    that of ``sample_regular``; edges from a file are the same at every seed.

    Raises:
        AssetError: the edges have not been loaded in this process.
    """
    stream = Stream.of(cell.problem_json, "graph", seed, relation)
    if isinstance(cell.graph, Edges):
        return Neighbours.of_edges(cell.m, assets.get(cell.graph.digest))
    if isinstance(cell.graph, Regular):
        return sample_regular(stream, cell.m, cell.graph.degree)
    starts = np.arange(cell.m + 1, dtype=np.int32)
    return Neighbours(starts, stream.permutation(cell.m))


def sample_regular(stream: Stream, m: int, degree: int) -> Neighbours:
    """The union of ``degree`` random perfect matchings, no pair twice, no self-loops (App. A.3).

    Each matching is greedy: sources, in random order, take a uniformly drawn target among those
    that are left and not forbidden. If there is none, targets are reassigned along a shortest
    augmenting path. Such a path always exists: the pairs that are not forbidden form a regular
    bipartite graph, which has a perfect matching. So no matching is ever restarted.

    Raises:
        RuntimeError: the result is not regular, which would be a bug.
    """
    words = stream.words(3 * m * degree).reshape(degree, 3, m)
    edges = np.eye(m, dtype=np.bool_)  # forbidden: the item itself and its neighbours so far
    for layer in range(degree):
        keys = (words[layer, 0].astype(np.uint64) << SHIFT_32) | words[layer, 1]
        _add_matching(edges, np.argsort(keys, kind="stable"), words[layer, 2])
    np.fill_diagonal(edges, False)
    if (edges.sum(0) != degree).any() or (edges.sum(1) != degree).any():
        raise RuntimeError(f"a graph on {m} items is not {degree}-regular")
    return Neighbours.of_edges(m, np.argwhere(edges))


@cached_kernel()
def _add_matching(edges: Any, order: Any, words: Any) -> None:
    """Add a perfect matching of pairs that are not yet in ``edges``, bool [m, m].

    Args:
        order: the sources in the order in which they choose.
        words: uint32 [m], one for each choice.
    """
    m = order.size
    owner = np.full(m, -1)  # the source that has taken a target
    choices = np.empty(m, dtype=np.int64)
    for turn in range(m):
        source, count = order[turn], 0
        for target in range(m):
            if owner[target] < 0 and not edges[source, target]:
                choices[count] = target
                count += 1
        if count:
            owner[choices[below(count, words[turn])]] = source
        else:
            _make_room(edges, owner, source)
    for target in range(m):
        edges[owner[target], target] = True


@cached_kernel()
def _make_room(edges: Any, owner: Any, source: Any) -> None:
    """Give a source a target by an augmenting path, found breadth first."""
    m = owner.size
    reached_from = np.full(m, -1)  # the source that would take a target
    taken_by = np.full(m, -1)  # the target that a source holds
    for target in range(m):
        if owner[target] >= 0:
            taken_by[owner[target]] = target
    queue = [source]
    head = 0
    while head < len(queue):
        taker = queue[head]
        head += 1
        for target in range(m):
            if reached_from[target] >= 0 or edges[taker, target]:
                continue
            reached_from[target] = taker
            if owner[target] >= 0:
                queue.append(owner[target])
                continue
            while target >= 0:
                taker = reached_from[target]
                owner[target] = taker
                target = taken_by[taker]
            return
