"""A study on a running Ray cluster, and what is refused before one is asked."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from rgr_dist.faults import UserError
from rgr_dist.running.cluster import Execution
from tests.running.head import ENVIRONMENT, free_port, head
from tests.small_study import rgr, tables, write_study


@pytest.mark.slow
def test_a_study_runs_on_a_node_of_a_cluster_as_on_this_machine(
    finished: Path, tmp_path: Path
) -> None:
    # An edge list: its array has to reach the workers.
    (tmp_path / "ring.txt").write_text("".join(f"{p} {(p + 5) % 16}\n" for p in range(16)))
    write_study(tmp_path, graph={"family": "edges", "file": "ring.txt"})
    port = free_port()
    with head({}, f"--port={port}"):
        there = ("--address", f"127.0.0.1:{port}", "--store", "results")
        done = rgr("run", "small.yaml", *there, cwd=tmp_path, environment=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    (tmp_path / "here").mkdir()
    (tmp_path / "here/ring.txt").write_text((tmp_path / "ring.txt").read_text())
    write_study(tmp_path / "here", graph={"family": "edges", "file": "ring.txt"})
    done = rgr("run", "small.yaml", cwd=tmp_path / "here")
    assert done.returncode == 0, done.stderr
    for name, table in tables(tmp_path).items():
        pd.testing.assert_frame_equal(table, tables(tmp_path / "here")[name], check_exact=True)


def test_the_environment_names_the_cluster_of_a_submitted_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert Execution().address == "local"
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert Execution().address == "10.0.0.1:6379"


@pytest.mark.parametrize(
    "how", [{"cpus": 0}, {"cpus": 1.5}, {"gpus": -1.0}, {"address": "ray://head:10001"}]
)
def test_what_no_cluster_has_is_refused(how: dict[str, object]) -> None:
    (name,) = how
    with pytest.raises(UserError, match=f"^--{name} "):
        Execution(**how)
