"""Compiled code on disk: shared by processes, never stale, not bound to the installation."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from rgr_dist.problem import kernel_cache
from rgr_dist.problem.kernel_cache import PACKAGE, SOURCES

CONTEXTS = """
import numpy as np
from rgr_dist.problem.contexts import draw_contexts
from rgr_dist.problem.graphs import Neighbours
from rgr_dist.problem.streams import Stream
cycle = Neighbours(np.arange(21, dtype=np.int32), np.roll(np.arange(20, dtype=np.int32), -1))
print(draw_contexts(Stream(1, 2), 0, 3, cycle, 5, 0.5).tolist())
"""
WEIGHTS = """
from rgr_dist.engines.fused.engine import FusedEngine
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
run = Run(cell=Cell(m=32, d_model=8), h=2, d_k=2, seed=0)
print(FusedEngine().weights_after([run], 20)[0]["W_Q"].tobytes().hex())
"""

AS_ANY_USER = """
import ctypes, os, sys
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
if os.geteuid() == 0 and ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0):
    sys.exit("root cannot give up its right to write to what is read-only")
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Starts Python anew without root's right to write to what is read-only."""
takes_rights = pytest.mark.skipif(
    os.geteuid() == 0 and sys.platform != "linux", reason="only Linux can take rights from root"
)


def start(script: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if name != "XDG_CACHE_HOME"}
    kept.pop("NUMBA_CACHE_DIR", "none")
    return subprocess.Popen(
        [sys.executable, "-c", AS_ANY_USER, "-W", "error", "-c", script],
        cwd=folder,
        env={**kept, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output_of(process: subprocess.Popen[str]) -> str:
    output, error = process.communicate(timeout=240)
    assert process.returncode == 0, error
    return output


def copy_packages(to: Path) -> Path:
    """Copy the packages to a folder, for processes that start in it, and return ours."""
    ignored = shutil.ignore_patterns("__pycache__", "results")
    shutil.copytree(PACKAGE, to / "rgr_dist", ignore=ignored)
    return to / "rgr_dist"


@pytest.mark.slow  # digests of edited files are compared each time
def test_an_edited_kernel_changes_the_code_that_inlines_it(tmp_path: Path) -> None:
    streams = copy_packages(tmp_path) / "problem" / "streams.py"
    first = output_of(start(CONTEXTS, tmp_path))
    assert list(tmp_path.rglob("contexts.*.nbc"))
    source = streams.read_text()
    streams.write_text(source.replace("range(10)", "range(9)"))
    assert streams.read_text() != source
    assert output_of(start(CONTEXTS, tmp_path)) != first


KERNELS = [
    path.relative_to(PACKAGE)
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.name != "kernel_cache.py"
    if any(word in path.read_text() for word in ("import numba", "from numba", "cached_kernel"))
]


def test_the_digest_is_of_all_files_with_kernels_and_of_what_they_import() -> None:
    covered = {path for pattern in SOURCES for path in PACKAGE.glob(pattern)}
    assert {PACKAGE / path for path in KERNELS} <= covered
    rooms = {f"rgr_dist.{pattern.split('/')[0]}" for pattern in SOURCES}
    imports = grimp.build_graph("rgr_dist")
    for path in KERNELS:
        module = ".".join(("rgr_dist", *path.with_suffix("").parts))
        for name in imports.find_modules_directly_imported_by(module):
            if any(name.startswith(room) for room in rooms - {"rgr_dist.problem"}):
                file = PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".py")
                assert file in covered or file.stem in ("api", "checks"), file


def test_an_edit_of_a_kernel_changes_the_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = copy_packages(tmp_path)
    monkeypatch.setattr(kernel_cache, "PACKAGE", package)

    def digest_after(edited: str) -> str:
        (package / edited).write_text((package / edited).read_text() + "\n")
        return kernel_cache.kernel_digest.__wrapped__()

    before = kernel_cache.kernel_digest.__wrapped__()
    assert digest_after("study/cell.py") == before
    assert digest_after("engines/fused/heads.py") != before


FOLDER = """
import numba
from rgr_dist.problem.kernel_cache import cache_folder
import rgr_dist.problem.streams
print(cache_folder("0"), numba.config.CACHE_DIR)
"""


def test_a_given_cache_folder_is_used_and_left_as_it_was_given(tmp_path: Path) -> None:
    folder, given = output_of(start(FOLDER, tmp_path, NUMBA_CACHE_DIR=str(tmp_path))).split()
    assert Path(folder).parent == tmp_path
    assert given == str(tmp_path)


@takes_rights
def test_what_cannot_be_written_is_passed_over(tmp_path: Path) -> None:
    site, home, temporary = (tmp_path / name for name in ("site", "home", "temporary"))
    for folder in (site, home, temporary):
        folder.mkdir()
    copy_packages(site)
    folders = [site, *(path for path in site.rglob("*") if path.is_dir())]
    where = {"PYTHONPATH": str(site), "HOME": str(home), "TMPDIR": str(temporary)}
    try:
        for folder in folders:
            folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
        assert home in Path(output_of(start(FOLDER, tmp_path, **where)).split()[0]).parents
        shutil.rmtree(home / ".cache")
        home.chmod(stat.S_IRUSR | stat.S_IXUSR)
        assert temporary in Path(output_of(start(FOLDER, tmp_path, **where)).split()[0]).parents
        assert not list(site.rglob("*.nbc"))
    finally:
        for folder in (*folders, home):
            folder.chmod(stat.S_IRWXU)


@pytest.mark.slow  # compiles twice at once: half a minute on two cores
def test_processes_that_compile_at_once_agree(tmp_path: Path) -> None:
    """Both find an empty cache, compile, and write it; a third uses what they wrote."""
    workers = [start(WEIGHTS, tmp_path, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    outputs = {output_of(worker) for worker in workers}
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("step.train_steps*.nbc")}
    assert written
    outputs.add(output_of(start(WEIGHTS, tmp_path, NUMBA_CACHE_DIR=str(tmp_path))))
    assert len(outputs) == 1
    assert {path: path.stat().st_mtime_ns for path in written} == written
