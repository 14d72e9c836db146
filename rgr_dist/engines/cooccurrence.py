"""What contexts ask for in model ``value``, and how often items meet where it is asked.

The error of a source i is (s_i - e_pi(i)) V over the items of its context. Its square is a form
in s_i - e_pi(i), whose matrix is the products of messages. Summed over contexts each product
counts as often as both items meet i and its target: so where items are few, a check need not go
through contexts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

MOST_TRIPLES = 2**19
"""Triples of items that are worth it: what fits in a core's cache."""


class Asks(NamedTuple):
    """The positions of contexts whose item's target is in the context too.

    Attributes:
        until: int64 [n]; context i has the positions from until[i - 1] up to until[i].
        positions: int64.
    """

    until: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]


def asks_of(contexts: npt.NDArray[np.int32], targets: npt.NDArray[np.int32]) -> Asks:
    """What contexts [n, l] ask for, if item i has the one target ``targets[i]``."""
    until, positions = np.empty(len(contexts), np.int64), np.empty(contexts.size, np.int64)
    _list_asks(contexts, targets, until, positions)
    return Asks(until, positions[: until[-1]])


def meetings_pay(m: int, contexts: npt.NDArray[np.int32]) -> bool:
    """Whether a check had better sum over triples of items than go through contexts [n, l]."""
    n, length = contexts.shape
    return bool(m**3 <= min(MOST_TRIPLES, n * length**3))


def form_of_errors(
    contexts: npt.NDArray[np.int32],
    targets: npt.NDArray[np.int32],
    messages: npt.NDArray[np.float64],
    size: int,
) -> npt.NDArray[np.float32]:
    """Matrices A_i for which x_i A_i x_i, x_i = s_i - e_pi(i), are the summed squared errors.

    Args:
        messages: [m, v].
        size: m, or what it is padded to.

    Returns:
        [m, size, size]: products of messages times how many contexts hold both, i and its target.
    """
    m = len(targets)
    form = np.zeros((m, size, size), dtype=np.float32)
    _count_meetings(contexts, targets, form)
    form[:, :m, :m] *= (messages @ messages.T).astype(np.float32)
    return form


@numba.njit(nogil=True, cache=True)
def _list_asks(contexts: Any, targets: Any, until: Any, positions: Any) -> None:
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


@numba.njit(nogil=True, cache=True)
def _count_meetings(contexts: Any, targets: Any, counts: Any) -> None:
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
