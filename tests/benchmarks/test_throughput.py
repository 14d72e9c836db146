"""The throughput benchmark runs, and its peers train what the reference trains."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from rgr_dist.engines.reference.engine import ReferenceEngine
from rgr_dist.study.cell import Cell, Run

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RUNS = [Run(cell=Cell(m=64, d_model=16), h=4, d_k=5, seed=seed) for seed in range(2)]


@pytest.mark.slow  # compiles: half a minute
def test_it_prints_a_row_for_each_engine_as_json_alone() -> None:
    options = ["--shapes", "1", "--rounds", "1", "--seconds", "0.01", "--format", "json"]
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "throughput.py"), *options],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = json.loads(done.stdout)["rows"]
    ours = {("reference", 1), ("fused", 1), ("lanes", 10), ("lanes", 40)}
    assert ours <= {(row["engine"], row["lanes"]) for row in rows}
    assert all(row["steps_per_second"] > 0 and row["vs_reference"] > 0 for row in rows)


PEER = """
import sys
import numpy as np
from tests.benchmarks.test_throughput import RUNS
from throughput import PEERS

lanes = PEERS[sys.argv[1]](RUNS)
lanes.advance(100)
np.save(sys.argv[2], [lanes.weights(lane) for lane in range(len(RUNS))])
"""


@pytest.mark.slow  # compiles
@pytest.mark.parametrize("peer", ["compiled", "jax"])
def test_a_peer_trains_what_the_reference_trains(peer: str, tmp_path: Path) -> None:
    if peer == "jax":
        if importlib.util.find_spec("jax") is None:
            pytest.skip("JAX is not installed")
    elif not shutil.which("g++"):
        pytest.skip("torch.compile needs a C++ compiler")
    paths = os.pathsep.join(map(str, (BENCHMARKS, BENCHMARKS.parent)))
    subprocess.run(
        [sys.executable, "-c", PEER, peer, str(tmp_path / "weights.npy")],
        env={**os.environ, "PYTHONPATH": paths},
        check=True,
    )
    ours = np.load(tmp_path / "weights.npy")
    for lane, theirs in enumerate(ReferenceEngine(torch.float32).weights_after(RUNS, 100)):
        both = np.concatenate([theirs["W_Q"], theirs["W_K"]], axis=1)
        np.testing.assert_allclose(ours[lane], both, rtol=1e-4, atol=1e-6)
