"""Which law? Candidates for D_K* on the log scale, by AICc and by leaving cells out.

Each is fitted by the interval likelihood of ``interval_likelihood``, so all are compared on the
same data. Those within ``LEAST_GAP`` of the least AICc stay: dropping only the others keeps the
best of the set in about 95 % of cases (Richards, Ecology 86, 2005, 2805-2814). A law that only adds
freedom to another counts only if it is better by more than ``EXTENSION_GAP``: by chance alone, some
of several extensions are a little better.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from rgr_dist.analysis.laws.forms import FORMS, Form, holds, is_identified, log_load
from rgr_dist.analysis.laws.interval_likelihood import Array, IntervalFit, fit, middles
from rgr_dist.analysis.laws.points import log_ends
from rgr_dist.analysis.laws.profile_limits import cut_off, known, known_factor, profile_interval
from rgr_dist.search.confidence_interval import t_quantile

LEAST_GAP = 6.0
"""A law is ruled out if its AICc exceeds the least by more than this."""

EXTENSION_GAP = 2.0
"""To count, a law needs an AICc lower than each of its special cases by more than this."""

K_GRID = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 61)])
"""Values of k · (median m′/d_model) that are searched first, before the best one is refined."""

REFINEMENTS = 3
"""How often the grid of k is narrowed around its best value, each time about tenfold."""

MANY, GROUPS = 60, 12
"""With more than ``MANY`` cells, a twelfth of them is left out at a time instead of one cell."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One candidate fitted to the cells; numbers are null where it could not be.

    Attributes:
        name, formula: which law.
        status: ``fitted``; ``not identified`` where the cells do not vary enough; ``same`` where it
            coincides with another law in these cells; ``too few cells``.
        reason: why it was not fitted.
        n: number of cells fitted, including censored ones.
        n_parameters: number of unknowns, including the scatter.
        parameters, low, high: the unknowns c, a, b, k by name, with their 95 % limits.
        sigma: scatter about the law, as a standard deviation of log D_K*, corrected for the
            degrees of freedom.
        aicc, gap, weight: corrected Akaike criterion, its excess over the least, Akaike weight.
        loo_error: root mean square of log(D_K* / prediction), each cell predicted from the others
            (with more than ``MANY`` cells, from those outside its group).
        supported: within ``LEAST_GAP`` of the best, and not merely an extension of another law.
    """

    name: str
    formula: str
    status: Literal["fitted", "not identified", "same", "too few cells"]
    reason: str | None = None
    n: int = 0
    n_parameters: int = 0
    parameters: dict[str, float] = dataclasses.field(default_factory=dict)
    low: dict[str, float | None] = dataclasses.field(default_factory=dict)
    high: dict[str, float | None] = dataclasses.field(default_factory=dict)
    sigma: float | None = None
    log_likelihood: float | None = None
    aicc: float | None = None
    gap: float | None = None
    weight: float | None = None
    loo_error: float | None = None
    supported: bool = False


def rank_candidates(cells: pd.DataFrame) -> list[Candidate]:
    """Every candidate, the best first, those that could not be fitted last.

    Args:
        cells: the table of ``rgr_dist.analysis.laws.points.points``.
    """
    fitted: list[tuple[Form, Candidate]] = []
    others: list[Candidate] = []
    for form in FORMS:
        candidate = fit_form(form, cells, [one for one, _ in fitted])
        if candidate.status == "fitted":
            fitted.append((form, candidate))
        else:
            others.append(candidate)
    if not fitted:
        return others
    least = min(candidate.aicc for _, candidate in fitted if candidate.aicc is not None)
    gaps = {form.name: (c.aicc or 0.0) - least for form, c in fitted}
    total = math.fsum(math.exp(-gap / 2) for gap in gaps.values())
    ranked = []
    for form, candidate in fitted:
        low, high = _limits(form, candidate, cells)
        gap = gaps[form.name]
        held = (gaps[one.name] for one, _ in fitted if one is not form and holds(form, one, cells))
        simpler = min(held, default=math.inf)
        ranked.append(
            dataclasses.replace(
                candidate,
                low=low,
                high=high,
                gap=gap,
                weight=math.exp(-gap / 2) / total,
                supported=gap <= LEAST_GAP and simpler > gap + EXTENSION_GAP,
            )
        )
    return sorted(ranked, key=lambda c: c.gap or 0.0) + others


def fit_form(form: Form, cells: pd.DataFrame, earlier: Sequence[Form] = ()) -> Candidate:
    """One candidate by itself, without its limits, gap, weight and support.

    Args:
        earlier: forms already fitted; one that coincides with any of them is not fitted again.
    """
    plain = Candidate(name=form.name, formula=form.formula, status="too few cells", n=len(cells))
    unknowns = len(form.unknowns)
    bounded = n_bounded(cells)
    if bounded < unknowns + 3:
        need = f"AICc needs {unknowns + 3} cells with a pass and a fail below it, and has {bounded}"
        return dataclasses.replace(plain, reason=need)
    if not is_identified(form, cells):
        why = "its terms do not vary apart in these cells"
        return dataclasses.replace(plain, status="not identified", reason=why)
    for other in earlier:
        if holds(form, other, cells) and holds(other, form, cells):
            return dataclasses.replace(
                plain, status="same", reason=f"in these cells it is {other.formula}"
            )
    lower, upper = log_ends(cells["D_K_fails"], cells["D_K_passes"])
    fits, ks = _maximise(form, cells, lower, upper, np.ones((1, len(cells))))
    k, coefficients = float(ks[0]), fits.coefficients[0]
    n, n_parameters = len(cells), unknowns + 1
    log_likelihood = float(fits.log_likelihood[0])
    penalty = 2 * n_parameters * n / (n - n_parameters - 1)
    others = [k] if form.has_k else coefficients[1:].tolist()
    values = [math.exp(float(coefficients[0])), *others]
    return dataclasses.replace(
        plain,
        status="fitted",
        n_parameters=n_parameters,
        parameters=dict(zip(form.unknowns, values, strict=True)),
        sigma=float(fits.sigma[0]) * math.sqrt(bounded / (bounded - unknowns)),
        log_likelihood=log_likelihood,
        aicc=penalty - 2 * log_likelihood,
        loo_error=_leave_out(form, cells, lower, upper, k),
    )


def n_bounded(cells: pd.DataFrame) -> int:
    """How many cells have both ends: a width that passes and one below it that fails."""
    return int(((cells["D_K_fails"] > 0) & np.isfinite(cells["D_K_passes"])).sum())


def _k_grid(cells: pd.DataFrame) -> Array:
    """The values of k that are searched first in these cells."""
    return np.asarray(K_GRID / np.median(np.exp(log_load(cells))))


def _maximise(
    form: Form,
    cells: pd.DataFrame,
    lower: Array,
    upper: Array,
    weights: Array,
    near: float | None = None,
) -> tuple[IntervalFit, Array]:
    """The fits at the best k (0 if the form has none), one for each row of weights.

    Args:
        near: k of the fit to all cells, around which k is searched when some are left out.
    """
    design = form.design(cells)
    first = _k_grid(cells) if form.has_k else np.zeros(1)
    if form.has_k and near is not None:
        first = np.concatenate([[0.0], max(near, float(first[1])) * np.geomspace(0.1, 10, 20)])
    grid = np.tile(first, (len(weights), 1))
    for _ in range(1 + REFINEMENTS * form.has_k):
        offset = form.offset_at(cells, grid[:, :, None])
        result = fit(lower - offset, upper - offset, design, weights[:, None, :])
        at = result.log_likelihood.argmax(axis=1)
        rows = np.arange(len(weights))
        k = grid[rows, at]
        low, high = (grid[rows, np.clip(at + by, 0, grid.shape[1] - 1)] for by in (-1, 1))
        grid = np.linspace(low, high, 21, axis=1)
    parts = (result.coefficients, result.sigma, result.log_likelihood)
    return IntervalFit(*(part[rows, at] for part in parts)), k


Limits = dict[str, float | None]


def _limits(form: Form, fitted: Candidate, cells: pd.DataFrame) -> tuple[Limits, Limits]:
    """95 % profile-likelihood limits of every unknown."""
    lower, upper = log_ends(cells["D_K_fails"], cells["D_K_passes"])
    if form.has_k:
        ends = _limits_of_k(form, cells, lower, upper, fitted.parameters["k"])
        offset = form.offset_at(cells, _inside(ends, cells)[:, None])
        c = _limits_of_c(form, cells, form.design(cells), offset)
        low, high = ({"c": known_factor(end), "k": k} for end, k in zip(c, ends, strict=True))
        return (low if ends[1] is not None else low | {"c": 0.0}), high
    index = np.arange(len(form.unknowns))
    offset = form.offset(cells)
    parts = profile_interval(lower - offset, upper - offset, form.design(cells), index)
    low, high = (
        {
            name: known_factor(end) if name == "c" else known(end)
            for name, end in zip(form.unknowns, own.tolist(), strict=True)
        }
        for own in parts
    )
    return low, high


def _inside(ends: tuple[float | None, float | None], cells: pd.DataFrame) -> Array:
    """Values of k between its limits, those of the grid included."""
    grid = _k_grid(cells)
    low, high = ends[0] or 0.0, grid[-1] if ends[1] is None else ends[1]
    return np.unique([*np.linspace(low, high, 40), *grid[(grid >= low) & (grid <= high)]])


def _limits_of_c(
    form: Form, cells: pd.DataFrame, design: Array, offset: Array
) -> tuple[float, float]:
    """95 % profile-likelihood limits of the constant, with k free too.

    Args:
        offset: the terms without a coefficient, for each value of k, shape (k, n).
    """
    lower, upper = log_ends(cells["D_K_fails"], cells["D_K_passes"])
    most = float(fit(lower - offset, upper - offset, design).log_likelihood.max())
    falls = float(cut_off(lower, upper, len(form.unknowns)))
    index = np.zeros(len(offset), dtype=np.int64)
    low, high = profile_interval(
        lower - offset, upper - offset, design, index, floor=most - falls / 2
    )
    return float(low.min()), float(high.max())


def _limits_of_k(
    form: Form, cells: pd.DataFrame, lower: Array, upper: Array, k: float
) -> tuple[float | None, float | None]:
    """95 % profile-likelihood limits of k; where the data set none, 0 below and None above."""
    design = form.design(cells)

    def fall(values: Array) -> Array:
        offset = form.offset_at(cells, values[:, None])
        return fit(lower - offset, upper - offset, design).log_likelihood

    cut = float(fall(np.array([k]))[0] - cut_off(lower, upper, 2) / 2)
    grid = np.unique(np.append(_k_grid(cells), k))
    inside = fall(grid) >= cut
    at = np.flatnonzero(inside)
    ends: list[float | None] = []
    for edge, beyond in ((at[0], at[0] - 1), (at[-1], at[-1] + 1)):
        if beyond < 0:
            ends.append(0.0)
        elif beyond == len(grid):
            ends.append(None)
        else:
            fine = np.linspace(grid[edge], grid[beyond], 201)
            ends.append(float(fine[np.flatnonzero(fall(fine) >= cut)[-1]]))
    return ends[0], ends[1]


def _leave_out(form: Form, cells: pd.DataFrame, lower: Array, upper: Array, k: float) -> float:
    """Root mean square error of each cell's log D_K*, predicted from the others.

    The error at a censored cell is how far its prediction lies below the largest failing D_K.
    """
    n = len(cells)
    group = np.arange(n) % (n if n <= MANY else GROUPS)
    weights = (group != np.arange(group.max() + 1)[:, None]).astype(np.float64)
    design, truth = form.design(cells), middles(lower, upper)
    result, ks = _maximise(form, cells, lower, upper, weights, near=k)
    offset = form.offset_at(cells, ks[group])
    errors = offset + np.einsum("np,np->n", design, result.coefficients[group]) - truth
    errors = np.where(np.isfinite(upper), errors, np.minimum(errors, 0.0))
    return float(np.sqrt((errors**2).mean()))


def law_at(candidate: Candidate, at: pd.DataFrame) -> Array:
    """log D_K* at other sizes.

    Args:
        at: ``m, d_model, n_edges``.
    """
    form = form_of(candidate)
    values = [v for name, v in candidate.parameters.items() if name not in ("c", "k")]
    beta = np.array([math.log(candidate.parameters["c"]), *values])
    return np.asarray(
        form.offset_at(at, candidate.parameters.get("k", 0.0)) + form.design(at) @ beta
    )


def form_of(candidate: Candidate) -> Form:
    """The form of a candidate's law."""
    return next(form for form in FORMS if form.name == candidate.name)


