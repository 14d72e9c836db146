"""The Ray boundary: a probe comes in, lanes are trained wave by wave, rows go out."""

from __future__ import annotations

import os
import platform
import subprocess
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from ray import tune

from rgr_dist.engines import Engine, Outcome, make_engine
from rgr_dist.study import Cell, Run
from search.protocol import Probe
from search.seed_test import SeedTest


def probe_config(probe: Probe, cell: Cell, test: SeedTest, engine: str) -> dict[str, Any]:
    """A probe as the config of a trial: plain values only."""
    return {
        "cell": cell.model_dump_json(),
        "h": probe.h,
        "d_k": probe.d_k,
        "scores": [list(pair) for pair in probe.scores],
        "complete": probe.complete,
        "target": test.target,
        "seeds": test.seeds,
        "engine": engine,
    }


class ProbeTrainable(tune.Trainable):
    """One trial is one probe; one ``step`` trains one wave of its seeds.

    The result of a step holds ``rows``, one stored run each. A wave that raises is reported
    as failed rows, so that the study goes on and the reason is kept.
    """

    def setup(self, config: dict[str, Any]) -> None:
        """Take a probe."""
        self.cell = Cell.model_validate_json(config["cell"])
        self.h, self.d_k = int(config["h"]), int(config["d_k"])
        self.scores = {int(seed): float(score) for seed, score in config["scores"]}
        self.complete = bool(config["complete"])
        self.test = SeedTest(config["target"], config["seeds"])
        self.engine = _engine(config["engine"])

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Take another probe in the same process."""
        self.setup(new_config)
        return True

    def step(self) -> dict[str, Any]:
        """Train the next wave."""
        seeds = self.test.next_wave(self.scores, self.complete)
        runs = [Run(cell=self.cell, h=self.h, d_k=self.d_k, seed=seed) for seed in seeds]
        rows = train_rows(self.engine, runs)
        for run, row in zip(runs, rows, strict=True):
            if row["stop_reason"] != "failed":
                self.scores[run.seed] = 0.0 if row["stop_reason"] == "diverged" else row["score"]
        return {"rows": rows}


class Heartbeat(tune.Callback):
    """Calls back about once a second while trials run, in the driver."""

    def __init__(self, beat: Callable[[], None]) -> None:
        self.beat = beat

    def __getstate__(self) -> dict[str, Any]:
        """Nothing of a study is pickled: running it again resumes it."""
        return {}

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        """Tune's loop went round."""
        self.beat()


def train_rows(engine: Engine, runs: list[Run]) -> list[dict[str, Any]]:
    """Train a wave and return the row of each run; if the engine raises, rows that say so."""
    if not runs:
        return []
    try:
        outcomes: list[Outcome | None] = list(engine.train(runs))
        error = None
    except Exception:
        outcomes = [None] * len(runs)
        error = traceback.format_exc(limit=-3).strip()
    return [_row(run, outcome, error, engine) for run, outcome in zip(runs, outcomes, strict=True)]


def _row(run: Run, outcome: Outcome | None, error: str | None, engine: Engine) -> dict[str, Any]:
    cell = run.cell
    row: dict[str, Any] = {
        "run_id": run.run_id,
        "cell_id": cell.cell_id,
        "model": cell.model,
        "graph": cell.graph.family,
        "degree": cell.graph.degree,
        "embedding": cell.embedding.family,
        "m": cell.m,
        "d_model": cell.d_model,
        "h": run.h,
        "d_k": run.d_k,
        "D_K": run.D_K,
        "seed": run.seed,
        "context_length": cell.context.length,
        "positive_rate": cell.context.positive_rate,
        "max_steps": cell.training.max_steps,
        "score": None,
        "val_score": None,
        "threshold_tau": None,
        "steps": 0,
        "stop_reason": "failed",
        "error": error,
        "engine": engine.name,
        "device": _processor(),
        "seconds": 0.0,
        "finished_at": datetime.now(UTC),
        "versions": _versions(),
        "git_revision": _git_revision(),
        "config": run.config_json,
    }
    if outcome is not None:
        row |= {
            "score": outcome.score,
            "val_score": outcome.val_score,
            "threshold_tau": outcome.tau,
            "steps": outcome.steps,
            "stop_reason": outcome.stop_reason,
            "seconds": outcome.seconds,
        }
    return row


@cache
def _engine(name: str) -> Engine:
    return make_engine(name, threads=max(1, int(os.environ.get("OMP_NUM_THREADS", "1"))))


@cache
def _processor() -> str:
    """Kind and name of the processor that trains."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"cpu: {names[0] if names else platform.processor() or platform.machine()}"


@cache
def _versions() -> str:
    packages = ("rgr-dist", "torch", "numpy", "numba")
    return " ".join(f"{package}={metadata.version(package)}" for package in packages)


@cache
def _git_revision() -> str | None:
    """The revision of the source tree, with ``+`` if it has been changed; None outside git."""
    where = Path(__file__).parent
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
            cwd=where,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip()
