"""How far what a rule finds is from the truth, with the Monte Carlo error of every figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from threshold_search.made_up_cells import MadeUpCell
from threshold_search.search_rules import Outcome


@dataclass(frozen=True)
class Judged:
    """One repeat of a rule on a cell, compared with the truth.

    Attributes:
        error: 100 ln(D_K found / D_K*); None if the rule found no D_K, as are all others to
            ``heads``.
        below_target: the winner's true mean is below the target.
        above_truth: the D_K found is above D_K*.
        within_step: the D_K found is no more than one step of the winner's d_k from D_K*.
        is_best: the winner's head count is one of the true ones.
        covers: the interval holds D_K*; None if the rule gives none.
        covers_heads: the set of head counts holds every true one; None if the rule gives none.
        heads: how many head counts that set has.
        trainings, steps: what the rule spent.
    """

    trainings: int
    steps: int
    error: float | None = None
    below_target: bool | None = None
    above_truth: bool | None = None
    within_step: bool | None = None
    is_best: bool | None = None
    covers: bool | None = None
    covers_heads: bool | None = None
    heads: int | None = None


def judge(cell: MadeUpCell, outcome: Outcome, trainings: int, steps: int) -> Judged:
    """Compare what a rule found on a cell with the truth."""
    if outcome.winner is None:
        return Judged(trainings, steps)
    (h, d_k), truth, heads = outcome.winner, cell.true_D_K, outcome.heads
    covers = None
    if heads is not None:
        low = -math.inf if outcome.low is None else outcome.low
        high = math.inf if outcome.high is None else outcome.high
        covers = low <= truth <= high
    return Judged(
        trainings=trainings,
        steps=steps,
        error=100 * math.log(h * d_k / truth),
        below_target=bool(cell.true_means[h][d_k - 1] < cell.test.target),
        above_truth=h * d_k > truth,
        within_step=abs(h * d_k - truth) <= h,
        is_best=h in cell.true_heads,
        covers=covers,
        covers_heads=None if heads is None else cell.true_heads <= heads,
        heads=None if heads is None else len(heads),
    )


def summary(repeats: Sequence[Judged]) -> dict[str, Any]:
    """Means over the repeats, ``rmse`` and ``found``; each with its Monte Carlo error as ``…_se``.

    Those of D_K are over the repeats that found one. None where there is nothing to average.
    """
    errors = [one.error for one in repeats if one.error is not None]
    squares = _mean([error**2 for error in errors])
    rmse = None if squares[0] is None else math.sqrt(squares[0])
    figures = {
        "bias": _mean(errors),
        "rmse": (rmse, squares[1] / (2 * rmse) if rmse and squares[1] is not None else squares[1]),
    }
    for name in (
        *("below_target", "above_truth", "covers", "trainings", "steps"),
        *("within_step", "is_best", "covers_heads", "heads"),
    ):
        figures[name] = _mean(getattr(one, name) for one in repeats)
    figures["found"] = _mean(one.error is not None for one in repeats)
    row = {name: mean for name, (mean, _) in figures.items()}
    return row | {f"{name}_se": error for name, (_, error) in figures.items()}


def _mean(values: Iterable[float | None]) -> tuple[float | None, float | None]:
    """Mean and its standard error, of the values that are not None."""
    known = [float(value) for value in values if value is not None]
    if not known:
        return None, None
    return fmean(known), stdev(known) / math.sqrt(len(known)) if len(known) > 1 else None