def is_law(candidate: Candidate, name: str, cells: pd.DataFrame) -> bool:
    """Whether a candidate is the law of this name, or coincides with it in these cells."""
    own, named = form_of(candidate), next(form for form in FORMS if form.name == name)
    return own is named or (holds(own, named, cells) and holds(named, own, cells))


def predict(
    candidate: Candidate, cells: pd.DataFrame, at: pd.DataFrame
) -> tuple[Array, Array, Array]:
    """D_K* at other sizes, with 95 % prediction intervals.

    The interval is for one more cell. It adds in quadrature, as in least squares, the law's
    profile-likelihood limits there and the scatter times Student's t at n - p degrees of freedom.
    Where the cells set no end, it is 0 below and infinite above.

    Args:
        cells: the cells that the candidate was fitted to.
        at: ``m, d_model, n_edges``.

    Returns:
        Prediction, lower and upper end.
    """
    form, centre = form_of(candidate), law_at(candidate, at)
    assert candidate.sigma is not None
    scatter = t_quantile(n_bounded(cells) - len(form.unknowns)) * candidate.sigma
    ks = np.zeros(1)
    if form.has_k:
        ends = log_ends(cells["D_K_fails"], cells["D_K_passes"])
        ks = _inside(_limits_of_k(form, cells, *ends, candidate.parameters["k"]), cells)
    own, new = form.design(cells), form.design(at)
    low, high = np.empty(len(at)), np.empty(len(at))
    for i in range(len(at)):  # log D_K* at the new size is the constant of a design about it
        offset = form.offset_at(cells, ks[:, None]) - form.offset_at(at[i : i + 1], ks[:, None])
        design = np.column_stack([np.ones(len(cells)), own[:, 1:] - new[i, 1:]])
        low[i], high[i] = _limits_of_c(form, cells, design, offset)
    below, above = np.hypot(centre - low, scatter), np.hypot(high - centre, scatter)
    return np.exp(centre), np.exp(centre - below), np.exp(centre + above)
