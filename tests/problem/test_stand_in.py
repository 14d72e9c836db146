"""GPT-2's stand-in: a common mean, an unequal spread, a name that says what it is; and tables."""

from __future__ import annotations

import numpy as np
import pytest

from rgr_dist.problem.embeddings import sample_embedding, sample_with_null
from rgr_dist.problem.stand_in import MEAN_NORM, NORM, stand_in_table
from rgr_dist.study.cell import Cell


@pytest.mark.parametrize("d_model", [64, 256])
def test_vectors_have_the_norm_the_mean_and_the_spread_that_are_documented(d_model: int) -> None:
    table = stand_in_table(3000, d_model)
    norms = np.linalg.norm(table, axis=1)
    assert np.sqrt(np.mean(norms**2)) == pytest.approx(NORM, rel=0.02)
    mean = table.mean(axis=0)
    assert np.linalg.norm(mean) == pytest.approx(MEAN_NORM, rel=0.02)
    unit = table / norms[:, np.newaxis]
    cosines = (unit[:500] @ unit[500:1000].T).mean()
    assert cosines == pytest.approx(MEAN_NORM**2 / NORM**2, rel=0.1)
    variances = np.var(table, axis=0)
    assert variances[0] / variances.mean() == pytest.approx(np.sqrt(d_model) / 2, rel=0.15)
    slope = np.polyfit(np.log(np.arange(1, d_model + 1)), np.log(variances), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.03)


def test_a_larger_table_begins_with_the_smaller_one_and_both_share_null() -> None:
    small, large = stand_in_table(10, 8), stand_in_table(30, 8)
    np.testing.assert_array_equal(small[:10], large[:10])
    np.testing.assert_array_equal(small[-1], large[-1])
    assert len(np.unique(large, axis=0)) == 31


def test_stored_runs_keep_their_vectors() -> None:
    first, null = stand_in_table(3, 4)[[0, 3], :2].tolist()
    assert first == pytest.approx([-0.300754020999521, 0.018158052023864224], rel=1e-12)
    assert null == pytest.approx([-1.222124669832094, -2.201950191227819], rel=1e-12)


def test_a_cell_of_it_has_the_same_vectors_at_every_seed_and_is_named_by_it() -> None:
    cell = Cell(m=20, d_model=8, embedding={"family": "stand-in"})
    np.testing.assert_array_equal(sample_embedding(cell, 0), sample_embedding(cell, 7))
    np.testing.assert_array_equal(sample_with_null(cell, 0)[:20], sample_embedding(cell, 0))
    assert sample_with_null(cell, 0).shape == (21, 8)
    assert cell.embedding.family == "stand-in"
    assert cell.cell_id != Cell(m=20, d_model=8).cell_id
