"""The step as a CUDA graph: on a GPU, and with a stand-in that records what a graph would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rgr_dist.engines.lanes import state as lanes_state
from rgr_dist.engines.lanes import transformer
from rgr_dist.engines.lanes.capture import Repeated
from rgr_dist.engines.lanes.engine import LanesEngine
from rgr_dist.engines.lanes.state import Lanes
from rgr_dist.engines.lanes.transformer import BATCHES, TransformerLanes
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from tests.engines.lanes.test_transformer import QUICK, SHAPES, WIDE, same
from tests.engines.lanes.test_transformer import runs_of as block_runs
from tests.engines.recorded_graphs import Recorded
from tests.engines.shapes import assert_close

CPU = torch.device("cpu")
CELL = Cell(m=23, d_model=17, context={"length": 5}, training={"max_steps": 100, "check_every": 50})
RUNS = [Run(cell=CELL, h=3, d_k=7, seed=seed) for seed in range(4)]


def train(lanes: Lanes) -> torch.Tensor:
    """Several blocks, a compaction, and more steps."""
    lanes.advance(lanes_state.BLOCK + 7)
    lanes.advance(3)
    lanes.keep([0, 2])
    lanes.advance(lanes_state.BLOCK + 1)
    return torch.cat([p.flatten() for p in lanes.parameters])


REGULAR = {"graph": {"family": "regular", "degree": 3}}
OTHERS = [{}, REGULAR, {"model": "softmax"}, {"model": "softmax"} | REGULAR, {"model": "value"}]
OTHERS += [{"training": {"max_steps": 400, "schedule": "cosine"}}]


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_a_recorded_step_is_the_step(request: pytest.FixtureRequest, other: dict[str, Any]) -> None:
    cell = Cell.model_validate(CELL.model_dump() | other)
    runs = [run.model_copy(update={"cell": cell}) for run in RUNS]
    expected = train(Lanes(runs, CPU, torch.float32))
    request.getfixturevalue("graphs")
    assert torch.equal(train(Lanes(runs, CPU, torch.float32)), expected)
    assert Recorded.made == 2, "one before the compaction and one after it"


@pytest.mark.usefixtures("graphs")
def test_a_single_step_is_not_recorded() -> None:
    lanes = Lanes(RUNS, CPU, torch.float32)
    lanes.advance(1)
    assert Recorded.made == 0
    lanes.advance(1)
    assert Recorded.made == 1


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_gpu_gives_the_processors_numbers(dtype: torch.dtype) -> None:
    relative = 1e-4 if dtype == torch.float32 else 1e-10
    here, there = (Lanes(RUNS, torch.device(name), dtype) for name in ("cpu", "cuda"))
    torch.testing.assert_close(train(there).cpu(), train(here), rtol=relative, atol=relative)
    assert there.repeated.graph is not None


@pytest.mark.gpu
def test_lanes_scored_together_on_a_gpu_have_the_processors_scores() -> None:
    outcomes = [LanesEngine(device, torch.float64).train(RUNS) for device in ("cpu", "cuda")]
    for here, there in zip(*outcomes, strict=True):
        assert (here.steps, here.stop_reason) == (there.steps, there.stop_reason)
        np.testing.assert_allclose(
            [there.score, there.val_score, there.tau], [here.score, here.val_score, here.tau], 1e-3
        )


def test_a_recorded_step_of_a_transformer_is_the_step(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = block_runs(SHAPES["the paper's heads"], (0, 1))
    expected = TransformerLanes().weights_after(runs, BATCHES + 7)
    request.getfixturevalue("graphs")
    on_gpu = torch.device("cuda")
    monkeypatch.setattr(transformer, "Repeated", lambda _: Repeated(on_gpu))
    replayed = TransformerLanes().weights_after(runs, BATCHES + 7)
    assert Recorded.made == 1
    assert all(same(one, other) for one, other in zip(replayed, expected, strict=True))


@pytest.mark.gpu
def test_a_gpu_gives_the_processors_numbers_of_a_transformer() -> None:
    runs = block_runs(SHAPES["the paper's heads"], (0, 1))
    here, there = (
        TransformerLanes(device, torch.float64, mixed=False).weights_after(runs, BATCHES + 7)
        for device in ("cpu", "cuda")
    )
    for one, other in zip(here, there, strict=True):
        assert_close(one, other, 1e-8)


@pytest.mark.gpu
def test_a_gpu_learns_the_task_in_mixed_precision() -> None:
    (run,) = block_runs(WIDE, (0,), **QUICK | {"max_steps": 600})
    engine = TransformerLanes("cuda")
    assert engine.mixed
    assert engine.train([run])[0].score > 0.9
