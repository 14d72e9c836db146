"""Schedules of the learning rate: their values, and every engine against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.engines.api import Engine
from rgr_dist.engines.fused.engine import FusedEngine
from rgr_dist.engines.lanes.engine import LanesEngine
from rgr_dist.engines.reference.engine import ReferenceEngine
from rgr_dist.engines.reference.trainer import make_schedule
from rgr_dist.engines.schedule import learning_rates
from rgr_dist.study.training import Training
from tests.engines.shapes import assert_close
from tests.engines.test_agreement import runs_of

SCHEDULES: list[dict[str, Any]] = [
    {"schedule": "warmup", "warmup_steps": 30},
    {"schedule": "warmup", "warmup_steps": 1},
    {"schedule": "cosine", "max_steps": 45},
]
ENGINES = [(LanesEngine(dtype=torch.float64), 1e-10), (FusedEngine(), 1e-4)]


def rates(training: Training, done: int, count: int) -> list[float]:
    return [float(rate) for rate in learning_rates(training, done, count)]


def test_the_rate_rises_to_its_full_value_at_the_last_step_of_the_warm_up() -> None:
    training = Training(learning_rate=0.5, schedule="warmup", warmup_steps=4, max_steps=9)
    assert rates(training, 0, 9) == [0.125, 0.25, 0.375, *[0.5] * 6]


def test_the_cosine_starts_at_the_full_rate_and_would_be_zero_after_the_last_step() -> None:
    training = Training(learning_rate=0.5, schedule="cosine", max_steps=6)
    eased = [1, (2 + 3**0.5) / 4, 3 / 4, 1 / 2, 1 / 4, (2 - 3**0.5) / 4, 0]
    assert rates(training, 0, 7) == pytest.approx([0.5 * share for share in eased], abs=1e-15)


@settings(max_examples=30)
@given(st.sampled_from(["constant", "cosine", "warmup"]), st.integers(1, 80), st.integers(1, 80))
def test_rates_are_those_of_torch_in_blocks_of_any_size(
    schedule: str, max_steps: int, cut: int
) -> None:
    warmup = {"warmup_steps": min(cut, max_steps)} if schedule == "warmup" else {}
    training = Training(schedule=schedule, max_steps=max_steps, learning_rate=0.003, **warmup)
    cut = min(cut, max_steps)
    blocks = rates(training, 0, cut) + rates(training, cut, max_steps - cut)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.003)
    scheduler, expected = make_schedule(optimizer, training), []
    for _ in range(max_steps):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
    assert blocks == pytest.approx(expected, rel=1e-9)
    assert all(0 < rate <= 0.003 for rate in blocks)


@pytest.mark.parametrize("model", ["max", "softmax", "value"])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda keys: "-".join(map(str, keys.values())))
@pytest.mark.parametrize(
    ("engine", "relative"), ENGINES, ids=lambda part: getattr(part, "name", "")
)
def test_every_engine_follows_the_reference(
    engine: Engine, relative: float, schedule: dict[str, Any], model: str
) -> None:
    runs = runs_of((23, 17, 5, 3, 7), (0, 4), model, **schedule)
    expected = ReferenceEngine(torch.float64).weights_after(runs, 40)
    for weights, wanted in zip(engine.weights_after(runs, 40), expected, strict=True):
        assert_close(weights, wanted, relative)


@pytest.mark.parametrize("engine", [LanesEngine(), FusedEngine()], ids=lambda engine: engine.name)
def test_a_lane_goes_its_way_whatever_blocks_and_neighbours(engine: Engine) -> None:
    """Across the blocks in which contexts are drawn: 128 in lanes, 1,024 in compiled training."""
    keys = {"schedule": "cosine", "max_steps": 1_500, "learning_rate": 0.003}
    runs = runs_of((16, 8, 5, 2, 3), (0, 1), **keys)
    together = engine.weights_after(runs, 1_100)
    for run, weights in zip(runs, together, strict=True):
        (alone,) = engine.weights_after([run], 1_100)
        np.testing.assert_array_equal(weights["W_Q"], alone["W_Q"])
    constant = runs_of((16, 8, 5, 2, 3), (0,), **keys | {"schedule": "constant"})
    (other,) = engine.weights_after(constant, 1_100)
    assert not np.array_equal(other["W_Q"], together[0]["W_Q"])


@pytest.mark.parametrize(
    ("name", "looks_ahead"), [("warmup", False), ("constant", False), ("cosine", True)]
)
def test_only_the_cosine_looks_ahead_to_the_limit(name: str, looks_ahead: bool) -> None:
    limits = [Training(schedule=name, max_steps=limit) for limit in (3_000, 9_000)]
    assert [training.path_depends_on_limit for training in limits] == [looks_ahead] * 2
    assert (rates(limits[0], 0, 3_000) != rates(limits[1], 0, 3_000)) == looks_ahead
