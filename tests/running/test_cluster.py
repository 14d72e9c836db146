"""The same study on a running Ray cluster: from one of its nodes, and from outside it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from tests.small_study import Refused, rgr, write_study

ENVIRONMENT = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def ports() -> Iterator[tuple[int, int]]:
    """A one-node cluster on this machine; the ports of its control store and of its client."""
    folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # Ray's socket paths must be short
    control, client = free_port(), free_port()
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
    command += ["--node-ip-address=127.0.0.1", f"--port={control}", "--num-cpus=2"]
    command += [f"--ray-client-server-port={client}", "--include-dashboard=false"]
    command += [f"--temp-dir={folder}"]
    with subprocess.Popen(
        command,
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as cluster:
        assert cluster.stdout is not None
        started = any("Ray runtime started" in line for line in cluster.stdout)
        assert started, "the cluster did not start"
        yield control, client
        cluster.terminate()
        cluster.stdout.read()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_a_study_runs_on_a_cluster_and_from_outside_it(
    ports: tuple[int, int], tmp_path: Path
) -> None:
    # An edge list: its array has to reach the workers, and the driver on the cluster.
    (tmp_path / "ring.txt").write_text("".join(f"{p} {(p + 5) % 16}\n" for p in range(16)))
    write_study(tmp_path, graph={"family": "edges", "file": "ring.txt"})
    inside = ("--address", f"127.0.0.1:{ports[0]}", "--out", "inside")
    done = rgr("run", "small.yaml", *inside, cwd=tmp_path, environment=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    outside = ("--address", f"ray://127.0.0.1:{ports[1]}", "--out", f"file://{tmp_path}/outside")
    done = rgr("run", "small.yaml", *outside, cwd=tmp_path, environment=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    for name in ("thresholds", "decisions"):
        found = [
            pd.read_parquet(tmp_path / place / f"studies/small/{name}.parquet")
            for place in ("inside", "outside")
        ]
        pd.testing.assert_frame_equal(*found, check_exact=True)


@pytest.mark.slow
def test_a_protocol_is_tuned_on_a_cluster_and_from_outside_it(
    ports: tuple[int, int], tmp_path: Path
) -> None:
    write_study(tmp_path)
    few = ("--trials", 3, "--D_K", 2, "--cpus", 1, "--format", "json")
    places = {
        "here": ("--out", "here"),
        "inside": ("--address", f"127.0.0.1:{ports[0]}", "--out", "inside"),
        "outside": ("--address", f"ray://127.0.0.1:{ports[1]}", "--out", f"file://{tmp_path}/out"),
    }
    answers = {}
    for name, place in places.items():
        environment = {} if name == "here" else ENVIRONMENT
        done = rgr("tune", "small.yaml", *few, *place, cwd=tmp_path, environment=environment)
        assert done.returncode == 0, done.stderr
        assert "3 of 3: mean score" in done.stderr
        answers[name] = json.loads(done.stdout)
    for key in ("trials", "tuned", "training", "score", "present_score"):
        assert answers["inside"][key] == answers["here"][key]
        assert answers["outside"][key] == answers["here"][key]
    for folder in ("here", "inside", "out"):
        assert (tmp_path / folder / "studies/small/tuning.journal").exists()
        assert len(pd.read_parquet(tmp_path / folder / "runs")) == 3 * 3 * 2


def test_a_driver_outside_needs_a_store_that_both_can_open(
    tmp_path: Path, refused: Refused
) -> None:
    write_study(tmp_path)
    address = f"ray://127.0.0.1:{free_port()}"  # refused before anybody asks whether it answers
    refused("give a URI that both can open", "run", "small.yaml", "--address", address)


def test_an_address_without_a_cluster_is_told_in_one_line(tmp_path: Path) -> None:
    write_study(tmp_path)
    done = rgr("run", "small.yaml", "--address", f"127.0.0.1:{free_port()}", cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "no Ray cluster answers there" in done.stderr
