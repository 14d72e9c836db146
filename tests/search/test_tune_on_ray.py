"""Anybody's Tune trainable on a real Ray: its threshold against trying each value."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ray import cloudpickle, tune
from ray.tune.schedulers import ASHAScheduler

from rgr_dist.search.tune.find_threshold import find_threshold
from rgr_dist.search.tune.threshold_search import ThresholdSearch
from tests.docs.pages import ROOT, blocks
from tests.marks import slow_in_ci

THRESHOLD = 6
WIDTHS = range(1, 17)


def accuracy(width: int, seed: int) -> float:
    return 0.9 + (width - THRESHOLD) / 100 + seed / 1000


def train(config: dict[str, Any]) -> None:
    """Four epochs, each with a checkpoint; its accuracy grows."""
    for epoch in range(1, 5):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "width").write_text(f"{config['model']['width']} {config['seed']}")
            score = accuracy(config["model"]["width"], config["seed"]) * epoch / 4
            tune.report({"accuracy": score}, checkpoint=tune.Checkpoint.from_directory(folder))


class Loss(tune.Trainable):
    """A class whose loss shrinks with the width; it never ends by itself."""

    def setup(self, config: dict[str, Any]) -> None:
        self.loss = 1 - accuracy(config["width"], config["seed"])

    def step(self) -> dict[str, Any]:
        return {"loss": self.loss + (1 if self.training_iteration < 2 else 0)}


@pytest.fixture(scope="module")
def _sent(_ray: None) -> Iterator[None]:
    """Ray sends the functions of this file to its workers, which do not import it."""
    this = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(this)
    yield
    cloudpickle.unregister_pickle_by_value(this)


# ----- find_threshold


@slow_in_ci
@pytest.mark.usefixtures("_sent")
def test_a_nested_axis_with_the_users_run_config_checkpoints_and_store(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    most = []

    class Together(tune.Callback):
        """Counts the trials that wait or run at once."""

        def on_step_end(self, iteration: int, trials: list[Any], **info: Any) -> None:
            most.append(sum(not trial.is_finished() for trial in trials))

    asked = {"metric": "accuracy", "target": 0.9, "bounds": (0, 1), "seeds": 2}
    asked |= {"config": {"model": {"depth": 1}}, "store": tmp_path / "scores"}
    run = tune.RunConfig(name="mine", storage_path=str(tmp_path), callbacks=[Together()])
    found = find_threshold(train, "model/width", WIDTHS, **asked, run_config=run)
    assert (found.value, found.failed.value, found.passed.n_seeds) == (THRESHOLD, THRESHOLD - 1, 2)
    assert max(most) == 2, "as many as Ray has room for"
    kept = {seed: Path(one.path, "width").read_text() for seed, one in found.checkpoints.items()}
    assert kept == {0: f"{THRESHOLD} 0", 1: f"{THRESHOLD} 1"}
    assert list((tmp_path / "mine").rglob("result.json")), "Tune's own loggers are on"
    assert f"model/width: fails at {THRESHOLD - 1}, passes at" in capfd.readouterr().err
    assert find_threshold(train, "model/width", WIDTHS, **asked) == found
    other = asked | {"config": {"model": {"depth": 2}}}
    with pytest.raises(ValueError, match="another config"):
        find_threshold(train, "model/width", WIDTHS, **other)


@pytest.mark.slow
@pytest.mark.usefixtures("_sent")
@pytest.mark.filterwarnings("ignore:unclosed file")  # Tune leaves the logs of what it ends open
def test_a_class_that_does_not_end_by_itself_ends_by_its_stop() -> None:
    run = tune.RunConfig(stop={"training_iteration": 3})
    asked = {"metric": "loss", "target": 0.1, "mode": "min", "seeds": 1, "run_config": run}
    falling = find_threshold(Loss, "width", [2, 6, 8], **asked, resources={"cpu": 2})
    assert (falling.value, falling.failed.value) == (6, 2)
    never = tune.RunConfig(stop={"episodes_total": 10}, verbose=0)
    asked["run_config"] = never
    with pytest.raises(ValueError, match="episodes_total"):
        find_threshold(Loss, "width", [2, 6, 8], **asked)


@pytest.mark.usefixtures("_sent")
def test_what_setup_raises_ends_the_search_and_is_told() -> None:
    class Broken(tune.Trainable):
        def setup(self, config: dict[str, Any]) -> None:
            raise RuntimeError("no GPU")

    found = find_threshold(Broken, "width", range(1, 5), "accuracy", 0.9, seeds=1, slots=1)
    assert (found.status, found.value) == ("open", None)
    assert "width = 2, seed 0: RuntimeError: no GPU" in found.why
    assert "in setup" in found.errors[2, 0]


@pytest.mark.usefixtures("_sent")
def test_a_trial_that_fits_nowhere_is_refused() -> None:
    with pytest.raises(ValueError, match="GPU"):
        find_threshold(train, "width", [60], "accuracy", 0.4, resources={"gpu": 1})


@pytest.mark.usefixtures("_sent")
@pytest.mark.parametrize(
    "values", [pytest.param([0.1, 0.25, 0.5, 1.0], marks=pytest.mark.slow), [8, 4, 2, 1]]
)
def test_shares_and_falling_ranks(values: list[float]) -> None:
    def share(config: dict[str, Any]) -> None:
        at = values.index(config["share"])
        tune.report({"accuracy": 0.5 + at / 5 + config["seed"] / 100})

    found = find_threshold(share, "share", values, "accuracy", 0.9, seeds=2)
    assert (found.value, found.failed.value) == (values[2], values[1])


# ----- A Tuner of the user's own, in a process that is killed


class Ended(tune.Callback):
    """Writes down each trial that completes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(trial.config) + "\n")


