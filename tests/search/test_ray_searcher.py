"""``ThresholdSearch`` as a user's Tuner drives it: by hand, and on a real Ray."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from ray import cloudpickle, tune
from ray.tune.schedulers import ASHAScheduler
from ray.tune.search import ConcurrencyLimiter, Searcher

import rgr_dist
from rgr_dist.search.tune.threshold_search import ThresholdSearch
from tests.search import clients
from tests.search.by_hand import drive, end, passing_from, restored, search
from tests.search.clients import Client

SPEC = {"num_samples": sys.maxsize}


def test_it_is_a_public_name() -> None:
    assert rgr_dist.ThresholdSearch is ThresholdSearch


@pytest.mark.parametrize("threshold", [1, 2, 17, 32, 33])
@pytest.mark.parametrize("mode", ["max", "min"])
def test_the_smallest_passing_value(threshold: int, mode: str) -> None:
    searcher = search(mode=mode, target=0.9 if mode == "max" else 0.1)
    drive(searcher, lambda c: float((c["width"] >= threshold) == (mode == "max")))
    found = searcher.threshold()
    if threshold > 32:
        assert (found.status, found.value) == ("censored", None)
    else:
        assert (found.status, found.value) == ("found", threshold)
        assert found.passed.n_seeds == 2
        assert (found.failed is None) == (threshold == 1)


def test_each_setting_has_its_own() -> None:
    searcher = search(over={"depth": [1, 2]}, cost=lambda v, s: v * s["depth"])
    drive(searcher, lambda c: float(c["width"] >= 20 // c["depth"]))
    found = searcher.thresholds()
    assert [one.value for one in found] == [20, 10]
    assert found.best is found[0]
    with pytest.raises(ValueError, match=r"ask for thresholds\(\)"):
        searcher.threshold()


def test_the_seed_has_the_name_that_the_trainable_knows() -> None:
    assert search(seed_key="random_state").suggest("a") == {"width": 17, "random_state": 0}


# ----- What the Tuner says


def test_metric_and_mode_may_be_the_tuners() -> None:
    searcher = search(metric=None, target=0.1)
    with pytest.raises(ValueError, match=r"^metric: give it to ThresholdSearch; Tune passes"):
        searcher.suggest("a")
    assert searcher.set_search_properties("f1", "min", {"rate": 0.1}, **SPEC)
    drive(searcher, lambda c: 1 - passing_from(9)(c))
    found = searcher.threshold()
    assert (found.metric, found.mode, found.value) == ("f1", "min", 9)


def test_a_metric_may_be_one_that_tune_reports_itself() -> None:
    searcher = search(metric="training_iteration", mode="min", target=5)
    while (config := searcher.suggest("t")) != Searcher.FINISHED:
        taken = 16 - config["width"]
        searcher.on_trial_complete("t", {"training_iteration": taken, "done": True})
    assert searcher.threshold().value == 11


def test_another_tuner_may_correct_a_metric() -> None:
    searcher = search(metric=None)
    searcher.set_search_properties("fl", None, {"rate": 0.1}, **SPEC)
    drive(searcher, passing_from(9), most=1)
    with pytest.raises(ValueError, match="the trainable never reported 'fl'; it reported f1"):
        searcher.threshold()
    searcher.set_search_properties("f1", None, {"rate": 0.1}, **SPEC)
    drive(searcher, passing_from(9))
    assert searcher.threshold().value == 9


@pytest.mark.parametrize(
    ("metric", "mode", "config", "samples", "said"),
    [
        ("loss", None, {}, 9, "metric: ThresholdSearch has 'f1', TuneConfig 'loss'"),
        ("f1", "max", {"width": 3}, 9, "config: 'width' is set by the search"),
        ("f1", "max", {"seed": 3}, 9, "config: 'seed' is set by the search"),
        ("f1", "max", {"rate": tune.uniform(0, 1)}, 9, "config: 'rate' is a search space, and"),
        ("f1", "max", {"a": {"b": tune.grid_search([1])}}, 9, "config: 'a' is a search space, and"),
        ("f1", "max", {}, 1, "num_samples: one trial finds no threshold; give TuneConfig(num_samp"),
    ],
)
def test_what_makes_no_sense_in_a_tuner_is_refused(
    metric: str, mode: str | None, config: dict[str, Any], samples: int, said: str
) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (compared below)
        search().set_search_properties(metric, mode, config, num_samples=samples)
    assert str(refused.value).startswith(said)


def test_a_tuner_that_ends_first_leaves_it_open_and_says_so() -> None:
    searcher = search()
    drive(searcher, passing_from(9), most=1)
    with pytest.warns(UserWarning, match="not finished: go on with Tuner.restore if the"):
        found = searcher.threshold()
    assert (found.status, found.because) == ("open", "its search goes on")


def test_a_new_tuner_asks_anew_for_what_the_one_before_it_was_training() -> None:
    searcher = search()
    first = drive(searcher, passing_from(9), most=1)
    for trial in ("cut", "off"):
        searcher.suggest(trial)
    searcher.set_search_properties("f1", "max", {"rate": 0.1}, **SPEC)
    again = drive(searcher, passing_from(9), name="again")
    assert searcher.threshold().value == 9
    assert first[0] not in again, "its score stands"


def test_a_new_tuner_tries_again_what_ended_in_error(tmp_path: Path) -> None:
    one = search()
    drive(one, passing_from(9), most=1)
    failed = one.suggest("a")
    one.on_trial_complete("a", error=True)
    one.settle()
    other = restored(one, tmp_path)
    assert other.threshold() == one.threshold()
    assert other.threshold().status == "open"
    other.set_search_properties("f1", "max", {"rate": 0.1}, **SPEC)
    assert failed in drive(other, passing_from(9))
    found = other.threshold()
    assert (found.value, [error.value for error in found.errors]) == (9, [failed["width"]])


@pytest.mark.parametrize("limit", [True, False])
def test_no_more_trials_at_once_than_asked_for(limit: bool) -> None:
    searcher: Any = search(max_concurrent=1)
    if limit:  # TuneConfig(max_concurrent_trials=3) wraps it so
        searcher = ConcurrencyLimiter(searcher, max_concurrent=3)
    given = [searcher.suggest(f"{number}") for number in range(5)]
    assert sum(isinstance(config, dict) for config in given) == (3 if limit else 1)


# ----- How trials end


def test_a_trial_in_error_ends_the_search_and_is_told() -> None:
    searcher = search()
    searcher.suggest("a")
    searcher.on_trial_complete("a", error=True)
    assert searcher.suggest("b") == Searcher.FINISHED
    found = searcher.threshold()
    assert found.status == "open"
    told = "Ray Tune does not tell a searcher what ended this trial"
    assert found.because == f"width = 17, seed 0: {told}"


def test_a_trial_in_error_fails_its_value_if_asked() -> None:
    searcher = search(on_error="fail")
    searcher.suggest("a")
    searcher.on_trial_complete("a", error=True)
    assert searcher.suggest("b")["width"] < 17


def test_a_trial_that_a_scheduler_stopped_is_scored_by_its_last_metric_and_listed() -> None:
    searcher = search(values=[4, 8], guess=8)
    for trial in "ab":
        searcher.suggest(trial)
        end(searcher, trial, 0.95, 9)
    searcher.suggest("c")
    searcher.on_trial_result("c", {"f1": 0.2, "training_iteration": 1})
    searcher.on_trial_complete("c", {"f1": 0.3, "training_iteration": 2, "done": True})
    searcher.suggest("d")
    end(searcher, "d", 0.3, 9)
    found = searcher.threshold()
    assert (found.value, found.stopped_early) == (8, ((4, 0),))
    assert "; 1 trial was stopped early" in repr(found)


def test_a_paused_trial_that_a_scheduler_ends_is_scored_by_its_last_metric_and_listed() -> None:
    searcher = search(values=[4, 8], guess=4, seeds=1)
    searcher.suggest("a")
    searcher.on_trial_result("a", {"f1": 0.2, "training_iteration": 3})
    searcher.on_trial_complete("a")  # as HyperBand does at a rung
    assert searcher.suggest("b")["width"] == 8
    end(searcher, "b", 0.95, 9)
    found = searcher.threshold()
    assert (found.value, found.scores[4], found.stopped_early) == (8, {0: 0.2}, ((4, 0),))


def test_a_trial_cut_off_in_mid_training_has_no_score() -> None:
    searcher = search()
    searcher.suggest("a")
    searcher.on_trial_result("a", {"f1": 0.1, "training_iteration": 1})
    searcher.on_trial_complete("a", {"f1": 0.1, "training_iteration": 1})
    assert searcher.search.result()[0].scores == {}
    assert searcher.suggest("b") == {"width": 17, "seed": 0}


@pytest.mark.parametrize("slots", [0, -1, 2.5, True, "x"])
def test_how_many_trials_run_at_once_is_a_positive_integer(slots: Any) -> None:
    with pytest.raises(ValueError, match="max_concurrent: give a positive integer"):
        search(max_concurrent=slots)


# ----- On a real Ray


THRESHOLD = 6
"""The smallest width that passes, since its mean over two seeds is 0.9005."""


@pytest.fixture
def client(_ray: None, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A trainable that Ray sends to its workers, in a Tuner that saves its state at each step."""
    cloudpickle.register_pickle_by_value(clients)
    monkeypatch.setenv("TUNE_GLOBAL_CHECKPOINT_S", "0")
    return clients.with_checkpoints()


@pytest.mark.slow
def test_a_new_tuner_goes_on_with_a_search_that_was_restored(
    client: Client, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match="power cut"):
        clients.begin(client, tmp_path, stop_after=4)
    search, anew = client.search(), tmp_path / "anew"
    search.restore_from_dir(str(tmp_path / "mine"))
    anew.mkdir()
    clients.begin(client, anew, search)
    assert search.threshold().value == THRESHOLD
    both = [(folder / "ended").read_text().splitlines() for folder in (tmp_path, anew)]
    assert len(set(both[0]) & set(both[1])) <= 1, "what was told is not trained again"


@pytest.mark.slow
def test_with_asha_the_answer_is_right_or_says_which_trials_were_stopped(
    client: Client, tmp_path: Path
) -> None:
    search = client.search()
    clients.begin(client, tmp_path, search, ASHAScheduler(max_t=4, grace_period=1))
    found = search.threshold()
    assert found.status in ("found", "censored")
    assert found.value == THRESHOLD or found.stopped_early
