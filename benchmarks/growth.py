"""How the time and memory of a run, and the cost of a cell, grow with their sizes, for model max.

    python benchmarks/growth.py [--store results] [--format table|json|csv]

Each shape is trained for a moment in a process of its own. ``step_us`` is the median time of a
training step, ``check_ms`` the mean time to score the validation contexts, ``memory_mib`` the peak
above that of a process that has trained a tiny run, ``estimated_mib`` what ``rgr plan`` expects.

``exponents`` are those of m, d_model, h and D_K in a product of powers fitted to the rows by least
squares of logarithms, each with its 95 % interval, and R² of the fit. D_K is varied as well as the
other sizes: it is the width that the paper's law predicts for them, or twice that. The cost of a
cell is fitted to the cells with the usual step limit.

``cells`` is what the search of ``base-grid`` costs in each cell, and ``workers`` how long it takes
on so many workers. Both are simulated on the runs of a store in which it is finished
(search_slots.py); only the second includes what is trained ahead of need.
"""

from __future__ import annotations

import math
import multiprocessing
import resource
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Annotated, Any

import numpy as np
import statsmodels.api as sm
import typer
from rich.progress import track

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from rgr_dist.paper import LAWS, capacity_scale
from rgr_dist.planning.memory import run_memory
from rgr_dist.planning.portfolio import open_portfolio, stored_runs
from rgr_dist.store.store import Store
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from rgr_dist.study.study_file import load_study
from rgr_dist.study.training import Training
from search_cost import no_runs, recorded
from threshold_search.simulate import simulate

ITEMS, WIDTHS, HEADS, TIMES = (64, 256, 1024, 4096), (16, 64, 256), (1, 8, 64), (1, 2)
WIDEST = 1024
"""The largest D_K that is measured."""
SLICES, SLICE = 7, 0.2
"""How many slices of time a run is trained for, and the seconds of each."""
SIZES = ("m", "d_model", "h", "D_K")
STUDY = "base-grid"
WORKERS = (1, 2, 4, 8, 16, 64)

Row = dict[str, Any]


def shapes() -> list[Run]:
    """The runs to measure."""
    runs = []
    for m, d_model, h, times in product(ITEMS, WIDTHS, HEADS, TIMES):
        d_k = math.ceil(times * LAWS["D_K"].slope * capacity_scale(m, d_model) / h)
        if h * d_k <= WIDEST and (d_k > 1 or h == 1):
            runs.append(Run(cell=Cell(m=m, d_model=d_model), h=h, d_k=d_k, seed=0))
    return runs


def measure(run: Run) -> Row:
    """Time and memory of a run, in a process that has done nothing before."""
    from rgr_dist.engines.fused.engine import EdgeLane, train_lane

    for brief in EdgeLane.brief_runs(run):
        train_lane(brief)
    before = _peak()
    lane = EdgeLane(run)
    lane.advance(10)
    step = statistics.median(_pace(lane) for _ in range(SLICES))
    began = time.perf_counter()
    for _ in range(SLICES):
        score = lane.check(None)
    check = (time.perf_counter() - began) / SLICES
    lane.outcome("max_steps", score)
    return {
        "m": run.cell.m,
        "d_model": run.cell.d_model,
        "h": run.h,
        "D_K": run.D_K,
        "step_us": round(1e6 * step, 2),
        "check_ms": round(1e3 * check, 2),
        "memory_mib": round(_peak() - before, 1),
        "estimated_mib": round(run_memory(run.cell, run.D_K) / 2**20, 1),
    }


def _pace(lane: Any) -> float:
    """Seconds per step."""
    began, first = time.perf_counter(), lane.steps
    while (spent := time.perf_counter() - began) < SLICE:
        lane.advance(50)
    return spent / (lane.steps - first)


def _peak() -> float:
    """The most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def exponents(rows: list[Row], name: str, sizes: Sequence[str] = SIZES) -> Row:
    """The power with which a column grows in each size, with its interval."""
    logs = np.log([[row[size] for size in sizes] for row in rows])
    fit = sm.OLS(np.log([row[name] for row in rows]), sm.add_constant(logs)).fit()
    found: Row = {"of": name} | dict.fromkeys(SIZES)
    for size, power, (low, high) in zip(sizes, fit.params[1:], fit.conf_int()[1:], strict=True):
        found[size] = f"{power:z.2f} [{low:z.2f}, {high:z.2f}]"
    return found | {"R2": round(float(fit.rsquared), 3), "rows": len(rows)}


def search_rows(store: Store) -> tuple[list[Row], list[Row]]:
    """What each cell of the study costs one worker, and how long the study takes on several."""
    study = load_study(STUDY)
    runs = stored_runs(study, store)
    curves = {cell.cell_id: recorded(cell, runs) for cell in study.cells}
    alone, *others = (
        simulate(open_portfolio(study, no_runs()), lambda c, key, s: curves[c].run(key, s), count)
        for count in WORKERS
    )
    cells = []
    for cell in study.cells:
        jobs = [job for job in alone.jobs if job.probe.cell == cell.cell_id]
        run = curves[cell.cell_id].run
        trained = [run(job.probe.key, seed) for job in jobs for seed in job.probe.seeds]
        cells.append(
            {
                "m": cell.m,
                "d_model": cell.d_model,
                "max_steps": cell.training.max_steps,
                "probes": len({job.probe.key for job in jobs}),
                "runs": len(trained),
                "steps": sum(run.steps for run in trained),
                "core_seconds": round(math.fsum(run.seconds for run in trained), 1),
            }
        )
    workers = [
        {
            "workers": done.workers,
            "seconds": round(done.makespan, 1),
            "times_faster": round(alone.makespan / done.makespan, 1),
            "useful": round(done.useful, 2),
        }
        for done in (alone, *others)
    ]
    return cells, workers


def main(
    how: How = Format.TABLE,
    store: Annotated[str, typer.Option(help=f"where {STUDY} is finished")] = "results",
) -> None:
    """Measure every shape, one after another."""
    cells, workers = search_rows(Store(store))
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        runs = shapes()
        rows = list(track(pool.map(measure, runs), "shapes", len(runs), disable=how != "table"))
    large = [row for row in rows if row["memory_mib"] >= 1]
    usual = [row for row in cells if row["max_steps"] == Training().max_steps]
    fits = [exponents(rows, "step_us"), exponents(rows, "check_ms"), exponents(large, "memory_mib")]
    fits += [exponents(usual, name, SIZES[:2]) for name in ("steps", "core_seconds")]
    print_listing({"rows": rows, "exponents": fits, "cells": cells, "workers": workers}, how)


if __name__ == "__main__":
    typer.run(main)
