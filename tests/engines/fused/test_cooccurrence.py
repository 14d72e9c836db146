"""The form of the errors of retrieved messages, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from rgr_dist.engines.fused.cooccurrence import cooccurrence_pays, error_forms


@pytest.mark.parametrize(("m", "length"), [(9, 4), (5, 5), (20, 2)])
def test_the_form_gives_the_errors_summed_over_contexts(m: int, length: int) -> None:
    rng = np.random.default_rng(m)
    contexts = np.stack([rng.permutation(m)[:length] for _ in range(30)]).astype(np.int32)
    targets, V = rng.permutation(m).astype(np.int32), rng.normal(size=(m, 3))
    S = rng.normal(size=(m, m))
    expected = 0.0
    for nodes in contexts:
        for source in nodes:
            if targets[source] in nodes:
                error = S[source, nodes] @ V[nodes] - V[targets[source]]
                expected += error @ error
    size = m + 3
    x = np.zeros((m, size))
    x[:, :m] = S
    x[np.arange(m), targets] -= 1
    forms = error_forms(contexts, targets, V, size)
    assert forms.shape == (m, size, size)
    assert np.einsum("ij,ijk,ik->", x, forms, x) == pytest.approx(expected, rel=1e-5)
    assert not forms[:, m:].any()
    assert not forms[:, :, m:].any()


def test_triples_pay_off_where_items_are_few_and_contexts_many() -> None:
    def contexts(n: int) -> np.ndarray:
        return np.zeros((n, 16), dtype=np.int32)

    assert cooccurrence_pays(64, contexts(64))  # 64³ = 64 · 16³
    assert not cooccurrence_pays(64, contexts(63))
    assert cooccurrence_pays(80, contexts(5000))
    assert not cooccurrence_pays(81, contexts(5000))  # more than 2¹⁹ triples
