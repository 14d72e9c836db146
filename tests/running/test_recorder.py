"""What is taken in of a trial: stored first, then told to the search, the summary and the view."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from rgr_dist.engines.api import Engine, Outcome, Weights
from rgr_dist.planning.budgets import smaller_limits, trained_steps
from rgr_dist.planning.forecast import work_done
from rgr_dist.planning.search_of import open_portfolio, stored_search
from rgr_dist.planning.tables import threshold_rows
from rgr_dist.running.progress import Summary, View
from rgr_dist.running.recorder import Recorder
from rgr_dist.running.worker import train_rows
from rgr_dist.search.portfolio import Portfolio, Probe
from rgr_dist.store.row import LOST
from rgr_dist.store.schema import RUNS
from rgr_dist.store.store import Store
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study


class MadeUp(Engine):
    """Trains nothing: wide layers converge, soon or after 300 steps; others diverge or raise."""

    name = "made up"

    def train_through(self, runs: Sequence[Run], budgets: Sequence[int]) -> list[list[Outcome]]:
        return [[self._outcome(run, limit) for limit in (*budgets, limit_of(run))] for run in runs]

    def _outcome(self, run: Run, limit: int) -> Outcome:
        if (run.h, run.seed) == (4, 1):
            raise MemoryError("of seed 1")
        seconds = 0.5 + run.seed
        width, enough = run.h * run.d_k, 9 + run.seed % 2
        if width >= enough or (limit > 200 and width >= enough - 2):
            steps = 100 if width >= enough else 300
            return Outcome(steps=steps, stop_reason="converged", seconds=seconds, score=1.0)
        if run.h == 2 and width < enough - 2:
            return Outcome(steps=100, stop_reason="diverged", seconds=seconds)
        return Outcome(steps=limit, stop_reason="max_steps", seconds=seconds, score=0.5)

    def weights_after(self, runs: Sequence[Run], steps: int) -> list[Weights]:
        raise NotImplementedError


def limit_of(run: Run) -> int:
    return run.cell.training.max_steps


@dataclass
class Seen(View):
    """What was shown."""

    phases: list[str] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    last: tuple[object, ...] = ()

    def phase(self, name: str) -> None:
        self.phases.append(name)

    def update(self, study: Study, portfolio: Portfolio, summary: Summary) -> None:
        self.runs.append(summary.runs)
        self.last = study, portfolio, summary


def study_of(max_steps: int | list[int] = 400, **sizes: Any) -> Study:
    cells = [{"m": 16, "d_model": 8} | sizes]
    training = {"max_steps": max_steps, "check_every": 100}
    search = {"heads": [1, 2, 4], "seeds": 3}
    return parse_study({"name": "x", "cells": cells, "training": training, "search": search})


def recorder_of(study: Study, folder: Path) -> Recorder:
    portfolio = open_portfolio(study, pd.DataFrame(columns=RUNS.names))
    return Recorder(study, Store(folder), portfolio, Summary(), Seen())


def tables(study: Study, portfolio: Portfolio) -> list[list[dict[str, Any]]]:
    return [threshold_rows(study, portfolio)]


def rows_of(recorder: Recorder, probe: Probe) -> list[dict[str, Any]]:
    """What the worker of a probe reports."""
    limits = smaller_limits(recorder.study, recorder.feed.cells[probe.cell])
    return train_rows(MadeUp(), recorder.feed.runs_of(probe), budgets=limits)


def record(recorder: Recorder, probe: Probe) -> None:
    recorder.record("trial", probe, {"rows": rows_of(recorder, probe)})


def finish(recorder: Recorder) -> None:
    while isinstance(probe := recorder.portfolio.ask(), Probe):
        record(recorder, probe)
        recorder.portfolio.release(probe)


def test_what_was_told_is_what_the_store_reads_back(tmp_path: Path) -> None:
    study = study_of([200, 400])
    recorder, seen = recorder_of(study, tmp_path), Seen()
    recorder.view, summary = seen, recorder.summary
    while isinstance(probe := recorder.portfolio.ask(), Probe):
        before = len(seen.runs)
        record(recorder, probe)
        recorder.portfolio.release(probe)
        assert len(seen.runs) == before + 1 < 200
    assert seen.last == (study, recorder.portfolio, summary)
    runs, again = recorder.store.runs(), stored_search(study, recorder.store)
    assert tables(study, recorder.portfolio) == tables(study, again.portfolio)
    assert again.implied == []
    assert set(runs["stop_reason"]) == {"converged", "max_steps", "diverged", "failed"}
    own, has_failed = runs["trained_to"] == runs["max_steps"], runs["stop_reason"] == "failed"
    assert seen.runs[-1] == summary.runs == own.sum() < len(runs)
    assert summary.failed == (own & has_failed).sum()
    assert summary.steps == trained_steps(runs).sum()
    assert summary.work == work_done(runs, study)
    assert summary.train_seconds == runs["seconds"].sum()
    names = (f"m=16,d_model={row.d_model}" for row in runs[own & has_failed].itertuples())
    told = (re.split(r",max_steps|, h=", line)[0] for line in summary.failures)
    assert sorted(told) == sorted(names)


def own(rows: list[dict[str, Any]]) -> list[list[Any]]:
    """What a threshold is; of a pruned head a search may know more or less."""
    names = ["h", "max_steps", "status", "d_k", "D_K_high", "mean_score", "n_seeds"]
    low = [row["D_K_low"] if row["status"] == "found" else None for row in rows]
    return [[*(row[name] for name in names), end] for row, end in zip(rows, low, strict=True)]


def test_a_cell_at_several_limits_has_the_thresholds_and_rows_of_each_alone(tmp_path: Path) -> None:
    found, stored = [], []
    for limits in ([200, 400], 200, 400):
        recorder = recorder_of(study_of(limits), tmp_path / f"{limits}")
        finish(recorder)
        found.append(threshold_rows(recorder.study, recorder.portfolio))
        stored.append(recorder.store.runs())
    together, *alone = map(own, found)
    assert together == alone[0] + alone[1]
    shared, apart = stored[0], pd.concat(stored[1:])
    assert shared["run_id"].is_unique
    compared = ["run_id", "score", "steps", "stop_reason", "config"]
    common = shared[compared].merge(apart[compared], on="run_id", suffixes=("", "_alone"))
    assert len(common) > 20
    for name in compared[1:]:
        assert common[name].equals(common[f"{name}_alone"]), name
    read_off = shared["trained_to"] != shared["max_steps"]
    assert read_off.any()
    assert (shared[read_off]["seconds"] == 0).all()
    assert trained_steps(shared).sum() < trained_steps(apart).sum()


def test_a_seed_that_raises_costs_the_others_of_its_wave_nothing(tmp_path: Path) -> None:
    recorder = recorder_of(study_of(), tmp_path)
    rows = rows_of(recorder, Probe(recorder.study.cells[0].cell_id, 4, 1, (0, 1, 2)))
    assert [row["stop_reason"] for row in rows] == ["max_steps", "failed", "max_steps"]
    assert rows[1]["error"].endswith("MemoryError: of seed 1")


def test_runs_that_no_worker_could_train_are_stored_with_the_reason(tmp_path: Path) -> None:
    study = study_of(d_model=[8, 16])
    recorder = recorder_of(study, tmp_path)
    probe = Probe(study.cells[1].cell_id, 2, 3, (5, 7))
    for count, (engine, device) in enumerate((("auto", "cpu"), ("compiled", "cuda")), 1):
        recorder.record_lost(probe, engine, device, f"{engine}\n{LOST}\n")
        assert (recorder.summary.runs, recorder.summary.failed) == (2 * count, 2 * count)
    (first, second) = (f"m=16,d_model=16, h=2, d_k=3, seed {seed}: {LOST}" for seed in (5, 7))
    assert recorder.summary.failures == 2 * [first, second]
    tables = recorder.store.parts().values()
    stored = {(row["engine"], row["seed"], row["error"]) for t in tables for row in t.to_pylist()}
    assert stored == {
        (name, seed, f"{asked}\n{LOST}\n")
        for name, asked in (("fused", "auto"), ("compiled", "compiled"))
        for seed in (5, 7)
    }
    runs = recorder.store.runs()
    assert set(runs["run_id"]) == {run.run_id for run in recorder.feed.runs_of(probe)}
    assert set(runs["stop_reason"]) == {"failed"}
