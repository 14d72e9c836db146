"""How long whole studies take from an empty store, and where their time goes.

    python benchmarks/whole_studies.py [STUDY …] [--cpus 2] [--format table|json|csv]

The studies run one after another as ``rgr run`` runs them, report included, each with a store of
its own that is removed at its end. ``quickstart`` runs once before them and is not counted: it
compiles kernels. ``seconds`` run from when the first worker was ready to the end of the last probe;
``tail`` is the end of that time, in which some worker had no probe; ``whole`` is everything from
reading the study file to the written report. ``utilisation`` is the share of the workers' time in
which they trained. ``steps`` are all training steps taken.

The second table has, for each study, the four sizes that took most of its training: their share of
its seconds and its steps, and ``to_the_limit``, the share of its steps in runs of that size that
did not converge: they went to their step limit, as those of the transformer always do, or were
given up.
"""

from __future__ import annotations

import os
import tempfile
import time
from typing import Annotated, Any

import typer
from rich.console import Console

from rgr_dist.analysis.load import open_results
from rgr_dist.analysis.report.publish import publish
from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from rgr_dist.planning.budgets import trained_steps
from rgr_dist.running.execution import Execution
from rgr_dist.running.run_study import run_study
from rgr_dist.store.store import Store
from rgr_dist.study.study_file import load_study

STUDIES = ["quickstart", "gpt2-small", "base-grid", "budget", "diagonal"]
SIZES = 4
"""Sizes of a study that have a row."""
COLUMNS = ["m", "d_model", "steps", "seconds", "stop_reason", "max_steps", "trained_to"]

Row = dict[str, Any]


def measured(name: str, cpus: int | None) -> tuple[Row, list[Row]]:
    """A study's row, and those of its sizes."""
    load, began = os.getloadavg()[0], time.perf_counter()
    study = load_study(name, ())
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        summary = run_study(study, store, execution=Execution(cpus, "local"))
        publish(open_results(study, store), store)
        whole = time.perf_counter() - began
        runs = store.runs((cell.cell_id for cell in study.cells), COLUMNS)
    row: Row = {
        "study": name,
        "runs": summary.runs,
        "failed": summary.failed,
        "steps": summary.steps,
        "seconds": round(summary.seconds, 1),
        "tail": round(summary.tail, 1),
        "whole": round(whole, 1),
        "workers": summary.workers,
        "utilisation": round(summary.utilisation, 3),
        "load": round(load, 2),
    }
    runs["steps"] = trained_steps(runs)  # 0 for rows that were read off a longer run
    runs["unfinished"] = runs["steps"].where(runs["stop_reason"] != "converged", 0)
    sums = runs.groupby(["m", "d_model"])[["seconds", "steps", "unfinished"]].sum()
    whole_sums = sums.sum()
    sizes = [
        {
            "study": name,
            "m": int(m),
            "d_model": int(d_model),
            "seconds": round(own["seconds"] / whole_sums["seconds"], 3),
            "steps": round(own["steps"] / whole_sums["steps"], 3),
            "to_the_limit": round(own["unfinished"] / whole_sums["steps"], 3),
        }
        for (m, d_model), own in sums.nlargest(SIZES, "seconds").iterrows()
    ]
    return row, sizes


def main(
    studies: Annotated[list[str] | None, typer.Argument(help="five studies by default")] = None,
    cpus: Annotated[int | None, typer.Option(min=1, help="workers; one for each core")] = None,
    how: How = Format.TABLE,
) -> None:
    """Run whole studies, one after another."""
    messages = Console(stderr=True)
    messages.print("quickstart, not counted")
    measured("quickstart", cpus)
    rows: list[Row] = []
    sizes: list[Row] = []
    for name in studies or STUDIES:
        row, of_sizes = measured(name, cpus)
        messages.print(f"{name}: {row['seconds']} s, {row['utilisation']:.0%} utilised")
        rows.append(row)
        sizes += of_sizes
    print_listing({"studies": rows, "sizes": sizes}, how)


if __name__ == "__main__":
    typer.run(main)
