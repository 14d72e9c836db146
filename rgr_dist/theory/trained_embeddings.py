"""What trained embeddings make possible: one narrow head holds any permutation.

The paper's bounds and constructions fix the embedding before the graph is drawn (Theorem 9.2,
Sec. 10). If the rows may know the graph, a random code of O(log m) numbers is enough.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rgr_dist.problem.streams import Stream
from rgr_dist.theory.layer import FloatArray, Layer


def share_embedding(
    targets: npt.NDArray[np.integer], d_k: int, stream: Stream
) -> tuple[FloatArray, list[Layer]]:
    """Unit rows X, and for each of R permutations a layer of one head that holds it on them.

    x_i = [u_i, u_π₁(i), …, u_πR(i)] / √(R + 1), where u are random unit vectors of d_k numbers. The
    keys of relation r read the first part and its queries the part of π_r, so that
    S_ij = <u_π(i), u_j>: 1 on an edge and less on every other pair. The gap to the nearest of them
    shrinks as m^(-4 / (d_k - 1)), so that d_k = O(log m) keeps it constant, as random codes do.

    Args:
        targets: the R permutations, int [R, m].
        d_k: at least 2.
        stream: draws the code.

    Returns:
        X, [m, (R + 1) d_k], and the layers, whose tau lies half-way to the nearest other pair.

    >>> from rgr_dist.problem.graphs import Neighbours
    >>> from rgr_dist.theory.all_pairs import score_all_pairs
    >>> stream = Stream.of("an example", "code", 0)
    >>> targets = stream.permutation(64)
    >>> X, (layer,) = share_embedding(targets[np.newaxis], d_k=4, stream=stream)
    >>> X.shape, layer.W_Q.shape
    ((64, 8), (8, 4))
    >>> score_all_pairs(layer, X, Neighbours(np.arange(65, dtype=np.int32), targets)).exact
    True
    """
    relations, m = targets.shape
    u = stream.normals(m, d_k)
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    parts = [u, *(u[pi] for pi in targets)]
    products = u @ u.T
    np.fill_diagonal(products, -1)
    tau = float(1 + products.max()) / 2
    reads = np.sqrt(relations + 1) * np.eye((relations + 1) * d_k).reshape(-1, relations + 1, d_k)
    layers = [Layer(reads[:, r], reads[:, 0], 1, tau) for r in range(1, relations + 1)]
    return np.concatenate(parts, axis=1) / np.sqrt(relations + 1), layers
