"""Two drivers and one store: one writes, the other is told who does."""

from __future__ import annotations

import json
import os
import random
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from rgr_dist.cli import call
from rgr_dist.store import lease as lease_module
from rgr_dist.store.lease import SILENT_AFTER, TRIES, Driver, leased
from rgr_dist.store.owner import born
from rgr_dist.store.parts import StoreError
from rgr_dist.store.storage import HALF_WRITTEN_FOR
from rgr_dist.store.store import Store
from tests.small_study import write_study
from tests.store.made_up_runs import run_row

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


def tree(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


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
            rf"rgr: --out results: rgr run other writes it \(process {first.pid} on \S+, since "
            r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\); wait for it, end it, or give another --out; "
            r"the next run takes it over once that process has ended\n",
            err,
        )
        assert call(["tune", "small.yaml", "--cell", "d_model=8", "--trials", "1"]) == 2
        assert call(["verify", "--repair"]) == 2
        assert tree(tmp_path) == before
        # Reading needs no lease.
        assert call(["status", "small.yaml"]) == call(["verify"]) == 0
        assert first.poll() is None
        first.communicate("")
    assert first.returncode == 0
    assert not (tmp_path / "results/drivers").exists()


def test_whoever_comes_second_is_told_at_once_and_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "new/results"
    (tmp_path / "new").mkdir()
    here = Driver.here("rgr run first")
    monkeypatch.setattr(lease_module.time, "sleep", lambda seconds: pytest.fail("it waits"))
    first = Store(root)
    with first.held("rgr run first"):
        with pytest.raises(StoreError) as caught, Store(root).held("rgr run second"):
            pass
        assert len(first.drivers()) == 1
    assert re.fullmatch(
        rf"--out {root}: rgr run first writes it \(process {os.getpid()} on {here.host}, since "
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\); "
        "wait for it, end it, or give another --out; "
        "the next run takes it over once that process has ended",
        str(caught.value),
    )
    assert tree(tmp_path) == ["new"]
    first.append([run_row()])
    assert tree(tmp_path / "new/results/runs") != []


