"""Schedules of the learning rate: their values, and every engine against the reference."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.engines.reference import make_schedule
from rgr_dist.engines.schedule import learning_rates
from rgr_dist.study.training import Training


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


@pytest.mark.parametrize(
    ("name", "looks_ahead"), [("warmup", False), ("constant", False), ("cosine", True)]
)
def test_only_the_cosine_looks_ahead_to_the_limit(name: str, looks_ahead: bool) -> None:
    limits = [Training(schedule=name, max_steps=limit) for limit in (3_000, 9_000)]
    assert [training.path_depends_on_limit for training in limits] == [looks_ahead] * 2
    assert (rates(limits[0], 0, 3_000) != rates(limits[1], 0, 3_000)) == looks_ahead
