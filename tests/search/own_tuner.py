"""A Tuner as a user writes it, with a callback, a storage and checkpoints."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from ray import tune

from rgr_dist.search.tune.threshold import Threshold
from rgr_dist.search.tune.threshold_search import ThresholdSearch

VALUES, SEEDS, TARGET = range(1, 17), 2, 0.9
SEARCH: Any = None


def accuracy(width: int, seed: int) -> float:
    return 0.9 + (width - 6) / 100 + seed / 1000


def train(config: dict[str, Any]) -> None:
    """Four epochs, each with a checkpoint; goes on from the last."""
    for epoch in range(1, 5):
        score = accuracy(config["width"], config["seed"]) * epoch / 4
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "width").write_text(f"{config['width']}")
            tune.report({"accuracy": score}, checkpoint=tune.Checkpoint.from_directory(folder))


class Ended(tune.Callback):
    """Writes down each trial that completes; breaks after some, once."""

    def __init__(self, folder: Path, stop_after: int) -> None:
        self.folder, self.left = folder, stop_after

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        with (self.folder / "ended").open("a") as file:
            file.write(json.dumps(trial.config) + "\n")
        self.left -= 1

    def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
        if not self.left and not (self.folder / "was cut").exists():
            (self.folder / "was cut").touch()
            raise RuntimeError("power cut")


def tuner(
    folder: Path, stop_after: int = -1, scheduler: Any = None, restored_from: Path | None = None
) -> tune.Tuner:
    global SEARCH  # what a script has as a variable of its own
    SEARCH = ThresholdSearch("width", VALUES, TARGET, seeds=SEEDS, bounds=(0, 1))
    if restored_from is not None:
        SEARCH.restore_from_dir(str(restored_from))
    return tune.Tuner(
        train,
        param_space={"rate": 0.1},
        tune_config=tune.TuneConfig(
            search_alg=SEARCH, num_samples=-1, max_concurrent_trials=2, reuse_actors=True,
            scheduler=scheduler, metric="accuracy", mode="max",
        ),
        run_config=tune.RunConfig(
            name="mine", storage_path=str(folder), verbose=0,
            callbacks=[Ended(folder, stop_after)],
            failure_config=tune.FailureConfig(max_failures=1),
        ),
    )  # fmt: skip


def go_on(folder: Path) -> Threshold:
    tune.Tuner.restore(str(folder / "mine"), trainable=train).fit()
    search = ThresholdSearch("width", VALUES, TARGET, seeds=SEEDS, bounds=(0, 1))
    search.restore_from_dir(str(folder / "mine"))
    return search.threshold()
