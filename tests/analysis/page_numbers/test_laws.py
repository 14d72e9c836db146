"""The laws on the page, against the rows."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import optimize, stats

from rgr_dist.paper import LAWS
from tests.analysis.page_numbers.by_hand import (
    HEADS,
    TARGET,
    Array,
    Cell,
    Law,
    Size,
    ends_of,
    profile,
    shown,
)
from tests.analysis.page_numbers.reading import (
    agree,
    all_agree,
    flat,
    legend,
    numbers,
    table,
    words,
)

Cells = Mapping[Size, Cell]


@dataclass(frozen=True)
class Data:
    """The cells as columns."""

    cells: tuple[Cell, ...]

    @cached_property
    def low(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log([float(cell.fails) for cell in self.cells])

    @cached_property
    def high(self) -> Array:
        return np.log([cell.D_K for cell in self.cells])

    @cached_property
    def D_K(self) -> Array:
        return np.array([float(cell.D_K) for cell in self.cells])

    @cached_property
    def h(self) -> Array:
        return np.array([float(cell.h) for cell in self.cells])

    @cached_property
    def scale(self) -> Array:
        return np.array([cell.scale for cell in self.cells])

    @cached_property
    def load(self) -> Array:
        return np.array([cell.load for cell in self.cells])

    @cached_property
    def m(self) -> Array:
        return np.array([float(cell.size[0]) for cell in self.cells])

    def law(self, *columns: Array, offset: Array | float = 0.0, load: Array | None = None) -> Law:
        """A law of these columns besides a constant."""
        X = np.column_stack([np.ones(len(self.cells)), *columns])
        return Law(self.low, self.high, X, offset + np.zeros(len(self.cells)), load)

    @cached_property
    def power(self) -> Law:
        return self.law(np.log(self.scale))


@pytest.fixture(scope="module")
def every(cells: Cells) -> Data:
    return Data(tuple(cells.values()))


@pytest.fixture(scope="module")
def wide(cells: Cells) -> Data:
    return Data(tuple(c for c in cells.values() if not (c.size[1] == 16 and c.size[0] > 64)))


def heads_law(data: Data) -> Law:
    """h* lies between the geometric means with its neighbours in the list, open at either end."""
    listed = np.array(HEADS, dtype=float)
    between = np.log(np.sqrt(listed[1:] * listed[:-1]))
    at = [HEADS.index(int(h)) for h in data.h]
    low = np.array([-np.inf if i == 0 else between[i - 1] for i in at])
    high = np.array([np.inf if i == len(HEADS) - 1 else between[i] for i in at])
    return Law(low, high, np.column_stack([np.ones_like(low), np.log(data.load)]), 0 * data.load)


def test_every_fit(page: str, every: Data, wide: Data) -> None:
    rows = table(page, "table-laws")
    assert [row["n"] for row in rows] == ["12", "9", "12", "12", "9", "12"]
    for row, law in zip(rows[:3], (every.power, wide.power, heads_law(every)), strict=True):
        values, _ = law.fit()
        expected = [math.exp(values[0]), values[1], *profile(law, 1)]
        assert all_agree(numbers(row["fit"]), expected), (row, expected)
    lines = (
        (every.D_K, every.scale[:, None]),
        (wide.D_K, wide.scale[:, None]),
        (every.h, sm.add_constant(every.load)),
    )
    for row, (y, X) in zip(rows[3:], lines, strict=True):
        fit = sm.OLS(y, X).fit()
        ends = fit.conf_int()
        expected = [fit.params[-1], *ends[-1]]
        if X.shape[1] == 2:
            expected += [fit.params[0], *ends[0]]
        assert all_agree(numbers(row["fit"]), expected), (row, expected)
        assert agree(row["R²"], fit.rsquared)
        assert agree(row["R², centred"], 1 - fit.ssr / ((y - y.mean()) ** 2).sum())


def test_the_curves_in_the_figures(page: str, every: Data) -> None:
    """The legends name the laws that are drawn."""
    power, heads = every.power.fit()[0], heads_law(every).fit()[0]
    line = sm.OLS(every.D_K, every.scale[:, None]).fit()
    straight = sm.OLS(every.h, sm.add_constant(every.load)).fit()
    for figure, (fit, own, papers) in {
        "law": ([math.exp(power[0]), power[1]], list(line.params), [1.19]),
        "heads": ([math.exp(heads[0]), heads[1]], list(straight.params[::-1]), [1.65, -6.64]),
    }.items():
        told = legend(page, figure)
        assert all_agree(numbers(re.sub(r"x(?=\d)", " ", told[0])), fit), told
        for text, values in zip(told[1:3], (own, papers), strict=True):
            text = text.replace("− ", "-").replace("+ ", "")
            assert all_agree(numbers(text), values), told


def test_how_it_grows(page: str, every: Data, wide: Data) -> None:
    powers = []
    for data in (every, wide):
        low, high = profile(data.power, 1)
        exponent = data.power.fit()[0][1]
        powers.append((f"{exponent:#.3g}", f"95 % interval {low:#.3g} to {high:#.3g}"))
        if data is every:
            rejects = low > 1 or high < 1
    verdict = (
        ": the data reject proportionality"
        if rejects
        else ": these cells leave open whether it is proportional"
    )
    assert (
        f"DK* grows as (m′ log₂ m / dmodel) to the power {powers[0][0]} ({powers[0][1]} over 12 "
        f"cells){verdict}; without the cells of dmodel = 16, m > 64 the power is {powers[1][0]} "
        f"({powers[1][1]} over 9 cells)."
    ) in words(page, "summary")


SIMPLE = ("c · m′/d_model", "c · m′ log₂ m / d_model", "c · m′ (log₂ m)² / d_model")
LINEAR, PAPERS, SQUARE = SIMPLE
A, LOG_A = "c · (m′/d_model)^a", "c · (m′ log₂ m / d_model)^a"
K = "c · m′ log₂ m / d_model · (1 + k · m′/d_model)"
AB, SIZES = "c · (m′/d_model)^a (log₂ m)^b", "c · m′^a d_model^b"
EXTENDS = {A: [LINEAR], LOG_A: [PAPERS], K: [PAPERS], AB: [*SIMPLE, A, LOG_A], SIZES: [LINEAR, A]}
UNKNOWNS = {LINEAR: "c", PAPERS: "c", SQUARE: "c", A: "ca", LOG_A: "ca", K: "ck"} | {
    AB: "cab", SIZES: "cab"
}  # fmt: skip


def candidates(data: Data) -> dict[str, Law]:
    """Every candidate by its formula; the entropy form is the paper's law for permutations."""
    load, log_m = np.log(data.load), np.log(np.log2(data.m))
    return {
        LINEAR: data.law(offset=load),
        PAPERS: data.law(offset=load + log_m),
        SQUARE: data.law(offset=load + 2 * log_m),
        A: data.law(load),
        LOG_A: data.law(load + log_m),
        K: data.law(offset=load + log_m, load=data.load),
        AB: data.law(load, log_m),
        SIZES: data.law(np.log(data.m), np.log(data.m) - load),
    }


