"""Algorithm 3's smallest d_k, against a program of its own: other random numbers, whole matrices.

At 400 draws that width is itself random, so medians over several sets of draws are compared.
"""

from __future__ import annotations

import statistics

import numpy as np
import pytest

from rgr_dist.study.cell import Cell
from rgr_dist.study.construction import Construction
from rgr_dist.theory.draws import Constructor

DRAWS, SHARE = 400, 0.99
WIDTHS = {"rademacher": range(50, 125), "bernoulli": range(180, 370)}
"""Widths that the other program looks at."""


def ours(m: int, signatures: str, sets: int) -> list[int]:
    """What ``find`` returns for several sets of draws: a context length of its own gives each."""
    options = Construction.model_validate({"signatures": signatures})
    widths = []
    for length in range(2, 2 + sets):
        keys = {"m": m, "d_model": m, "embedding": {"family": "onehot"}}
        cell = Cell.model_validate({**keys, "context": {"length": length}})
        found = Constructor(cell, "3", options).find(1, DRAWS, SHARE)
        assert found is not None
        widths.append(found)
    return widths


def by_themselves(m: int, signatures: str, sets: int) -> list[int]:
    """The smallest width with enough successes: items i and j score w_i · w_j, a column at a time.

    Every item's score with itself must be above the printed threshold, and no other may be.
    """
    rng = np.random.default_rng(m)
    widths, p = WIDTHS[signatures], 0.25
    per_column = 0.5 if signatures == "rademacher" else (p + p * p) / 2
    found = []
    for _ in range(sets):
        exact = dict.fromkeys(widths, 0)
        for _ in range(DRAWS):
            shape = (m, widths.stop)
            if signatures == "rademacher":
                w = rng.choice(np.array([-1, 1], np.float32), shape)
            else:
                w = (rng.random(shape, np.float32) < p).astype(np.float32)
            columns, own = np.ascontiguousarray(w.T), np.cumsum(w * w, axis=1).min(axis=0)
            others = w[:, : widths.start - 1] @ w[:, : widths.start - 1].T
            np.fill_diagonal(others, -1e6)
            for d_k in widths:
                others += np.outer(columns[d_k - 1], columns[d_k - 1])
                threshold = per_column * d_k
                exact[d_k] += bool(own[d_k - 1] > threshold >= others.max())
        found.append(min(d_k for d_k, times in exact.items() if times >= SHARE * DRAWS))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("signatures", ["rademacher", "bernoulli"])
@pytest.mark.parametrize(("m", "sets"), [(64, 15), (128, 15), (256, 9)])
def test_the_smallest_width_is_that_of_another_program(m: int, sets: int, signatures: str) -> None:
    here, there = ours(m, signatures, sets), by_themselves(m, signatures, sets)
    print(m, signatures, sorted(here), sorted(there))
    assert min(there) > WIDTHS[signatures].start
    assert statistics.median(here) == pytest.approx(statistics.median(there), rel=0.05)
