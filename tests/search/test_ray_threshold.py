"""Anybody's Tune trainable: its threshold against trying each value, on a real Ray."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import TestCase

import pytest
from ray import cloudpickle, tune

from rgr_dist.search.protocol import ProbeResult
from rgr_dist.search.tune.find_threshold import find_threshold, find_thresholds

THRESHOLD = 23


@pytest.fixture(scope="module", autouse=True)
def _functions_are_sent(_ray: None) -> Iterator[None]:
    """Ray sends the functions of this file to its workers, which do not import it."""
    this = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(this)
    yield
    cloudpickle.unregister_pickle_by_value(this)


def accuracy(width: int, seed: int) -> float:
    return min(1.0, 0.9 + (width - THRESHOLD) / 100 + seed / 1000)


def train(config: dict[str, Any]) -> None:
    """Accuracy grows over two epochs, and with the width; the last report has the loss alone."""
    for epoch in (1, 2):
        tune.report({"accuracy": accuracy(config["width"], config["seed"]) * epoch / 2})
    tune.report({"loss": 0.0})


class Loss(tune.Trainable):
    """A class whose loss shrinks with the width, with a checkpoint; ends when it is told to."""

    def setup(self, config: dict[str, Any]) -> None:
        self.loss = 1 - accuracy(config["width"], config["seed"])

    def step(self) -> dict[str, Any]:
        return {"loss": self.loss + 1 / self.training_iteration if self.training_iteration else 9}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        (Path(checkpoint_dir) / "loss").write_text(f"{self.loss}")

    @classmethod
    def default_resource_request(cls, config: dict[str, Any]) -> tune.PlacementGroupFactory:
        return tune.PlacementGroupFactory([{"CPU": 2}])


class Together(tune.Callback):
    """Counts the trials that wait or run at once."""

    most = 0

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        self.most = max(self.most, sum(not trial.is_finished() for trial in trials))


def test_the_smallest_passing_value_with_its_certificate_and_resume(tmp_path: Path) -> None:
    store, together = tmp_path / "scores.jsonl", Together()
    search = {"axis": "width", "metric": "accuracy", "target": 0.901, "store": store}
    found = find_threshold(
        train, values=range(1, 65), bounds=(0, 1), callbacks=[together], **search
    )
    assert together.most == 2, "as many as Ray has room for"
    assert (found.status, found.value) == ("found", THRESHOLD)
    assert found.passed == ProbeResult(THRESHOLD, pytest.approx(0.901), 3)
    assert found.failed == ProbeResult(THRESHOLD - 1, pytest.approx(0.891), 3)
    assert found.because == f"passes at width = {THRESHOLD}, fails at {THRESHOLD - 1}"
    assert not any("d_k" in decision.reason for decision in found.decisions)
    written = store.read_text()
    assert len({decision.value for decision in found.decisions}) < 10, (
        "what was asked, guesses aside"
    )
    told = found.explain().splitlines()
    assert len(told) == len(found.decisions) + bool(found.ahead)
    at = next(line for line in told if line.startswith(f"width = {THRESHOLD - 1} ("))
    assert at.endswith("fail, mean 0.8910 < 0.901 over all 3 seeds")
    assert find_threshold(train, values=range(1, 65), bounds=(0, 1), **search) == found
    assert store.read_text() == written
    with pytest.raises(ValueError, match=r"holds scores of .*; give another file"):
        find_threshold(Loss, values=range(1, 65), bounds=(0, 1), **search)


def test_settings_with_parameters_and_resources_of_which_large_values_raise() -> None:
    def limited(config: dict[str, Any], offset: int) -> None:
        if config["width"] > 40:
            raise MemoryError(f"no room for {config['width']}")
        width = config["width"] + offset - config["depth"]
        tune.report({"eval": {"accuracy": accuracy(width, config["seed"])}})

    trainable = tune.with_resources(tune.with_parameters(limited, offset=3), {"cpu": 2})
    together = Together()
    with TestCase().assertLogs("rgr_dist") as told:
        found = find_thresholds(
            trainable,
            "width",
            [8, 20, 21, 50],
            "eval/accuracy",
            0.901,
            over={"depth": [1, 9]},
            cost=lambda value, setting: value * setting["depth"],
            keep_within=0.1,
            guess=50,
            on_error="fail",
            callbacks=[together],
        )
    assert (found.best.value, found.best.cost) == (THRESHOLD - 2, THRESHOLD - 2)
    assert found.at(depth=9).status == "pruned"
    assert together.most == 1, "each takes both CPUs"
    raised = [error for one in found for error in one.errors]
    assert raised
    assert all(error.value > 40 for error in raised)
    assert raised[0].message == f"MemoryError: no room for {raised[0].value}"
    assert "in limited" in raised[0].error
    assert f"width={raised[0].value}, seed 0: MemoryError: no room" in "".join(told.output)


def test_what_setup_raises_ends_the_search_and_is_told() -> None:
    class Broken(tune.Trainable):
        def setup(self, config: dict[str, Any]) -> None:
            raise RuntimeError("no GPU")

    found = find_threshold(Broken, "width", range(1, 5), "accuracy", 0.9, seeds=1, slots=1)
    assert (found.status, found.value) == ("open", None)
    assert found.because == "width = 3, seed 0: RuntimeError: no GPU"
    assert len(found.errors) == 1


def test_a_trial_that_fits_nowhere_is_refused_the_first_or_a_later_one() -> None:
    with pytest.raises(ValueError, match=r"^resources: a trial asks for 1 GPU, and Ray has 0; "):
        find_threshold(train, "width", [60], "accuracy", 0.4, resources={"gpu": 1})

    def asked(config: dict[str, Any]) -> tune.PlacementGroupFactory:
        return tune.PlacementGroupFactory([{"CPU": 1 if config["width"] < 40 else 3}])

    with pytest.raises(ValueError, match=r"^resources: a trial asks for 3 CPU, and Ray has 2; "):
        find_threshold(
            tune.with_resources(train, asked), "width", [10, 20, 60], "accuracy", 0.95, seeds=1
        )


# ----- As Tune users expect


class Completed(tune.Callback):
    """Counts the trials that complete."""

    count = 0

    def on_trial_complete(self, *args: Any, **info: Any) -> None:
        Completed.count += 1


def with_checkpoint(config: dict[str, Any]) -> None:
    """Whatever the seed; leaves what it trained."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "model").write_text(f"{config['width']} {config['random_state']}")
        tune.report(
            {"accuracy": accuracy(config["width"], 1)},
            checkpoint=tune.Checkpoint.from_directory(folder),
        )


