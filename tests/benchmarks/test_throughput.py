"""The throughput benchmark runs, and its peers train what the reference trains."""

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

from rgr_dist.engines.reference import ReferenceEngine
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run

pytestmark = pytest.mark.slow  # compiles: half a minute

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LAYERS = {
    model: [Run(cell=Cell(model=model, m=64, d_model=16), h=4, d_k=5, seed=s) for s in range(2)]
    for model in ("max", "softmax", "value")
}
BLOCK = Cell(
    model="transformer", m=64, d_model=16, context={"length": 4},
    training={"batch_size": 16, "weight_decay": 0.1},
)  # fmt: skip
LAYERS["transformer"] = [Run(cell=BLOCK, h=4, d_k=5, seed=seed) for seed in range(2)]


def test_it_prints_a_row_for_each_engine_as_json_alone() -> None:
    options = ["--shapes", "1", "--rounds", "1", "--seconds", "0.01", "--models", "max"]
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "throughput.py"), *options, "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = json.loads(done.stdout)["rows"]
    assert {"reference", "compiled", "fused"} <= {row["engine"] for row in rows}
    assert all(row["steps_per_second"] > 0 and row["vs_reference"] > 0 for row in rows)


PEER = """
import sys
import numpy as np
from tests.benchmarks.test_throughput import LAYERS
from throughput import make_jax

model, file = sys.argv[1:]
lanes = make_jax(LAYERS[model])
lanes.advance(100)
np.save(file, [lanes.weights(lane) for lane in range(2)])
"""


@pytest.mark.parametrize("model", LAYERS)
def test_a_peer_trains_what_the_reference_trains(model: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    paths = os.pathsep.join(map(str, (BENCHMARKS, BENCHMARKS.parent)))
    subprocess.run(
        [sys.executable, "-c", PEER, model, str(tmp_path / "weights.npy")],
        env={**os.environ, "PYTHONPATH": paths},
        check=True,
    )
    given = np.load(tmp_path / "weights.npy")
    reference = ReferenceEngine(torch.float64).weights_after(LAYERS[model], 100)
    for ours, theirs in zip(given, reference, strict=True):
        both = np.concatenate([theirs["W_Q"], theirs["W_K"]], axis=1)
        np.testing.assert_allclose(ours, both, rtol=1e-4, atol=1e-5)
