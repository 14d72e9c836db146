"""Shared by all tests: one torch thread, hypothesis repeatable, a finished study, a running Ray."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import settings

from rgr_dist.cli import call
from rgr_dist.store.store import Store
from tests.small_study import Refused, Rgr, write_study

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in a hook of its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file's tests run in one process; so do all that need Ray.

    And all of the engines, and all of analysis: two processes would compile the same kernels and
    make up the same studies side by side. These come first, since they take longest; Ray's workers
    then find the kernels compiled.
    """
    longest = [str(Path(__file__).parent / room) for room in ("engines", "analysis")] + ["ray"]
    places = {}
    for item in items:
        own = [room for room in longest if Path(room) in item.path.parents] or [str(item.path)]
        places[item] = "ray" if "_ray" in getattr(item, "fixturenames", ()) else own[0]
        item.add_marker(pytest.mark.xdist_group(places[item]))
    items.sort(key=lambda item: [*longest, places[item]].index(places[item]))


os.environ["OMP_NUM_THREADS"] = "1"  # torch's small products gain nothing from two threads


def in_three_parts(store: Store) -> None:
    """Merge the parts of a store into three: every look at it reads each of them."""
    parts = store.parts()
    runs = pa.concat_tables(parts.values())
    third = len(runs) // 3
    for start, size in ((0, third), (third, third), (2 * third, None)):
        store.write_part(runs.slice(start, size))
    for path in parts:
        store.remove(path)


@pytest.fixture(scope="session")
def _small_run(_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the small study run to its end in ``results/``."""
    folder = tmp_path_factory.mktemp("small-run")
    write_study(folder)
    with chdir(folder):
        assert call(["run", "small.yaml", "--cpus", "1"]) == 0
        in_three_parts(Store("results"))
        assert call(["run", "small.yaml"]) == 0  # a report is of its store's parts
    return folder


@pytest.fixture(scope="module")
def finished(_small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the folder with the small study run to its end."""
    folder = tmp_path_factory.mktemp("finished") / "here"
    shutil.copytree(_small_run, folder)
    return folder


@pytest.fixture(scope="session")
def _ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Ray of this process, for every test that needs one but not one of its own.

    Its processes have RGR_MARK of this process in their environment.
    """
    from rgr_dist.running.cluster import connect

    os.environ["RGR_MARK"] = str(tmp_path_factory.getbasetemp())
    with connect("local", 2):
        yield


@pytest.fixture
def rgr_here(
    _ray: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Rgr:
    """Runs ``rgr`` in this process, on its Ray."""

    def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(cwd)
        capsys.readouterr()
        status = call(list(map(str, arguments)))
        return subprocess.CompletedProcess(arguments, status, *capsys.readouterr())

    return run


@pytest.fixture
def refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Refused:
    """Checks, in an own folder, that ``rgr`` refuses arguments in one line and writes nothing."""
    monkeypatch.chdir(tmp_path)

    def check(said: str, *arguments: str) -> None:
        before = sorted(tmp_path.rglob("*"))
        status = call(arguments)
        shown = capsys.readouterr()
        assert status == 2
        assert shown.out == ""
        assert len(shown.err.splitlines()) == 1, shown.err
        assert said in shown.err
        assert sorted(tmp_path.rglob("*")) == before

    return check