def test_a_run_config_of_the_users_is_kept_and_so_are_the_checkpoints_of_the_threshold(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.warns(UserWarning, match=r"does the trainable use config\['random_state'\]\?"):
        found = find_threshold(
            with_checkpoint, "width", [10, 30], "accuracy", 0.9, seeds=2, seed_key="random_state",
            run_config=tune.RunConfig(name="mine", storage_path=str(tmp_path)),
            callbacks=[Completed()], keep="threshold",
        )  # fmt: skip
    assert (found.value, Completed.count) == (30, 4)
    models = {seed: Path(kept.path, "model") for seed, kept in found.checkpoints.items()}
    assert {seed: model.read_text() for seed, model in models.items()} == {0: "30 0", 1: "30 1"}
    assert set(tmp_path.rglob("model")) == set(models.values())
    assert len(list(tmp_path.rglob("result.json"))) == 4, "Tune's own loggers are on"
    lines = capfd.readouterr().err.splitlines()
    assert "width: passes at 30" in lines


class Patience:
    """Ends a trial at its second report, and remembers how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        self.asked += 1
        return bool(result["training_iteration"] >= 2)


def test_a_stop_that_changes_as_it_runs_leaves_the_store_usable(tmp_path: Path) -> None:
    store, ends = tmp_path / "scores", tune.RunConfig(stop=Patience(), storage_path=str(tmp_path))
    asked = {"metric": "accuracy", "target": 0.9, "seeds": 1, "store": store, "run_config": ends}
    first = find_threshold(train, "width", [THRESHOLD], **asked)
    assert ends.stop.asked > 0
    assert find_threshold(train, "width", [THRESHOLD], **asked) == first


def test_an_interrupt_says_how_to_go_on_with_a_class_whose_loss_is_to_be_small(
    tmp_path: Path,
) -> None:
    """Each trial takes both CPUs: one that the first search left would stop the second."""

    class Interrupts(tune.Callback):
        """Ctrl-C, once a trial has completed."""

        def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
            if any(trial.status == "TERMINATED" for trial in trials):
                raise KeyboardInterrupt

    store = tmp_path / "scores"
    search = {"axis": "width", "values": [22, 24], "metric": "loss", "target": 0.35, "mode": "min"}
    search |= {"seeds": 1, "stop": {"training_iteration": 5}, "store": store}
    with pytest.raises(KeyboardInterrupt, match=f"run it again to go on from {store}$"):
        find_threshold(Loss, **search, callbacks=[Interrupts()])
    known = store.read_text()
    found = find_threshold(Loss, **search)
    assert (found.value, found.failed.value) == (24, 22)
    assert store.read_text().startswith(known)
