"""Compiled code on disk: shared by processes, never stale, not bound to the installation."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import rgr_dist
from rgr_dist.engines.fused import error_kernels as fused_error_kernels
from rgr_dist.engines.fused import kernels as fused_kernels

WORKER = """
from rgr_dist.engines.fused.engine import FusedEngine
from rgr_dist.study.study import Cell, Run
run = Run(cell=Cell(m=32, d_model=8), h=2, d_k=2, seed=0)
print(FusedEngine().weights_after([run], 20)[0].W_Q.tobytes().hex())
"""

AS_ANY_USER = """
import ctypes, os, sys
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
if os.geteuid() == 0 and ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0):
    sys.exit("root cannot give up its right to write to what is read-only")
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Starts Python anew without root's right to write to what is read-only."""


def start_worker(folder: Path, **environment: str) -> subprocess.Popen[str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
    }
    return subprocess.Popen(
        [sys.executable, "-c", AS_ANY_USER, "-W", "error", "-c", WORKER],
        cwd=folder,
        env={**inherited, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow  # compiles twice at once: half a minute on two cores
def test_processes_that_compile_at_once_agree(tmp_path: Path) -> None:
    """Both find an empty cache, compile, and write it; a third uses what they wrote."""
    workers = [start_worker(tmp_path, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    outputs = [worker.communicate(timeout=240) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], outputs
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("kernels*.nbc")}
    assert written
    third = start_worker(tmp_path, NUMBA_CACHE_DIR=str(tmp_path))
    output, error = third.communicate(timeout=240)
    assert third.returncode == 0, error
    assert {output, *(given for given, _ in outputs)} == {output}
    assert {path: path.stat().st_mtime_ns for path in written} == written


@pytest.mark.slow  # compiles once: a quarter of a minute
@pytest.mark.skipif(
    os.geteuid() == 0 and sys.platform != "linux", reason="only Linux can take rights from root"
)
def test_a_read_only_installation_caches_in_the_home_folder(tmp_path: Path) -> None:
    site, home = tmp_path / "site", tmp_path / "home"
    source = Path(rgr_dist.__file__).parent
    shutil.copytree(source, site / "rgr_dist", ignore=shutil.ignore_patterns("__pycache__"))
    folders = [site, *(path for path in site.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        outputs = []
        for _ in range(2):
            worker = start_worker(tmp_path, PYTHONPATH=str(site), HOME=str(home))
            output, error = worker.communicate(timeout=240)
            assert worker.returncode == 0, error
            outputs.append(output)
        assert outputs[0] == outputs[1]
        assert list(home.rglob("kernels.train_steps*.nbc"))
        assert not list(site.rglob("*.nbc"))
    finally:
        for folder in folders:
            folder.chmod(stat.S_IRWXU)


def inlined_in(module: Path) -> set[Path]:
    """The files whose compiled code a module takes in, at first hand or at second."""
    names = re.findall(r"from rgr_dist\.engines\.fused\.(\w+) import", module.read_text())
    found = {module.parent / f"{name}.py" for name in names}
    return found.union(*(inlined_in(path) for path in found))


@pytest.mark.parametrize("kernels", [fused_kernels, fused_error_kernels])
def test_a_kernels_file_changes_with_its_pieces(kernels: ModuleType) -> None:
    path = Path(kernels.__file__ or "")
    digest = hashlib.sha256()
    for piece in sorted(inlined_in(path)):
        digest.update(piece.read_bytes())
    now = digest.hexdigest()[:16]
    assert now == kernels.PIECES, f'set PIECES = "{now}" in {path.name}'


COMPILED_MEANWHILE = """
import gc
from numba.core.dispatcher import Dispatcher
from rgr_dist.engines.fused import engine as fused
from rgr_dist.study.families import Permutation, Regular
from rgr_dist.study.study import Cell, Run, Training

def compiled():
    kernels = [one for one in gc.get_objects() if isinstance(one, Dispatcher)]
    return {(one.py_func.__qualname__, str(given)) for one in kernels for given in one.signatures}

def watched(run):
    before = compiled()
    outcome = train(run)
    if run.cell.training.max_steps == 600:
        assert before
        print(compiled() - before)
    return outcome

train, fused._train_lane = fused._train_lane, watched
for model, graph in ("max", Permutation()), ("max", Regular(degree=2)), ("softmax", Permutation()):
    for m in (16, 32, 600):
        cell = Cell(model=model, m=m, d_model=8, graph=graph, training=Training(max_steps=600))
        fused.train_lane(Run(cell=cell, h=2, d_k=2, seed=0))
for m in (16, 150):
    cell = Cell(model="value", m=m, d_model=8, training=Training(max_steps=600))
    fused.train_lane(Run(cell=cell, h=2, d_k=2, seed=0))
"""


def test_nothing_is_compiled_while_a_runs_seconds_are_counted() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMPILED_MEANWHILE], capture_output=True, text=True, timeout=240
    )
    assert done.stdout.splitlines() == ["set()"] * 11, done.stderr
