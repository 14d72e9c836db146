"""Anybody's Tune trainable: its threshold against trying each value, on a Ray of its own."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray import tune

from search.protocol import ProbeResult
from search.tune.find_threshold import find_threshold
from search.tune.score_file import ScoreFile

THRESHOLD = 23


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Iterator[None]:
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    options: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False}
    ray.init(address="local", num_cpus=2, logging_level="error", **options)
    yield
    ray.shutdown()


def accuracy(width: int, seed: int) -> float:
    return min(1.0, 0.9 + (width - THRESHOLD) / 100 + seed / 1000)


def train(config: dict[str, Any]) -> None:
    """Accuracy grows over three epochs, and with the width."""
    for epoch in (1, 2, 3):
        tune.report({"accuracy": accuracy(config["width"], config["seed"]) * epoch / 3})


class Loss(tune.Trainable):
    """A class trainable whose loss shrinks with the width."""

    def setup(self, config: dict[str, Any]) -> None:
        self.loss = 1 - accuracy(config["width"], config["seed"])

    def step(self) -> dict[str, Any]:
        return {"loss": self.loss, "done": True}


def test_the_smallest_passing_value_with_its_certificate_and_resume(tmp_path: Path) -> None:
    store = tmp_path / "scores.jsonl"
    search = {"axis": "width", "metric": "accuracy", "target": 0.901, "store": store}
    found = find_threshold(train, values=range(1, 65), bounds=(0, 1), **search)
    assert (found.status, found.value) == ("found", THRESHOLD)
    assert found.passed == ProbeResult(THRESHOLD, pytest.approx(0.901), 3)
    assert found.failed == ProbeResult(THRESHOLD - 1, pytest.approx(0.891), 3)
    assert found.because == f"passes at width = {THRESHOLD}, fails at {THRESHOLD - 1}"
    assert not any("d_k" in decision.reason for decision in found.decisions)
    written = store.read_text()
    assert len(written.splitlines()) < 1 + 3 * 10
    again = find_threshold(train, values=range(1, 65), bounds=(0, 1), **search)
    assert again == found
    assert store.read_text() == written
    with pytest.raises(ValueError, match=r"holds scores of .*; give another file"):
        find_threshold(Loss, values=range(1, 65), bounds=(0, 1), **search)
    store.write_text(written[: len(written) // 2])  # as a crash might leave it
    mended = find_threshold(train, values=range(1, 65), bounds=(0, 1), **search)
    assert mended == found


def test_a_class_trainable_whose_loss_is_to_be_small_on_an_uneven_axis() -> None:
    found = find_threshold(Loss, "width", [8, 22, 24, 32], "loss", 0.1, mode="min", seeds=1)
    assert (found.value, found.failed.value) == (24, 22)


@pytest.mark.parametrize("fault", ["raises", "nan", "silent"])
def test_trials_that_give_no_score_leave_the_search_open(fault: str) -> None:
    def broken(config: dict[str, Any]) -> None:
        if fault == "raises":
            raise RuntimeError("no GPU")
        if fault == "nan":
            tune.report({"accuracy": float("nan")})

    found = find_threshold(broken, "width", range(1, 5), "accuracy", 0.9, seeds=1, slots=1)
    assert (found.status, found.value) == ("open", None)


def test_a_metric_outside_its_bounds_ends_the_search_and_says_so() -> None:
    with pytest.raises(ValueError, match=r"score 1\.0: not in 0…0\.5"):
        find_threshold(train, "width", [60], "accuracy", 0.4, bounds=(0, 0.5), seeds=1)


@pytest.mark.parametrize("values", [[], [0, 1], [3, 2], [2, 2]])
def test_values_must_increase(values: list[int]) -> None:
    with pytest.raises(ValueError, match="values: give positive integers"):
        find_threshold(train, "width", values, "accuracy", 0.9)


def test_scores_of_another_search_are_refused(tmp_path: Path) -> None:
    ScoreFile(tmp_path / "scores", {"axis": "depth"}).add(1, 0, 0.5)
    with pytest.raises(ValueError, match=r"holds scores of .*depth"):
        find_threshold(train, "width", [1], "accuracy", 0.9, store=tmp_path / "scores")
