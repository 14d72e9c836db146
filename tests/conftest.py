"""Shared by all tests: one torch thread, hypothesis repeatable, and a study that is finished."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import settings

from tests.small_study import rgr, write_study

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")

torch.set_num_threads(1)  # small products gain nothing from two, and tests share the cores


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the small study run to its end in ``results/``.

    Files beside it have the names of our packages, and must not be imported in any process.
    """
    folder = tmp_path_factory.mktemp("finished")
    write_study(folder)
    for name in ("search", "analysis", "rgr_dist"):
        (folder / f"{name}.py").write_text(
            "raise SystemExit('imported from the working directory')"
        )
    done = rgr("run", "small.yaml", "--cpus", 2, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "report:" in done.stdout
    return folder
