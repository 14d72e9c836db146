"""The numbers of ``base-grid`` from the rows of ``runs/*.parquet``, without our analysis.

pandas reads the rows, scipy and statsmodels do the statistics; what neither has is written as its
definition, in the plainest form. Only the paper's own constants come from the package.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import optimize, stats
from scipy.special import ndtr

TARGET, SEEDS, FRESH = 0.99, 10, 20
HEADS = (1, 2, 4, 8, 16, 32, 64)
CELL = ["m", "d_model"]
Size = tuple[int, int]
Array = np.ndarray


def rows_of(store: Path) -> pd.DataFrame:
    """The raw rows; of a run that failed and was run again, the second."""
    rows = pd.concat(pd.read_parquet(part) for part in sorted((store / "runs").glob("*.parquet")))
    rows = rows.assign(lost=rows["stop_reason"] == "failed").sort_values("lost", kind="stable")
    rows = rows.drop_duplicates("run_id")
    diverged = rows["stop_reason"] == "diverged"
    return rows.assign(score=rows["score"].mask(diverged, 0.0).astype(float), diverged=diverged)


def shown(size: Size) -> str:
    """A cell's name."""
    return f"({size[0]}, {size[1]})"


@dataclass(frozen=True)
class Probe:
    """The scores of one (cell, h, d_k), by seed."""

    h: int
    d_k: int
    scores: Array
    fresh: Array
    diverged: int

    @cached_property
    def D_K(self) -> int:
        return self.h * self.d_k

    @cached_property
    def mean(self) -> float:
        return float(np.mean(self.scores))

    @cached_property
    def interval(self) -> tuple[float, float]:
        """95 % t-interval; of no width where all scores are equal."""
        if np.ptp(self.scores) == 0:
            return self.mean, self.mean
        low, high = stats.t.interval(
            0.95, len(self.scores) - 1, loc=self.mean, scale=stats.sem(self.scores)
        )
        return float(low), float(high)

    @cached_property
    def is_whole(self) -> bool:
        return len(self.scores) == SEEDS

    @cached_property
    def passes(self) -> bool:
        """On all seeds, and on the fresh ones where they were run."""
        lost = float((1 - self.fresh).sum())  # a few fresh seeds may settle that it fails
        return self.is_whole and self.mean >= TARGET and lost <= FRESH * (1 - TARGET) + 1e-12

    @cached_property
    def passing(self) -> int:
        return int((self.scores >= TARGET).sum())

    @cached_property
    def collapsed(self) -> int:
        low = self.scores < 0.5 * np.median(self.scores)
        return int((low | (self.scores == 0)).sum())


def probes_of(rows: pd.DataFrame) -> dict[Size, list[Probe]]:
    """The probes of each cell by head count and width."""
    cells: dict[Size, list[Probe]] = {}
    for (m, d, h, d_k), own in rows.groupby([*CELL, "h", "d_k"]):
        own = own.sort_values("seed")
        first, fresh = own[own["seed"] < SEEDS], own[own["seed"] >= SEEDS]
        probe = Probe(
            h,
            d_k,
            first["score"].to_numpy(),
            fresh["score"].to_numpy()[:FRESH],
            int(first["diverged"].sum()),
        )
        cells.setdefault((m, d), []).append(probe)
    return cells


@dataclass(frozen=True)
class Threshold:
    """The smallest width of a head count that passes, with the probe just below it."""

    passed: Probe
    failed: Probe | None
    optimistic: int
    conservative: int | None


def threshold(probes: Sequence[Probe]) -> Threshold | None:
    """Of the probes of one head count; None if no width passes beside one that fails."""
    by_width = {probe.d_k: probe for probe in probes}
    good = [d_k for d_k, probe in sorted(by_width.items()) if probe.passes]
    found = [d_k for d_k in good if d_k == 1 or (d_k - 1 in by_width and d_k - 1 not in good)]
    if not found:
        return None
    d_k = found[0]
    whole = {width: probe.interval for width, probe in by_width.items() if probe.is_whole}
    may = [width for width, (_, high) in whole.items() if high >= TARGET]
    sure = [width for width, (low, _) in whole.items() if low >= TARGET and width >= d_k]
    return Threshold(by_width[d_k], by_width.get(d_k - 1), min(may), min(sure, default=None))


def certificate(found: Threshold) -> str:
    """The two sides of a threshold in words."""
    one, other = found.passed, found.failed
    passes = f"passes at {one.d_k} (10 seeds, mean {one.mean:.4f})"
    if other is None:
        return f"{passes}, nothing is narrower"
    if other.is_whole and other.mean >= TARGET:  # refuted: it fails on the fresh seeds
        fails = f"({len(other.fresh)} seeds, mean {other.fresh.mean():.4f})"
        return f"{passes}, fails at {other.d_k} {fails}"
    if other.is_whole:
        return f"{passes}, fails at {other.d_k} (10 seeds, mean {other.mean:.4f})"
    n = len(other.scores)
    most = (other.scores.sum() + SEEDS - n) / SEEDS
    seeds = "1 seed" if n == 1 else f"{n} seeds"
    return f"{passes}, fails at {other.d_k} (mean ≤ {most:.4f} after {seeds})"


