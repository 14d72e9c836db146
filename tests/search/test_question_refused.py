"""Arguments of find_threshold that are refused, before Ray starts."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ray import tune
from ray.tune import Callback

from rgr_dist.search.tune.find_threshold import find_threshold, find_thresholds
from tests.search.driven import train

DEEP: list[Any] = []
for _ in range(2000):
    DEEP = [DEEP]

REFUSED = [
    ({"trainable": np.eye(2)}, "trainable: give a function of a config or a class of ray.tune"),
    ({"config": np.eye(2)}, "config: give names and their values, not array([[1., 0.], [0., 1.]])"),
    ({"keep": np.ones(2)}, "keep: give 'threshold', or nothing, not array([1., 1.])"),
    ({"keep": "a" * 100_000}, "keep: give 'threshold', or nothing, not 'aaa"),
    ({"config": 10**5000}, "config: give names and their values, not a huge integer"),
    ({"target": [10**5000]}, "target: give a finite number, not [a huge integer]"),
    ({"seeds": DEEP}, "seeds: [[[[[["),
    ({"values": DEEP}, "values: "),
    ({"axis": "a\x1b[31m\0", "seed_key": "a\x1b[31m\0"}, "axis: 'a\\x1b[31m\\x00' is set by"),
    ({"mode": "minimize"}, "mode: should be 'max' or 'min', not 'minimize'"),
    ({"on_error": "ignore"}, "on_error: should be 'stop' or 'fail', not 'ignore'"),
    ({"target": None}, "target: missing"),
    ({"target": 0, "bounds": (0, 1)}, "target: 0 is reached by every score within the bounds"),
    (
        {"target": 1, "bounds": (0, 1), "mode": "min"},
        "target: 1 is reached by every score within the bounds",
    ),
    ({"target": 1.5, "bounds": (0, 1)}, "target: 1.5 lies outside the bounds 0…1"),
    ({"target": -1, "bounds": (0, None)}, "target: -1 lies outside the bounds 0…"),
    ({"target": float("nan")}, "target: give a finite number, not nan"),
    ({"bounds": (1, 0)}, "bounds: 1 is not below 0"),
    ({"bounds": 1}, "bounds: should be a valid tuple, not 1"),
    ({"values": []}, "values: give positive integers in increasing order, such as range(1, 65); "),
    ({"values": [3, 2]}, "values: give positive integers in increasing order, such as "),
    ({"values": [2, 2]}, "values: "),
    ({"values": [0, 1]}, "values: "),
    ({"values": [1.5]}, "values: "),
    ({"values": range(9, 1, -1)}, "values: "),
    ({"values": 64}, "values: "),
    ({"values": np.array([[1], [2]])}, "values: array([1]) is no integer"),
    ({"mode": np.arange(2000).reshape(-1, 2)}, "mode: should be 'max' or 'min', not array([["),
    ({"store": "y" * 300}, f"{'y' * 300} is no file of scores ("),
    ({"store": "a\0"}, "store: give the path of a file, not 'a\\x00'"),
    ({"run_config": {"name": "x"}}, "run_config: give a tune.RunConfig, not {'name': 'x'}"),
    ({"run_config": pd.NA}, "run_config: give a tune.RunConfig, not <NA>"),
    ({"config": pd.NA}, "config: give names and their values, not <NA>"),
    ({"config": {1: 2}}, "config: give names and their values, not {1: 2}"),
    ({"speculate": "no"}, "speculate: give True or False, not 'no'"),
    ({"stop": 0}, "stop: give names and numbers, not 0"),
    ({"stop": pd.Series([1, 2])}, "stop: give names and numbers, not 0 1 1 2 dtype"),
    ({"slots": pd.Series([1, 2])}, "slots: give a positive integer, not 0 1 1 2 dtype"),
    ({"store": 5}, "store: give the path of a file, not 5"),
    ({"values": itertools.count(1)}, "values: give positive integers in increasing order, such "),
    ({"values": range(1, 2**70)}, "values: give positive integers in increasing order, such as "),
    ({"target": 10**400}, "target: give a finite number, not 1000"),
    ({"seeds": 10**9}, "seeds: should be less than or equal to 10000, not 1000000000"),
    ({"confirm_seeds": 10_001}, "confirm_seeds: should be less than or equal to 10000, not 10001"),
    ({"over": {"depth": itertools.count()}}, "over: give a list of values for 'depth', not "),
    ({"seeds": 0}, "seeds: should be greater than 0, not 0"),
    ({"confirm_seeds": -1}, "confirm_seeds: should be greater than or equal to 0, not -1"),
    ({"slots": 1.5}, "slots: give a positive integer, not 1.5"),
    ({"guess": 65}, "guess: 65 lies outside the values 1…64"),
    ({"axis": "seed"}, "axis: 'seed' is set by the search; name another"),
    ({"metric": None}, "metric: missing; give the name of a number that the trainable reports"),
    ({"metric": ""}, "metric: String should have at least 1 character, not ''"),
    ({"config": {"width": 3}}, "config: 'width' is set by the search"),
    ({"config": {"depth": 3}}, "config: 'depth' is set by the search"),
    ({"trainable": "train"}, "trainable: give a function of a config or a class of ray.tune"),
    ({"trainable": int}, "trainable: give a function of a config or a class of ray.tune"),
    ({"stop": {"loss": math.nan}}, "stop: loss: give a finite number, not nan"),
    ({"stop": {"loss": "small"}}, "stop: loss: give a finite number, not 'small'"),
    ({"config": {"rate": tune.uniform(0, 1)}}, "config: 'rate' is a search space, and the search "),
    ({"config": {"rate": tune.grid_search([1])}}, "config: 'rate' is a search space, and the "),
    ({"num_samples": 20}, "num_samples: the search decides how many trials it needs"),
    ({"scheduler": None}, "scheduler: pass rgr_dist.ThresholdSearch to a Tuner of your own"),
    ({"keep": "best"}, "keep: give 'threshold', or nothing, not 'best'"),
    ({"seed_key": "depth"}, "over: 'depth' is set by the search"),
    ({"stop": 10}, "stop: give names and numbers, not 10"),
    (
        {"stop": {"epoch": 3}, "run_config": tune.RunConfig(stop={"epoch": 9})},
        "stop: run_config has one too",
    ),
    ({"values": np.array(2)}, "values: give positive integers in increasing order, such as "),
    ({"over": {}}, "over: give at least one name"),
    ({"over": np.ones(2)}, "over: give names and lists of their values, not array([1., 1.])"),
    ({"over": {"depth": 3}}, "over: give a list of values for 'depth', not 3"),
    ({"over": {"depth": []}}, "over: 'depth' has no value"),
    ({"over": {"depth": [1, 1]}}, "over: 'depth' has 1 twice"),
    ({"over": {"depth": [2, *range(10**5), 5.0]}}, "over: 'depth' has 2 twice"),
    ({"over": {"depth": [(1, [2]), [3], (1, [2])]}}, "over: 'depth' has (1, [2]) twice"),
    ({"over": {"width": [1]}}, "over: 'width' is set by the search"),
    ({"cost": 3}, "cost: should be callable, not 3"),
    ({"cost": lambda v, s: -v}, "cost: give positive ones; -1 at 1 of"),
    ({"cost": lambda v, s: 1 / v}, "cost: give one that does not fall as the value grows; 1 at 1"),
    ({"keep_within": 0.1}, "keep_within: give a cost too"),
    (
        {"keep_within": -1, "cost": lambda v, s: v},
        "keep_within: should be greater than or equal to 0, not -1",
    ),
]


@pytest.mark.parametrize(("change", "said"), REFUSED)
def test_what_the_search_does_not_know_is_refused_before_ray_starts(
    change: dict[str, Any], said: str
) -> None:
    options = {
        "trainable": train, "axis": "width", "values": range(1, 65), "metric": "accuracy",
        "target": 0.9, "over": {"depth": [1]},
    }  # fmt: skip
    with pytest.raises(ValueError) as refused:  # noqa: PT011 (compared below)
        find_thresholds(**options | change)
    assert str(refused.value).startswith(said)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize(
    "resources",
    [{"cpu": 2}, tune.PlacementGroupFactory([{"CPU": 2}]), lambda config: {"cpu": 2}],
)
def test_what_tune_takes_is_not_refused(resources: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgr_dist.search.tune.trials.run", lambda search, trainable, **how: how)
    asked = {"resources": resources, "run_config": tune.RunConfig(), "callbacks": (Callback(),)}
    ran: Any = find_thresholds(
        train, "width", range(1, 65), "accuracy", 0.9, over={"depth": [1]}, **asked
    )
    assert asked.items() <= ran.items()


@pytest.mark.parametrize("name", ["over", "cost", "keep_within"])
def test_one_threshold_is_not_that_of_a_grid(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: ask find_thresholds$"):
        find_threshold(train, "width", range(1, 65), "accuracy", 0.9, **{name: None})
