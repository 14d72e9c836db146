"""The interval likelihood against scipy, statsmodels and lifelines."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from statsmodels.regression.linear_model import OLS

from rgr_dist.analysis.laws.interval_likelihood import fit, middles
from rgr_dist.analysis.laws.profile_limits import cut_off, profile_interval


def made_up(seed: int, n: int = 14) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Intervals of unequal width about a line, one open below and two open above."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 4, n)
    y = 0.4 + 1.2 * x + rng.normal(0, 0.3, n)
    width = rng.uniform(0.05, 0.6, n)
    lower = y - width * rng.uniform(0, 1, n)
    upper = lower + width
    lower[0], upper[1:3] = -np.inf, np.inf
    return lower, upper, np.column_stack([np.ones(n), x])


def by_scipy(lower: np.ndarray, upper: np.ndarray, design: np.ndarray) -> np.ndarray:
    """The same maximum by a general optimiser on the likelihood as it is written."""

    def loss(parameters: np.ndarray) -> float:
        centre, sigma = design @ parameters[:-1], np.exp(parameters[-1])
        share = stats.norm.cdf((upper - centre) / sigma) - stats.norm.cdf((lower - centre) / sigma)
        return -float(np.log(np.maximum(share, 1e-300)).sum())

    beta = np.linalg.lstsq(design, middles(lower, upper), rcond=None)[0]
    start = np.append(beta, np.log(0.3))
    options = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 20_000, "maxfev": 20_000}
    found = optimize.minimize(loss, start, method="Nelder-Mead", options=options)
    return np.append(found.x, -found.fun)


@pytest.mark.parametrize("seed", range(4))
def test_the_maximum_is_that_of_a_general_optimiser(seed: int) -> None:
    lower, upper, design = made_up(seed)
    found = fit(lower, upper, design)
    *beta, log_sigma, log_likelihood = by_scipy(lower, upper, design)
    assert found.coefficients == pytest.approx(beta, abs=1e-5)
    assert found.sigma == pytest.approx(np.exp(log_sigma), rel=1e-4)
    assert found.log_likelihood == pytest.approx(log_likelihood, abs=1e-8)


def test_the_maximum_is_that_of_lifelines() -> None:
    """lifelines 0.30.3: ``LogNormalAFTFitter().fit_interval_censoring(frame, "lower", "upper")``
    of ``made_up(0)``, the ends as exponentials, with ``_scipy_fit_method = "SLSQP"``; an open lower
    end is 1e-8 there and an open upper one 1e12, since it takes neither 0 nor infinity here."""
    found = fit(*made_up(0))
    assert found.coefficients == pytest.approx([0.28656861133573086, 1.2541605490706673], abs=1e-6)
    assert found.sigma == pytest.approx(np.exp(-1.6729763041101708), abs=1e-6)
    assert found.log_likelihood == pytest.approx(-12.8416198539365, abs=1e-8)


def test_narrow_intervals_give_least_squares_and_its_t_interval() -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 4, 12)
    y = 0.4 + 1.2 * x + rng.normal(0, 0.3, 12)
    design = np.column_stack([np.ones(12), x])
    lower, upper = y - 5e-5, y + 5e-5
    ols = OLS(y, design).fit()
    found = fit(lower, upper, design)
    assert found.coefficients == pytest.approx(ols.params, abs=1e-5)
    assert found.sigma == pytest.approx(np.sqrt(ols.ssr / 12), rel=1e-4)
    for index in (0, 1):
        ends = [float(end) for end in profile_interval(lower, upper, design, index)]
        assert ends == pytest.approx(list(ols.conf_int()[index]), abs=1e-4)


def test_a_limit_is_where_the_likelihood_has_fallen_by_the_cut_off() -> None:
    lower, upper, design = made_up(5)
    whole = fit(lower, upper, design)
    cut = float(cut_off(lower, upper, 2))
    for end in profile_interval(lower, upper, design, 1):
        moved = float(end) * design[:, 1]
        held = by_scipy(lower - moved, upper - moved, design[:, :1])[-1]
        assert 2 * (float(whole.log_likelihood) - held) == pytest.approx(cut, abs=1e-3)


def test_a_batch_is_its_fits_one_by_one() -> None:
    parts = [made_up(seed) for seed in range(5)]
    lower, upper, design = (np.stack(part) for part in zip(*parts, strict=True))
    together = fit(lower, upper, design)
    ends = profile_interval(lower, upper, design, 1)
    for i, part in enumerate(parts):
        alone = fit(*part)
        assert together.coefficients[i] == pytest.approx(alone.coefficients, abs=1e-6)
        assert together.sigma[i] == pytest.approx(alone.sigma, abs=1e-6)
        own = profile_interval(*part, 1)
        assert [ends[0][i], ends[1][i]] == pytest.approx([float(end) for end in own], abs=1e-4)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(-3, 3), st.floats(-2, 2))
def test_weights_repeat_and_lines_move_along(seed: int, shift: float, tilt: float) -> None:
    lower, upper, design = made_up(seed)
    counts = np.random.default_rng(seed).integers(1, 3, len(lower))
    weighted = fit(lower, upper, design, counts)
    moved = shift + tilt * design[:, 1]
    repeated = fit(*(np.repeat(part, counts, axis=0) for part in (lower, upper, design)))
    tilted = fit(lower + moved, upper + moved, design, counts)
    assert weighted.coefficients == pytest.approx(repeated.coefficients, abs=1e-5)
    expected = np.add(weighted.coefficients, [shift, tilt])
    assert tilted.coefficients == pytest.approx(expected, abs=1e-5)
    assert tilted.sigma == pytest.approx(weighted.sigma, rel=1e-4)


@pytest.mark.parametrize("counts", [(2, 0, 0, 2, 2, 0), (3, 0, 0, 1, 2, 0)])
def test_what_has_no_weight_is_left_out_however_unlikely_it_is(counts: tuple[int, ...]) -> None:
    """The weighted intervals are open, and σ grows until the others have no share at all."""
    lower = np.log([1, 1, 6, 1, 64, 2])
    upper = np.log([2, 2, 8, 2, 128, 4])
    lower[[0, 3]], upper[4] = -np.inf, np.inf
    design = np.column_stack([np.ones(6), np.log([6, 3, 10.75, 5.375, 16, 8])])
    weights, kept = np.array(counts), np.array(counts) > 0
    whole = fit(lower, upper, design, weights)
    alone = fit(lower[kept], upper[kept], design[kept], weights[kept])
    assert whole.log_likelihood == pytest.approx(alone.log_likelihood, abs=1e-8)
    z, its = (one.coefficients / one.sigma for one in (whole, alone))  # σ itself has no end
    assert z == pytest.approx(its, rel=1e-4)


def test_a_line_through_every_interval_has_the_least_sigma() -> None:
    x = np.arange(6.0)
    design = np.column_stack([np.ones(6), x])
    found = fit(x - 0.1, x + 0.1, design)
    assert found.sigma <= 0.03
    assert found.log_likelihood == pytest.approx(0, abs=1e-6)
    low, high = profile_interval(x - 0.1, x + 0.1, design, 1)
    assert -0.1 < 1 - float(high) < 1 - float(low) < 0.1


def test_intervals_open_above_alone_set_no_upper_limit() -> None:
    x = np.arange(6.0)
    design = np.column_stack([np.ones(6), x])
    upper = np.array([0.2, 1.1, 2.2, np.inf, np.inf, np.inf])
    lower = np.array([-0.2, 0.8, 1.9, 3.0, 4.0, 5.0])
    low, high = profile_interval(lower, upper, design, 1)
    assert np.isfinite(low)
    assert float(low) < 1 < float(high)


def test_an_empty_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="an interval is empty"):
        fit([1.0, 2.0], [1.5, 2.0], np.ones((2, 1)))
