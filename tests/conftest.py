"""Shared by all tests: one torch thread, hypothesis repeatable, a finished study, a running Ray."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
from collections.abc import Generator, Iterator
from contextlib import chdir
from pathlib import Path

import pyarrow as pa
import pytest
from filelock import FileLock
from hypothesis import settings

from rgr_dist.cli import call
from rgr_dist.store.store import Store
from tests.small_study import Refused, Rgr, write_study

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")

LONGEST = (
    "cli/test_faults.py",
    "engines/fused/test_training.py",
    "engines/fused/test_evaluation.py",
    "analysis/test_page_in_browser.py",
    "engines/lanes/test_transformer.py",
    "search/test_ray_threshold.py",
    "engines/test_graphs.py",
    "docs/test_blocks.py",
    "cli/test_facts.py",
    "search/test_ray_searcher.py",
    "engines/test_agreement.py",
    "tuning/test_tune_command.py",
    "engines/lanes/test_lanes.py",
    "running/test_graph_studies.py",
    "search/test_retests_and_every_arm.py",
    "test_kernel_cache.py",
)
"""Files that take longest. The first runs the small study on Ray; the second needs no study."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files, so that no process works on one when the others have ended.

    One process runs all tests that need Ray, so that one Ray is started; or a page made up.
    """
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    assert all(path.is_file() for path in places)
    items.sort(key=lambda item: places.get(item.path, len(places)))
    for item in items:
        needs = getattr(item, "fixturenames", ())
        groups = (name.strip("_") for name in ("_ray", "made") if name in needs)
        item.add_marker(pytest.mark.xdist_group(next(groups, item.path.stem)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let the collector pass over what all tests have imported; else that takes a tenth of them.

    It rests while they are imported, which then takes a fifth less.
    """
    gc.disable()
    done = yield
    gc.enable()
    gc.set_threshold(10_000)  # of 700, it looks at all that lives eight times as often
    gc.collect()
    gc.freeze()
    return done


os.environ["OMP_NUM_THREADS"] = "1"  # torch's small products gain nothing from two threads


def in_three_parts(store: Store) -> None:
    """Merge the parts of a store into three: every look at it reads each of them."""
    parts = store.parts()
    tables = list(parts.values())
    for third in range(3):
        store.write_part(pa.concat_tables(tables[third::3]))
    for path in parts:
        store.remove(path)


@pytest.fixture(scope="session")
def _small_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the small study run to its end in ``results/``, once for all processes."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "small-run"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            request.getfixturevalue("_ray")
            draft = base / "draft"
            draft.mkdir()
            write_study(draft)
            with chdir(draft):
                assert call(["run", "small.yaml", "--cpus", "2"]) == 0
                in_three_parts(Store("results"))
                assert call(["run", "small.yaml"]) == 0  # a report is of its store's parts
            draft.rename(folder)
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
