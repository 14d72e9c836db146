"""How good a search's answers are: rules of search on made-up cells whose truth is known.

    python benchmarks/search_statistics.py [--rules RULE …] [--curves CURVE …] [--repeats 200]
        [--format table|json|csv]

Each curve is a cell whose mean F1 is known exactly, at every head count and width
(``threshold_search/made_up_cells.py``). The truth: a head count's threshold is the smallest d_k
whose mean is at least 0.99, even if that of a wider one is not; D_K* is the least h d_k of these,
and h* the head counts that attain it. A repeat moves the thresholds by up to half a step, unless
the curve fixes some means exactly, and draws the runs of 64 seeds everywhere, the same for every
rule. The axes, first guesses, seeds and target are those of ``base-grid``.

The rules (``threshold_search/search_rules.py``): ``grid``, exhaustive, with App. A.2's intervals;
``bisection`` of every head count with all seeds, and ``curtailed``, with only those that a verdict
takes; Horstein's ``probabilistic`` bisection and a Bayesian one by expected ``entropy``, which ask
single seeds whether they reach the target, and are judged by where they end; Optuna's ``tpe``,
judged by the least D_K that passed in 60 trials; ``today``, the search as ``base-grid`` plans it,
and ``bare``, the same without confirmation and intervals.

``bias`` and ``rmse`` are of 100 ln(D_K found / D_K*), in percent; ``below_target``: the true mean
at the winner is below 0.99; ``above_truth``: D_K found is above D_K*; ``covers``: D_K* lies within
the winner's interval, null if a rule has none. In addition, ``within_step``: D_K found is at most
one step of the winner's d_k from the truth; ``is_best``: the winner is one of h*;
``covers_heads``: the head counts whose interval begins no higher than any interval ends include
every h*, and ``heads``: how many those are; ``found``: something passed. Each has its Monte Carlo
standard error, ``…_se``, which the table writes as ±.

Eight curves of 200 repeats take five minutes on two cores, most of it for Optuna; ``today`` alone
takes one.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain
from typing import Annotated, Any

import optuna
import typer

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from threshold_search.baselines import CountedRuns
from threshold_search.made_up_cells import CURVES
from threshold_search.search_rules import RULES
from threshold_search.truth import Judged, judge, summary

Row = dict[str, Any]
SHOWN = (
    *("rule", "curve", "bias", "rmse", "below_target", "above_truth", "covers"),
    *("trainings", "steps", "is_best", "covers_heads"),
)
"""Columns of the table; JSON and CSV have all."""


def curve_rows(curve: str, rules: list[str], repeats: int) -> list[Row]:
    """A row for each rule on a curve."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    cell = CURVES[curve]
    judged: dict[str, list[Judged]] = {rule: [] for rule in rules}
    for repeat in range(repeats):
        moved, draw = cell.repeat(repeat)
        for rule, ones in judged.items():
            runs = CountedRuns(draw.run)
            outcome = RULES[rule](moved, runs, repeat)
            ones.append(judge(moved, outcome, runs.trainings, runs.steps))
    return [{"rule": rule, "curve": curve} | summary(ones) for rule, ones in judged.items()]


def with_errors(row: Row) -> Row:
    """A row for people to read: each figure with its error."""
    return {
        name: value if isinstance(value, str) else _shown(name, value, row[f"{name}_se"])
        for name, value in row.items()
        if not name.endswith("_se")
    }


def _shown(name: str, value: float | None, error: float | None) -> str:
    if value is None:
        return "–"
    places = {"bias": 1, "rmse": 1, "heads": 1, "trainings": 0}.get(name, 2)
    if name == "steps":
        return _shown("", value / 1e6, error and error / 1e6) + "M"
    return f"{value:.{places}f}" + (f" ±{error:.{places}f}" if error else "")


def known(names: list[str] | None, of: dict[str, Any], what: str) -> list[str]:
    """The names asked for, or all if none are.

    Raises:
        BadParameter: one of them is not known.
    """
    for name in names or ():
        if name not in of:
            raise typer.BadParameter(f"{what} {name}: valid: {', '.join(of)}")
    return names or list(of)


def main(
    how: How = Format.TABLE,
    rules: Annotated[list[str] | None, typer.Option(help="rules of search; all by default")] = None,
    curves: Annotated[list[str] | None, typer.Option(help="made-up cells; all by default")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="draws of the seeds")] = 200,
    processes: Annotated[int, typer.Option(min=1, help="that share the curves")] = 2,
) -> None:
    """Judge rules of search on cells whose truth is known."""
    chosen = known(rules, RULES, "rule")
    work = partial(curve_rows, rules=chosen, repeats=repeats)
    with ProcessPoolExecutor(processes) as pool:
        rows = list(chain.from_iterable(pool.map(work, known(curves, CURVES, "curve"))))
    shown = [with_errors(row) for row in rows] if how is Format.TABLE else rows
    print_listing({"rows": shown}, how, SHOWN)


if __name__ == "__main__":
    typer.run(main)
