"""Optuna's trials as Tune sees them, driven by hand; no Ray started."""

from __future__ import annotations

from typing import Any

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState
from ray.tune.search import Searcher

from rgr_dist.tuning.optuna_trials import OptunaTrials

SPACE = {"x": FloatDistribution(-1, 1), "y": FloatDistribution(0.1, 10, log=True)}


def searcher(storage: InMemoryStorage | None = None, **options: Any) -> OptunaTrials:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    options = {"mode": "max", "trials": 8, "seed": 3, "to_config": _config} | options
    return OptunaTrials(SPACE, storage=storage or InMemoryStorage(), **options)


def _config(params: dict[str, Any], best: float | None) -> dict[str, Any]:
    return {**params, "best": best}


def drive(search: OptunaTrials, **ends: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Run trials one by one to the end; their score is 1 - x², unless ``ends`` says otherwise."""
    configs: list[dict[str, Any]] = []
    while (config := search.suggest(name := f"t{len(configs)}")) != Searcher.FINISHED:
        configs.append(config)
        result = ends.get(name, {"score": 1 - config["x"] ** 2})
        error = result is None
        search.on_trial_complete(name, result and {"training_iteration": 1} | result, error=error)
        assert len(configs) < 99, "never finishes"
    return configs


def test_it_ends_after_so_many_finished_trials_and_tells_each_the_best_so_far() -> None:
    search = searcher()
    configs = drive(search)
    assert len(configs) == len(search.finished) == 8
    assert search.best is not None
    scores = [1 - config["x"] ** 2 for config in configs]
    assert search.best.value == max(scores)
    told = [config["best"] for config in configs]
    assert told == [None, *(max(scores[:n]) for n in range(1, 8))]
    least = searcher(mode="min")
    values = [1 - config["x"] ** 2 for config in drive(least)]
    assert least.best is not None
    assert least.best.value == min(values)


def test_the_same_seed_gives_the_same_trials_and_another_gives_others() -> None:
    assert drive(searcher()) == drive(searcher())
    assert drive(searcher()) != drive(searcher(seed=4))


def test_it_goes_on_from_its_storage_without_drawing_the_same_points_again() -> None:
    storage = InMemoryStorage()
    before = drive(searcher(storage, trials=5))
    again = searcher(storage, trials=9)
    assert again.loaded == 5
    after = drive(again)
    assert len(after) == 4
    points = [config["x"] for config in before + after]
    assert len(set(points)) == 9
    assert drive(searcher(storage, trials=9)) == []


def test_the_first_trial_is_as_given_but_only_once() -> None:
    storage, first = InMemoryStorage(), {"x": 0.25, "y": 1.0}
    points = [drive(searcher(storage, trials=n, first=first)) for n in (2, 4)]
    assert [{"x": c["x"], "y": c["y"]} == first for c in points[0] + points[1]] == [
        True,
        *[False] * 3,
    ]


def test_what_a_killed_process_left_running_is_run_again() -> None:
    storage = InMemoryStorage()
    killed = searcher(storage, first={"x": 0.25, "y": 1.0})
    lost = [killed.suggest(name) for name in "ab"]
    configs = drive(searcher(storage))
    assert [config["x"] for config in configs[:2]] == [config["x"] for config in lost]
    assert len(configs) == 8
    states = [trial.state for trial in killed.study.get_trials()]
    assert states == [TrialState.FAIL] * 2 + [TrialState.COMPLETE] * 8


def test_a_pruned_trial_is_finished_but_never_the_best() -> None:
    search = searcher(trials=3)
    drive(search, t1={"score": 2.0, "pruned": True})
    states = [trial.state for trial in search.finished]
    assert states == [TrialState.COMPLETE, TrialState.PRUNED, TrialState.COMPLETE]
    assert search.finished[1].value == 2.0
    assert search.best is not None
    assert search.best.number != 1


@pytest.mark.parametrize("end", [None, {"score": None, "failed": True}])
def test_failed_trials_do_not_count_and_three_end_the_search(end: dict | None) -> None:
    search = searcher(trials=3)
    assert len(drive(search, t1=end)) == 4
    assert (search.failed + search.kills, len(search.finished)) == (1, 3)
    hopeless = searcher()
    assert len(drive(hopeless, t0=end, t1=end, t2=end)) == 3
    assert (hopeless.failed + hopeless.kills, hopeless.finished) == (3, [])


@pytest.mark.parametrize("at_once", [True, False])
def test_trials_that_are_lost_together_count_once_and_are_run_again(at_once: bool) -> None:
    search = searcher()
    lost = [search.suggest(name) for name in "abc"]
    if at_once:
        search.killed_for_memory()
    else:
        for name in "abc":
            search.on_trial_complete(name, error=True)
    configs = drive(search)
    assert [config["x"] for config in configs[:3]] == [config["x"] for config in lost]
    assert (search.failed, search.kills, len(configs)) == (0, 1, 8)


def test_a_slot_waits_for_the_last_trial_since_it_may_fail() -> None:
    search = searcher(trials=1)
    search.suggest("a")
    assert search.suggest("b") is None
    search.on_trial_complete("a", None, error=True)
    assert isinstance(search.suggest("b"), dict)


def test_results_are_recorded_before_optuna_is_told_and_an_error_there_ends_the_search() -> None:
    recorded: list[tuple[Any, int]] = []
    disk_full = OSError("no space left")

    def record(result: dict[str, Any]) -> None:
        recorded.append((result["score"], len(search.finished)))
        if len(recorded) == 3:
            raise disk_full

    search = searcher(record=record)
    search.suggest("a")
    search.on_trial_result("a", {"score": 0.5, "training_iteration": 1})
    search.on_trial_complete("a", {"score": 0.6, "training_iteration": 2})
    assert recorded == [(0.5, 0), (0.6, 0)]
    search.suggest("b")
    search.on_trial_complete("b", {"score": 0.7, "training_iteration": 1})
    assert search.fault is disk_full
    assert [trial.value for trial in search.finished] == [0.6]
    assert search.suggest("c") == Searcher.FINISHED


def test_nothing_is_saved(tmp_path: Any) -> None:
    search = searcher()
    search.save_to_dir(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
