"""The row of a run in ``RUNS``: its address, how it ended, and what trained it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from rgr_dist.store.schema import RESULTS, RUNS
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run

LOST = "the worker died on every attempt: killed, or it could not start"
OUT_OF_MEMORY = (
    "the worker died on every attempt: Ray killed it, as the memory of its machine ran out; "
    "give fewer --cpus, or a machine with more memory"
)
ENDED = (*RESULTS, "error", "seconds")
"""Columns that say how a run ended."""
FAILED = dict.fromkeys(ENDED) | {"steps": 0, "stop_reason": "failed", "seconds": 0.0}
"""The columns ``ENDED`` of a run that never trained."""


def run_row(
    run: Run,
    ended: Mapping[str, Any],
    engine: str | None,
    device: str | None,
    trained_to: int | None = None,
) -> dict[str, Any]:
    """The row of a run that has just ended, with the columns of ``RUNS`` in order.

    Args:
        ended: how it ended, by column; columns left out take their values from ``FAILED``.
        engine: name of the engine that trained it.
        device: kind and name of the processor; None where no worker trained it.
        trained_to: step limit of the run that this one was read from; its own if not given.
    """
    cell, ended = run.cell, {**FAILED, **ended}
    row = {
        "run_id": run.run_id,
        **cell_columns(cell),
        **{name: getattr(run, name) for name in ("h", "d_k", "D_K", "seed")},
        "trained_to": trained_to or cell.training.max_steps,
        **{name: ended[name] for name in ENDED},
        "engine": engine,
        "device": device,
        "finished_at": datetime.now(UTC),
        "versions": _versions(),
        "git_revision": git_revision(Path(__file__))
        or _version("rgr-dist").partition("+g")[2]  # of an installed package
        or None,
        "config": run.config_json,
    }
    return {name: row[name] for name in RUNS.names}


def cell_columns(cell: Cell) -> dict[str, Any]:
    """The columns of a row that describe its cell."""
    return {
        "cell_id": cell.cell_id,
        "model": cell.model,
        "graph": cell.family,
        "degree": cell.graph.degree,
        "embedding": cell.embedding.family,
        "m": cell.m,
        "d_model": cell.d_model,
        "context_length": cell.context.length,
        "positive_rate": cell.context.positive_rate,
        "max_steps": cell.training.max_steps,
    }


def lost_rows(
    runs: Iterable[Run], engine: str, device: str, why: str = LOST
) -> list[dict[str, Any]]:
    """Rows of runs whose worker died or raised on every attempt.

    Args:
        engine: the engine that was asked for. ``auto`` is stored as the engine that would have
            trained the run: the fastest of its model on a CPU, ``compiled`` elsewhere.
        device: ``cpu``, or a torch device such as ``cuda``.
        why: ``LOST``, ``OUT_OF_MEMORY``, or what the worker raised before it trained.
    """
    return [
        run_row(run, {"error": why}, run.cell.record.engine(engine, device), device=None)
        for run in runs
    ]


@cache
def _versions() -> str:
    own = _version("rgr-dist").partition("+g")[0]  # the revision has a column
    return f"rgr-dist={own} " + " ".join(f"{x}={_version(x)}" for x in ("torch", "numpy", "numba"))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # ours, shipped to a cluster as source
        return "source"


@cache
def git_revision(file: Path) -> str | None:
    """The revision of a file's repository, with ``+`` if it has changed since; None outside git."""

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(
            command, cwd=file.parent, capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", file.name)  # else the repository is another project's
        return git("describe", "--always", "--dirty=+", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return None
