"""What a study's thresholds say about the laws: every fit, each cell's part in it, every test.

fits = fits_of(results)
fits.laws          every law, including those by the paper's estimator
fits.cells         each cell: its interval, ratio, seed noise, residual, leverage
fits.candidates    which law? by AICc and by leaving cells out
fits.lack_of_fit   do the cells scatter more than seeds and resolution explain?
fits.published     are the paper's numbers compatible with ours?
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from rgr_dist.analysis.laws.bootstrap_limits import Draws, draw_seeds
from rgr_dist.analysis.laws.candidates import Candidate, rank_candidates
from rgr_dist.analysis.laws.interval_likelihood import Array, fit, middles
from rgr_dist.analysis.laws.points import log_ends, points, with_protocols
from rgr_dist.analysis.laws.published import PublishedTest, line_test, proportional_test
from rgr_dist.analysis.laws.scaling_laws import Law, by_name, fit_laws, paper_laws, possible_laws
from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.analysis.thresholds.comparable import has_papers_protocol, laws_for
from rgr_dist.analysis.thresholds.known_weights import best_with_known
from rgr_dist.paper import LARGEST_DEGREE
from rgr_dist.planning.budgets import records
from rgr_dist.search.confidence_interval import CONFIDENCE
from rgr_dist.study.study import Study

PARTS = (
    *("ratio_fails", "seed_sd", "resolution", "predicted", "residual", "leverage"),
    *("leverage_paper", "exponent_without"),
)
"""What ``Fits.cells`` adds to the table of points."""


@dataclass(frozen=True, kw_only=True)
class LackOfFit:
    """Whether the cells lie further from a law than their own uncertainty explains.

    χ² sums (log D_K* - law)² / (seed_sd² + resolution²) over the cells, at the law's parameters
    that make it least. seed_sd is the standard deviation over resampled seeds; resolution is that
    of a value anywhere in the interval, width / √12.

    Attributes:
        law: ``D_K_power`` (any power) or ``D_K`` (proportional).
        chi2, degrees: χ² and its degrees of freedom.
        p_value: probability of so large a χ² from seeds and resolution alone.
        scatter: residual standard deviation of the logarithm at those parameters; about the fitted
            law it is ``Law.scatter``.
        noise: root mean square of what seeds and resolution explain.
        reduced: χ² over its degrees of freedom.
    """

    law: str
    n: int
    chi2: float
    degrees: int
    p_value: float
    scatter: float
    noise: float
    reduced: float

    @property
    def rejects(self) -> bool:
        """Whether the cells lie too far from the law for seeds and resolution to explain."""
        return self.p_value < 1 - CONFIDENCE


@dataclass(frozen=True, kw_only=True)
class Fits:
    """Everything that is fitted to a study's thresholds.

    Attributes:
        cells: one row per cell that counts, in the order of the study, all of the protocol that
            most cells have: the columns of ``points.points`` and ``ratio_fails`` (ratio at the
            failing D_K), ``seed_sd`` (of log D_K* over resampled seeds; null with one seed),
            ``resolution`` (of log D_K*), ``predicted`` (D_K* by ``D_K_power``), ``residual`` (log
            D_K* - law, at the interval's middle), ``leverage`` (on the log scale, sums to 2),
            ``leverage_paper`` (in the line through the origin, sums to 1), ``exponent_without``
            (the exponent from the other cells).
        left_out: cells of that protocol without a row there, with their status.
        laws: from ``scaling_laws.fit_laws`` and ``possible_laws``.
        candidates: from ``rank_candidates``, best first; candidates_wide without the narrow cells.
        lack_of_fit: tests of ``D_K_power`` and of ``D_K``; empty with too few cells.
        published: tests of the paper's laws on the cells that have its protocol; empty where the
            paper fits no such cells.
        as_papers: the laws of those cells, by the paper's estimator.
    """

    cells: pd.DataFrame
    left_out: pd.DataFrame
    laws: list[Law]
    candidates: list[Candidate]
    candidates_wide: list[Candidate]
    lack_of_fit: list[LackOfFit]
    published: list[PublishedTest]
    as_papers: list[Law]

    @property
    def rejected(self) -> list[str]:
        """The laws that their lack-of-fit tests reject, by name."""
        return [test.law for test in self.lack_of_fit if test.rejects]

    def cell_records(self) -> list[dict[str, Any]]:
        """The cells as JSON-ready records; missing and infinite values are None."""
        return records(self.cells.replace([math.inf, -math.inf], math.nan))


@per_study
def fits_of(results: StudyResults) -> Fits:
    """Everything fitted to a study's thresholds, and to the smaller widths its store knows of.

    Each problem counts at its largest step limit, and different protocols are fitted apart.
    """
    study = results.study
    best = with_protocols(best_of(results), study)
    largest = best[best["largest"] & (best["protocol"] == "")]
    cells = points(largest, study.search.heads)
    draws = draw_seeds(cells, results.searched, study)
    laws = fit_laws(best, study.search.heads, draws)
    wide = cells[~cells["narrow"]]
    own = {cell.cell_id for cell in study.cells if has_papers_protocol(cell, study.search)}
    papers = points(best[best["cell_id"].isin(own)], study.search.heads)
    told = _per_cell(cells, draws, by_name(laws)["D_K_power"], study.search.seeds)
    return Fits(
        cells=told,
        left_out=largest[~largest["status"].isin(["found", "censored"])],
        laws=[*laws, *possible_laws(told, best_with_known(results))],
        candidates=rank_candidates(cells),
        candidates_wide=rank_candidates(wide) if len(wide) < len(cells) else [],
        lack_of_fit=lack_of_fit(told),
        published=published_tests(papers, study),
        as_papers=paper_laws(papers),
    )


def published_tests(cells: pd.DataFrame, study: Study) -> list[PublishedTest]:
    """The paper's laws that concern this study, each tested on our cells.

    Args:
        cells: the table of ``points.points``.
    """
    tests = []
    found = cells[cells["D_K"].notna()]
    for name, law in laws_for(study).items():
        part, some = cells, found
        if name == "D_K_wide":
            part, some = cells[~cells["narrow"]], found[~found["narrow"]]
        if name == "D_K_sparse":
            part, some = (t[t["degree"] <= LARGEST_DEGREE] for t in (cells, found))
        axes = ("compression", "h_star") if name == "h" else ("scale", "D_K")
        x, y = (some[axis].to_numpy(dtype=np.float64) for axis in axes)
        tests.append(line_test(name, law, x, y))
        if name != "h":
            tests.append(proportional_test(name, law, part))
    return tests


def _per_cell(cells: pd.DataFrame, draws: Draws, power: Law, seeds: int) -> pd.DataFrame:
    """The cells with their part in the laws; a single seed gives no seed noise."""
    lower, upper = log_ends(cells["D_K_fails"], cells["D_K_passes"])
    scale = cells["scale"].to_numpy(dtype=np.float64)
    x, middle = np.log(scale), middles(lower, upper)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    with np.errstate(invalid="ignore"):
        resolution = np.where(bounded, (upper - lower) / math.sqrt(12), np.nan)
    told: dict[str, Any] = dict.fromkeys(PARTS, np.full(len(cells), np.nan))
    told["ratio_fails"] = cells["D_K_fails"].to_numpy() / scale
    known = cells["D_K"].notna() & (seeds > 1)
    told["seed_sd"] = np.where(known, draws.seed_sd, np.nan)
    told["resolution"] = resolution
    square = (cells["scale"] ** 2).where(cells["D_K"].notna())
    told["leverage_paper"] = square / square.sum()
    if power.exponent is not None and power.factor is not None:
        told["predicted"] = power.factor * scale**power.exponent
        told["residual"] = np.where(bounded, middle - np.log(told["predicted"]), np.nan)
        design = np.column_stack([np.ones_like(x), x])
        told["leverage"] = np.einsum("np,pn->n", design, np.linalg.pinv(design))
        told["exponent_without"] = _exponents_without(lower, upper, design, bounded)
    return cells.assign(**told).astype(dict.fromkeys(PARTS, "float64"))


def _exponents_without(lower: Array, upper: Array, design: Array, bounded: Any) -> Array:
    """The exponent fitted without each cell; NaN where the other cells do not give one."""
    n = len(lower)
    enough = np.array(
        [
            bounded[rest].sum() >= 3 and np.ptp(design[rest, 1][bounded[rest]]) > 1e-9
            for rest in (np.arange(n) != i for i in range(n))
        ]
    )
    found = np.full(n, np.nan)
    if enough.any():
        weights = (1.0 - np.eye(n))[enough]
        found[enough] = fit(lower, upper, design, weights).coefficients[:, 1]
    return found


def lack_of_fit(cells: pd.DataFrame) -> list[LackOfFit]:
    """Lack-of-fit tests of the power law and of proportionality, over cells with two known ends.

    Args:
        cells: ``D_K_fails, D_K_passes, scale, seed_sd, resolution, residual`` of ``Fits.cells``.
    """
    own = cells[cells["residual"].notna() & cells["seed_sd"].notna()]
    lower, upper = log_ends(own["D_K_fails"], own["D_K_passes"])
    y, x = middles(lower, upper), np.log(own["scale"].to_numpy(dtype=np.float64))
    variance = own["seed_sd"].to_numpy() ** 2 + own["resolution"].to_numpy() ** 2
    tests = []
    for name, target, design in (
        ("D_K_power", y, np.column_stack([np.ones_like(x), x])),
        ("D_K", y - x, np.ones((len(x), 1))),
    ):
        n, p = design.shape
        if n <= p + 1:
            continue
        root = 1 / np.sqrt(variance)
        beta, *_ = np.linalg.lstsq(design * root[:, None], target * root, rcond=None)
        residual = target - design @ beta
        chi2 = float((residual**2 / variance).sum())
        tests.append(
            LackOfFit(
                law=name,
                n=n,
                chi2=chi2,
                degrees=n - p,
                p_value=float(chdtrc(n - p, chi2)),
                scatter=float(np.sqrt((residual**2).sum() / (n - p))),
                noise=float(np.sqrt(variance.mean())),
                reduced=chi2 / (n - p),
            )
        )
    return tests
