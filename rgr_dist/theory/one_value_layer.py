"""A layer of one value dimension that holds any database, by inflation of rank.

Argmax and softmax are no linear maps, so the rank of what they make of logits has no bound by the
rank of the logits (Props. 3.6 and 3.7 of arXiv:2502.05076, of which our seeds have a summary).
Number the values 1 … |V|, and let f_kq be the answer to (k, q), or 1 if none is asked. The logits

    L_kqv = s (2 f_kq v - v²) = s (f_kq² - (f_kq - v)²)

have rank |Q| + 1 at most: the matrix f times the vector 2 v, and one term for v². They are largest
at v = f_kq, and the next are lower by s. So argmax(L) is the database, of whatever rank.

*As a layer* (``models.facts``, with a residual connection): the token x_q gives -s v² by itself.
One head of d_vo = 1 adds A_kq F to f, with F = |V| + 1 and A_kq = f_kq / F, a number between 0 and
1: the scores of a head are any matrix |K| x |Q| at d_qk = |Q|. So d_model = |Q| + 2 is enough.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Weights = dict[str, npt.NDArray[np.float64]]


def one_value_layer(
    triples: npt.NDArray[np.integer], shape: tuple[int, int, int], tau: float
) -> Weights:
    """One head of d_vo = 1 and d_qk = |Q| that is right on every asked triple.

    Args:
        triples: keys, queries and values, [n, 3]; a pair has one value at most.
        shape: |K|, |Q|, |V|.
        tau: the probability that softmax gives each right value at least, below 1.

    Returns:
        Its weights by name, of d_model = |Q| + 2, for a layer with a residual connection.
    """
    n_keys, n_queries, n_values = shape
    scale = math.log(4 / (1 - tau))  # wrong values have less than (1 - tau) / tau of the right one
    answers = np.ones((n_keys, n_queries))
    answers[tuple(triples[:, :2].T)] = triples[:, 2] + 1
    shares = answers / (n_values + 1)
    routing = np.eye(n_queries + 2, n_queries, -2)  # the last |Q| coordinates
    first = np.eye(n_queries + 2, 1)
    keys = np.log(shares / (1 - shares)) * math.sqrt(n_queries) + 1  # 1: a query's score of itself
    numbers = np.arange(1, n_values + 1)
    return {
        "X_K": np.column_stack([np.full(n_keys, n_values + 1.0), np.zeros(n_keys), keys]),
        "X_Q": np.column_stack([np.zeros(n_queries), np.ones(n_queries), np.eye(n_queries)]),
        "W_Q": routing,
        "W_K": routing,
        "W_V": first,
        "W_O": first.T,
        "U": scale * np.stack([2.0 * numbers, -(numbers**2.0), *np.zeros((n_queries, n_values))]),
    }
