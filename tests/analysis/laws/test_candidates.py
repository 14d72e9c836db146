"""Which law: AICc and errors of cells left out, recomputed by other means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats
from statsmodels.regression.linear_model import OLS
from statsmodels.tools import add_constant

from rgr_dist.analysis.laws.candidates import Candidate, predict, rank_candidates
from rgr_dist.analysis.laws.interval_likelihood import fit
from rgr_dist.analysis.laws.points import log_ends
from rgr_dist.paper import capacity_scale, compression, information
from tests.analysis.laws.made_up_cells import LOG_SCALE, SIZES, draw, table


def narrow(y: np.ndarray) -> pd.DataFrame:
    """Cells whose intervals are so narrow that least squares fits them."""
    return table(y - 5e-5, y + 5e-5)


def scattered(seed: int, power: float = 1.2) -> np.ndarray:
    """log D_K* of cells that grow as a power of the scale."""
    noise = np.random.default_rng(seed).normal(0, 0.2, len(SIZES))
    return math.log(0.6) + power * LOG_SCALE + noise


@pytest.fixture(scope="module")
def noisy() -> tuple[np.ndarray, dict[str, Candidate]]:
    y = scattered(1)
    return y, {one.name: one for one in rank_candidates(narrow(y))}


LOAD, LOG_M = np.log([compression(*size) for size in SIZES]), np.log(np.log2([m for m, _ in SIZES]))
FORMS: dict[str, tuple[Any, list[np.ndarray], tuple[str, ...]]] = {
    "m/d": (LOAD, [], ()),
    "m log m/d": (LOG_SCALE, [], ()),
    "m log² m/d": (LOAD + 2 * LOG_M, [], ()),
    "(m/d)^a": (0, [LOAD], ("m/d",)),
    "(m log m/d)^a": (0, [LOG_SCALE], ("m log m/d",)),
    "m log m/d (1 + k m/d)": (0, [], ("m log m/d",)),
    "(m/d)^a (log m)^b": (
        0, [LOAD, LOG_M], ("m/d", "m log m/d", "m log² m/d", "(m/d)^a", "(m log m/d)^a")),
    "m^a d^b": (0, list(np.log(SIZES).T), ("m/d", "(m/d)^a")),
}  # fmt: skip
"""By name what has no unknown, the columns of unknown exponents, and the laws that it extends."""


@pytest.mark.parametrize("name", [name for name in FORMS if "k" not in name])
def test_a_candidate_is_least_squares_of_logarithms(
    noisy: tuple[np.ndarray, dict[str, Candidate]], name: str
) -> None:
    y, fitted = noisy
    offset, columns, _ = FORMS[name]
    ols = OLS(y - offset, np.column_stack([np.ones(len(y)), *columns])).fit()
    one = fitted[name]
    for unknown, value, ends in zip("cab", ols.params, ols.conf_int(), strict=False):
        told = [float(part[unknown] or 0) for part in (one.parameters, one.low, one.high)]
        told = list(np.log(told)) if unknown == "c" else told
        assert told == pytest.approx([value, *ends], abs=2e-3)
    assert one.sigma == pytest.approx(math.sqrt(ols.mse_resid), rel=1e-3)
    # the likelihood of an interval is the density times its width
    expected = ols.llf + len(y) * math.log(1e-4)
    assert one.log_likelihood == pytest.approx(expected, abs=1e-3)
    n, k = len(y), one.n_parameters
    assert k == len(columns) + 2
    assert one.aicc == pytest.approx(2 * k - 2 * expected + 2 * k * (k + 1) / (n - k - 1), abs=1e-2)
    press = ols.get_influence().resid_press
    assert one.loo_error == pytest.approx(math.sqrt((press**2).mean()), rel=1e-3)


@pytest.mark.parametrize(("seed", "power"), [(0, 1.2), (1, 1.1), (3, 1.1)])
def test_a_law_is_kept_near_the_best_unless_a_simpler_one_is_as_good(
    seed: int, power: float
) -> None:
    cells = narrow(scattered(seed, power))
    ranked = [one for one in rank_candidates(cells) if one.status == "fitted"]
    aicc = {one.name: one.aicc or math.nan for one in ranked}
    assert list(aicc.values()) == sorted(aicc.values())
    gaps = {name: value - min(aicc.values()) for name, value in aicc.items()}
    weights = {name: math.exp(-gap / 2) for name, gap in gaps.items()}
    for one in ranked:
        assert one.gap == pytest.approx(gaps[one.name])
        assert one.weight == pytest.approx(weights[one.name] / sum(weights.values()))
        simpler = any(aicc[law] <= aicc[one.name] + 2 for law in FORMS[one.name][2])
        assert one.supported == (gaps[one.name] <= 6 and not simpler)


def test_the_offset_law_is_the_best_over_a_grid_of_k() -> None:
    law = [math.log(0.44 * capacity_scale(*s) * (1 + 0.09 * compression(*s))) for s in SIZES]
    lower, upper = draw(np.random.default_rng(2), 1, np.array(law), 0.1)
    cells = table(lower[0], upper[0])
    one = next(c for c in rank_candidates(cells) if "k" in c.parameters)
    low, high = log_ends(cells["D_K_fails"], cells["D_K_passes"])
    load = cells["compression"].to_numpy()
    grid = np.linspace(0, 1, 4001)
    offset = LOG_SCALE + np.log1p(grid[:, None] * load)
    by_k = fit(low - offset, high - offset, np.ones((12, 1))).log_likelihood
    assert one.log_likelihood == pytest.approx(by_k.max(), abs=1e-5)
    assert one.parameters["k"] == pytest.approx(grid[by_k.argmax()], abs=1e-3)
    assert one.low["k"] is not None
    assert one.low["k"] < one.parameters["k"] < (one.high["k"] or math.inf)


def test_laws_that_are_one_in_these_cells_are_told_so() -> None:
    names = {one.name: one for one in rank_candidates(narrow(LOG_SCALE))}
    assert names["entropy"].status == "same"
    assert "m′ log₂ m / d_model" in (names["entropy"].reason or "")


def test_denser_graphs_tell_the_entropy_form() -> None:
    sizes = [(128, 32)] * 6
    edges = [128 * degree for degree in (1, 2, 4, 8, 16, 32)]
    law = np.log([0.8 * information(128, 32, n) for n in edges])
    cells = table(law - 0.03, law + 0.03, tuple(sizes)).assign(n_edges=edges)
    ranked = {one.name: one for one in rank_candidates(cells)}
    assert next(iter(ranked)) == "entropy"
    assert ranked["entropy"].parameters["c"] == pytest.approx(0.8, rel=0.05)
    assert ranked["m^a d^b"].status == "not identified"


def test_too_few_cells_say_how_many_it_takes() -> None:
    for one in rank_candidates(narrow(LOG_SCALE).iloc[:3]):
        assert one.status == "too few cells"
        assert "cells with a pass and a fail below it, and has 3" in (one.reason or "")


def test_predictions_are_those_of_statsmodels(
    noisy: tuple[np.ndarray, dict[str, Candidate]],
) -> None:
    y, fitted = noisy
    at = pd.DataFrame({"m": [1024], "d_model": [64], "n_edges": [1024]})
    D_K, low, high = predict(fitted["(m log m/d)^a"], narrow(y), at)
    design = add_constant(LOG_SCALE)
    new = np.array([[1.0, math.log(capacity_scale(1024, 64))]])
    ols = OLS(y, design).fit().get_prediction(new).summary_frame(alpha=0.05)
    assert np.log(D_K[0]) == pytest.approx(ols["mean"].iloc[0], abs=1e-3)
    assert np.log(low[0]) == pytest.approx(ols["obs_ci_lower"].iloc[0], abs=2e-3)
    assert np.log(high[0]) == pytest.approx(ols["obs_ci_upper"].iloc[0], abs=2e-3)


def test_limits_and_predictions_of_the_offset_law_are_those_of_a_brute_force_profile() -> None:
    """Values without intervals: twice the log-likelihood falls by n log of the sums of squares."""
    load = np.array([compression(*size) for size in SIZES])
    law = math.log(0.44) + LOG_SCALE + np.log1p(0.09 * load)
    y = law + np.random.default_rng(3).normal(0, 0.1, len(SIZES))
    (fitted,) = (one for one in rank_candidates(narrow(y)) if "k" in one.parameters)
    degrees = len(y) - 2
    t = stats.t.ppf(0.975, degrees)

    def squares(log_k: float, constant: float, scale: float, size: float) -> float:
        """About the law of a k that takes this value at a size: ``log c`` at size 0."""
        k = math.exp(log_k)
        own = LOG_SCALE - scale + np.log1p(k * load) - math.log1p(k * size)
        return float(((y - constant - own) ** 2).sum())

    def profile(constant: float, scale: float, size: float) -> float:
        options = {"bounds": (-12, 6), "args": (constant, scale, size), "options": {"xatol": 1e-9}}
        return float(optimize.minimize_scalar(squares, **options).fun)

    at = pd.DataFrame({"m": [1024, 64], "d_model": [16, 256], "n_edges": [2048, 64]})
    sizes = list(at.itertuples(index=False, name=None))
    new = [(math.log(capacity_scale(*one)), compression(*one)) for one in sizes]
    limits = []
    for scale, size in [(0.0, 0.0), *new]:
        start = math.log(0.44) + scale + math.log1p(0.09 * size)
        ends = (start - 3, start + 3)
        best = optimize.minimize_scalar(profile, bounds=ends, args=(scale, size), method="bounded")
        most = best.fun * (1 + t**2 / degrees)

        def above(constant: float, *own: float, most: float = most) -> float:
            return profile(constant, *own) - most

        limits.append([optimize.brentq(above, best.x, end, args=(scale, size)) for end in ends])
    assert fitted.low["c"] == pytest.approx(math.exp(limits[0][0]), rel=2e-3)
    assert fitted.high["c"] == pytest.approx(math.exp(limits[0][1]), rel=2e-3)
    sigma = math.sqrt(best.fun / degrees)
    D_K, low, high = (np.log(part) for part in predict(fitted, narrow(y), at))
    k, c = fitted.parameters["k"], math.log(fitted.parameters["c"])
    law_there = [c + scale + math.log1p(k * size) for scale, size in new]
    np.testing.assert_allclose(D_K, law_there, atol=1e-9)
    ends = np.array(limits[1:]).T
    assert D_K - low == pytest.approx(np.hypot(D_K - ends[0], t * sigma), abs=2e-3)
    assert high - D_K == pytest.approx(np.hypot(ends[1] - D_K, t * sigma), abs=2e-3)


def test_cells_without_a_fail_below_them_are_no_threshold() -> None:
    """They pass at the smallest width there is: any law below their ends will do."""
    y = math.log(0.6) + 1.2 * LOG_SCALE
    for one in rank_candidates(table(np.full(len(y), -np.inf), y)):
        assert one.status == "too few cells"
        assert "and has 0" in (one.reason or "")
    bounded = np.where(np.arange(len(y)) < 6, y - 0.02, -np.inf)
    fitted = {one.name: one for one in rank_candidates(table(bounded, y))}["(m log m/d)^a"]
    assert (fitted.status, fitted.n) == ("fitted", len(y))


@pytest.mark.parametrize("law", ["m/d", "m log m/d", "m log² m/d"])
def test_a_law_is_an_extension_of_what_it_holds_in_these_cells(law: str) -> None:
    """On a diagonal a power of m log m / d is one of log m, which every power of log m is."""
    diagonal = tuple((64 * 2**i, 16 * 2**i) for i in range(8))
    y = 1.0 + {"m/d": 0, "m log m/d": 1, "m log² m/d": 2}[law] * np.log(
        np.log2([m for m, _ in diagonal])
    )
    noise = np.random.default_rng(0).normal(0, 0.02, len(y))
    ranked = rank_candidates(table(y + noise - 0.01, y + noise + 0.01, diagonal))
    assert [one.name for one in ranked if one.supported] == [law]


def test_with_one_m_a_power_of_the_size_extends_the_size_itself() -> None:
    """All laws of m / d are one there, and so are its powers."""
    sizes = tuple((128, 2**i) for i in range(3, 11))
    y = np.log([compression(*size) for size in sizes])
    noise = np.random.default_rng(4).normal(0, 0.02, len(y))
    ranked = rank_candidates(table(y + noise - 0.01, y + noise + 0.01, sizes))
    assert [one.name for one in ranked if one.supported] == ["m/d"]
    fitted = {one.name for one in ranked if one.status == "fitted"}
    assert fitted == {"m/d", "(m/d)^a", "m log m/d (1 + k m/d)"}


@pytest.mark.parametrize(("n", "groups"), [(20, 20), (72, 12)])
def test_each_cell_is_predicted_from_the_others_or_from_those_outside_its_group(
    n: int, groups: int
) -> None:
    sizes = tuple((32 + 16 * i, 16 + 8 * (i % 5)) for i in range(n))
    x = np.log([capacity_scale(*size) for size in sizes])
    y = math.log(0.6) + 1.2 * x + np.random.default_rng(3).normal(0, 0.2, n)
    cells = table(y - 5e-5, y + 5e-5, sizes)
    power = next(one for one in rank_candidates(cells) if one.name == "(m log m/d)^a")
    design, group, errors = add_constant(x), np.arange(n) % groups, np.zeros(n)
    for left in range(groups):
        others = OLS(y[group != left], design[group != left]).fit()
        errors[group == left] = others.predict(design[group == left]) - y[group == left]
    assert power.loo_error == pytest.approx(math.sqrt((errors**2).mean()), rel=1e-3)


@pytest.mark.parametrize(("fails", "is_in_error"), [(100.0, True), (0.01, False)])
def test_a_censored_cell_is_in_error_by_what_its_prediction_lies_below_it(
    fails: float, is_in_error: bool
) -> None:
    """One law without freedom but its constant: the others predict their mean, by hand."""
    y = math.log(0.6) + LOG_SCALE + np.tile([0.1, -0.1], len(SIZES) // 2)
    cells = narrow(y)
    cells.loc[0, ["D_K_fails", "D_K_passes"]] = [fails * math.exp(y[0]), math.inf]
    (one,) = (c for c in rank_candidates(cells) if c.name == "m log m/d")
    without = [np.delete(y - LOG_SCALE, [0, i]).mean() for i in range(len(y))]
    others = np.array([without[i] - (y - LOG_SCALE)[i] for i in range(1, len(y))])
    censored = without[0] - (y - LOG_SCALE)[0] - math.log(fails)
    if is_in_error:
        assert one.loo_error == pytest.approx(abs(censored) / math.sqrt(len(y)), rel=0.5)
    else:
        assert one.loo_error == pytest.approx(math.sqrt((others**2).sum() / len(y)), rel=1e-3)
