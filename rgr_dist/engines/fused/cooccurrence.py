"""Which positions of contexts retrieve a message in model ``value``, and their error in one form.

The error of a source i is x_i V over the items of its context, with x_i = s_i - e_pi(i). Its
square is a quadratic form in x_i, whose matrix holds the products of messages. Summed over
contexts, each product counts as often as both items co-occur with i and its target. So where
items are few, a check need not go through the contexts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rgr_dist.kernel_cache import cached_kernel

MOST_TRIPLES = 2**19
"""The most triples of items that fit in a core's cache."""


class Retrievals(NamedTuple):
    """The positions of contexts whose item's target is in the context too.

    Attributes:
        until: int64 [n]; context i has the positions from until[i - 1] up to until[i].
        positions: int64.
    """

    until: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]


def retrievals_in(contexts: npt.NDArray[np.int32], targets: npt.NDArray[np.int32]) -> Retrievals:
    """The retrievals in contexts [n, l], if item i has the one target ``targets[i]``."""
    until, positions = np.empty(len(contexts), np.int64), np.empty(contexts.size, np.int64)
    _list_retrievals(contexts, targets, until, positions)
    return Retrievals(until, positions[: until[-1]])


def cooccurrence_pays(m: int, contexts: npt.NDArray[np.int32]) -> bool:
    """Whether a check is faster over triples of items than over contexts [n, l]."""
    n, length = contexts.shape
    return bool(m**3 <= min(MOST_TRIPLES, n * length**3))


def error_forms(
    contexts: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    messages: npt.NDArray[np.float64],
    size: int,
) -> npt.NDArray[np.float32]:
    """Matrices A_i for which x_i A_i x_i is the summed squared error of item i.

    Args:
        messages: [m, v].
        size: m, or what it is padded to.

    Returns:
        [m, size, size]: products of messages times how many contexts hold both, i and its target.
    """
    m = len(targets)
    forms = np.zeros((m, size, size), dtype=np.float32)
    _count_cooccurrence(contexts, targets, forms)
    forms[:, :m, :m] *= (messages @ messages.T).astype(np.float32)
    return forms


@cached_kernel(nogil=True)
def _list_retrievals(contexts: Any, targets: Any, until: Any, positions: Any) -> None:
    present = np.zeros(targets.size, dtype=np.bool_)
    count = 0
    for index in range(contexts.shape[0]):
        for node in contexts[index]:
            present[node] = True
        for position in range(contexts.shape[1]):
            positions[count] = position
            count += present[targets[contexts[index, position]]]
        until[index] = count
        for node in contexts[index]:
            present[node] = False


@cached_kernel(nogil=True)
def _count_cooccurrence(contexts: Any, targets: Any, counts: Any) -> None:
    present = np.zeros(counts.shape[2], dtype=np.float32)
    for index in range(contexts.shape[0]):
        nodes = contexts[index]
        for node in nodes:
            present[node] = np.float32(1.0)
        for source in nodes:
            if present[targets[source]]:
                for other in nodes:
                    row = counts[source, other]
                    for item in range(row.size):
                        row[item] += present[item]
        for node in nodes:
            present[node] = np.float32(0.0)
