"""Transitions on the page, against the rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from scipy import stats
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM
from statsmodels.tools import add_constant

from tests.analysis.page_numbers.by_hand import Array, Cell, Probe, Size, fit_law, shown
from tests.analysis.page_numbers.reading import agree, table, words

Cells = Mapping[Size, Cell]


def of_head(cell: Cell, h: int) -> list[Probe]:
    return [probe for probe in cell.probes if probe.h == h]


def shares(probes: Sequence[Probe]) -> tuple[Array, Array, Array]:
    """log₂ D_K, passing and failing seeds."""
    good = np.array([float(probe.passing) for probe in probes])
    bad = np.array([len(probe.scores) - probe.passing for probe in probes], dtype=float)
    return np.log2([float(probe.D_K) for probe in probes]), good, bad


def kind(x: Array, good: Array, bad: Array) -> str:
    """Which curve of shares there can be."""
    if not good.any():
        return "never"
    if not bad.any():
        return "always"
    if x[bad > 0].max() < x[good > 0].min():
        return "sharp"
    if len(np.unique(x)) < 2:
        return "too few widths"
    return "fitted" if np.corrcoef(x, good / (good + bad))[0, 1] > 0 else "not rising"


def logistic(x: Array, good: Array, bad: Array) -> tuple[float, float]:
    """Constant and slope of the logit; through both shares where there are two."""
    if len(x) == 2:
        low, high = np.log(good / bad)
        slope = float((high - low) / (x[1] - x[0]))
        return float(low - slope * x[0]), slope
    shares = np.column_stack([good, bad])
    fit = GLM(shares, add_constant(x), Binomial()).fit(tol=1e-12, maxiter=200)
    return float(fit.params[0]), float(fit.params[1])


def is_one_step(good: Array, bad: Array) -> bool:
    """Whether one width alone has both passing and failing seeds: no curve is too steep then."""
    return int(((good > 0) & (bad > 0)).sum()) == 1


def test_the_curves_of_shares(page: str, cells: Cells) -> None:
    rows = {(row["cell"], int(row["h"])): row for row in table(page, "table-transitions")}
    fitted = 0
    for size, cell in cells.items():
        for h in {probe.h for probe in cell.probes}:
            own = of_head(cell, h)
            x, good, bad = shares(own)
            row = rows.get((shown(size), h))
            if kind(x, good, bad) == "fitted":
                assert row is not None
            if row is None:
                continue
            assert row["runs"] == str(sum(len(probe.scores) for probe in own))
            assert row["collapsed"] == str(sum(probe.collapsed for probe in own))
            if kind(x, good, bad) != "fitted":
                assert row["half pass at DK"] == kind(x, good, bad)
                continue
            middle_text, _, _ = row["half pass at DK"].partition(" ")
            width_text, _, width_ends = row["passing width"].partition(" ")
            if is_one_step(good, bad):
                assert float(width_text) < 0.1
                assert width_ends.startswith("[0.00–")
                middle = float(x[(good > 0) & (bad > 0)][0])
                assert math.log2(float(middle_text)) == pytest.approx(middle, abs=0.1)
            else:
                constant, slope = logistic(x, good, bad)
                middle = -constant / slope
                assert agree(middle_text, 2**middle, slack=0.1)
                assert agree(width_text, 1 / slope, slack=0.1)
            fitted += 1
    assert fitted >= 10


def mean_deviance(sizes: Array, chances: Array) -> float:
    """Over all ways in which seeds can pass, of their deviance from the chances to pass."""
    total = 0.0
    for n, p in zip(sizes.astype(int), chances, strict=True):
        for k in range(n + 1):
            own, best = (stats.binom.logpmf(k, n, chance) for chance in (p, k / n))
            total += 2 * (best - own) * math.exp(own) if own > -50 else 0
    return total


def test_the_collapse(page: str, cells: Cells) -> None:
    """Over each cell's own D_K*, and over the paper's law: a constant times m′ log₂ m / d_model."""
    rows = {row["DK divided by"]: row for row in table(page, "table-collapse")}
    every = list(cells.values())
    log = np.log([cell.scale for cell in every])
    ends = (np.log([float(width) for width in own]) - log for own in
            ([cell.fails for cell in every], [cell.D_K for cell in every]))  # fmt: skip
    (log_c, _), _ = fit_law(*ends, np.ones((len(every), 1)))
    quality = []
    for name, scales in (
        ("each cell's own DK*", [cell.D_K for cell in every]),
        ("c · m′ log₂ m / dmodel", np.exp(log_c + log)),
    ):
        x, good, bad = [], [], []
        for cell, scale in zip(every, scales, strict=True):
            own = shares(of_head(cell, cell.h))
            x.append(own[0] - math.log2(scale))
            good.append(own[1])
            bad.append(own[2])
        at = np.concatenate(x)
        seeds = np.column_stack([np.concatenate(good), np.concatenate(bad)])
        glm = GLM(seeds, add_constant(at), Binomial()).fit(tol=1e-12, maxiter=200)
        constant, slope = glm.params
        row = rows[name]
        assert (row["cells"], row["probes"]) == ("12", str(len(at)))
        quality.append(glm.deviance / (mean_deviance(seeds.sum(axis=1), glm.fittedvalues) - 2))
        assert agree(row["reduced χ²"], quality[-1], slack=0.1)
        assert agree(row["half pass at"], 2 ** (-constant / slope), slack=0.1)
        assert agree(row["width, doublings"], 1 / slope, slack=0.1)
    said = words(page, "transitions")
    assert (
        "The transitions of 12 cells scatter about one curve with a reduced χ² of "
        f"{quality[0]:.1f} over each cell's own DK*, "
    ) in said
    assert f"{quality[1]:.1f} over c · m′ log₂ m / dmodel" in said


def test_the_runs_that_collapsed(page: str, cells: Cells) -> None:
    every = [probe for cell in cells.values() for probe in cell.probes]
    collapsed, diverged = (
        sum(getattr(probe, name) for probe in every) for name in ("collapsed", "diverged")
    )
    ran = sum(len(probe.scores) for probe in every)
    assert (
        f"{collapsed:,} of {ran:,} runs collapsed: they diverged ({diverged:,}) or score less than "
        "half the median of their probe."
    ) in words(page, "transitions")
