"""The scaling laws fitted to D_K* and h*, as tables with intervals (Sec. 6.1, App. A.2, A.3).

The paper does not say how its fits were made. Two things follow from its own figures:

- "D_K* ≈ 1.19 x" has no intercept, so the line goes through the origin.
- Its R² is most likely the uncentred one, 1 - Σ(y - ŷ)²/Σy², which least squares without an
  intercept usually reports. The D_K* that Table 1 implies for the base grid do not give the
  printed fits alone (slope 1.40, uncentred R² 0.966; 0.943 and 0.988 without the narrow cells).
  But the two printed slopes together fix Σx² of the fitted cells, and it is that of the base grid
  and the larger cells of Sec. 6.1, (1024, 128), (2048, 256), (4096, 512) and (1024, 32). Among
  plausible D_K* for these (40–130 on the diagonal in steps of 4, 240–420 at (1024, 32) in steps of
  8), some give both slopes and both R² as printed if R² is uncentred; none do if it is centred.

So the laws ``D_K`` and ``D_K_wide`` use the paper's estimator, kept so that its numbers can be
compared. It weights cells by x², which gives (512, 16) alone 0.61 of the base grid's weight, and
its interval takes lack of fit for noise. ``D_K_power`` and ``D_K_power_wide`` say how D_K* grows: a
power law on the log scale, fitted by the likelihood of each cell's interval, from the failing to
the passing D_K and open above where censored (``interval_likelihood``). ``h_power`` does so for h*.

``r2`` of the law of D_K is uncentred, to compare with the paper's; ``r2_centred`` is given too.
The law of h* has an intercept and the ordinary, centred R². No choice of cells that we tried gives
the printed 1.65, -6.64 and 0.824 from the implied head counts.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rgr_dist.analysis.laws.bootstrap_limits import Draws, bootstrap_coefficient
from rgr_dist.analysis.laws.interval_likelihood import Array, fit
from rgr_dist.analysis.laws.points import Heads, log_ends, points
from rgr_dist.analysis.laws.profile_limits import known, known_factor, profile_interval
from rgr_dist.analysis.wording import plural
from rgr_dist.paper import LARGEST_DEGREE, information
from rgr_dist.search.confidence_interval import t_quantile

CELLS_OF_A_LAW = 3
"""Fewest cells that a law is fitted to."""

PAPER_ESTIMATOR = "the paper's: least squares through the origin"
LINE_ESTIMATOR = "least squares with an intercept"
POWER_ESTIMATOR = "interval likelihood on the log scale"
D_K, H = ("D_K*", "m' log2(m) / d_model"), ("h*", "m' / d_model")
BITS = ("D_K*", "m' log2(m²/m') / d_model")
ALL, WIDE = "all cells", "all but d_model = 16, m > 64"


@dataclass(frozen=True, kw_only=True)
class Law:
    """A line fitted to the cells of a study; numbers are null where nothing could be fitted.

    Attributes:
        name: ``D_K``, ``D_K_wide`` (without the narrow cells) or ``h``; for denser graphs also
            ``D_K_sparse`` (degree 16 at most) and ``D_K_bits`` (on the graph's information); the
            power laws ``D_K_power``, ``D_K_power_wide`` and ``h_power``, and, if the store knows of
            smaller widths, ``D_K_possible_power`` and ``D_K_possible_power_wide``. A study of
            several step limits has ``D_K`` and ``D_K_power`` at each of them, such as
            ``D_K_power_20000_steps``; a study of several protocols has them for each one other
            than the usual, such as ``D_K_power_learning_rate=0.01``.
        estimator: how it was fitted, in words.
        response, predictor: the two axes, in the paper's notation.
        cells: which cells were fitted, in words.
        n: number of cells fitted.
        status: ``fitted`` or ``too few cells``.
        reason: why nothing could be fitted; None if fitted.
        intercept: 0 for a line through the origin.
        slope_low, slope_high, intercept_low, intercept_high: 95 % confidence limits.
        r2: the coefficient of determination as the paper defines it (see the module).
        r2_centred, r2_uncentred: share of Σ(y - ȳ)² and of Σy² that the line explains.
        sigma: residual standard deviation, in units of the response.
        factor, exponent: of a power law, response ≈ factor · predictor ^ exponent, with 95 %
            profile-likelihood limits; null for a line.
        bootstrap_low, bootstrap_high: 95 % limits of the exponent over cells and seeds drawn again;
            null without runs.
        scatter: standard deviation of the response's logarithm about a power law.
        n_censored: cells fitted whose D_K* has no upper end.
        max_steps: the cells' step limit, if the law is for one of several limits.
        protocol: how the cells' protocol differs from the usual one, if it does.
        x_mean, x_square_sum: the predictor's mean (0 through the origin) and its sum of squares
            about that mean, which prediction intervals need.
    """

    name: str
    response: str
    predictor: str
    cells: str
    through_origin: bool
    n: int
    status: Literal["fitted", "too few cells"]
    reason: str | None = None
    slope: float | None = None
    slope_low: float | None = None
    slope_high: float | None = None
    intercept: float | None = None
    intercept_low: float | None = None
    intercept_high: float | None = None
    r2: float | None = None
    r2_centred: float | None = None
    r2_uncentred: float | None = None
    sigma: float | None = None
    x_mean: float | None = None
    x_square_sum: float | None = None
    estimator: str = PAPER_ESTIMATOR
    factor: float | None = None
    factor_low: float | None = None
    factor_high: float | None = None
    exponent: float | None = None
    exponent_low: float | None = None
    exponent_high: float | None = None
    bootstrap_low: float | None = None
    bootstrap_high: float | None = None
    scatter: float | None = None
    n_censored: int = 0
    max_steps: int | None = None
    protocol: str | None = None

    @property
    def is_trend(self) -> bool:
        """Whether the interval of a power excludes 0; only then do figures draw it."""
        return (self.exponent_low or -1) > 0 or (self.exponent_high or 1) < 0


def fit_laws(best: pd.DataFrame, heads: Heads, draws: Draws | None = None) -> list[Law]:
    """The laws of D_K* and h*, those on the linear scale first.

    A problem searched under several step limits counts at the largest. Protocols are never pooled:
    the laws are for the one that most cells have, and every other has its own ``D_K`` and
    ``D_K_power``, and ``D_K_power_wide`` where cells are narrow. The lines are least squares over
    cells of status ``found``: an open cell's D_K* may still fall. The power laws take censored
    cells too. With too few cells a law has no numbers but a ``reason``; this is not an error.

    Args:
        best: the table of ``points.with_protocols``.
        heads: the head counts that were searched.
        draws: for bootstrap limits, the draws of the cells with the usual protocol at their largest
            step limits, in the order of ``points``.
    """
    usual, largest = best[best["protocol"] == ""], best[best["largest"]]
    laws = _laws(points(usual[usual["largest"]], heads), draws)
    for protocol in ["", *filter(None, largest["protocol"].unique())]:
        own = best[best["protocol"] == protocol]
        laws += _of_protocol(own[own["largest"]], protocol, heads) if protocol else []
        limits = [] if own["largest"].all() else sorted({int(steps) for steps in own["max_steps"]})
        for steps in limits:
            laws += [
                dataclasses.replace(
                    law,
                    name=f"{law.name}_{steps}_steps",
                    cells=f"{'' if law.cells == ALL else f'{law.cells}, '}{steps:,} steps",
                    max_steps=steps,
                )
                for law in _of_protocol(own[own["max_steps"] == steps], protocol, heads)
            ]
    return laws


def _of_protocol(best: pd.DataFrame, protocol: str, heads: Heads) -> list[Law]:
    """The laws of D_K* over cells of one protocol, named after it if it is not the usual one."""
    cells = points(best, heads)
    own = by_name(_laws(cells))
    wide = ["D_K_power_wide"] if cells["narrow"].any() else []
    laws = [own[name] for name in ("D_K", "D_K_power", *wide)]
    if not protocol:
        return laws
    key = protocol.replace(" ", "")
    return [
        dataclasses.replace(
            law,
            name=f"{law.name}_{key}",
            cells=protocol if law.cells != WIDE else f"{protocol}, {WIDE}",
            protocol=protocol,
        )
        for law in laws
    ]


def paper_laws(cells: pd.DataFrame) -> list[Law]:
    """D_K* by the paper's estimator, and the line of h*, from the table of ``points``."""
    found = cells[cells["status"] == "found"]
    wide, sparse = found[~found["narrow"]], found[found["degree"] <= LARGEST_DEGREE]
    laws = [
        _line("D_K", D_K, ALL, found["scale"], found["D_K"]),
        _line("D_K_wide", D_K, WIDE, wide["scale"], wide["D_K"]),
    ]
    if len(sparse) < len(found):
        which = f"degrees up to {LARGEST_DEGREE}"
        laws.append(_line("D_K_sparse", D_K, which, sparse["scale"], sparse["D_K"]))
    if (found["degree"] != 1).any():
        sizes = found[["m", "d_model", "n_edges"]].itertuples(index=False, name=None)
        bits = [information(*size) for size in sizes]
        laws.append(_line("D_K_bits", BITS, ALL, bits, found["D_K"]))
    return [*laws, _line("h", H, ALL, found["compression"], found["h_star"])]


def _laws(cells: pd.DataFrame, draws: Draws | None = None) -> list[Law]:
    """The laws of cells that are pooled, from the table of ``points``."""
    wide = ~cells["narrow"].to_numpy(dtype=bool)
    part = None if draws is None else Draws(draws.fails[:, wide], draws.passes[:, wide])
    ends = ("D_K_fails", "D_K_passes")
    with_heads = cells[cells["h_star"].notna()]
    return [
        *paper_laws(cells),
        power_law("D_K_power", D_K, ALL, cells, "scale", ends, draws),
        power_law("D_K_power_wide", D_K, WIDE, cells[wide], "scale", ends, part),
        power_law("h_power", H, ALL, with_heads, "compression", ("h_above", "h_below")),
    ]


def possible_laws(cells: pd.DataFrame, known: pd.DataFrame) -> list[Law]:
    """The power laws of the smallest D_K that is known to pass: an upper bound in every cell.

    Each cell's interval ends at that D_K and starts one step of d_k below, not known to pass.

    Args:
        cells: the table of ``points``.
        known: the table of ``known_weights.best_with_known``.

    Returns:
        No laws if no weights are known that pass below a threshold.
    """
    found = cells.merge(known[["cell_id", "possible_D_K", "possible_h"]].dropna())
    if not (found["possible_D_K"] < found["D_K_passes"]).any():
        return []
    found = found.assign(status="found", below=found["possible_D_K"] - found["possible_h"])
    axes, ends = ("smallest known D_K", D_K[1]), ("below", "possible_D_K")
    return [
        power_law("D_K_possible_power", axes, ALL, found, "scale", ends),
        power_law("D_K_possible_power_wide", axes, WIDE, found[~found["narrow"]], "scale", ends),
    ]


def power_law(
    name: str,
    axes: tuple[str, str],
    which: str,
    cells: pd.DataFrame,
    predictor: str,
    ends: tuple[str, str],
    draws: Draws | None = None,
) -> Law:
    """A power law, by the likelihood of each cell's interval.

    Args:
        axes: the response and the predictor, in words.
        which: the cells, in words.
        cells: with ``status``, the predictor and the ends.
        ends: the columns of the largest width that fails and the smallest that passes.
    """
    law = Law(
        name=name,
        response=axes[0],
        predictor=axes[1],
        cells=which,
        through_origin=False,
        n=len(cells),
        status="too few cells",
        estimator=POWER_ESTIMATOR,
        n_censored=int((cells["status"] == "censored").sum()),
    )
    lower, upper = log_ends(cells[ends[0]], cells[ends[1]])
    x = np.log(cells[predictor].to_numpy(dtype=np.float64))
    bounded = np.isfinite(lower) & np.isfinite(upper)
    distinct = len(np.unique(x[bounded].round(12)))
    if bounded.sum() < CELLS_OF_A_LAW or distinct < 2:
        need = f"{CELLS_OF_A_LAW} cells, of 2 or more sizes, with {axes[0]} bounded on both sides"
        have = plural(int(bounded.sum()), "cell") if len(cells) else "no cell with a threshold"
        alike = ", all of one size" if bounded.sum() > 1 and distinct < 2 else ""
        return dataclasses.replace(law, reason=f"{have}{alike}; a fit needs {need}")
    design = np.column_stack([np.ones_like(x), x])
    fitted = fit(lower, upper, design)
    low_ends, high_ends = profile_interval(lower, upper, design, np.arange(2))
    limits = list(zip(low_ends.tolist(), high_ends.tolist(), strict=True))
    again = None if draws is None else bootstrap_coefficient(draws, design)
    n = int(bounded.sum())
    return dataclasses.replace(
        law,
        status="fitted",
        factor=math.exp(float(fitted.coefficients[0])),
        factor_low=known_factor(limits[0][0]),
        factor_high=known_factor(limits[0][1]),
        exponent=float(fitted.coefficients[1]),
        exponent_low=known(limits[1][0]),
        exponent_high=known(limits[1][1]),
        bootstrap_low=None if again is None else again[0],
        bootstrap_high=None if again is None else again[1],
        scatter=float(fitted.sigma) * math.sqrt(n / (n - 2)),
    )


def distinct(laws: Sequence[Law]) -> list[Law]:
    """The laws without repeats: a fit to part of the cells is left out if that is all cells."""

    def key(law: Law) -> tuple[Any, ...]:
        return law.response, law.predictor, law.estimator, law.n, law.max_steps, law.protocol

    whole = [law for law in laws if law.name in ("D_K", "D_K_power", "D_K_possible_power")]
    told = [key(law) for law in whole]
    return [law for law in laws if law in whole or key(law) not in told]


def _line(
    name: str, axes: tuple[str, str], cells: str, predictor: ArrayLike, response: ArrayLike
) -> Law:
    """Least squares: through the origin for D_K*, with an intercept for h*."""
    from statsmodels.regression.linear_model import OLS  # half a second, for laws alone

    x, y = np.asarray(predictor, dtype=np.float64), np.asarray(response, dtype=np.float64)
    through_origin = axes is not H
    law = Law(
        name=name,
        response=axes[0],
        predictor=axes[1],
        cells=cells,
        through_origin=through_origin,
        n=len(x),
        status="too few cells",
        estimator=PAPER_ESTIMATOR if through_origin else LINE_ESTIMATOR,
    )
    is_alike = not through_origin and len(np.unique(x)) < 2
    if len(x) < CELLS_OF_A_LAW or is_alike:
        need = f"{CELLS_OF_A_LAW} cells" + ("" if through_origin else " of 2 compressions")
        have = f"{plural(len(x), 'cell')} with a threshold"
        alike = ", all of one compression" if len(x) > 1 and is_alike else ""
        return dataclasses.replace(law, reason=f"{have}{alike}; a fit needs {need}")
    fitted = OLS(y, x[:, None] if through_origin else np.column_stack([np.ones_like(x), x])).fit()
    sigma, beta = math.sqrt(fitted.mse_resid), fitted.params
    half = t_quantile(fitted.df_resid) * sigma * np.sqrt((fitted.model.pinv_wexog**2).sum(axis=1))
    low, high = (beta - half).tolist(), (beta + half).tolist()
    centre = 0.0 if through_origin else float(x.mean())
    centred, uncentred = (_explained(float(fitted.ssr), of) for of in (y - y.mean(), y))
    return dataclasses.replace(
        law,
        status="fitted",
        slope=float(beta[-1]),
        slope_low=low[-1],
        slope_high=high[-1],
        intercept=0.0 if through_origin else float(beta[0]),
        intercept_low=None if through_origin else low[0],
        intercept_high=None if through_origin else high[0],
        r2=uncentred if through_origin else centred,
        r2_centred=centred,
        r2_uncentred=uncentred,
        sigma=sigma,
        x_mean=centre,
        x_square_sum=float(((x - centre) ** 2).sum()),
    )


def _explained(residual_square_sum: float, total: Array) -> float | None:
    """1 - SSR / Σ total²; None where the total is zero."""
    square_sum = float((total**2).sum())
    return None if square_sum == 0 else float(1 - residual_square_sum / square_sum)


def by_name(laws: Sequence[Law]) -> dict[str, Law]:
    """The laws by their names."""
    return {law.name: law for law in laws}
