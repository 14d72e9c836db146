"""The errors of retrieved messages in model ``value``, as quadratic forms.

The error of a source i is x_i V over the items of its context, with x_i = s_i - e_pi(i). Its
square is a quadratic form in x_i, whose matrix holds the products of messages. Summed over
contexts, the product of two items counts as often as they co-occur with i and its target. So
where items are few, a check need not go through the contexts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rgr_dist.kernel_cache import cached_kernel

MOST_TRIPLES = 2**19
"""The most triples of items that fit in a core's cache."""


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
        [m, size, size]: products of two items' messages times the number of contexts that hold
            these items, i and its target.
    """
    m = len(targets)
    forms = np.zeros((m, size, size), dtype=np.float32)
    _count_cooccurrence(contexts, targets, forms)
    forms[:, :m, :m] *= (messages @ messages.T).astype(np.float32)
    return forms


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
