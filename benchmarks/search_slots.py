"""How well a search uses its workers, simulated: the real search on a made-up clock.

    python benchmarks/search_slots.py [--out results] [--cells 1000] [--format table|json|csv]

The first rows are a study on its stored runs, with scores and times as measured; the search starts
from the paper's constants, or from the law fitted to the other solved cells (``prior``). The last
row is made-up cells, as many as workers, whose success curves are sharp or wide or, with a single
head, level off below the target or have two modes.

``busy`` is the share of the workers' time, except for its last tenth, in which they trained,
whether needed or ahead of need; ``useful`` is the share of all training that the finished search
rests on. ``probes_per_head`` is over the heads that were probed, to compare with ``bisection``,
ceil(log2 n) + 2 for n values of d_k; the last two columns are the same over the heads with a
threshold. Ray starts trials one at a time, which ``--start-seconds`` adds: a driver that takes
0.02 s keeps 1,000 workers busy only with jobs of 20 s or more, by ``seconds_per_job``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Annotated

import typer

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from rgr_dist.planning.first_guesses import expectations
from rgr_dist.planning.portfolio import open_portfolio, stored_runs
from rgr_dist.search.portfolio import Portfolio
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan, ProbeKey
from rgr_dist.store.store import Store
from rgr_dist.study.study_file import load_study
from search_cost import Row, no_runs, recorded
from threshold_search.curves import SHAPES, SyntheticCurve
from threshold_search.simulate import Curves, SimulatedRun, probes_per_arm, simulate

HEADS = (1, 2, 4, 8, 16, 32, 64)


def study_rows(name: str, store: Store, workers: Sequence[int], start: float) -> list[Row]:
    """Rows of a study whose runs are stored, from each start and on each number of workers."""
    study = load_study(name)
    unrecorded = study.model_copy(update={"name": f"{study.name}-anew"})
    runs, prior = stored_runs(study, store), expectations(unrecorded, store)
    curves = {cell.cell_id: recorded(cell, runs) for cell in study.cells}

    def run(cell: str, key: ProbeKey, seed: int) -> SimulatedRun:
        return curves[cell].run(key, seed)

    rows = []
    for source, expected in (("paper", None), ("prior", prior)):
        for count in workers:
            portfolio = open_portfolio(study, no_runs(), expected)
            title = f"{name}, {source}"
            rows.append(_row(title, portfolio, run, count, start))
    return rows


def made_up_row(cells: int, workers: int, start: float) -> Row:
    """The row of made-up cells of all shapes, scattered about the paper's law."""
    chance = random.Random(cells)
    plans: list[tuple[float, CellPlan]] = []
    curves: dict[str, SyntheticCurve] = {}
    for number in range(cells):
        m, d_model = 2 ** chance.choice([6, 7, 8, 9]), 2 ** chance.choice([4, 5, 6])
        law = m * math.log2(m) / d_model
        guess_h = max(1.0, 1.65 * m / d_model - 6.64)
        D_K, h_star = chance.uniform(0.8, 1.6) * law, guess_h * chance.uniform(0.5, 2)
        worse = {h: 1 + 0.25 * abs(math.log2(h / h_star)) for h in HEADS}
        name = f"cell {number}"
        plan = CellPlan(
            cell=name,
            axes={h: range(1, math.floor(max(4 * law, 4 * h) / h) + 1) for h in HEADS},
            guess_cost=1.19 * law,
            guess_arm=guess_h,
        )
        plans.append((D_K, plan))
        curves[name] = SyntheticCurve(
            thresholds={h: max(0.6, D_K * worse[h] / h) for h in HEADS},
            shape=SHAPES[number % len(SHAPES)],
            seconds_per_step=6e-9 * d_model,
            name=name,
        )
    plans.sort(key=lambda pair: -pair[0])
    portfolio = Portfolio([plan for _, plan in plans], SeedTest(0.99, 10))
    return _row("made up", portfolio, lambda c, key, s: curves[c].run(key, s), workers, start)


def _row(study: str, portfolio: Portfolio, curves: Curves, workers: int, start: float) -> Row:
    done = simulate(portfolio, curves, workers, start)
    probes, bisection = probes_per_arm(portfolio)
    of_found, bisection_of_found = probes_per_arm(portfolio, found=True)
    worked = math.fsum(job.end - job.start for job in done.jobs)
    return {
        "study": study,
        "cells": len(portfolio.plans),
        "workers": workers,
        "makespan_seconds": round(done.makespan, 1),
        "busy": round(done.utilisation(), 3),
        "useful": round(done.useful, 3),
        "runs": done.runs,
        "seconds_per_job": round(worked / len(done.jobs), 2),
        "probes_per_head": round(probes, 2),
        "bisection": round(bisection, 2),
        "probes_per_found_head": round(of_found, 2),
        "bisection_of_found": round(bisection_of_found, 2),
    }


def main(
    how: How = Format.TABLE,
    out: Annotated[str, typer.Option(help="store that holds the study's runs")] = "results",
    study: Annotated[str, typer.Option(help="a study that has been run")] = "base-grid",
    workers: Annotated[list[int] | None, typer.Option(min=1, help="for the study")] = None,
    cells: Annotated[int, typer.Option(min=0, help="made-up cells, and their workers")] = 100,
    start_seconds: Annotated[float, typer.Option(min=0, help="to start a job")] = 0.0,
) -> None:
    """Simulate a search on 1 to 10,000 workers."""
    rows = study_rows(study, Store(out), workers or (1, 8, 64), start_seconds)
    if cells:
        rows.append(made_up_row(cells, cells, start_seconds))
    print_listing({"rows": rows}, how)


if __name__ == "__main__":
    typer.run(main)