def search() -> ThresholdSearch:
    return ThresholdSearch("model/width", WIDTHS, "accuracy", 0.9, seeds=2)


def begin(folder: Path) -> None:
    tune.Tuner(
        train,
        param_space={"model": {"depth": 1}},
        tune_config=tune.TuneConfig(
            search_alg=search(),
            num_samples=-1,
            max_concurrent_trials=2,
            reuse_actors=True,
            scheduler=ASHAScheduler(max_t=4, grace_period=1),
            metric="accuracy",
            mode="max",
        ),
        run_config=tune.RunConfig(
            name="mine",
            storage_path=str(folder),
            verbose=0,
            callbacks=[Ended(folder / "ended")],
            failure_config=tune.FailureConfig(max_failures=1),
        ),
    ).fit()


def go_on(folder: Path) -> None:
    tune.Tuner.restore(str(folder / "mine"), trainable=train).fit()
    one = search()
    one.restore_from_dir(str(folder / "mine"))
    found = one.threshold()
    answer = {"value": found.value, "failed": found.failed and found.failed.value}
    (folder / "found.json").write_text(json.dumps(answer))


def is_whole(snapshot: Path) -> bool:
    """Whether Tune writes nothing of its state just now: it would restore half a file as none."""
    states = list(snapshot.glob("*_state-*.json"))
    return len(states) >= 2 and all(state.stat().st_size for state in states)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_and_restored_with_asha_it_ends_with_the_answer_of_brute_force(
    tmp_path: Path,
) -> None:
    ended = tmp_path / "ended"
    environment = os.environ | {"TUNE_GLOBAL_CHECKPOINT_S": "0"}
    command = [sys.executable, "-m", "tests.search.test_tune_on_ray", str(tmp_path)]
    with subprocess.Popen(
        [*command, "begin"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as driver:
        while not (ended.exists() and len(ended.read_text().splitlines()) >= 3):
            assert driver.poll() is None, "it ended before it could be killed"
            time.sleep(0.05)
        driver.send_signal(signal.SIGSTOP)
        while not is_whole(tmp_path / "mine"):
            driver.send_signal(signal.SIGCONT)
            time.sleep(0.01)
            driver.send_signal(signal.SIGSTOP)
        driver.send_signal(signal.SIGKILL)
    done = subprocess.run([*command, "go on"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    passing = [w for w in WIDTHS if accuracy(w, 0) + accuracy(w, 1) >= 1.8]
    found = json.loads((tmp_path / "found.json").read_text())
    assert found == {"value": passing[0], "failed": passing[0] - 1}
    assert list((tmp_path / "mine").rglob("checkpoint_*"))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_page_prints_what_it_shows(tmp_path: Path) -> None:
    page = ROOT / "docs/own-trainable.md"
    shown = [block.text for block in blocks(page, "text")]
    for script, text in zip(blocks(page, "python"), shown, strict=True):
        (tmp_path / "script.py").write_text(script.text)
        done = subprocess.run(
            [sys.executable, "script.py"],
            cwd=tmp_path,
            env=os.environ | {"MPLBACKEND": "agg", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert done.stdout.endswith(text), done.stdout + done.stderr


if __name__ == "__main__":
    {"begin": begin, "go on": go_on}[sys.argv[2]](Path(sys.argv[1]))
