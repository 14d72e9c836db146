"""The same study on a running Ray cluster: from one of its nodes, and from outside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import ray

import rgr_dist
from rgr_dist.running.client import trained, wait_for
from rgr_dist.store.storage import StoreError
from rgr_dist.store.store import Store
from tests.running.head import ENVIRONMENT, free_port, head
from tests.small_study import Refused, rgr, write_study
from tests.store.made_up_runs import run_row
from tests.store.object_storage import CREDENTIALS, has_credentials, s3_server, uri


@pytest.fixture(scope="module")
def ports() -> Iterator[tuple[int, int]]:
    """A one-node cluster; the ports of its control store and of its client."""
    control, client = free_port(), free_port()
    with head(CREDENTIALS, f"--port={control}", f"--ray-client-server-port={client}"):
        yield control, client


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Store]:
    """A store that this machine and the cluster can open."""
    has_credentials(monkeypatch)
    with s3_server() as (_, port):
        yield Store(uri(port, tmp_path.name))  # what another test stored stays in the bucket


@pytest.mark.slow
def test_a_study_runs_on_a_cluster_and_from_outside_it(
    ports: tuple[int, int], bucket: Store, tmp_path: Path
) -> None:
    # An edge list: its array has to reach the workers, and the driver on the cluster.
    (tmp_path / "ring.txt").write_text("".join(f"{p} {(p + 5) % 16}\n" for p in range(16)))
    write_study(tmp_path, graph={"family": "edges", "file": "ring.txt"})
    inside = ("--address", f"127.0.0.1:{ports[0]}", "--store", "inside")
    done = rgr("run", "small.yaml", *inside, cwd=tmp_path, environment=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    outside = ("--address", f"ray://127.0.0.1:{ports[1]}", "--store", bucket.uri)
    done = rgr("run", "small.yaml", *outside, cwd=tmp_path, environment=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    for name in ("thresholds", "decisions"):
        inside = Store(tmp_path / "inside").read_study_table("small", name)
        found = bucket.read_study_table("small", name)
        pd.testing.assert_frame_equal(inside, found, check_exact=True)


@pytest.mark.slow
def test_a_protocol_is_tuned_on_a_cluster_and_from_outside_it(
    ports: tuple[int, int], bucket: Store, tmp_path: Path
) -> None:
    write_study(tmp_path)
    few = ("--trials", 3, "--D_K", 2, "--cpus", 1, "--format", "json")
    places = {
        "here": ("--store", "here"),
        "inside": ("--address", f"127.0.0.1:{ports[0]}", "--store", "inside"),
        "outside": ("--address", f"ray://127.0.0.1:{ports[1]}", "--store", bucket.uri),
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
    for store in (Store(tmp_path / "here"), Store(tmp_path / "inside"), bucket):
        assert store.read_text("studies/small/tuning.journal")
        assert len(store.runs()) == 3 * 3 * 2


FROM_OUTSIDE = """
from rgr_dist import find_threshold
find_threshold(lambda config: None, "width", [1, 2], "score", 0.5)
"""


@pytest.mark.slow
def test_a_client_of_a_cluster_does_not_lead_a_search(ports: tuple[int, int]) -> None:
    there = {"RAY_ADDRESS": f"ray://127.0.0.1:{ports[1]}"}
    done = subprocess.run(
        [sys.executable, "-c", FROM_OUTSIDE],
        env={**os.environ, **ENVIRONMENT, **there, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "NoRay: a Ray client (ray://) cannot lead a search" in done.stderr.splitlines()[-1]


def user(name: str) -> dict[str, str]:
    """Credentials; none for nobody."""
    keys = {"AWS_ACCESS_KEY_ID": name, "AWS_SECRET_ACCESS_KEY": name and f"secret-of-{name}"}
    return {**CREDENTIALS, **keys}


@pytest.mark.slow
@pytest.mark.parametrize("there", ["there", ""])
def test_from_outside_a_bucket_is_opened_by_the_credentials_of_each_side(
    there: str, tmp_path: Path, finished: Path
) -> None:
    write_study(tmp_path)
    port = free_port()
    ports = f"--port={free_port()}", f"--ray-client-server-port={port}"
    with s3_server() as (gate, bucket), head(user(there), *ports):
        gate.is_private = True
        outside = ("--address", f"ray://127.0.0.1:{port}", "--store", uri(bucket))
        mine = {**ENVIRONMENT, **user("here")}
        done = rgr("run", "small.yaml", *outside, cwd=tmp_path, environment=mine)
        assert {user for user in gate.users if user != "test"} == {"here", there}
        assert "secret-of" not in done.stderr + done.stdout
        if not there:
            assert done.returncode == 2, done.stderr
            assert len(done.stderr.splitlines()) == 1
            assert "driver there ended: StoreError" in done.stderr
            return
        assert done.returncode == 0, done.stderr
        show = ("thresholds", "small.yaml", "--format", "json", "--store")
        found = [
            rgr(*show, place, cwd=tmp_path, environment=mine).stdout
            for place in (uri(bucket), finished / "results")
        ]
    assert json.loads(found[0]) == json.loads(found[1])


@pytest.mark.parametrize("store", ["results", "file://{folder}/results"])
def test_a_driver_outside_needs_a_store_that_both_can_open(
    store: str, tmp_path: Path, refused: Refused
) -> None:
    write_study(tmp_path)
    address = f"ray://127.0.0.1:{free_port()}"  # refused before anybody asks whether it answers
    where = ("--address", address, "--store", store.format(folder=tmp_path))
    refused("give a URI that both can open", "run", "small.yaml", *where)


@pytest.mark.usefixtures("_ray")
def test_a_store_that_cannot_be_read_for_once_does_not_end_what_a_task_drives(
    tmp_path: Path,
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def watch() -> None:
        if pipe.exists():
            pipe.write_text("the task's answer")  # which waits for it
            pipe.unlink()
        raise StoreError("a fault that passes")

    task = ray.remote(num_cpus=0)(Path.read_text).remote(pipe)
    assert wait_for(task, "ray://there", watch) == "the task's answer"


def test_runs_that_were_read_off_longer_ones_are_not_counted_as_trained() -> None:
    row = run_row(steps=400)
    longer = row | {"trained_to": 2 * row["max_steps"]}
    assert trained(pd.DataFrame([row, longer, row | {"trained_to": None}])) == (2, 800)


def test_an_address_without_a_cluster_is_told_in_one_line(tmp_path: Path, refused: Refused) -> None:
    write_study(tmp_path)
    address = f"127.0.0.1:{free_port()}"
    said = "no Ray cluster answers there"
    refused(f"rgr: --address {address}: {said}", "run", "small.yaml", "--address", address)
    done = rgr("run", "small.yaml", cwd=tmp_path, environment={"RAY_ADDRESS": address})
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"rgr: --address {address} (RAY_ADDRESS): {said}")


def test_from_python_the_default_address_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address := f"127.0.0.1:{free_port()}")
    monkeypatch.setattr("rgr_dist.search.tune.connect.is_connected", lambda: False)
    said = rf"{address} \(RAY_ADDRESS\): no Ray cluster answers there"
    with pytest.raises(RuntimeError, match=said):
        rgr_dist.run(write_study(tmp_path), out=tmp_path / "results", show=False)
    with pytest.raises(RuntimeError, match=said):
        rgr_dist.find_threshold(lambda config: None, "width", range(1, 9), "score", 0.5)