@dataclass(frozen=True)
class Ranked:
    """A candidate's numbers."""

    values: Array
    aicc: float
    error: float
    scatter: float


def ranked(law: Law) -> Ranked:
    """AICc, the error of each cell predicted from the others, the scatter by degrees of freedom."""
    values, top = law.fit()
    n, k = len(law.low), len(values)
    aicc = 2 * k - 2 * top + 2 * k * (k + 1) / (n - k - 1)
    middle = (law.low + law.high) / 2
    errors = []
    for i in range(n):
        own = law.without(i).fit()[0]
        p = law.X.shape[1]
        predicted = law.offset[i] + law.X[i] @ own[:p]
        if law.load is not None:
            predicted += math.log1p(own[p] * law.load[i])
        errors.append(predicted - middle[i])
    scatter = math.exp(values[-1]) * math.sqrt(n / (n - (k - 1)))
    return Ranked(values, aicc, math.sqrt(np.mean(np.square(errors))), scatter)


@pytest.fixture(scope="module")
def found(every: Data) -> dict[str, Ranked]:
    return {formula: ranked(law) for formula, law in candidates(every).items()}


def kept(found: Mapping[str, Ranked]) -> list[str]:
    """Within 6 of the best in AICc, and no mere extension of a law that is as good to within 2."""
    least = min(one.aicc for one in found.values())
    return [
        formula
        for formula, one in sorted(found.items(), key=lambda pair: pair[1].aicc)
        if one.aicc - least <= 6
        and not any(found[simple].aicc <= one.aicc + 2 for simple in EXTENDS.get(formula, ()))
    ]


