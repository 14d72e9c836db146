"""Processor seconds of ``rgr status`` and ``rgr thresholds`` in a large store.

    python benchmarks/listing.py [--cells 1000] [--rows 100000] [--keep FOLDER]

It makes a store of so many cells and rows, their scores made up, no two alike: each cell's search
is played to its end with heads that pass from the paper's law on, and other studies' probes fill
the rest. Then
each verb runs in a new process, with everything that it imports, for a study of ``small`` cells and
for one of all. The least of several counts, since other programs only ever add to it. The limit is
3 s for either.
"""

from __future__ import annotations

import hashlib
import math
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
import yaml

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from rgr_dist.paper import capacity_scale
from rgr_dist.planning.expectations import record
from rgr_dist.planning.portfolio import open_portfolio, stored_search
from rgr_dist.planning.tables import write_tables
from rgr_dist.search.protocol import Probe
from rgr_dist.store.row import FAILED, cell_columns
from rgr_dist.store.schema import RUNS
from rgr_dist.store.store import Store
from rgr_dist.study.cell import PROTOCOL, Cell, canonical_json
from rgr_dist.study.from_yaml import load_study
from rgr_dist.study.study import Study

LIMIT_SECONDS = 3.0
SMALL = 12


def main(
    cells: Annotated[int, typer.Option(min=SMALL, help="Cells in the store.")] = 1000,
    rows: Annotated[int, typer.Option(min=1, help="Rows in the store.")] = 100_000,
    repeats: Annotated[int, typer.Option(min=1, help="How often to list.")] = 3,
    keep: Annotated[Path | None, typer.Option(help="Make the store here, or use it.")] = None,
    how: How = Format.TABLE,
) -> None:
    """Make the store, list two studies in it, and print what that took."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        files = [write_study(folder, name, n) for name, n in (("small", SMALL), ("whole", cells))]
        if not (folder / "results").exists():
            fill(Store(folder / "results"), load_study(str(files[1])), rows)
        listed = [
            {"study": file.stem, "verb": verb, **measured(folder, verb, file, repeats)}
            for file in files
            for verb in ("status", "thresholds")
        ]
    print_listing({"rows": listed}, how, facts={"limit_seconds": LIMIT_SECONDS})


def write_study(folder: Path, name: str, cells: int) -> Path:
    """A study of the first so many cells of 40 sizes m and as many d_model as that takes."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = [(m, d) for d in range(8, 8 + 4 * math.ceil(cells / 40), 4) for m in range(64, 464, 10)]
    file = folder / f"{name}.yaml"
    document = {
        "name": name,
        "cells": [{"m": m, "d_model": d} for m, d in sizes[:cells]],
        "search": {"heads": [1, 2, 4], "intervals": False},
    }
    file.write_text(yaml.safe_dump(document))
    return file


def fill(store: Store, study: Study, rows: int) -> None:
    """Play each cell's search with made-up scores, then add probes until there are enough rows."""
    portfolio = open_portfolio(study, store.runs())
    cells = {cell.cell_id: cell for cell in study.cells}
    told: list[dict[str, Any]] = []
    while isinstance(probe := portfolio.ask(), Probe):
        cell = cells[probe.cell]
        for seed in probe.seeds:
            row = made_up(cell, probe.arm, probe.value, seed)
            told.append(row)
            portfolio.tell(probe.cell, probe.arm, probe.value, seed, row["score"])
        portfolio.release(probe)
    for row in others(study):
        if len(told) >= rows:
            break
        told.append(row)
    told = told[:rows]
    store.write_part(pa.Table.from_pylist(told, schema=RUNS))
    search = stored_search(study, store)
    record(study, store, search.expected)
    write_tables(study, store, search.portfolio)


def others(study: Study) -> Iterator[dict[str, Any]]:
    """Runs that the study does not ask for: of more heads."""
    for h in (3, 5, 6, 7):
        for cell in study.cells:
            for seed in range(10):
                yield made_up(cell, h, 5, seed)


_COLUMNS: dict[str, tuple[dict[str, Any], str]] = {}


def made_up(cell: Cell, h: int, d_k: int, seed: int) -> dict[str, Any]:
    """A row of a run that passes at and above the paper's law."""
    passes = h * d_k >= 1.2 * capacity_scale(cell.m, cell.d_model, cell.n_edges)
    key = f"{cell.m} {cell.d_model}"
    if key not in _COLUMNS:
        _COLUMNS[key] = cell_columns(cell), canonical_json(cell.model_dump(mode="json"))
    columns, text = _COLUMNS[key]
    config = f'{{"cell":{text},"d_k":{d_k},"h":{h},"protocol":{PROTOCOL},"seed":{seed}}}'
    run_id = hashlib.sha256(config.encode()).hexdigest()[:32]
    score = (0.993 if passes else 0.9 + seed / 1000) + int(run_id[:8], 16) / 2**32 / 1000
    return {
        **FAILED,
        **columns,
        "run_id": run_id,
        "h": h,
        "d_k": d_k,
        "D_K": h * d_k,
        "seed": seed,
        "trained_to": columns["max_steps"],
        "score": score,
        "val_score": 0.99,
        "threshold_tau": 0.1 * seed,
        "steps": 20_000,
        "stop_reason": "max_steps",
        "seconds": 1.25,
        "engine": "made up",
        "device": "cpu: made up",
        "finished_at": datetime.now(UTC),
        "versions": "made up",
        "git_revision": None,
        "config": config,
    }


def measured(folder: Path, verb: str, study: Path, repeats: int) -> dict[str, Any]:
    """Least processor seconds of a verb, and the lines that it listed."""
    rgr = [sys.executable, "-P", "-c", "from rgr_dist.cli import main; main()"]
    command = [*rgr, verb, str(study), "--store", str(folder / "results"), "--format", "csv"]
    taken = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    seconds = min(taken)
    return {
        "lines": len(done.stdout.splitlines()),
        "processor_seconds": seconds,
        "within_limit": seconds < LIMIT_SECONDS,
    }


if __name__ == "__main__":
    typer.run(main)
