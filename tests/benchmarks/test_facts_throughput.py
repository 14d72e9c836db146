"""The throughput benchmark of facts runs, and its peers train what the reference trains."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from rgr_dist.engines.reference.engine import ReferenceEngine
from rgr_dist.study.cell import Cell, Run
from rgr_dist.study.database import Function

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
DATABASE = Function(family="function", keys=20, queries=4, values=18)
CELL = Cell(model="facts", m=80, d_model=8, database=DATABASE, training={"schedule": "constant"})
RUNS = [Run(cell=CELL, h=2, d_k=3, d_vo=2, seed=seed) for seed in range(2)]

PEER = """
import sys
import numpy as np
from jax_facts_peer import JaxFacts
from tests.benchmarks.test_facts_throughput import RUNS

lanes = JaxFacts(RUNS, 50, factored=sys.argv[1] == "factored")
lanes.advance(100)
np.save(sys.argv[2], [lanes.weights(lane) for lane in range(len(RUNS))])
"""


@pytest.mark.slow  # half a minute
def test_it_prints_a_row_for_each_engine_as_json_alone() -> None:
    options = ["--shapes", "1", "--rounds", "1", "--seconds", "0.01", "--format", "json"]
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "facts_throughput.py"), *options],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = json.loads(done.stdout)["rows"]
    assert {("reference", 1), ("fused", 10)} <= {(row["engine"], row["lanes"]) for row in rows}
    assert all(row["steps_per_second"] > 0 and 0 < row["share_of_peak"] < 1 for row in rows)


@pytest.mark.slow  # compiles
@pytest.mark.parametrize("way", ["tokens", "factored"])
def test_the_jax_peer_trains_what_the_reference_trains(way: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    paths = os.pathsep.join(map(str, (BENCHMARKS, BENCHMARKS.parent)))
    subprocess.run(
        [sys.executable, "-c", PEER, way, str(tmp_path / "U.npy")],
        env={**os.environ, "PYTHONPATH": paths},
        check=True,
    )
    given = np.load(tmp_path / "U.npy")
    for weights, U in zip(
        ReferenceEngine(torch.float64).weights_after(RUNS, 100), given, strict=True
    ):
        assert np.abs(U - weights["U"]).max() <= 1e-4 * np.abs(weights["U"]).max()
