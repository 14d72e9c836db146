"""A layer with one value dimension that holds any database, by inflation of rank.

Argmax and softmax are not linear, so the rank of the logits does not bound that of their result
(Props. 3.6 and 3.7 of arXiv:2502.05076, of which we have only a summary).
Number the values 1 … |V|, and let f_kq be the answer to (k, q), or 1 if none is asked. The logits

    L_kqv = s (2 f_kq v - v²) = s (f_kq² - (f_kq - v)²)

have rank at most |Q| + 1: the matrix f times the vector 2 v, and one term for v². They are largest
at v = f_kq, and the next largest are lower by s. So argmax(L) is the database, whatever its rank.

*As a layer* (``models.facts``, with a residual connection): the token x_q gives -s v² by itself.
One head with d_vo = 1 adds f_kq as A_kq F, with F = |V| + 1 and A_kq between 0 and 1: at
d_qk = |Q| the scores of a head can be any matrix |K| x |Q|. So d_model = |Q| + 2 is enough.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Weights = dict[str, npt.NDArray[np.float64]]


def one_value_layer(
    triples: npt.NDArray[np.integer], shape: tuple[int, int, int], tau: float
) -> Weights:
    """One head with d_vo = 1 and d_qk = |Q| that is right on every asked triple.

    Args:
        triples: keys, queries and values, [n, 3]; at most one value for each pair.
        shape: |K|, |Q|, |V|.
        tau: the least probability that softmax gives to each right value, below 1.

    Returns:
        Its weights by name, with d_model = |Q| + 2, for a layer with a residual connection.
    """
    n_keys, n_queries, n_values = shape
    scale = math.log(4 / (1 - tau))  # all wrong values: below (1 - tau) / tau of the right one
    answers = np.ones((n_keys, n_queries))
    answers[tuple(triples[:, :2].T)] = triples[:, 2] + 1
    shares = answers / (n_values + 1)
    routing = np.eye(n_queries + 2, n_queries, -2)  # the last |Q| coordinates
    first = np.eye(n_queries + 2, 1)
    keys = np.log(shares / (1 - shares)) * math.sqrt(n_queries) + 1  # 1: a query's own score
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
