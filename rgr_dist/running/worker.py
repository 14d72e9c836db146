"""The Ray boundary: a probe comes in, its seeds are trained side by side, rows go out."""

from __future__ import annotations

import platform
import subprocess
import traceback
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from ray import tune

from rgr_dist.engines import Engine, Outcome, make_engine
from rgr_dist.study import assets
from rgr_dist.study.study import Cell, Run
from search.protocol import Probe


def probe_config(probe: Probe, cell: Cell, engine: str, device: str) -> dict[str, Any]:
    """A probe as the config of a trial: plain values only."""
    return {
        "cell": cell.model_dump_json(),
        "h": probe.arm,
        "d_k": probe.value,
        "seeds": list(probe.seeds),
        "engine": engine,
        "device": device,
    }


class ProbeTrainable(tune.Trainable):
    """One trial trains the seeds it is given of one probe, together, in its only step.

    Its result holds ``rows``, one stored run each. A step that raises is reported as failed
    rows, so that the study goes on and the reason is kept.
    """

    def setup(self, config: dict[str, Any], arrays: dict[str, assets.Array] | None = None) -> None:
        """Take a probe.

        Args:
            arrays: what the study's cells bring from files; Tune fetches them from Ray's store.
        """
        assets.take(arrays or {})
        cell = Cell.model_validate_json(config["cell"])
        self.runs = [
            Run(cell=cell, h=config["h"], d_k=config["d_k"], seed=seed) for seed in config["seeds"]
        ]
        self.engine = _engine(config["engine"], config["device"], cell.model)
        self.device = config["device"]

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Take another probe in the same process."""
        self.setup(new_config)
        return True

    def step(self) -> dict[str, Any]:
        """Train the seeds; the scheduler then stops the trial."""
        return {"rows": train_rows(self.engine, self.runs, self.device)}


def train_rows(engine: Engine, runs: list[Run], device: str = "cpu") -> list[dict[str, Any]]:
    """Train a wave and return the row of each run; if the engine raises, rows that say so."""
    if not runs:
        return []
    try:
        outcomes: list[Outcome | None] = list(engine.train(runs))
        error = None
    except Exception:
        outcomes = [None] * len(runs)
        error = traceback.format_exc(limit=-3).strip()
    return [
        _row(run, outcome, error, engine.name, device)
        for run, outcome in zip(runs, outcomes, strict=True)
    ]


def lost_rows(runs: list[Run], engine: str) -> list[dict[str, Any]]:
    """Rows of runs whose worker died on every attempt."""
    error = "the worker was lost: killed, out of memory, or it could not start"
    return [_row(run, None, error, engine, "") for run in runs]


def _row(
    run: Run, outcome: Outcome | None, error: str | None, engine: str, device: str
) -> dict[str, Any]:
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
        "null_rate": None,
        "steps": 0,
        "stop_reason": "failed",
        "error": error,
        "engine": engine,
        "device": _processor(device),
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
            "null_rate": outcome.null_rate,
            "steps": outcome.steps,
            "stop_reason": outcome.stop_reason,
            "seconds": outcome.seconds,
        }
    return row


@cache
def _engine(name: str, device: str, model: str) -> Engine:
    """The engine of this process; a trial has one core, whatever the environment says."""
    return make_engine(name, device, threads=1, model=model)


@cache
def _processor(device: str) -> str | None:
    """Kind and name of the processor that trains; None where no worker did."""
    if not device:
        return None
    if device != "cpu":
        import torch

        return f"{device}: {torch.cuda.get_device_name()}"
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
    here = Path(__file__)

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(
            command, cwd=here.parent, capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", here.name)  # else it is somebody else's repository
        return git("describe", "--always", "--dirty=+", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return None
