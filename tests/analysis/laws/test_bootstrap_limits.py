"""Seeds drawn again: thresholds recomputed draw by draw."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from rgr_dist.analysis.laws.bootstrap_limits import Draws, bootstrap_coefficient, draw_seeds
from rgr_dist.analysis.laws.points import points
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.search.probe_verdict import passes
from tests.analysis import made_up
from tests.analysis.laws.made_up_cells import LOG_SCALE, draw


def small(scores: dict[int, list[float]]) -> Draws:
    """Draws of one cell whose only head, two, was probed at these widths."""
    study = made_up.study_of([(64, 16)], heads=[2], seeds=4)
    (cell,) = study.cells
    runs = made_up.probe_rows(cell, {(2, d_k): own for d_k, own in scores.items()})
    threshold = min(d_k for d_k, own in scores.items() if passes(own, 0.99))
    results = made_up.results_of(study, runs, [made_up.threshold_row(cell, 2, threshold)])
    return draw_seeds(points(best_of(results), [2]), results.runs, study, draws=4000)


def test_a_threshold_without_doubt_is_the_same_in_every_draw() -> None:
    draws = small({9: [0.2, 0.3], 10: [1.0] * 4, 11: [1.0] * 4})
    assert set(draws.fails[:, 0]) == {18}
    assert set(draws.passes[:, 0]) == {20}
    assert draws.seed_sd[0] == pytest.approx(0, abs=1e-12)


def test_a_threshold_moves_as_often_as_its_seeds_say() -> None:
    """Width 10 passes unless the weak seed is drawn twice or more of four times."""
    draws = small({9: [0.5] * 4, 10: [0.97, 1, 1, 1], 11: [1.0] * 4})
    moved = (draws.passes[:, 0] == 22).mean()
    assert moved == pytest.approx(1 - 0.75**4 - 4 * 0.25 * 0.75**3, abs=0.03)
    assert set(draws.fails[draws.passes[:, 0] == 22, 0]) == {20}


def test_a_mean_at_the_target_passes_however_its_floats_are_rounded() -> None:
    """Of its four seeds one has not run: 2, -1, -1 thousandths above the target of 0.99."""
    draws = small({10: [0.992, 0.989, 0.989], 11: [1.0] * 4})
    passing = [sum(drawn) >= 0 for drawn in product([2, -1, -1, 0], repeat=4)]
    assert (draws.passes[:, 0] == 20).mean() == pytest.approx(np.mean(passing), abs=0.03)


def test_where_nothing_passes_any_more_the_interval_is_open() -> None:
    draws = small({9: [0.5] * 4, 10: [0.97, 1, 1, 1]})
    assert np.isinf(draws.passes[:, 0]).any()
    assert (draws.fails[np.isinf(draws.passes[:, 0]), 0] == 20).all()


def test_a_width_refuted_on_fresh_seeds_fails_in_every_draw() -> None:
    study = made_up.study_of([(64, 16)], heads=[2], seeds=4)
    (cell,) = study.cells
    runs = made_up.probe_rows(cell, {(2, 9): [0.5] * 4, (2, 10): [0.995] * 4, (2, 11): [1.0] * 4})
    results = made_up.results_of(study, runs, [made_up.threshold_row(cell, 2, 11)])
    draws = draw_seeds(points(best_of(results), [2]), results.runs, study, draws=50)
    assert set(draws.fails[:, 0]) == {20}
    assert set(draws.passes[:, 0]) == {22}


def test_seeds_are_paired_within_a_cell() -> None:
    """The weak seed is the same at both widths, so that both pass or both fail."""
    weak = [0.97, 1, 1, 1]
    draws = small({9: [0.5] * 4, 10: weak, 11: weak, 12: [1.0] * 4})
    assert set(draws.passes[:, 0]) == {20, 24}


def test_bootstrap_limits_lie_about_the_exponent() -> None:
    lower, upper = draw(np.random.default_rng(3), 1, 1.2 * LOG_SCALE, 0.1)
    draws = Draws(np.tile(np.exp(lower), (500, 1)), np.tile(np.exp(upper), (500, 1)))
    design = np.column_stack([np.ones_like(LOG_SCALE), LOG_SCALE])
    ends = bootstrap_coefficient(draws, design)
    assert ends is not None
    assert ends[0] < 1.2 < ends[1]
    assert bootstrap_coefficient(draws, design) == ends
    assert bootstrap_coefficient(Draws(draws.fails[:, :3], draws.passes[:, :3]), design[:3]) is None
