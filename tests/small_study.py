"""A study of two small cells that trains in seconds, and how to run ``rgr`` on it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

RGR = (sys.executable, "-P", "-c", "from rgr_dist.cli import main; main()")
"""``rgr`` as it is installed: the working directory is not on its path."""

Rgr = Callable[..., subprocess.CompletedProcess[str]]
"""``rgr`` with its arguments and ``cwd``, in a process of its own or in this one."""

Refused = Callable[..., None]
"""Checks that ``rgr`` refuses arguments in one line that holds a text, and writes nothing."""

SMALL: dict[str, Any] = {
    "name": "small",
    "cells": [{"m": 16, "d_model": [8, 16]}],
    "context": {"length": 8},
    "training": {
        "learning_rate": 0.01,
        "max_steps": 2000,
        "check_every": 100,
        "patience": 2,
        "validation_contexts": 50,
        "test_contexts": 200,
    },
    "search": {"heads": [1, 2, 4], "seeds": 3},
}


def rgr(
    *arguments: object, cwd: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``rgr`` in a process of its own."""
    return subprocess.run(
        [*RGR, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=240,
    )


def driver(
    folder: Path, *options: str, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """``rgr run small.yaml`` in a process of its own, whose output and errors are kept."""
    return subprocess.Popen(
        [*RGR, "run", "small.yaml", *options],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def write_study(folder: Path, file: str = "small.yaml", **changes: Any) -> Path:
    """Write the small study, with some of its keys changed."""
    path = folder / file
    path.write_text(yaml.safe_dump({**SMALL, **changes}))
    return path


def tables(folder: Path) -> dict[str, pd.DataFrame]:
    """The study's tables as stored."""
    home = folder / "results/studies/small"
    return {name: pd.read_parquet(home / f"{name}.parquet") for name in ("thresholds",)}


def parts(folder: Path) -> list[Path]:
    """The parts in the store of a folder, which a run may be making or taking away."""
    with suppress(FileNotFoundError):
        return [one for one in (folder / "results/runs").iterdir() if one.suffix == ".parquet"]
    return []


def runs_on(driver: subprocess.Popen[Any]) -> bool:
    """Whether a process has not ended, after a moment; to ask again without one takes a core."""
    with suppress(subprocess.TimeoutExpired):
        driver.wait(0.02)
    return driver.returncode is None
