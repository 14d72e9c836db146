"""Transitions on the page, against the rows."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import optimize, stats
from scipy.special import expit, log_expit, xlogy

from tests.analysis.page_numbers.by_hand import Array, Cell, Probe, Size, anchor, shown
from tests.analysis.page_numbers.reading import agree, flat, points, table, words
from tests.analysis.page_numbers.test_laws import PAPERS, Data, candidates

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


def deviance(x: Array, good: Array, bad: Array, middle: float, width: float) -> float:
    """Twice what a logistic curve's log-likelihood lacks of that of the shares."""
    share = good / (good + bad)
    at = (x - middle) / width
    seen = xlogy(good, share) + xlogy(bad, 1 - share)
    return float(2 * (seen - good * log_expit(at) - bad * log_expit(-at)).sum())


def least_deviance(x: Array, good: Array, bad: Array, middle: float) -> float:
    """Over the widths from 0.001 to 20 doublings, the best of a grid made finer."""
    widths = np.geomspace(1e-3, 20, 200)
    best = widths[np.argmin([deviance(x, good, bad, middle, width) for width in widths])]
    found = optimize.minimize_scalar(
        lambda w: deviance(x, good, bad, middle, math.exp(w)),
        bounds=(math.log(best) - 0.06, math.log(best) + 0.06),
        method="bounded",
    )
    return float(found.fun)


