"""Seconds and memory to load a store of many runs and to fit its laws.

    python benchmarks/many_runs.py [--runs 1000000] [--format table|json|csv]

The store is made up, in a folder of its own that is removed afterwards: a study of many cells with
every width of three head counts stored, ten seeds each, in 40 parts. Loading rebuilds every
threshold from the runs by replaying the search; fitting is ``rgr_dist.analysis.laws.fits``: every
law, with its intervals and bootstrap. A new process does both; its peak memory includes everything
that Python has imported. The limits are 30 s and 2 GiB for a million runs; processor seconds are
what it would take if other programs left a core free.
"""

from __future__ import annotations

import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import typer
import yaml

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from rgr_dist.paper import capacity_scale
from rgr_dist.store.schema import RUNS
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from rgr_dist.study.study_file import load_study

HEADS, MAX_D_K, SEEDS = (1, 2, 4), 57, 10
PARTS = 40
LIMIT_SECONDS, LIMIT_MIB = 30.0, 2048.0


def cells_for(runs: int) -> list[Cell]:
    """Cells of different sizes, which make about ``runs`` runs with every width of every head."""
    per_cell = SEEDS * sum(MAX_D_K // h for h in HEADS)
    sizes = itertools.product(range(64, 640, 8), range(32, 160, 4))
    fitting = ((m, d) for m, d in sizes if 4 <= capacity_scale(m, d) <= 80)
    wanted = max(3, round(runs / per_cell))
    return [Cell(m=m, d_model=d) for m, d in itertools.islice(fitting, wanted)]


def write_study(folder: Path, cells: list[Cell]) -> Path:
    """Write the study file of these cells; returns its path."""
    path = folder / "many.yaml"
    search = {"heads": list(HEADS), "max_D_K": MAX_D_K, "seeds": SEEDS}
    sizes = [{"m": cell.m, "d_model": cell.d_model} for cell in cells]
    path.write_text(yaml.safe_dump({"name": "many", "cells": sizes, "search": search}))
    return path


def write_runs(folder: Path, cells: list[Cell]) -> int:
    """Write the store's parts; returns the number of runs."""
    (folder / "runs").mkdir(parents=True)
    generator = np.random.default_rng(0)
    count = 0
    for part, some in enumerate(np.array_split(np.arange(len(cells)), PARTS)):
        tables = [rows_of(cells[i], generator) for i in some]
        if tables:
            table = pa.concat_tables(tables)
            count += len(table)
            path = folder / "runs" / f"part-{part:020d}-made.parquet"
            pq.write_table(table, path, compression="zstd", write_page_checksum=True)
    return count


def rows_of(cell: Cell, generator: np.random.Generator) -> pa.Table:
    """Every run of a cell: F1 rises steeply in D_K, at a threshold scattered about a power law."""
    probes = [(h, d_k) for h in HEADS for d_k in range(1, MAX_D_K // h + 1)]
    h, d_k = (np.repeat(column, SEEDS) for column in np.array(probes).T)
    seed = np.tile(np.arange(SEEDS), len(probes))
    threshold = 0.55 * capacity_scale(cell.m, cell.d_model) ** 1.02
    threshold *= np.exp(generator.normal(0, 0.05)) * (1 + 0.06 * np.log2(h) ** 2)
    luck = generator.normal(0, 0.1, SEEDS)[seed]
    score = 1 / (1 + np.exp(-14 * (np.log(h * d_k / threshold) + 0.33 + 0.2 * luck)))
    run = Run(cell=cell, h=1, d_k=1, seed=0)
    before, after = run.config_json.split('"d_k":1,"h":1', 1)
    texts = [
        f'{before}"d_k":{w},"h":{k}' + after.replace('"seed":0', f'"seed":{s}')
        for k, w, s in zip(h, d_k, seed, strict=True)
    ]
    n = len(h)
    columns: dict[str, Any] = {
        "run_id": [f"{cell.cell_id}{i:016x}" for i in range(n)],
        "cell_id": cell.cell_id,
        "model": cell.model,
        "graph": cell.graph.family,
        "degree": 1,
        "embedding": cell.embedding.family,
        "m": cell.m,
        "d_model": cell.d_model,
        "h": h,
        "d_k": d_k,
        "D_K": h * d_k,
        "seed": seed,
        "context_length": 16,
        "positive_rate": 0.5,
        "max_steps": cell.training.max_steps,
        "score": score,
        "val_score": score,
        "threshold_tau": 0.5,
        "null_rate": None,
        "steps": 20_000,
        "stop_reason": np.where(score > 0.995, "converged", "max_steps"),
        "error": None,
        "engine": "made up",
        "device": "cpu: made up",
        "seconds": 0.4,
        "finished_at": pd.Timestamp("2026-01-02T03:04:05Z"),
        "versions": "made up",
        "git_revision": "made up",
        "config": texts,
    }
    frame = pd.DataFrame(columns, index=range(n)).reindex(columns=RUNS.names)
    return pa.Table.from_pandas(frame, schema=RUNS, preserve_index=False)


def measure(study: str, out: str) -> dict[str, Any]:
    """Load and fit in this process."""
    from rgr_dist.analysis.laws.fits import fits_of
    from rgr_dist.analysis.load import open_results
    from rgr_dist.store.store import Store

    start, used = time.perf_counter(), time.process_time()
    results = open_results(load_study(study, ()), Store(out))
    loaded = time.perf_counter()
    fits = fits_of(results)
    fitted = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "runs": len(results.runs),
        "cells": len(fits.cells),
        "load_seconds": loaded - start,
        "fit_seconds": fitted - loaded,
        "total_seconds": fitted - start,
        "processor_seconds": time.process_time() - used,
        "peak_MiB": peak if sys.platform != "darwin" else peak / 1024,
    }


def main(
    runs: Annotated[int, typer.Option(min=1000, help="Stored runs, about.")] = 1_000_000,
    how: How = Format.TABLE,
    measured: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Make up a store, load it and fit it in a new process, and print what that took."""
    if measured is not None:
        folder = Path(measured)
        print(json.dumps(measure(str(folder / "many.yaml"), str(folder / "store"))))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cells = cells_for(runs)
        write_study(folder, cells)
        write_runs(folder / "store", cells)
        call = [sys.executable, __file__, "--measured", name]
        answer = subprocess.run(call, capture_output=True, text=True, check=False)
        if answer.returncode:
            raise SystemExit(answer.stderr)
        row = json.loads(answer.stdout.splitlines()[-1])
    row["within_limits"] = row["total_seconds"] < LIMIT_SECONDS and row["peak_MiB"] < LIMIT_MIB
    print_listing({"rows": [row]}, how)


if __name__ == "__main__":
    typer.run(main)