def test_a_driver_says_where_and_since_when_it_runs() -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    here = Driver.here("rgr run x")
    since = datetime.strptime(here.since, "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=UTC)
    assert before <= since <= datetime.now(UTC)
    assert (here.does, here.host, here.process) == ("rgr run x", socket.gethostname(), os.getpid())
    assert here.born == born(os.getpid())
    assert not here.holds


class InMemory:
    """A folder of drivers that fails as often as it is told, each time in this way."""

    def __init__(self, error: Exception | None = None) -> None:
        self.files: dict[str, str] = {}
        self.error, self.fails, self.failed = error, 0, threading.Event()

    def _may_fail(self) -> None:
        if self.error is not None and self.fails:
            self.fails -= 1
            self.failed.set()
            raise self.error

    def write_driver(self, name: str, text: str) -> None:
        self._may_fail()
        self.files[name] = text

    def remove_driver(self, name: str) -> None:
        self._may_fail()
        self.files.pop(name, None)

    def drivers(self) -> dict[str, datetime | None]:
        self._may_fail()
        return dict.fromkeys(self.files)

    def read_driver(self, name: str) -> str | None:
        return self.files.get(name)


ERRORS = pytest.mark.parametrize("error", [OSError(), pa.ArrowInvalid(), StoreError("refused")])


@ERRORS
def test_a_holder_goes_on_when_storage_fails_for_a_while(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "RENEW_EVERY", 0.001)
    folder = InMemory(error)
    with leased(folder, "results", "rgr run x") as lease:
        (name,) = folder.files
        folder.fails = 1
        assert folder.failed.wait(60)
        folder.files[name] = "old"
        while folder.files[name] == "old":
            assert lease._thread.is_alive()
        assert json.loads(folder.files[name])["holds"] is True
        lease.check()
    assert folder.files == {}


@pytest.mark.parametrize("error", [OSError(), pa.ArrowInvalid()])
def test_a_store_is_given_up_in_silence_where_storage_fails(error: Exception) -> None:
    folder = InMemory(error)
    with leased(folder, "results", "rgr run x"):
        folder.fails = 1
    assert len(folder.files) == 1, "it is known by its process, or by silence"


@ERRORS
def test_who_cannot_list_the_drivers_takes_its_own_file_away(error: Exception) -> None:
    class Unlisted(InMemory):
        def drivers(self) -> dict[str, datetime | None]:
            raise error

    folder = Unlisted()
    with pytest.raises(type(error)), leased(folder, "results", "rgr run x"):
        pass
    assert folder.files == {}


def test_of_others_that_come_and_never_hold_one_is_named_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(lease_module.time, "sleep", slept.append)
    folder = InMemory()
    folder.write_driver("other.json", json.dumps(asdict(Driver.here("rgr run other"))))
    with (
        pytest.raises(StoreError, match=r"^--out results: rgr run other writes it \(process"),
        leased(folder, "results", "rgr run x"),
    ):
        pass
    assert list(folder.files) == ["other.json"]
    assert len(slept) == TRIES
    assert all(0.05 <= seconds <= 0.5 for seconds in slept)


@pytest.mark.parametrize("error", [FileNotFoundError("gone"), pa.ArrowInvalid("gone")])
def test_a_folder_that_another_driver_just_removed_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    store, write = Store(tmp_path), Store._write
    assert store.drivers() == {}
    fails = iter([True, False, True, True])

    def fail_at_times(self: Store, relative: str, data: bytes) -> None:
        if next(fails):
            raise error
        write(self, relative, data)

    monkeypatch.setattr(Store, "_write", fail_at_times)
    store.write_driver("a.json", "mine")
    assert (tmp_path / "drivers/a.json").read_text() == "mine"
    with pytest.raises(StoreError) as caught:
        store.write_driver("b.json", "mine")
    assert str(caught.value) == f"{tmp_path}: cannot store drivers/b.json: gone"


def test_what_killed_drivers_left_half_written_goes_and_what_is_being_written_stays(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    names = ["runs/.probe-1", "drivers/.a.json.1", "studies/s/.study.yaml.1"]
    kept = ["runs/.notes", "studies/s/.folder/file", "studies/s/study.yaml"]
    for name in (*names, *kept):
        store.write_text(name, "half")
    store.write_text("runs/.part-0.parquet.1", "half")

    def there() -> set[str]:
        with store.held("rgr run x"):
            return set(tree(tmp_path))

    assert there() >= {*names, *kept}
    assert "runs/.part-0.parquet.1" not in there(), "only drivers write parts"
    for age, stays in ((HALF_WRITTEN_FOR - 60, True), (HALF_WRITTEN_FOR + 60, False)):
        at = datetime.now(UTC).timestamp() - age
        for path in [*names, *kept, "studies/s/.folder"]:
            os.utime(tmp_path / path, (at, at))
        assert there() >= set(kept)
        assert {*names} & there() == ({*names} if stays else set())


def test_a_driver_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    half = tmp_path / "runs/.part-0-0.parquet.1234"
    with holder(tmp_path) as first:
        half.parent.mkdir()
        half.write_bytes(b"half")
        first.kill()
        first.wait()
        with Store(tmp_path).held("rgr run mine"):
            assert len(list((tmp_path / "drivers").iterdir())) == 1
            assert not half.exists(), "nobody will finish it"
    assert list((tmp_path / "drivers").iterdir()) == []


def test_a_process_that_was_given_the_number_of_a_dead_driver_holds_nothing(tmp_path: Path) -> None:
    mine = Driver.here("rgr run mine")
    assert not mine.has_died
    assert replace(mine, born="1").has_died
    store = Store(tmp_path)
    store.write_driver("a.json", json.dumps(asdict(replace(mine, born="1", holds=True))))
    with store.held("rgr run mine"):
        assert "a.json" not in store.drivers()


def leave(store: Store, driver: Driver, seconds_ago: float) -> None:
    """A file of a driver, last renewed some time ago."""
    store.write_driver("a.json", json.dumps(asdict(driver)))
    assert store.local_path is not None
    at = (datetime.now(UTC) - timedelta(seconds=seconds_ago)).timestamp()
    os.utime(store.local_path / "drivers/a.json", (at, at))


@pytest.mark.parametrize("text", [None, "no JSON", "[]", '{"does": "x"}'])
def test_a_driver_elsewhere_holds_the_store_while_it_gives_signs_of_life(
    tmp_path: Path, text: str | None
) -> None:
    store = Store(tmp_path)
    elsewhere = replace(Driver.here("rgr run far"), machine="other", host="node7", holds=True)
    leave(store, elsewhere, SILENT_AFTER - 20)
    if text is not None:
        (tmp_path / "drivers/a.json").write_text(text)
    with pytest.raises(StoreError) as caught, store.held("rgr run mine"):
        pass
    assert "if that has died, the next run takes it over 60 s later" in str(caught.value)
    if text is None:
        assert "rgr run far writes it (process" in str(caught.value)
        assert "on node7" in str(caught.value)
    assert list(store.drivers()) == ["a.json"]
    at = (datetime.now(UTC) - timedelta(seconds=SILENT_AFTER + 20)).timestamp()
    os.utime(tmp_path / "drivers/a.json", (at, at))
    with store.held("rgr run mine"):
        assert "a.json" not in store.drivers()


def test_a_driver_that_was_taken_over_stores_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "RENEW_EVERY", 0.01)
    store = Store(tmp_path)
    with store.held("rgr run mine"):
        store.append([run_row(seed=0)])
        (name,) = store.drivers()
        written = [store.drivers()[name]]
        while store.drivers()[name] == written[0]:
            pass  # until it is renewed
        store.remove_driver(name)
        with pytest.raises(StoreError) as caught:
            append_for_ever(store)
    assert str(caught.value) == (
        "another driver has taken the store over, since this one gave no sign of life for 60 s: "
        "asleep, or cut off from the store; run it again"
    )
    assert 0 in set(Store(tmp_path).runs()["seed"])


def append_for_ever(store: Store) -> None:
    while True:
        store.append([run_row(seed=1)])


def in_memory() -> Callable[[], Store]:
    """Stores at one place of an object storage in memory."""
    shared, _ = pafs.FileSystem.from_uri("mock://bucket/store")  # pyarrow's: safe with threads

    class Remote(Store):
        def __init__(self) -> None:
            super().__init__("mock://bucket/store")
            self._fs, self._path = shared, "bucket/store"

    return Remote


@pytest.mark.parametrize("place", ["disk", "object storage"])
def test_of_many_drivers_at_once_at_most_one_holds_the_store(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store = in_memory() if place == "object storage" else lambda: Store(tmp_path / "store")
    monkeypatch.setattr(lease_module.random, "uniform", lambda *ends: random.random() / 100)
    start, tried = threading.Barrier(4), threading.Barrier(4)
    entered: list[int] = []

    def drive() -> None:
        for turn in range(10):
            start.wait()
            try:
                with open_store().held("rgr run mine"):
                    entered.append(turn)
                    tried.wait()  # nobody leaves before all have tried
            except StoreError:
                tried.wait()
            except BaseException:  # so that the others do not wait for ever
                start.abort()
                tried.abort()
                raise

    threads = [threading.Thread(target=drive) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert entered == list(range(10)), "one of them holds it each time, and no other"
    assert open_store().drivers() == {}
