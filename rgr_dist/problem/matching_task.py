"""The task of the transformer: permutation to matching, two steps of a pointer (Sec. 7.3).

A query q has the successor s = π(q). The context shows 2l distinct items in l pairs, s among
them and never q. The answer is the item paired with s.

Example i of a stream takes Philox blocks (p, i), whose words in order are: which query, of
those that are not their own successor; the position of s among the 2l items; and the other
2l - 1 items, by a partial Fisher-Yates shuffle of all but q and s. Items 2j and 2j + 1 are a
pair, so that matching and order are uniform. A uniform integer below n is (word * n) >> 32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rgr_dist.problem.edge_task import initial_projections
from rgr_dist.problem.embeddings import sample_with_null
from rgr_dist.problem.graphs import sample_graph
from rgr_dist.problem.kernel_cache import cached_kernel
from rgr_dist.problem.streams import LOW_32, SHIFT_32, Stream, below, philox
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run

Examples = npt.NDArray[np.int32]
"""One example per row: the query, the 2l items of the slots, the answer."""
D_FF = 16
"""Width of the MLP's hidden layer."""
Arrays = dict[str, npt.NDArray[np.float64]]


@dataclass(frozen=True)
class MatchingTask:
    """The problem of one (cell, seed): the same at every head count and key width.

    Attributes:
        targets: successor of each item, int32 [m].
        sources: the items that are not their own successor, int32.
        table: embeddings of the m items, then of NULL, [m + 1, d_model].
        train: the stream that training examples are drawn from.
        validation, test: fixed examples, int32 [n_examples, 2l + 2].
    """

    cell: Cell
    targets: npt.NDArray[np.int32]
    sources: npt.NDArray[np.int32]
    table: npt.NDArray[np.floating]
    train: Stream
    validation: Examples
    test: Examples

    @classmethod
    def of(cls, cell: Cell, seed: int) -> MatchingTask:
        """Build the task of a seed.

        Raises:
            ValueError: the seed's permutation moves no item, so that there is no query.
        """
        targets = sample_graph(cell, seed).targets
        sources = np.flatnonzero(targets != np.arange(cell.m)).astype(np.int32)
        if not len(sources):
            raise ValueError(f"seed {seed}: its permutation of {cell.m} items moves none of them")
        length, training = cell.context.length, cell.training

        def stream(role: str) -> Stream:
            return Stream.of(cell.problem_json, f"matching {role}", seed)

        def fixed(role: str, count: int) -> Examples:
            return draw_examples(stream(role), 0, count, targets, sources, length)

        return cls(
            cell=cell,
            targets=targets,
            sources=sources,
            table=sample_with_null(cell, seed),
            train=stream("train"),
            validation=fixed("validation", training.validation_contexts),
            test=fixed("test", training.test_contexts),
        )

    def training_batches(self, first: int, count: int) -> Examples:
        """Batches ``first`` … ``first + count - 1``, int32 [count, batch_size, 2l + 2]."""
        size, length = self.cell.training.batch_size, self.cell.context.length
        assert size is not None
        drawn = draw_examples(
            self.train, first * size, count * size, self.targets, self.sources, length
        )
        return drawn.reshape(count, size, -1)


def initial_block(run: Run) -> Arrays:
    """The block's parameters at the start, by name (``models.transformer``).

    Weights are normal with variance 1/inputs, biases are 0; the paper does not say. Only
    W_Q and W_K depend on D_K, and a wider layer begins with the narrower one's columns.
    """
    d_model, W_QK = run.cell.d_model, initial_projections(run)

    def draw(name: str, shape: tuple[int, int]) -> npt.NDArray[np.float64]:
        values = Stream.of(run.cell.problem_json, name, run.seed).normals(*shape)
        weights: npt.NDArray[np.float64] = values / np.sqrt(shape[0])
        return weights

    return {
        "W_Q": W_QK[0],
        "W_K": W_QK[1],
        "W_V": draw("W_V", (d_model, d_model)),
        "W_O": draw("W_O", (d_model, d_model)),
        "W_1": draw("W_1", (d_model, D_FF)),
        "b_1": np.zeros(D_FF),
        "W_2": draw("W_2", (D_FF, d_model)),
        "b_2": np.zeros(d_model),
    }


def draw_examples(
    stream: Stream,
    first: int,
    count: int,
    targets: npt.NDArray[np.int32],
    sources: npt.NDArray[np.int32],
    length: int,
) -> Examples:
    """Examples ``first`` … ``first + count - 1`` of a stream.

    Args:
        targets: the permutation, shape [m].
        sources: the items that it moves.
        length: slots of a context, l; 2l + 1 <= m.
    """
    out = np.empty((count, 2 * length + 2), dtype=np.int32)
    _draw_block(stream.key, first, targets, sources, out)
    return out


@cached_kernel(nogil=True)
def _draw_block(key: Any, first: Any, targets: Any, sources: Any, out: Any) -> None:
    m, n_items = targets.size, out.shape[1] - 2
    deck = np.arange(m).astype(np.int32)  # the identity, restored after every example
    jumps = np.empty(n_items - 1, dtype=np.int64)
    words = np.empty(n_items + 4, dtype=np.uint64)
    for i in range(out.shape[0]):
        low, high = np.uint64(first + i) & LOW_32, np.uint64(first + i) >> SHIFT_32
        for p in range((n_items + 4) // 4):
            block = philox(key[0], key[1], np.uint64(p), low, high, np.uint64(0))
            for lane in range(4):
                words[4 * p + lane] = block[lane]
        query = sources[below(sources.size, words[0])]
        successor = targets[query]
        position = below(n_items, words[1])
        # The query and its successor leave the draw: they go to the end of the deck.
        last = deck[m - 1]
        deck[m - 1], deck[query] = query, last
        aside = query if successor == last else successor
        second = deck[m - 2]
        deck[m - 2], deck[aside] = successor, second
        out[i, 0] = query
        for p in range(n_items - 1):
            j = p + below(m - 2 - p, words[2 + p])
            jumps[p] = j
            deck[p], deck[j] = deck[j], deck[p]
            out[i, 1 + (p if p < position else p + 1)] = deck[p]
        out[i, 1 + position] = successor
        out[i, n_items + 1] = out[i, 1 + (position ^ 1)]
        for p in range(n_items - 2, -1, -1):
            j = jumps[p]
            deck[p], deck[j] = deck[j], deck[p]
        deck[m - 2], deck[aside] = second, successor
        deck[m - 1], deck[query] = last, query
