"""Algorithm 3's smallest d_k, against every width of another program on the same signatures.

At 400 draws that width is itself random, by more than 5 %; so both have the same draws.
"""

from __future__ import annotations

import numpy as np
import pytest

from rgr_dist.study.cell import Cell
from rgr_dist.study.construction import Construction
from rgr_dist.theory.construct import problem_of, signatures_of
from rgr_dist.theory.draws import Constructor
from rgr_dist.theory.smallest_width import smallest_width

DRAWS, SHARE = 400, 0.99
WIDEST = {"rademacher": 130, "bernoulli": 380}


def asked(m: int, signatures: str) -> tuple[Cell, Construction]:
    keys = {"m": m, "d_model": m, "embedding": {"family": "onehot"}, "context": {"length": 16}}
    return Cell.model_validate(keys), Construction.model_validate({"signatures": signatures})


def by_every_width(cell: Cell, options: Construction, first: int = 0) -> int:
    """The least width with enough successes: items i and j score w_i · w_j, a column at a time.

    Every item's score with itself must be above the printed threshold, and no other may be; which
    item is whose target does not matter.
    """
    m, widest, p = cell.m, WIDEST[str(options.signatures)], 0.25
    per_column = 0.5 if options.signatures == "rademacher" else (p + p * p) / 2
    exact = np.zeros(widest, dtype=int)
    for seed in range(first, first + DRAWS):
        stream = problem_of(cell, seed).stream("signatures")
        columns = signatures_of("3", options).draw(stream, m, widest).T.astype(np.float32)
        own = np.cumsum(columns * columns, axis=0).min(axis=1)
        others = np.diag(np.full(m, -1e6, dtype=np.float32))
        for i, column in enumerate(columns):
            others += np.outer(column, column)
            exact[i] += own[i] > per_column * (i + 1) >= others.max()
    return int(np.flatnonzero(exact >= SHARE * DRAWS)[0]) + 1


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("signatures", ["rademacher", "bernoulli"])
@pytest.mark.parametrize("m", [64, 128, 256])
def test_the_smallest_width_is_the_least_of_all(m: int, signatures: str) -> None:
    cell, options = asked(m, signatures)
    found = smallest_width(Constructor(cell, "3", options), 1, DRAWS, SHARE)
    assert found == by_every_width(cell, options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signatures", "widths"),
    [("rademacher", [76, 68, 68, 72, 68]), ("bernoulli", [243, 252, 250, 217, 236])],
)
def test_other_draws_move_it_as_the_page_says(signatures: str, widths: list[int]) -> None:
    sets = range(0, len(widths) * DRAWS, DRAWS)
    assert [by_every_width(*asked(64, signatures), first) for first in sets] == widths
