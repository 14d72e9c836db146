"""The memory that a run takes, as estimated and as measured; and what does not fit is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rgr_dist.cli import call
from rgr_dist.faults import UserError
from rgr_dist.paper import capacity_scale
from rgr_dist.planning import memory
from rgr_dist.planning.memory import check_memory, run_memory
from rgr_dist.study.cell import Cell
from rgr_dist.study.models import MODELS
from rgr_dist.study.run import Run
from rgr_dist.study.study_file import parse_study
from tests.small_study import Refused, write_study

BRIEF = {"max_steps": 2, "check_every": 1}
MEASURE = """
import sys
from pathlib import Path
from rgr_dist.engines.choose import make_engine
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run

def kilobytes(key):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key))

small, large = map(Run.model_validate_json, sys.argv[1:3])
engine = make_engine(model=large.cell.model)
engine.train([small])  # with all that is compiled and loaded
Path("/proc/self/clear_refs").write_text("5")  # the peak is what is resident now
before = kilobytes("VmHWM")
engine.train([large])
print(kilobytes("VmHWM") - before)
"""
"""How much a large run adds to the peak of a process that has done a small one, in KiB."""


PEAKS = [  # of a large run, as the slow test measured it once
    ("max", 200_000, 64, 2, 4, 209e6),  # embeddings as they are drawn
    ("max", 4000, 64, 8, 128, 72e6),  # queries and keys of wide heads
    ("max", 300_000, 16, 8, 20, 833e6),  # queries and keys
    ("max", 1000, 2048, 2, 1024, 202e6),  # the layer
    ("max, regular", 10_000, 4, 1, 2, 100e6),  # a matrix of pairs
    ("softmax", 100_000, 64, 8, 4, 129e6),
    ("value", 100_000, 128, 8, 4, 339e6),
    ("transformer", 20_000, 512, 8, 64, 164e6),
    ("ours", 8000, 256, 2, 32, 110e6),
    ("one-head", 512, 48, 1, 48, 140e6),  # a proof that there are no weights
]


def run_of(model: str, m: int, d_model: int, h: int, d_k: int) -> Run:
    """A brief run of a model, on a graph of the family behind it if there is one."""
    model, _, family = model.partition(", ")
    graph = {"graph": {"family": family, "degree": 2}} if family else {}
    batches = {"batch_size": 64, "weight_decay": 0.1} if model == "transformer" else {}
    own = {"training": BRIEF | batches}
    if MODELS[model].task == "construction":
        own = {"construction": {"iterations": 2}} if model == "ours" else {}
    cell = Cell.model_validate({"model": model, "m": m, "d_model": d_model} | own | graph)
    return Run(cell=cell, h=h, d_k=d_k, seed=0)


@pytest.mark.parametrize(("model", "m", "d_model", "h", "d_k", "peak"), PEAKS)
def test_the_estimate_is_near_the_peak_that_was_measured_before(
    model: str, m: int, d_model: int, h: int, d_k: int, peak: float
) -> None:
    most = 1.3 if m < d_model else 1.1  # too much is expected of a wide layer
    assert 0.88 * peak < run_memory(run_of(model, m, d_model, h, d_k).cell, h * d_k) < most * peak


@pytest.mark.slow
@pytest.mark.parametrize(("model", "m", "d_model", "h", "d_k", "peak"), PEAKS)
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="reads the peak in /proc")
def test_the_estimate_is_within_a_factor_of_two_of_the_measured_peak(
    model: str, m: int, d_model: int, h: int, d_k: int, peak: float
) -> None:
    runs = [run_of(model, 64, 32, 2, 2), run_of(model, m, d_model, h, d_k)]
    arguments = [run.model_dump_json() for run in runs]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    measured = 1024 * int(done.stdout)
    assert peak / 2 < measured < 2 * peak
    assert measured / 2 < run_memory(runs[1].cell, h * d_k) < 2 * measured


@pytest.mark.parametrize(
    ("keys", "queries", "values", "d_model", "D_V", "peak"),
    [  # as measured once in the same way
        (2000, 20, 40, 64, 64, 75e6),  # logits
        (400, 20, 40, 1024, 256, 47e6),  # the layer
        (100, 100, 200, 256, 256, 97e6),
    ],
)
def test_the_estimate_of_facts_is_near_the_peak(
    keys: int, queries: int, values: int, d_model: int, D_V: int, peak: float
) -> None:
    database = {"family": "function", "keys": keys, "queries": queries, "values": values}
    own = {"model": "facts", "database": database, "m": keys * queries, "d_model": d_model}
    assert 0.75 * peak < run_memory(Cell.model_validate(own), D_V) < 1.55 * peak


ONE = {"heads": [1], "max_D_K": 2}
FACTS = {"family": "function", "keys": 10, "queries": 10, "values": 10}
OF_FACTS = {"model": "facts", "cells": [{"database": FACTS, "d_model": 8192}]}


@pytest.mark.parametrize(
    ("document", "search", "width"),
    [
        ({}, {"mode": "widest", "heads": [2, 50, 3]}, 50 * 64),
        ({}, {"mode": "grid", "heads": [1, 2], "D_K": [100, 4000, 70]}, 4000),
        ({}, {"heads": [1, 2]}, capacity_scale(2**14, 64)),
        ({}, {"heads": [1, 2], "max_D_K": 5}, 5),
        (
            OF_FACTS,
            {"mode": "grid", "per": {"h": [2, 64], "d_qk": [8]}, "d_vo": [16, 256]},
            64 * 256,
        ),
        (OF_FACTS, {"mode": "grid", "per": {"h": [64], "total": 264}}, 64 * 263),
    ],
)
def test_a_search_needs_the_memory_of_its_first_width_or_its_largest_if_all_are_trained(
    document: dict[str, Any], search: dict[str, Any], width: float
) -> None:
    search = ({"axis": "d_vo"} if document else {}) | search
    cells = [{"m": 2**14, "d_model": 64}]
    study = parse_study({"name": "x", "cells": cells, "search": search} | document)
    needed = run_memory(study.cells[0], width)
    check_memory(study, study.cells, needed, "that machine")
    check_memory(study, study.cells, None, "a machine that does not say")
    with pytest.raises(UserError) as refused:
        check_memory(study, study.cells, 0.99 * needed, "that machine")
    assert str(refused.value) == (
        f"{study.name_of(study.cells[0])}: a run needs about {needed / 1e9:,.1f} GB of memory, and "
        f"that machine has {0.99 * needed / 1e9:,.1f} GB; give smaller sizes, or a larger machine"
    )


@pytest.mark.parametrize("verb", ["plan", "run"])
@pytest.mark.parametrize(
    ("size", "changes", "needed"),
    [
        (
            {"m": 2_000_000_000, "d_model": 2000},
            {},
            "m=2000000000,d_model=2000: a run needs about 64,1",
        ),
        (
            {"m": 2048, "d_model": 128},
            {"model": {"construction": "one-head"}, "training": {}},
            "m=2048,d_model=128: a run needs about 4.8 GB of memory, and this machine has 4.0 GB",
        ),
    ],
)
def test_a_cell_whose_one_run_or_proof_would_not_fit_is_refused_before_anything_runs(
    size: dict[str, int], changes: dict[str, Any], needed: str, verb: str,
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    write_study(tmp_path, cells=[{"m": 16, "d_model": 8}, size], search=ONE, **changes)
    for module in ("planning.listing", "running.run_study"):
        monkeypatch.setattr(f"rgr_dist.{module}.machine_memory", lambda: 4e9)
    refused(needed, verb, "small.yaml")


def test_the_memory_of_a_machine_is_no_more_than_its_container_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = tmp_path / "memory.max", tmp_path / "missing", tmp_path / "limit_in_bytes"
    monkeypatch.setattr(memory, "CGROUP_LIMITS", limits)
    limits[0].write_text("max\n")
    whole = memory.machine_memory()
    assert whole == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits[2].write_text("4096\n")
    assert memory.machine_memory() == 4096
    limits[2].write_text(f"{2**62}\n")
    assert memory.machine_memory() == whole
    for refuses in (int, os.listdir):  # with a ValueError or an OSError
        monkeypatch.setattr(os, "sysconf", refuses)
        assert memory.machine_memory() == 2**62
    monkeypatch.delattr(os, "sysconf")  # Windows has none
    assert memory.machine_memory() == 2**62
    limits[2].unlink()
    assert memory.machine_memory() is None


def test_graphs_that_one_head_surely_holds_need_no_memory_for_a_proof() -> None:
    held, open_ = (run_of("one-head", m, 256, 1, 256).cell for m in (2048, 8192))
    assert run_memory(held, 256) < 2e9 < 69e9 < run_memory(open_, 256)


def test_a_cell_that_is_done_is_reported_on_a_machine_that_could_not_train_it(
    finished: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(finished)
    for module in ("planning.listing", "running.run_study", "planning.memory"):  # the source last
        monkeypatch.setattr(f"rgr_dist.{module}.machine_memory", lambda: 1.0)
    assert call(["plan", "small.yaml", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs_left"] == 0
    assert call(["run", "small.yaml"]) == 0
    assert "nothing was left to train" in capsys.readouterr().out