def test_the_candidates(page: str, found: dict[str, Ranked]) -> None:
    rows = {row["law"]: row for row in table(page, "table-candidates")}
    assert set(rows) == {flat(formula) for formula in found} | {"c · m′ log₂(m²/m′) / dmodel"}
    assert rows["c · m′ log₂(m²/m′) / dmodel"]["note"] == f"in these cells it is {flat(PAPERS)}"
    least = min(one.aicc for one in found.values())
    weight = {formula: math.exp((least - one.aicc) / 2) for formula, one in found.items()}
    for formula, one in found.items():
        row = rows[flat(formula)]
        values = [math.exp(one.values[0]), *one.values[1:-1]]
        told = re.findall(r"(\w) = ([−\d.,]+)", row["unknowns, with 95 % intervals"])
        assert [name for name, _ in told] == list(UNKNOWNS[formula])
        for (_, text), value in zip(told, values, strict=True):
            assert agree(text.rstrip(","), value, slack=0.1), (formula, text, value)
        assert agree(row["behind"], one.aicc - least, slack=0.1)
        assert agree(row["weight"], weight[formula] / sum(weight.values()), slack=0.1)
        assert agree(row["error"], 100 * one.error)
        assert agree(row["scatter"], 100 * one.scatter)
        assert row["kept"] == ("yes" if formula in kept(found) else "")


@pytest.mark.slow
def test_the_limits_of_the_candidates(page: str, every: Data) -> None:
    """Those of c are given k, as those of any law without k; k is found to a 500th of itself."""
    rows = {
        row["law"]: row["unknowns, with 95 % intervals"] for row in table(page, "table-candidates")
    }
    for formula, law in candidates(every).items():
        values, top = law.fit()
        told = re.findall(r"(\w) = [−\d.]+ \[([−\d.]+), ([−\d.–]+)\]", rows[flat(formula)])
        if law.load is not None:
            k = values[1]
            low, high = ends_of(
                lambda k, law=law: law.with_k(k).fit()[1], k, 0.2 * k, top, law.n, 2
            )
            assert float(told[1][1]) == pytest.approx(low, rel=0.01)
            assert float(told[1][2]) == pytest.approx(high, rel=0.01)
            told, law = told[:1], law.with_k(k)
        for index, (name, low_text, high_text) in enumerate(told):
            low, high = profile(law, index)
            if name == "c":
                low, high = math.exp(low), math.exp(high)
            assert agree(low_text, low, slack=0.1), (formula, name, low_text, low)
            assert agree(high_text, high, slack=0.1), (formula, name, high_text, high)


def test_which_law_it_is(page: str, wide: Data, found: dict[str, Ranked]) -> None:
    said = which_law(found)
    assert said in words(page, "law")
    assert said in words(page, "laws")
    others = {formula: ranked(law) for formula, law in candidates(wide).items()}
    assert which_law(others, " without dmodel = 16, m > 64") in words(page, "laws")


