"""A store on S3: moto's server, over real requests, some of them late or refused."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

from rgr_dist.cli import call
from rgr_dist.store.storage import StoreError
from rgr_dist.store.store import Store
from tests.small_study import RGR, write_study
from tests.store.made_up_runs import run_row
from tests.store.object_storage import Gate, black_hole, has_credentials, s3_server, uri

Told = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Gate, int]]:
    with s3_server() as running:
        yield running


@pytest.fixture
def gate(server: tuple[Gate, int], monkeypatch: pytest.MonkeyPatch) -> Gate:
    """The gate of the server, open."""
    has_credentials(monkeypatch)
    gate = server[0]
    gate.latency = gate.refuses = 0.0
    return gate


@pytest.fixture
def root(gate: Gate, server: tuple[Gate, int], request: pytest.FixtureRequest) -> str:
    """A place in the bucket that is this test's own."""
    return uri(server[1], str(abs(hash(request.node.name))))


def test_a_bucket_whose_requests_are_late_or_refused_holds_what_a_disk_would(
    gate: Gate, root: str
) -> None:
    gate.latency, gate.refuses, refused = 0.01, 0.1, gate.refused
    store = Store(root)
    assert store.runs().empty
    for seed in range(5):
        store.append([run_row(seed=seed)])
    before = store.runs()
    assert list(before["seed"]) == list(range(5))
    store.compact(above=1)
    pd.testing.assert_frame_equal(Store(root).runs(), before)
    store.write_text("studies/s/study.yaml", "name: ∫\n")
    assert Store(root).read_text("studies/s/study.yaml") == "name: ∫\n"
    assert Store(root).studies() == ["s"]
    assert gate.refused > refused


@pytest.mark.slow
def test_a_bucket_that_refuses_everything_is_told_in_one_line(gate: Gate, root: str) -> None:
    store = Store(root)
    store.append([run_row()])
    gate.refuses = 1.0
    for fault, attempt in (("opened", lambda: Store(root)), ("read", store.runs)):
        with pytest.raises(StoreError, match=f"^--store .*: cannot be {fault}: .*$"):
            attempt()
    with pytest.raises(StoreError, match=r"^--store .*: cannot store .*$"):
        store.append([run_row(seed=1)])


def drivers(root: str) -> list[str]:
    names = [file.base_name for file in Store(root).files("drivers")]
    return [name for name in names if name.endswith(".json")]


def test_a_bucket_that_is_not_there_is_told(
    gate: Gate, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Told
) -> None:
    monkeypatch.chdir(tmp_path)
    write_study(tmp_path)
    nowhere = root.replace("s3://", "s3://not-")
    for verb, store, said in (
        ("status", nowhere, "there is no bucket not-"),
        ("run", nowhere, "there is no bucket not-"),
        ("status", root, "there is no store; rgr run "),
    ):
        assert call([verb, "small.yaml", "--store", store]) == 2
        told = capsys.readouterr().err
        assert len(told.splitlines()) == 1
        assert f": {said}" in told


def test_of_several_drivers_at_once_one_holds_a_bucket(gate: Gate, root: str) -> None:
    gate.latency = 0.01
    tried = threading.Barrier(4)

    def holds(number: int) -> bool:
        try:
            with Store(root).held(f"rgr run {number}"):
                tried.wait()  # nobody leaves before all have tried
                return True
        except StoreError:
            tried.wait()
            return False

    with ThreadPoolExecutor(4) as drivers_at_once:
        assert sorted(drivers_at_once.map(holds, range(4))) == [False, False, False, True]
    assert drivers(root) == []


def test_a_bucket_whose_driver_was_killed_is_taken_over(root: str) -> None:
    hold = (
        "import sys, os; from rgr_dist.store.store import Store\n"
        "with Store(sys.argv[1]).held('rgr run dead'): os.kill(os.getpid(), 9)"
    )
    died = subprocess.run([RGR[0], "-c", hold, root])
    assert died.returncode == -signal.SIGKILL
    assert len(drivers(root)) == 1
    with Store(root).held("rgr run next"):
        assert len(drivers(root)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("accepts", [True, False])
@pytest.mark.parametrize("verb", ["run", "status", "thresholds", "verify"])
def test_storage_that_never_answers_is_told_in_one_line(
    verb: str, accepts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_credentials(monkeypatch)
    write_study(tmp_path)
    study = [] if verb == "verify" else ["small.yaml"]
    with black_hole(accepts) as port:
        command = [*RGR, verb, *study, "--store", uri(port)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=150)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "Timeout was reached" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_driver_that_is_killed_again_and_again_loses_nothing(
    gate: Gate, root: str, finished: Path, tmp_path: Path, capsys: Told
) -> None:
    gate.latency, gate.refuses = 0.02, 0.02
    write_study(tmp_path)
    draw, kills = random.Random(0), 0
    rows: dict[str, object] = {}
    while True:
        with subprocess.Popen(
            [*RGR, "run", "small.yaml", "--cpus", "2", "--store", root],
            cwd=tmp_path,
            env=dict(os.environ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as driver:
            if kills < 8:
                before, parts = Store(root).version(), draw.randrange(1, 4)
                while driver.poll() is None and parts:
                    parts -= (now := Store(root).version()) != before
                    before = now
                kills += driver.poll() is None
                driver.kill()
        stored = Store(root).runs().set_index("run_id")["finished_at"].to_dict()
        assert {run: stored.get(run) for run in rows} == rows
        rows = stored
        if driver.returncode == 0:
            break
    assert kills >= 3
    found = []
    for out in (root, str(finished / "results")):
        capsys.readouterr()
        assert (
            call(["thresholds", str(tmp_path / "small.yaml"), "--store", out, "--format", "json"])
            == 0
        )
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
