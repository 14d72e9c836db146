"""One narrow head on rows that know the graph: exact, on unit rows, in single precision too."""

from __future__ import annotations

import numpy as np
import pytest

from rgr_dist.problem.graphs import Neighbours
from rgr_dist.problem.streams import Stream
from rgr_dist.theory.all_pairs import score_all_pairs
from rgr_dist.theory.trained_embeddings import share_embedding


@pytest.mark.parametrize(("m", "d_k", "relations"), [(4096, 8, 1), (256, 6, 3), (2, 2, 1)])
def test_a_head_of_the_code_is_right_on_every_pair(m: int, d_k: int, relations: int) -> None:
    targets = np.stack([Stream.of("x", "pi", r).permutation(m) for r in range(relations)])
    X, layers = share_embedding(targets, d_k, Stream.of("x", "code", 0))
    assert X.shape == (m, (relations + 1) * d_k)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1)
    assert len(layers) == relations
    for layer, pi in zip(layers, targets, strict=True):
        assert layer.W_Q.shape == (X.shape[1], d_k)
        graph = Neighbours(np.arange(m + 1, dtype=np.int32), pi)
        found = score_all_pairs(layer, X, graph)
        assert found.exact
        assert found.margin > 1e-3
        Q, K = (X.astype(np.float32) @ W.astype(np.float32) for W in (layer.W_Q, layer.W_K))
        np.testing.assert_array_equal(np.float32(layer.tau) < Q @ K.T, graph.matrix)
