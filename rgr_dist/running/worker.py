"""The Ray boundary: a probe comes in, its seeds are trained side by side, rows go out."""

from __future__ import annotations

import json
import platform
import traceback
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import Any

from ray import tune

from rgr_dist.engines.api import Engine, Outcome
from rgr_dist.engines.choose import make_engine
from rgr_dist.search.tune.runner import WhileNeeded
from rgr_dist.store.row import run_row
from rgr_dist.study import assets
from rgr_dist.study.cell import read_cell
from rgr_dist.study.run import Run

HEARTBEAT = 60.0
"""Seconds after which a trial that still trains says that it is there."""
THREAD = ThreadPoolExecutor(1)
"""Trains, while the process's own thread answers Tune."""


class ProbeTrainable(tune.Trainable):
    """One trial: trains some seeds of one probe together, from its second step on.

    Its first step says that the worker is there; a step that takes a minute says so again. The
    last one's result holds ``rows``, one for each run to be stored. An error raised in training
    is reported as failed rows, so that the study goes on and the reason is kept.
    """

    def setup(self, config: dict[str, Any], arrays: dict[str, assets.Array] | None = None) -> None:
        """Take a probe.

        Args:
            config: ``cell`` as JSON; ``sizes`` of its layer, as a ``Run`` has them; ``seeds``;
                ``budgets``, smaller step limits at which the runs are also wanted; ``engine``;
                ``device``.
            arrays: what the study's cells load from files; Tune fetches them from Ray's store.
        """
        assets.take(arrays or {})
        cell = read_cell(config["cell"])
        runs = [Run(cell=cell, seed=seed, **config["sizes"]) for seed in config["seeds"]]
        engine = _engine(config["engine"], config["device"], cell.model)
        self.wave = partial(train_rows, engine, runs, config["device"], config["budgets"])
        self.rows: Future[list[dict[str, Any]]] | None = None
        self.has_begun = False

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Take another probe in the same process."""
        self.setup(new_config)
        return True

    def step(self) -> dict[str, Any]:
        """Say that the worker is there, then train the seeds."""
        if not self.has_begun:
            self.has_begun = True
            return {}
        self.rows = self.rows or THREAD.submit(self.wave)
        try:
            return {"rows": self.rows.result(HEARTBEAT), "done": True}
        except TimeoutError:
            return {}


class UntilItTrains(WhileNeeded):
    """Ends a trial that is not needed any more before it trains; what trains, trains to its end."""

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Whether to end this trial."""
        has_begun = result["training_iteration"] > 1
        return bool(result.get("done")) or (not has_begun and self.searcher.spare(trial_id))


def train_rows(
    engine: Engine, runs: list[Run], device: str = "cpu", budgets: Sequence[int] = ()
) -> list[dict[str, Any]]:
    """Train a wave; returns the row of each run, a failed one if the engine raises an error.

    Rows at smaller step limits come before the row of the run that they were read off; that row
    has the time of them all.
    """
    if not runs:
        return []
    device_name = _processor(device)
    try:
        ended = engine.train_through(runs, budgets)
    except Exception:
        if len(runs) > 1:  # so that a run that raises does not fail the others
            return [row for run in runs for row in train_rows(engine, [run], device, budgets)]
        error = {"error": traceback.format_exc(limit=-3).strip()}
        return [run_row(run, error, engine.name, device_name) for run in runs]
    rows = []
    for run, outcomes in zip(runs, ended, strict=True):
        own = run.cell.training.max_steps
        for limit, outcome in zip((*budgets, own), outcomes, strict=True):
            columns = _columns(outcome)
            if limit != own:
                columns["seconds"] = 0.0
            rows.append(run_row(run.with_limit(limit), columns, engine.name, device_name, own))
    return rows


def _columns(outcome: Outcome) -> dict[str, Any]:
    columns = asdict(outcome)
    columns["threshold_tau"] = columns.pop("tau")
    if outcome.details is not None:
        columns["details"] = json.dumps(outcome.details)
    return columns


_engine = cache(make_engine)
"""Makes each engine only once per process."""


@cache
def _processor(device: str) -> str:
    """Kind and name of the processor that trains."""
    if device != "cpu":
        import torch

        return f"{device}: {torch.cuda.get_device_name()}"
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"cpu: {names[0] if names else platform.processor() or platform.machine()}"
