"""``deploy/slurm.sbatch`` on one node, by what stands in for Slurm's own two commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rgr_dist.store.store import Store
from tests.small_study import write_study

SCRIPT = Path(__file__).parents[2] / "deploy/slurm.sbatch"
COMMANDS = {
    "scontrol": "echo 127.0.0.1",
    "srun": 'while [ "${1#--}" != "$1" ]; do shift; done; exec "$@"',
}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("unshare") is None, reason="Ray's end ends every Ray it can see")
def test_a_job_of_one_node_trains_a_study_and_ends_with_its_ray(tmp_path: Path) -> None:
    write_study(tmp_path, cells=[{"m": 16, "d_model": 8}], search={"heads": [1], "seeds": 1})
    for name, text in COMMANDS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "scratch").mkdir()
    done = subprocess.run(
        ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc", "bash", SCRIPT,
         "small.yaml", "--store", "results"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PYTHONPATH": str(SCRIPT.parents[1]),
            "RGR_VENV": sys.prefix,
            "RAY_TMPDIR": "/tmp/ray-slurm",
            "SLURM_JOB_NODELIST": "here", "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_ID": "4711",
            "SLURM_CPUS_PER_TASK": "1",
        },
        capture_output=True,
        text=True,
        timeout=280,
    )  # fmt: skip
    if "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(Store(tmp_path / "results").runs()["stop_reason"]) <= {"converged", "max_steps"}
