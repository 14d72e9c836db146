"""What a search costs, and how good its answers are: four rules on cells whose truth is known.

    python benchmarks/search_statistics.py [--curves CURVE …] [--repeats 200] [--format table|json]

Each curve is a cell whose mean F1 is known exactly, at every head count and width
(``threshold_search/made_up_cells.py``). D_K* is the least h · d_k whose mean is at least 0.99. A
repeat moves the thresholds by up to half a step, draws the runs of 64 seeds, the same for every
rule, and gives the search a first guess of its own, up to a factor of two off the truth: so no row
rests on a lucky guess.

The rules: ``exhaustive``, every width with ten seeds; plain ``bisection`` of every head count with
ten seeds, and ``curtailed``, with those that a verdict takes; ``adaptive``, the package's search,
which also confirms its winner on twenty fresh seeds and finds its interval.

``bias`` and ``error``: the mean and the root mean square of 100 ln(D_K found / D_K*), in percent;
``below_target``: the share of repeats whose winner has a true mean below 0.99; ``above_truth``:
whose D_K is above D_K*; ``covers``: whose interval holds D_K*. ``…_se`` are Monte Carlo errors. The
curve ``all`` is the mean over the curves. 200 repeats take some three minutes on two cores.
"""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from threshold_search.made_up_cells import CURVES, TEST, MadeUpCell
from threshold_search.rules import RULES, CountedRuns, Found, Listing, listed

FIGURES = (
    *("trainings", "steps", "share_of_exhaustive"),
    *("bias", "error", "below_target", "above_truth", "covers"),
)


def judged(cell: MadeUpCell, found: Found, runs: CountedRuns) -> dict[str, float]:
    """One repeat of a rule on a cell, compared with the truth."""
    row: dict[str, float] = {"trainings": runs.trainings, "steps": runs.steps}
    if found.winner is None:
        return row
    (h, d_k), truth = found.winner, cell.best.arm * cell.best.value
    covers = math.nan
    if found.low is not None:
        covers = found.low <= truth <= (math.inf if found.high is None else found.high)
    return row | {
        "bias": 100 * math.log(h * d_k / truth),
        "below_target": cell.true_means[h][d_k - 1] < TEST.target,
        "above_truth": h * d_k > truth,
        "covers": covers,
    }


def curve_rows(curve: str, repeats: int) -> list[dict[str, Any]]:
    """A row for each rule on a curve."""
    rows = []
    for repeat in range(repeats):
        cell, draw, plan = CURVES[curve].repeat(repeat)
        for rule, search in RULES.items():
            runs = CountedRuns(draw.run)
            rows.append({"rule": rule, "repeat": repeat} | judged(cell, search(plan, runs), runs))
    table = pd.DataFrame(rows).set_index("rule").astype(float)
    return [{"rule": rule, "curve": curve} | summary(table.loc[[rule]], table) for rule in RULES]


def summary(own: pd.DataFrame, table: pd.DataFrame) -> dict[str, float]:
    """The means over a rule's repeats, with their Monte Carlo errors."""
    means, errors = own.mean(), own.sem()
    row = {name: means[name] for name in FIGURES if name in own} | {
        f"{name}_se": errors[name] for name in FIGURES if name in own
    }
    root = math.sqrt((own["bias"] ** 2).mean())
    spread = float((own["bias"] ** 2).sem()) / (2 * root) if root else 0.0
    share = means["steps"] / table.loc[["exhaustive"], "steps"].mean()
    return row | {"error": root, "error_se": spread, "share_of_exhaustive": share}


def over_all(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The mean of each rule's rows over the curves."""
    table = pd.DataFrame(rows).drop(columns="curve").groupby("rule", sort=False)
    means = table.mean()
    for name in means:
        if str(name).endswith("_se"):
            means[name] = np.sqrt(table[name].agg(lambda own: (own**2).sum())) / table.size()
    return [{"rule": rule, "curve": "all"} | row.to_dict() for rule, row in means.iterrows()]


def main(
    curves: Annotated[list[str] | None, typer.Option(help="made-up cells; all by default")] = None,
    repeats: Annotated[int, typer.Option(min=2, help="draws of the seeds")] = 200,
    processes: Annotated[int, typer.Option(min=1, help="that share the curves")] = 2,
    how: Annotated[Listing, typer.Option("--format")] = "table",
) -> None:
    """Judge rules of search on cells whose truth is known."""
    with ProcessPoolExecutor(processes) as pool:
        work = pool.map(partial(curve_rows, repeats=repeats), curves or CURVES)
        rows = [row for own in work for row in own]
    rows += over_all(rows)
    for row in rows:
        row |= {
            k: None if v != v else round(v, 4) for k, v in row.items() if not isinstance(v, str)
        }
    print(listed(rows, how, ("rule", "curve", *FIGURES)))


if __name__ == "__main__":
    typer.run(main)