@dataclass(frozen=True)
class Cell:
    """D_K* and h* of a cell, and what they rest on."""

    size: Size
    heads: Mapping[int, Threshold]
    probes: Sequence[Probe]

    @cached_property
    def h(self) -> int:
        """The head count of the least D_K; of several, the one with the best mean."""
        return min(
            self.heads, key=lambda h: (self.heads[h].passed.D_K, -self.heads[h].passed.mean, h)
        )

    @cached_property
    def star(self) -> Threshold:
        return self.heads[self.h]

    @cached_property
    def D_K(self) -> int:
        return self.star.passed.D_K

    @cached_property
    def scale(self) -> float:
        m, d = self.size
        return m * math.log2(m) / d

    @cached_property
    def load(self) -> float:
        return self.size[0] / self.size[1]

    def margin(self, h: int) -> int:
        """The widest d_k of a head count within 10 % of D_K*, or one step above it."""
        no_dearer = self.D_K // h
        return max(math.floor(1.1 * self.D_K + 1e-9) // h, no_dearer + 1 if no_dearer else 0)

    def near(self, h: int) -> bool:
        """Whether a head count's width is within that margin."""
        return self.heads[h].passed.d_k <= self.margin(h)

    def bound(self, h: int) -> int:
        """The least D_K that a pruned head count may have.

        It is beyond the margin, but for a probe within it whose interval reaches the target.
        """
        margin = self.margin(h)
        own = [p for p in self.probes if p.h == h and p.d_k <= margin]
        assert margin == 0 or any(not p.passes for p in own if p.d_k == margin)
        may = [p.d_k for p in own if p.is_whole and p.interval[1] >= TARGET]
        return h * min([margin + 1, *may])

    @cached_property
    def low(self) -> int:
        """The least D_K whose interval reaches the target, at any head count searched."""
        own = [p for p in self.probes if p.is_whole and p.interval[1] >= TARGET]
        return min(probe.D_K for probe in own)

    @cached_property
    def high(self) -> int | None:
        """The least D_K that passes beyond its seeds' spread, of the heads near D_K*."""
        ends = [
            h * t.conservative for h, t in self.heads.items() if t.conservative and self.near(h)
        ]
        return min(ends, default=None)

    @cached_property
    def pool(self) -> dict[int, float | None]:
        """p of the paired t-test with h* for each head count near D_K*; None of h* itself."""
        found: dict[int, float | None] = {}
        for h, own in self.heads.items():
            if self.near(h):
                pair = own.passed.scores, self.star.passed.scores
                same = h == self.h
                found[h] = None if same else float(stats.ttest_rel(*pair).pvalue)
        return found

    @cached_property
    def kept(self) -> list[int]:
        """Head counts that the test does not tell from h*."""
        return [h for h, p in self.pool.items() if p is None or p > 0.05]

    @cached_property
    def fails(self) -> int:
        """The failing side of D_K*."""
        return self.h * (self.star.passed.d_k - 1)


def cells_of(probes: Mapping[Size, Sequence[Probe]]) -> dict[Size, Cell]:
    """Every cell, by size."""
    cells = {}
    for size, own in sorted(probes.items()):
        heads = {h: threshold([p for p in own if p.h == h]) for h in HEADS}
        cells[size] = Cell(size, {h: t for h, t in heads.items() if t is not None}, own)
    return cells


def fit_law(low: Array, high: Array, X: Array) -> tuple[Array, float]:
    """β and log σ of y = X β with scatter, for each y between two ends; and the log-likelihood.

    By the simplex method, again from where it stopped.
    """

    def lost(values: Array) -> float:
        centre, sigma = X @ values[:-1], math.exp(values[-1])
        a, b = (low - centre) / sigma, (high - centre) / sigma
        share = np.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))
        return -float(np.log(np.maximum(share, 1e-300)).sum())

    known = np.where(np.isfinite(low), low, high)
    middle = np.where(np.isfinite(high), (known + high) / 2, known)
    at = np.append(np.linalg.lstsq(X, middle, rcond=None)[0], math.log(0.2))
    for _ in range(3):
        options = {"xatol": 1e-8, "fatol": 1e-10, "maxfev": 5000}
        found = optimize.minimize(lost, at, method="Nelder-Mead", options=options)
        at = found.x
    return at, -float(found.fun)


def limits(low: Array, high: Array, X: Array, index: int) -> tuple[float, float]:
    """95 % limits of a coefficient: where the profile of the log-likelihood has fallen so far.

    Twice the fall is n log(1 + F / (n - p)), F the quantile at 1 and n - p degrees of freedom.
    """
    values, top = fit_law(low, high, X)
    n, p = int((np.isfinite(low) & np.isfinite(high)).sum()), X.shape[1]
    cut = n * math.log1p(stats.f.ppf(0.95, 1, n - p) / (n - p))
    best, rest = values[index], np.delete(X, index, axis=1)

    def excess(value: float) -> float:
        held = value * X[:, index]
        return 2 * (top - fit_law(low - held, high - held, rest)[1]) - cut

    ends = []
    for way in (-1, 1):
        far = way * 2 * math.exp(values[-1])
        while excess(best + far) < 0:
            far *= 2
        ends.append(float(optimize.brentq(excess, best, best + far, xtol=1e-6, rtol=1e-6)))
    return ends[0], ends[1]