def which_law(found: dict[str, Ranked], cells: str = "") -> str:
    """The sentence that names the laws that are kept."""
    best = kept(found)[0]
    if len(kept(found)) == 1:
        start = f"Of 8 laws the data{cells} single out {flat(best)}"
    else:
        names = [flat(formula) for formula in kept(found)]
        start = f"The data{cells} cannot tell {', '.join(names[:-1])} and {names[-1]} apart"
    return f"{start}."


def test_the_part_of_each_cell(page: str, every: Data) -> None:
    rows = table(page, "table-parts")
    assert [row["cell"] for row in rows] == [shown(cell.size) for cell in every.cells]
    log_c, exponent = every.power.fit()[0][:2]
    predicted = np.exp(log_c) * every.scale**exponent
    hats = [
        sm.OLS(every.D_K, X).fit().get_influence().hat_matrix_diag
        for X in (sm.add_constant(np.log(every.scale)), every.scale[:, None])
    ]
    for i, row in enumerate(rows):
        assert row["DK*"] == f"{every.D_K[i]:.0f}"
        assert agree(row["ratio"], every.D_K[i] / every.scale[i])
        assert agree(row["power law"], predicted[i], slack=0.1)
        middle = (every.low[i] + every.high[i]) / 2
        assert agree(row["residual"], middle - math.log(predicted[i]), slack=0.1)
        assert agree(row["resolution"], (every.high[i] - every.low[i]) / math.sqrt(12))
        assert agree(row["leverage"], hats[0][i])
        assert agree(row["the paper’s"], hats[1][i])
        assert agree(row["without it"], every.power.without(i).fit()[0][1], slack=0.1)


def drawn_again(cell: Cell, draws: int, generator: np.random.Generator) -> Array:
    """log D_K* at h*, in the middle of its interval, with the seeds of the cell drawn again."""
    own = sorted((p for p in cell.probes if p.h == cell.h), key=lambda probe: probe.d_k)
    logs = []
    for _ in range(draws):
        seeds = generator.integers(0, 10, 10)
        fails = [0.0]
        passes = math.inf
        for probe in own:
            ran = [probe.scores[seed] for seed in seeds if seed < len(probe.scores)]
            mean = sum(ran) / len(ran) if ran else probe.mean
            refuted = probe.d_k < cell.star.passed.d_k and probe.is_whole and probe.mean >= TARGET
            if mean >= TARGET and not refuted:
                passes = float(probe.D_K)
                break
            fails.append(float(probe.D_K))
        low = fails[-1] if len(fails) > 1 else passes - cell.h
        logs.append(
            math.log(low) if passes == math.inf else
            math.log(passes) if low <= 0 else
            (math.log(low) + math.log(passes)) / 2
        )  # fmt: skip
    return np.array(logs)


def test_the_noise_of_seeds_and_the_lack_of_fit(page: str, every: Data) -> None:
    """A plain bootstrap with draws of its own: equal within four standard errors of the two."""
    rows = table(page, "table-parts")
    generator = np.random.default_rng(1)
    for row, cell in zip(rows, every.cells, strict=True):
        logs = drawn_again(cell, 600, generator)
        sd = logs.std(ddof=1)
        spread = np.sqrt(np.mean((np.square(logs - logs.mean()) - sd**2) ** 2)) / 2 / max(sd, 1e-9)
        error = spread * math.sqrt(1 / 600 + 1 / 1000)
        assert abs(float(row["seeds"]) - sd) <= 4 * error + 0.0006, (row, sd, error)
    seeds = np.array([float(row["seeds"]) for row in rows])
    variance = seeds**2 + (every.high - every.low) ** 2 / 12
    middle = (every.low + every.high) / 2
    fit = sm.WLS(middle, sm.add_constant(np.log(every.scale)), weights=1 / variance).fit()
    chi2 = float((fit.resid**2 / variance).sum())
    told = table(page, "table-lack-of-fit")[0]
    assert agree(told["scatter"], 100 * math.sqrt((fit.resid**2).sum() / 10), slack=0.1)
    assert agree(told["seeds and resolution"], 100 * math.sqrt(variance.mean()), slack=0.1)
    assert float(told["χ²"]) == pytest.approx(chi2, rel=0.01, abs=0.6)
    assert told["degrees of freedom"] == "10"
    p = stats.chi2.sf(chi2, 10)
    told_p = told["p"].removeprefix("p ")
    assert p < 1e-4 if told_p[0] == "<" else float(told_p[2:]) == pytest.approx(p, rel=0.1)


