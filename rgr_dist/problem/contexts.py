"""The context sampler of App. A.1 and A.3, one context per counter.

Context i of a stream takes Philox blocks (p, i), one for each position p < l. The four
words of a block are: the draw of the node at p, whether a target of that node must be
present, which node that target replaces, and which of the targets it is.

1. l distinct nodes S: a partial Fisher-Yates shuffle of all m nodes.
2. U: each node of S joins with probability rho, which is the same law as drawing
   b ~ Binomial(l, rho) and then a uniform U of size b.
3. For each i of U in turn, if no out-neighbour of i is in S, a uniformly drawn one replaces a
   uniformly drawn node of S other than i. U is fixed before the replacements begin, so a node
   that was itself replaced still brings a target in, as in the paper's wording. A node without
   out-neighbours brings none, and a later replacement may remove a target again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rgr_dist.problem.graphs import Neighbours
from rgr_dist.problem.kernel_cache import cached_kernel
from rgr_dist.problem.streams import LOW_32, SHIFT_32, Stream, below, philox

ABSENT = np.int32(-1)


@cached_kernel(nogil=True)
def _draw_block(key: Any, first: Any, graph: Any, rate_word: Any, out: Any) -> None:
    """Draw contexts ``first`` … into ``out``, int32 [count, l].

    Args:
        key: uint64 [2], the stream's key.
        graph: the ``Neighbours``.
        rate_word: uint64, rho * 2**32.
    """
    m, length = graph.starts.size - 1, out.shape[1]
    deck = np.arange(m).astype(np.int32)  # the identity, restored after every context
    where = np.full(m, ABSENT, dtype=np.int32)  # position of a node in the context
    words = np.empty((4, length), dtype=np.uint32)
    for i in range(out.shape[0]):
        nodes = out[i]
        low, high = np.uint64(first + i) & LOW_32, np.uint64(first + i) >> SHIFT_32
        for p in range(length):
            block = philox(key[0], key[1], np.uint64(p), low, high, np.uint64(0))
            for word in range(4):
                words[word, p] = block[word]
        for p in range(length):
            j = p + below(m - p, words[0, p])
            node = deck[j]
            deck[j] = deck[p]
            deck[p] = node
            where[node] = p
            nodes[p] = node
        for p in range(length):
            if np.uint64(words[1, p]) >= rate_word:
                continue
            source = deck[p]  # the node drawn at p, even if it has been replaced since
            start, end = graph.starts[source], graph.starts[source + 1]
            brings = end > start
            for edge in range(start, end):
                brings &= where[graph.targets[edge]] == ABSENT
            if not brings:
                continue
            target = graph.targets[start + below(end - start, words[3, p])]
            present = where[source]
            q = below(length if present == ABSENT else length - 1, words[2, p])
            if present != ABSENT and q >= present:
                q += 1
            where[nodes[q]] = ABSENT
            nodes[q] = target
            where[target] = q
        for p in range(length):
            where[nodes[p]] = ABSENT
        # Undo the shuffle: every touched entry of the deck is p or one of the drawn nodes.
        for p in range(length):
            words[0, p] = np.uint32(deck[p])
        for p in range(length):
            deck[words[0, p]] = np.int32(words[0, p])
            deck[p] = np.int32(p)


def rate_word(positive_rate: float) -> np.uint64:
    """rho as a 32-bit threshold: a word below it means the node joins U."""
    return np.uint64(round(positive_rate * 2**32))


def draw_contexts(
    stream: Stream, first: int, count: int, graph: Neighbours, length: int, rate: float
) -> npt.NDArray[np.int32]:
    """Contexts ``first`` … ``first + count - 1`` of a stream.

    Args:
        graph: the m items and their out-neighbours.
        length: items in a context, l <= m.
        rate: target-in-context rate rho.

    Returns:
        The items of each context in order, shape [count, l]; the items of a row are distinct.
    """
    out = np.empty((count, length), dtype=np.int32)
    _draw_block(stream.key, first, graph, rate_word(rate), out)
    return out


@cached_kernel(nogil=True)
def _count_edges(contexts: Any, graph: Any, counts: Any) -> None:
    present = np.zeros(graph.starts.size - 1, dtype=np.bool_)
    for index in range(contexts.shape[0]):
        for node in contexts[index]:
            present[node] = True
        for node in contexts[index]:
            for edge in range(graph.starts[node], graph.starts[node + 1]):
                counts[index] += present[graph.targets[edge]]
        for node in contexts[index]:
            present[node] = False


def edges_within(contexts: npt.NDArray[np.int32], graph: Neighbours) -> npt.NDArray[np.int64]:
    """How many edges lie inside each context [n, l], int64 [n]."""
    counts = np.zeros(len(contexts), dtype=np.int64)
    _count_edges(contexts, graph, counts)
    return counts