def least_over_middles(x: Array, good: Array, bad: Array, width: float) -> float:
    """Over the middles, the best of a grid made finer."""
    reach = np.ptp(x) + 4 * width
    middles = np.linspace(x.min() - reach, x.max() + reach, 400)
    best = middles[np.argmin([deviance(x, good, bad, middle, width) for middle in middles])]
    step = middles[1] - middles[0]
    found = optimize.minimize_scalar(
        lambda middle: deviance(x, good, bad, middle, width),
        bounds=(best - step, best + step),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return float(found.fun)


def logistic(x: Array, good: Array, bad: Array) -> tuple[float, float]:
    """Constant and slope of the logit; through both shares where there are two."""
    if len(x) == 2:
        low, high = np.log(good / bad)
        slope = float((high - low) / (x[1] - x[0]))
        return float(low - slope * x[0]), slope
    shares = np.column_stack([good, bad])
    fit = sm.GLM(shares, sm.add_constant(x), sm.families.Binomial()).fit(tol=1e-12, maxiter=200)
    return float(fit.params[0]), float(fit.params[1])


def is_one_step(good: Array, bad: Array) -> bool:
    """Whether one width alone has both passing and failing seeds: no curve is too steep then."""
    return int(((good > 0) & (bad > 0)).sum()) == 1


def test_the_share_of_every_probe(page: str, cells: Cells) -> None:
    told = points(page, "shares")
    expected = {}
    for size, cell in cells.items():
        for h in {probe.h for probe in cell.probes}:
            own = of_head(cell, h)
            if kind(*shares(own)) == "fitted":
                for probe in own:
                    expected[f"{anchor(size)}-h{h}-k{probe.d_k}"] = (
                        f"h = {h}, D_K = {probe.D_K}\n"
                        f"{probe.passing} of {len(probe.scores)} seeds pass"
                    )
    assert told == expected


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
            assert row["probes"] == str(len(own))
            assert row["runs"] == str(sum(len(probe.scores) for probe in own))
            assert row["collapsed"] == str(sum(probe.collapsed for probe in own))
            assert row["passing"] == kind(x, good, bad)
            if row["passing"] != "fitted":
                continue
            middle_text, _, ends = row["half pass at DK"].partition(" ")
            low_text, high_text = ends.strip("[]").split("–")
            width_text, _, width_ends = row["width 2"].partition(" ")
            if is_one_step(good, bad):
                assert float(width_text) < 0.1
                assert width_ends.startswith("[0–")
                middle = float(x[(good > 0) & (bad > 0)][0])
                assert math.log2(float(middle_text)) == pytest.approx(middle, abs=0.1)
            else:
                constant, slope = logistic(x, good, bad)
                middle = -constant / slope
                assert agree(middle_text, 2**middle, slack=0.1)
                assert agree(width_text, 1 / slope, slack=0.1)
            fitted += 1
            for text, way in zip(width_ends.strip("[]").split("–"), (-1, 1), strict=True):
                if text == "0":
                    continue
                least = (
                    0.0 if is_one_step(good, bad) else least_over_middles(x, good, bad, 1 / slope)
                )
                if text == "?":
                    assert least_over_middles(x, good, bad, 20) <= least + stats.chi2.ppf(0.95, 1)
                    continue
                inner, outer = (float(text) + way * by for by in (-0.006, 0.006))
                cut = least + stats.chi2.ppf(0.95, 1)  # met between two points of a grid
                assert least_over_middles(x, good, bad, max(inner, 1e-3)) <= cut + 0.1
                assert least_over_middles(x, good, bad, max(outer, 1e-3)) >= cut - 0.1
            top = 0.0 if is_one_step(good, bad) else least_deviance(x, good, bad, middle)
            cut = top + stats.chi2.ppf(0.95, 1)
            step = np.ptp([*x, math.log2(float(middle_text))]) / 50  # twice that of the limits
            for text, way in ((low_text, -1), (high_text, 1)):
                reach = [*x, middle]  # none beyond the probes and the middle
                if text == "?":
                    beyond = (max(reach) if way > 0 else min(reach)) + way * 0.01
                    assert least_deviance(x, good, bad, beyond) <= cut + 0.05
                    continue
                end, digit = math.log2(float(text)), 0.06 / float(text) / math.log(2)
                inner, outer = end - way * digit, end + way * (digit + step)
                assert least_deviance(x, good, bad, inner) <= cut + 1e-6
                assert least_deviance(x, good, bad, outer) >= cut
    assert fitted >= 10


def score_fit(probes: Sequence[Probe]) -> tuple[Array, Array, Array]:
    """Best top, middle and width by least squares over runs from many starts, and the data."""
    x, y = [], []
    for probe in probes:
        for score in probe.scores:
            if score > 0 and score >= 0.5 * np.median(probe.scores):
                x.append(math.log2(probe.D_K))
                y.append(score)
    at, seen = np.array(x), np.array(y)
    low, high = [0, at.min() - 6, 0.01], [1, at.max() + 6, 6]
    fits = [
        optimize.least_squares(
            lambda v: v[0] * expit((at - v[1]) / v[2]) - seen,
            np.clip([seen.max(), middle, width], np.add(low, 1e-6), np.subtract(high, 1e-6)),
            bounds=(low, high),
            xtol=1e-12,
            ftol=1e-12,
        )
        for middle in np.linspace(at.min() - 1, at.max(), 3)
        for width in (0.1, 0.5)
    ]
    return min(fits, key=lambda fit: fit.cost).x, at, seen


def test_the_curves_of_scores(page: str, cells: Cells) -> None:
    fitted = 0
    for row in table(page, "table-transitions"):
        size = tuple(int(n) for n in row["cell"].strip("()").split(", "))
        own = of_head(cells[size], int(row["h"]))  # type: ignore[index]
        widths = {probe.d_k for probe in own}
        if len(widths) < 4:
            assert row["score"] == "too few widths"
            continue
        if row["score"] != "fitted":
            continue
        (top, middle, width), _, _ = score_fit(own)
        assert agree(row["top"], top, slack=0.1), (row, top)
        assert agree(row["middle DK"], 2**middle, slack=0.1), (row, 2**middle)
        assert agree(row["width"], width, slack=0.1), (row, width)
        fitted += 1
    assert fitted >= 10


def test_the_collapse(page: str, cells: Cells) -> None:
    rows = {row["DK divided by"]: row for row in table(page, "table-collapse")}
    data = Data(tuple(cells.values()))
    scales = {"each cell's own D_K*": data.D_K}
    for formula, law in candidates(data).items():
        values, _ = law.fit()
        p = law.X.shape[1]
        log = law.offset + law.X @ values[:p]
        if law.load is not None:
            log = log + np.log1p(values[p] * law.load)
        scales[formula] = np.exp(log)
    assert set(rows) == {flat(formula) for formula in scales}
    quality = {}
    for formula, by in scales.items():
        x, good, bad = [], [], []
        for cell, scale in zip(cells.values(), by, strict=True):
            own = shares(of_head(cell, cell.h))
            x.append(own[0] - math.log2(scale))
            good.append(own[1])
            bad.append(own[2])
        at = np.concatenate(x)
        ends = np.column_stack([np.concatenate(good), np.concatenate(bad)])
        glm = sm.GLM(ends, sm.add_constant(at), sm.families.Binomial()).fit(tol=1e-12, maxiter=200)
        constant, slope = glm.params
        row = rows[flat(formula)]
        assert (row["cells"], row["probes"]) == ("12", str(len(at)))
        quality[formula] = glm.deviance / glm.df_resid
        assert agree(row["reduced χ²"], quality[formula], slack=0.1)
        assert agree(row["half pass at"], 2 ** (-constant / slope), slack=0.1)
        assert agree(row["width, doublings"], 1 / slope, slack=0.1)
    own = quality.pop("each cell's own D_K*")
    best = min(quality, key=quality.__getitem__)
    line = (
        "The transitions of 12 cells lie on one curve with a reduced χ² of "
        f"{own:.1f} over each cell's own DK*, {quality[best]:.1f} over {flat(best)}"
    )
    line += "" if best == PAPERS else f", {quality[PAPERS]:.1f} over {flat(PAPERS)}"
    assert f"{line}." in words(page, "transitions")


def test_the_points_of_the_collapse(page: str, cells: Cells) -> None:
    told = points(page, "collapse")
    panels = {name.partition("-")[0] for name in told}
    assert {"0", "1"} <= panels
    for panel in panels:
        for size, cell in cells.items():
            for probe in of_head(cell, cell.h):
                assert told[f"{panel}-{anchor(size)}-k{probe.d_k}"] == (
                    f"{shown(size)}, h = {probe.h}, D_K = {probe.D_K}\n"
                    f"{probe.passing} of {len(probe.scores)} seeds pass"
                )


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


@pytest.mark.slow
def test_whether_the_transitions_narrow(page: str, cells: Cells) -> None:
    """One power of m for the widths of all cells, each with a middle of its own."""
    own = []
    for cell in cells.values():
        x, good, bad = shares(of_head(cell, cell.h))
        if kind(x, good, bad) == "fitted" and not is_one_step(good, bad):
            own.append((math.log(cell.size[0]), x, good, bad))
    centre = np.mean([log_m for log_m, *_ in own])

    def total(exponent: float) -> float:
        def at(level: float) -> float:
            return sum(
                least_over_middles(*data, math.exp(level + exponent * (log_m - centre)))
                for log_m, *data in own
            )

        found = optimize.minimize_scalar(at, bounds=(-6, 1), method="bounded")
        return float(found.fun)

    best = optimize.minimize_scalar(total, bounds=(-4, 4), method="bounded")
    cut = float(best.fun) + stats.chi2.ppf(0.95, 1)
    ends = [
        optimize.brentq(lambda e: total(e) - cut, best.x, best.x + way * 3, xtol=1e-3)
        for way in (-1, 1)
    ]
    told = re.search(
        r"goes as m([−-]?[\d.]+) with the exponent in \[([−-]?[\d.]+), ([−-]?[\d.]+)\]",
        words(page, "transitions"),
    )
    assert told is not None
    shown_numbers = [float(text.replace("−", "-")) for text in told.groups()]
    assert shown_numbers == pytest.approx([best.x, *ends], abs=0.03)
