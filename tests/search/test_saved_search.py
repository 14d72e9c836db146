"""What a ``ThresholdSearch`` saves: a restored search goes on, a damaged state is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ray import cloudpickle

from tests.search.by_hand import drive, passing_from, restored, search


@pytest.mark.parametrize("way", ["save", "pickle"])
@pytest.mark.parametrize("told", [0, 1, 4, 7])
def test_a_restored_search_goes_on_where_it_was(way: str, told: int, tmp_path: Path) -> None:
    one = search(over={"depth": [1, 2]})
    drive(one, passing_from(11), most=told)
    running = one.suggest("running")
    if way == "save":
        other = restored(one, tmp_path, over={"depth": [1, 2]})
    else:
        other = cloudpickle.loads(cloudpickle.dumps(one))
    assert other.search.result() == one.search.result()
    assert other.suggest("next") == one.suggest("next")
    for searcher in (one, other):
        for trial, config in (("running", running), ("next", None)):
            score = 0.0 if config is None else passing_from(11)(config)
            searcher.on_trial_complete(trial, {"f1": score, "done": True, "training_iteration": 1})
        drive(searcher, passing_from(11), name="more")
    assert other.thresholds() == one.thresholds()


@pytest.mark.parametrize("slots", [1, 4])
def test_a_trial_that_a_restored_tuner_does_not_know_is_taken_by_an_idle_worker(
    slots: int, tmp_path: Path
) -> None:
    one = search(seeds=slots, max_concurrent=slots)
    one.portfolio.look_ahead = 0
    one.portfolio.slots = slots
    lost = [one.suggest(f"began {n} as the Tuner was killed") for n in range(slots)]
    other = restored(one, tmp_path, seeds=slots, max_concurrent=slots)
    other.portfolio.look_ahead = 0
    drive(other, passing_from(11))
    assert (lost[0]["width"], other.threshold().value) == (17, 11)


def test_a_trial_that_a_restored_tuner_goes_on_with_counts_once_it_is_heard_of(
    tmp_path: Path,
) -> None:
    one = search(max_concurrent=1)
    one.suggest("running")
    other = restored(one, tmp_path, max_concurrent=1)
    other.on_trial_result("running", {"f1": 0.0, "training_iteration": 1})
    assert other.suggest("next") is None
    other.on_trial_complete("running", {"f1": 0.0, "training_iteration": 1, "done": True})
    assert isinstance(other.suggest("next"), dict)


def test_the_state_of_another_search_is_refused(tmp_path: Path) -> None:
    grid = {"depth": [1, 2], "heads": [1, 2]}
    restored(search(over=grid), tmp_path, over=grid)
    turned = dict(reversed(grid.items()))  # trials and errors are of settings by their number
    for change in ({"target": 0.8}, {"over": turned}):
        with pytest.raises(
            ValueError,
            match=r"^the saved search is of another question: (target: 0.9, not 0.8|over: )",
        ):
            restored(search(over=grid), tmp_path, **{"over": grid} | change)


def damaged(state: dict[str, Any]) -> Iterator[str]:
    """A state whose parts are missing, or of other types, or not of this search; and half of it."""
    whole = json.dumps(state)
    yield from (whole[:end] for end in range(0, len(whole), 25))
    yield whole + "x"
    yield from (json.dumps({k: v for k, v in state.items() if k != key}) for key in state)
    for key in state:
        for other in (None, [[1, 2]], {"a": []}, -1, [3]):
            yield json.dumps(state | {key: other})
    trial, probe = next(iter(state["probes"].items()))
    for change in ({"value": 999}, {"arm": 7}, {"cell": "?"}, {"seeds": "0"}, {"seeds": []}):
        yield json.dumps(state | {"probes": {trial: probe | change}})
    number, value, seed = state["trained"][0]
    for key in ("trained", "failed"):
        yield json.dumps(state | {key: [[number + 9, value, seed]]})
        yield json.dumps(state | {key: [[number, value + 999, seed]]})
    yield json.dumps(state | {"another \x1b key\n": 0})
    yield json.dumps(state | {"asked": state["asked"] | {"axis": "\x1b[31m\n"}})
    value, seed, score, setting = state["scores"][0]
    yield json.dumps(state | {"scores": [[value, seed, score / 2, setting], *state["scores"]]})
    yield json.dumps(state | {"scores": [[10**400, 0, 0.5, {}]]})
    yield json.dumps(state | {"scores": [[17, 0, "x", {}]]})
    yield json.dumps(state | {"scores": [[17, -1, 0.5, {}]]})


def test_a_damaged_state_is_refused_in_a_line(tmp_path: Path) -> None:
    one, path = search(over={"depth": [1, 2]}), tmp_path / "state"
    drive(one, passing_from(11), most=4)
    one.suggest("running")
    one.save(str(path))
    for text in damaged(json.loads(path.read_text())):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"state of a threshold search|saved search") as caught:
            search(over={"depth": [1, 2]}).restore(str(path))
        assert str(caught.value).isprintable()
        assert ": :" not in str(caught.value)


@pytest.mark.parametrize("iterations", [np.int64(4), 4.0, None, "x", -1])
def test_a_trainable_may_count_its_iterations_in_numbers_of_any_type(
    iterations: Any, tmp_path: Path
) -> None:
    one = search()
    one.suggest("running")
    one.on_trial_result("running", {"f1": 0.5, "training_iteration": iterations})
    other = restored(one, tmp_path)
    ended = {"f1": 0.5, "training_iteration": iterations, "done": True}
    for searcher in (one, other):
        searcher.on_trial_complete("running", ended)
    assert one.search.result() == other.search.result()


@pytest.mark.parametrize("metric", [10**400, "\ud800", None, np.float32(0.5), float("inf")])
def test_a_trial_may_report_anything_before_it_ends(metric: Any, tmp_path: Path) -> None:
    one = search()
    one.suggest("running")
    one.on_trial_result("running", {"f1": metric, "training_iteration": 1})
    other = restored(one, tmp_path)
    is_number = isinstance(metric, float | np.float32)
    for searcher in (one, other):
        searcher.on_trial_complete("running", {"training_iteration": 1, "done": True})
        assert searcher.fault is None
        assert len(searcher.search.kept.scores) == is_number
        assert len(searcher.search.errors[0]) == (not is_number)


def test_a_state_with_other_bounds_says_so_before_its_scores_are_looked_at(tmp_path: Path) -> None:
    one = search(bounds=(0, 1))
    drive(one, lambda config: 0.6, most=1)
    with pytest.raises(ValueError, match=r"another question: bounds: \(0\.0, 1\.0\), not "):
        restored(one, tmp_path, bounds=(0, 0.95))
