"""The transformer's step as a CUDA graph: on a GPU, and with a stand-in for one."""

from __future__ import annotations

import pytest
import torch

from rgr_dist.engines.lanes import transformer_state
from rgr_dist.engines.lanes.capture import Repeated
from rgr_dist.engines.lanes.transformer import TransformerLanes
from rgr_dist.engines.lanes.transformer_state import BATCHES
from tests.engines.lanes.test_transformer import (
    QUICK,
    SHAPES,
    WIDE,
    assert_close,
    runs_of,
    same,
)
from tests.engines.recorded_graphs import Recorded


def test_a_recorded_step_is_the_step(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = runs_of(SHAPES["the paper's heads"], (0, 1))
    expected = TransformerLanes().weights_after(runs, BATCHES + 7)
    request.getfixturevalue("graphs")
    on_gpu = torch.device("cuda")
    monkeypatch.setattr(transformer_state, "Repeated", lambda _: Repeated(on_gpu))
    replayed = TransformerLanes().weights_after(runs, BATCHES + 7)
    assert Recorded.made == 1
    assert all(same(one, other) for one, other in zip(replayed, expected, strict=True))


@pytest.mark.gpu
def test_a_gpu_gives_the_processors_numbers() -> None:
    runs = runs_of(SHAPES["the paper's heads"], (0, 1))
    here, there = (
        TransformerLanes(device, torch.float64, mixed=False).weights_after(runs, BATCHES + 7)
        for device in ("cpu", "cuda")
    )
    for one, other in zip(here, there, strict=True):
        assert_close(one, other, 1e-8)


@pytest.mark.gpu
def test_a_gpu_learns_the_task_in_mixed_precision() -> None:
    (run,) = runs_of(WIDE, (0,), **QUICK | {"max_steps": 600})
    engine = TransformerLanes("cuda")
    assert engine.mixed
    assert engine.train([run])[0].score > 0.9