def p_words(p: float) -> str:
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def test_the_papers_laws(page: str, every: Data, wide: Data) -> None:
    """Each tested as printed: whether some value that rounds to it holds for our cells."""
    told = {row["what"]: row for row in table(page, "table-agreement")}
    of = "DK* over m′ log₂ m / dmodel"
    says = {True: "agrees", False: "differs"}
    for name, data, half in (("D_K", every, 0.005), ("D_K_wide", wide, 0.0005)):
        law, x, y = LAWS[name], data.scale, data.D_K
        n, square = len(x), float((x**2).sum())
        slope = float((x * y).sum()) / square
        variance = float(((y - slope * x) ** 2).sum()) / (n - 1)
        nearest = min(max(slope, law.slope - half), law.slope + half)
        p = stats.f.sf((slope - nearest) ** 2 * square / variance, 1, n - 1)
        own, theirs = variance / square, law.slope**2 * (1 - law.r2) / law.r2 / (law.n - 1)
        together = (own + theirs) ** 2 / (own**2 / (n - 1) + theirs**2 / (law.n - 1))
        mild = 2 * stats.t.sf(abs(slope - nearest) / math.sqrt(own + theirs), together)
        cells = law.cells.replace("d_model", "dmodel")
        row = told[f"slope of {of}, {cells}"]
        assert (row["here"], row["verdict"]) == (f"{slope:#.3g}", says[p > 0.05])
        assert row["note"].endswith(
            f": {p_words(p)}; with the sampling error of theirs, {p_words(mild)}"
        )
        free, top = data.power.fit()
        held = optimize.minimize_scalar(
            lambda c, data=data: -data.law(offset=np.log(data.scale)).held(0, math.log(c)).fit()[1],
            bounds=(law.slope - half, law.slope + half),
            method="bounded",
        )
        fall = 2 * (top + float(held.fun))
        p = stats.f.sf(math.expm1(fall / n) * (n - 2) / 2, 2, n - 2)
        row = told[f"power of {of}, {cells}"]
        assert (row["here"], row["verdict"]) == (f"{free[1]:#.3g}", says[p > 0.05])
        assert row["note"].endswith(f"on the log scale: {p_words(p)}")
    law, X = LAWS["h"], sm.add_constant(every.load)
    fit = sm.OLS(every.h, X).fit()

    def distance(printed: Array) -> float:
        gap = printed - fit.params
        return float(gap @ (X.T @ X) @ gap)

    box = [(law.intercept - 0.005, law.intercept + 0.005), (law.slope - 0.005, law.slope + 0.005)]
    start = [law.intercept, law.slope]
    nearest = optimize.minimize(distance, start, bounds=box, method="Nelder-Mead",
                                options={"xatol": 1e-9, "fatol": 1e-9})  # fmt: skip
    p = stats.f.sf(nearest.fun / 2 / fit.mse_resid, 2, 10)
    for name, ours in zip(("intercept", "slope"), fit.params, strict=True):
        row = told[f"{name} of h* over m′/dmodel, all cells"]
        assert (row["here"], row["verdict"]) == (f"{ours:#.3g}".replace("-", "−"), says[p > 0.05])
        assert row["note"].endswith(f": {p_words(p)}")
