"""Two drivers and one store: one writes, the other is told who does."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from rgr_dist.cli import call
from rgr_dist.store import lock as lock_module
from rgr_dist.store.lock import Driver, born, is_running
from rgr_dist.store.storage import StoreError
from rgr_dist.store.store import Store
from tests.small_study import write_study
from tests.store.made_up_runs import run_row, tree

HOLD = """
import sys
from rgr_dist.store.store import Store
with Store(sys.argv[1]).held("rgr run other"):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(root: Path) -> subprocess.Popen[str]:
    """A process that holds a store until its standard input is closed."""
    command = [sys.executable, "-c", HOLD, str(root)]
    process = subprocess.Popen(command, stdin=-1, stdout=-1, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def drivers(root: Path) -> list[str]:
    return [path.name for path in (root / "drivers").glob("*.json")]


def leave(root: Path, driver: Driver, seconds_ago: float = 0.0) -> Path:
    """A file of a driver, last renewed some time ago."""
    path = root / "drivers/a.json"
    Store(root).write_text("drivers/a.json", driver.to_json())
    renew(path, seconds_ago)
    return path


def renew(path: Path, seconds_ago: float) -> None:
    at = datetime.now(UTC).timestamp() - seconds_ago
    os.utime(path, (at, at))


HERE = Driver.here("rgr run first")


def test_a_second_driver_is_told_who_holds_the_store_and_the_first_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_study(tmp_path)
    monkeypatch.chdir(tmp_path)
    Store("results").append([run_row()])
    with holder(tmp_path / "results") as first:
        before = tree(tmp_path)
        assert call(["run", "small.yaml"]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert re.fullmatch(
            rf"rgr: --store results: rgr run other writes it \(process {first.pid} on "
            rf"{HERE.host}, since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC\); wait for it, end it, or "
            r"give another --store; the next run takes it over once that process has ended\n",
            err,
        )
        assert call(["tune", "small.yaml", "--cell", "d_model=8", "--trials", "1"]) == 2
        assert call(["verify", "--repair"]) == 2
        assert tree(tmp_path) == before
        # Reading needs no lock.
        assert call(["status", "small.yaml"]) == call(["verify"]) == 0
        assert first.poll() is None
        first.communicate("")
    assert first.returncode == 0
    assert not (tmp_path / "results/drivers").exists()


ASK = """
import sys
from rgr_dist.cli import call
status = call(sys.argv[1:])
print(status, sorted({"ray", "torch", "pandas", "optuna"} & set(sys.modules)))
"""


@pytest.mark.parametrize("verb", ["run", "tune"])
def test_a_second_driver_is_refused_before_it_imports_ray(tmp_path: Path, verb: str) -> None:
    write_study(tmp_path)
    more = ["--cell", "d_model=8", "--trials", "1"] if verb == "tune" else []
    with Store(tmp_path / "new").held("rgr run first"):
        command = [sys.executable, "-c", ASK, verb, "small.yaml", "--store", "new", *more]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "rgr run first writes it" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ("2 []\n" if verb == "run" else "2 ['pandas']\n")


def test_whoever_comes_second_is_told_at_once_and_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "new").mkdir()
    root = tmp_path / "new/results"
    monkeypatch.setattr(lock_module.time, "sleep", lambda seconds: pytest.fail("it waits"))
    first = Store(root)
    with first.held("rgr run first"):
        with pytest.raises(StoreError, match="rgr run first writes it"):
            Store(root).held("rgr run second").__enter__()
        assert len(drivers(root)) == 1
    assert tree(tmp_path) == ["new"]
    first.append([run_row()])
    assert tree(root / "runs") != []


def test_a_driver_says_where_and_since_when_it_runs(tmp_path: Path) -> None:
    """In the words of every version, so that all respect each other's locks."""
    with Store(tmp_path).held("rgr run x"):
        (name,) = drivers(tmp_path)
        said = json.loads((tmp_path / "drivers" / name).read_text())
    since = datetime.strptime(said.pop("since"), "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=UTC)
    assert 0 <= (datetime.now(UTC) - since).total_seconds() < 60
    assert said == {
        "does": "rgr run x",
        "host": socket.gethostname(),
        "machine": HERE.machine,
        "process": os.getpid(),
        "born": born(os.getpid()),
        "holds": True,
    }


class Failing(Store):
    """A store whose storage refuses so many of the next requests that a lock makes."""

    fails = 0

    def _may_fail(self) -> None:
        if self.fails:
            self.fails -= 1
            raise StoreError("refused")

    def files(self, folder: str) -> list[pafs.FileInfo]:
        self._may_fail()
        return super().files(folder)

    def remove(self, relative: str) -> None:
        self._may_fail()
        super().remove(relative)


def test_a_holder_goes_on_when_storage_fails_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_module, "RENEW_EVERY", 0.001)
    store = Failing(tmp_path)
    with store.held("rgr run x"):
        (name,) = drivers(tmp_path)
        path = tmp_path / "drivers" / name
        store.fails = 2
        while store.fails:
            pass  # until two renewals have failed
        renew(path, 1000)
        while path.stat().st_mtime < datetime.now(UTC).timestamp() - 500:
            pass  # until it is renewed
        store.append([run_row()])
        monkeypatch.undo()  # so that a renewal on its way is waited for
    assert drivers(tmp_path) == []


def test_a_store_is_given_up_in_silence_where_storage_fails(tmp_path: Path) -> None:
    store = Failing(tmp_path)
    with store.held("rgr run x"):
        store.fails = 1
    assert len(drivers(tmp_path)) == 1, "it is known by its process, or by silence"


def test_who_cannot_list_the_drivers_takes_its_own_file_away(tmp_path: Path) -> None:
    store = Failing(tmp_path)
    store.fails = 1
    with pytest.raises(StoreError, match="refused"), store.held("rgr run x"):
        pass
    assert drivers(tmp_path) == []


def test_who_came_too_and_neither_holds_nor_gives_up_is_named_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is stopped between two steps, say."""
    monkeypatch.setattr(lock_module, "RENEW_EVERY", 0.01)
    leave(tmp_path, HERE)
    (tmp_path / "drivers/a.json").rename(tmp_path / "drivers/z.json")
    with (
        pytest.raises(StoreError, match=r"^--store .*: rgr run first writes it \(process"),
        Store(tmp_path).held("rgr run x"),
    ):
        pass
    assert drivers(tmp_path) == ["z.json"]


def test_a_driver_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    with holder(tmp_path) as first:
        first.kill()
        first.wait()
        with Store(tmp_path).held("rgr run mine"):
            assert len(drivers(tmp_path)) == 1
    assert drivers(tmp_path) == []


def test_a_process_that_was_given_the_number_of_a_dead_driver_holds_nothing(tmp_path: Path) -> None:
    leave(tmp_path, replace(HERE, born="1", holds=True))
    with Store(tmp_path).held("rgr run mine"):
        assert "a.json" not in drivers(tmp_path)


@pytest.mark.parametrize("seconds_ago", [0, 61, 1e6])
def test_a_living_driver_of_this_machine_is_never_taken_over_however_silent_it_is(
    tmp_path: Path, seconds_ago: float
) -> None:
    """It may be asleep, or its disk may be slow; its process says that it lives."""
    leave(tmp_path, replace(HERE, holds=True), seconds_ago)
    with pytest.raises(StoreError, match="once that process has ended"):
        Store(tmp_path).held("rgr run mine").__enter__()
    assert drivers(tmp_path) == ["a.json"]


def test_a_process_of_another_user_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(process: int, signal: int) -> None:
        raise PermissionError

    assert is_running(os.getpid(), HERE.born)
    monkeypatch.setattr(os, "kill", refuse)
    assert is_running(os.getpid(), HERE.born)


def test_a_driver_elsewhere_holds_the_store_while_it_gives_signs_of_life(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = leave(tmp_path, replace(HERE, machine="other", host="node7", holds=True))
    renew(path, 55)
    with pytest.raises(StoreError) as caught, store.held("rgr run mine"):
        pass
    assert "if that has died, the next run takes it over 60 s later" in str(caught.value)
    assert re.search(r"rgr run first writes it \(process \d+ on node7", str(caught.value))
    assert drivers(tmp_path) == ["a.json"]
    renew(path, 65)
    with store.held("rgr run mine"):
        assert "a.json" not in drivers(tmp_path)


DAMAGED = {
    "empty": b"",
    "no JSON": b"no JSON",
    "no UTF-8": b"\xff\xfe{",
    "another shape": b"[]",
    "a key missing": b'{"does": "x"}',
    "torn": HERE.to_json().encode()[:-9],
    "a word for a number": HERE.to_json().replace(str(os.getpid()), '"one"').encode(),
    "no process": HERE.to_json().replace(str(os.getpid()), "-1").encode(),
    "an endless number": HERE.to_json().replace(str(os.getpid()), "9" * 40).encode(),
}


@pytest.mark.parametrize("seconds_ago", [25, -1e6])
@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_file_that_nobody_renews_stops_no_driver(
    tmp_path: Path, kind: str, seconds_ago: float
) -> None:
    path = leave(tmp_path, HERE)
    path.write_bytes(DAMAGED[kind])
    renew(path, seconds_ago)
    with Store(tmp_path).held("rgr run mine"):
        assert "a.json" not in drivers(tmp_path)


def test_a_damaged_file_is_waited_for_until_its_driver_would_have_renewed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def sleep(seconds: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 2:
            leave(tmp_path, replace(HERE, holds=True))

    monkeypatch.setattr(lock_module.time, "sleep", sleep)
    leave(tmp_path, HERE).write_text("torn")
    with pytest.raises(StoreError, match="rgr run first writes it"):
        Store(tmp_path).held("rgr run mine").__enter__()
    monkeypatch.undo()
    monkeypatch.setattr(lock_module, "RENEW_EVERY", 0.01)
    leave(tmp_path, HERE).write_text("torn")
    with Store(tmp_path).held("rgr run mine"):
        assert "a.json" not in drivers(tmp_path)


def test_what_is_no_file_stops_no_driver(tmp_path: Path) -> None:
    (tmp_path / "drivers/folder.json").mkdir(parents=True)
    os.mkfifo(tmp_path / "drivers/pipe.json")
    (tmp_path / "drivers/device.json").symlink_to("/dev/zero")
    (tmp_path / "drivers/nowhere.json").symlink_to("nowhere")
    before = tree(tmp_path)
    with Store(tmp_path).held("rgr run mine"):
        assert len(drivers(tmp_path)) == 5
    assert tree(tmp_path) == before


GONE = (
    r"this command has lost the store, as .*drivers/\w+\.json is gone: the store was deleted or "
    "moved, or another driver took it over, since this one had been silent for too long"
)


def test_a_driver_that_holds_its_store_no_longer_stores_nothing_more_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_module, "RENEW_EVERY", 0.01)
    store = Store(tmp_path)
    with store.held("rgr run mine"):
        store.append([run_row(seed=0)])
        (name,) = drivers(tmp_path)
        with pytest.raises(StoreError) as caught:
            remove_and_append(store, name)
        with pytest.raises(StoreError, match="is gone"):
            store.write_text("studies/s/tuning.journal", "of another driver by now")
    assert re.fullmatch(f"--store {tmp_path}: {GONE}; run it again", str(caught.value))
    assert 0 in set(Store(tmp_path).runs()["seed"])


def remove_and_append(store: Store, name: str) -> None:
    for _ in range(500):  # a renewal on its way may bring the file back
        store.remove(f"drivers/{name}")
        store.append([run_row(seed=1)])


def test_of_six_processes_on_a_new_store_one_holds_it_and_the_others_end(tmp_path: Path) -> None:
    root = tmp_path / "new/results"
    command = [sys.executable, "-c", HOLD, str(root)]
    six = [subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True) for _ in range(6)]
    with ThreadPoolExecutor(6) as waiting:
        ends = {waiting.submit(process.wait): process for process in six}
        ended = [ends[end] for end in islice(as_completed(ends), 5)]
        (holds,) = set(six) - set(ended)
        assert len(drivers(root)) == 1
        assert holds.communicate("") == ("held\n", "")
    for process in ended:
        out, err = process.communicate()
        assert out == ""
        named = re.search(r"rgr run other writes it \(process (\d+) on ", err.splitlines()[-1])
        assert named, err
        assert int(named[1]) in {other.pid for other in six} - {process.pid}
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
