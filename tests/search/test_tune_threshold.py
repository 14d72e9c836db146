"""``ThresholdSearch`` as a Tuner drives it, against trying every value; no Ray is started."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ray import cloudpickle
from ray.tune.schedulers import ASHAScheduler
from ray.tune.search import ConcurrencyLimiter, Repeater, Searcher

import rgr_dist
from rgr_dist.search.tune.threshold_search import ThresholdSearch
from tests.oracles.fake_tune import FakeTune

mpl.use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore:all seeds of a value")


def search(**changes: Any) -> ThresholdSearch:
    asked = {"axis": "width", "values": range(1, 33), "metric": "f1", "target": 0.9, "seeds": 2}
    return ThresholdSearch(**asked | {"bounds": (0, 1)} | changes)


def from_width(threshold: float) -> Any:
    """A trainable that passes from a width on."""
    return lambda config: [{"f1": float(config["width"] >= threshold)}]


def found(train: Any, slots: int = 1, seed: int = 0, **changes: Any) -> Any:
    one = search(**changes)
    FakeTune(train, slots, seed).fit(one)
    return one.threshold()


# ----- The answer


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[Any], dict[tuple[Any, int], float], int, int]:
    """Values, a score for each of them and each seed that rises with the value, seeds, fresh ones.

    The scores of a value lie about its level, so that it takes several seeds to tell.
    """
    count = draw(st.integers(1, 20))
    values = draw(
        st.sampled_from(
            [
                list(range(1, count + 1)),
                [round(0.1 * n, 1) for n in range(count)],
                list(range(count, 0, -1)),
                [f"size {n}" for n in range(count)],
            ]
        )
    )
    seeds, fresh = draw(st.integers(1, 6)), draw(st.sampled_from([0, 0, 3]))
    levels = sorted(draw(st.lists(st.integers(0, 20), min_size=count, max_size=count)))
    noise = [draw(st.integers(-2, 2)) for _ in range(seeds + fresh)]
    scores = {
        (value, seed): min(20, max(0, level + noise[seed])) / 20
        for value, level in zip(values, levels, strict=True)
        for seed in range(seeds + fresh)
    }
    return values, scores, seeds, fresh


def by_brute_force(
    values: list[Any], scores: dict[tuple[Any, int], float], seeds: int, fresh: int
) -> Any:
    def passes(value: Any, which: range) -> bool:
        return sum(round(20 * scores[value, seed]) for seed in which) >= 18 * len(which)

    both = range(seeds), range(seeds, seeds + fresh)
    return next((v for v in values if passes(v, both[0]) and passes(v, both[1])), None)


@settings(max_examples=150)
@given(questions(), st.integers(1, 6), st.integers(0, 99), st.booleans(), st.booleans())
def test_the_first_value_that_passes_whatever_ends_first(
    question: Any, slots: int, chance: int, has_bounds: bool, falls: bool
) -> None:
    values, scores, seeds, fresh = question

    def train(config: dict[str, Any]) -> Iterator[dict[str, float]]:
        score = scores[config["width"], config["seed"]]
        yield {"f1": round(1 - score, 2) if falls else score}

    one = found(
        train, slots, chance, values=values, seeds=seeds, confirm_seeds=fresh,
        bounds=(0, 1) if has_bounds else (None, None), mode="min" if falls else "max",
        target=0.1 if falls else 0.9,
    )  # fmt: skip
    right = by_brute_force(values, scores, seeds, fresh)
    assert (one.status, one.value) == ("censored" if right is None else "found", right)
    if right is not None:
        assert one.passed.n_seeds == seeds
        assert (one.fresh is None) == (fresh == 0)
        assert (one.failed and one.failed.value) == (
            values[values.index(right) - 1] if right != values[0] else None
        )
    assert "wrong way" not in one.why


@settings(max_examples=40)
@given(questions(), st.integers(1, 4), st.integers(1, 12), st.booleans())
def test_killed_again_and_again_it_ends_with_the_same_answer(
    question: Any, slots: int, ends: int, forgets: bool
) -> None:
    values, scores, seeds, fresh = question
    tune = FakeTune(lambda config: [{"f1": scores[config["width"], config["seed"]]}], slots)
    one = search(values=values, seeds=seeds, confirm_seeds=fresh)
    for _ in range(3):
        tune.fit(one, most=ends)
        one = cloudpickle.loads(cloudpickle.dumps(one))
        one._inherited |= one.probes  # what restore() does
        one.probes = {}
        if forgets and tune.running:  # one that began as the Tuner was killed
            tune.running.popitem()
    tune.fit(one)
    assert one.threshold().value == by_brute_force(values, scores, seeds, fresh)


def test_what_is_saved_is_restored_and_what_ran_is_not_trained_twice(tmp_path: Path) -> None:
    one, tune = search(), FakeTune(from_width(11), slots=2)
    tune.fit(one, most=3)
    one.save(str(tmp_path / "state"))
    other = search(target=0.5)
    other.restore(str(tmp_path / "state"))
    tune.fit(other)
    assert other.threshold().value == 11
    trained = [tuple(sorted(config.items())) for config in tune.configs.values()]
    assert len(trained) == len(set(trained))


def test_a_nested_axis_and_a_metric_within_a_dictionary() -> None:
    def train(config: dict[str, Any]) -> list[dict[str, Any]]:
        model = config["model"]
        return [{"eval": {"f1": float(model["width"] >= 9 and model["depth"] == 2)}}]

    one = search(axis="model/width", metric="eval/f1", seed_key="data/seed")
    tune = FakeTune(train, param_space={"model": {"depth": 2}, "data": {"path": "x"}})
    tune.fit(one)
    assert one.threshold().value == 9
    assert tune.configs["trial 0"]["data"] == {"path": "x", "seed": 0}


def test_values_of_numpy_are_pythons_own() -> None:
    one = found(from_width(0.5), values=np.linspace(0, 1, 5))
    assert (one.value, type(one.value)) == (0.5, float)


@pytest.mark.parametrize("last", [13, 16, 17, 31])
def test_values_that_run_the_wrong_way_are_told(last: int) -> None:
    def train(config: dict[str, Any]) -> list[dict[str, float]]:
        return [{"f1": float(config["width"] <= last)}]

    one = found(train)
    assert (one.status, one.value) == ("found", 1)
    assert "the values run the wrong way" in one.why
    right = found(train, values=range(32, 0, -1))
    assert (right.value, right.failed.value, right.fails_above) == (last, last + 1, ())


def test_a_lucky_value_is_refuted_by_fresh_seeds_and_a_dip_is_listed() -> None:
    def lucky(config: dict[str, Any]) -> list[dict[str, float]]:
        width, seed = config["width"], config["seed"]
        return [{"f1": 0.95 if width >= 20 or (width >= 12 and seed < 2) else 0.5}]

    assert found(lucky).value == 12
    one = found(lucky, confirm_seeds=4)
    assert (one.value, one.fresh.n_seeds, one.failed.value) == (20, 4, 19)
    dips = found(lambda config: [{"f1": float(config["width"] in (8, 32))}])
    assert (dips.value, dips.failed.value) in ((8, 7), (32, 31))


def test_what_is_shown_has_the_certificate_and_every_step(capsys: Any) -> None:
    one = found(from_width(9), seeds=5)
    line = repr(one)
    assert all(part in line for part in ("width = 9", "1 (5 seeds) ≥ 0.9", "at 8: 0 (1 seed)"))
    lines = one.explain().splitlines()
    assert len(lines) == len(one.steps)
    assert any("width = 8" in line and "fail" in line for line in lines)
    ax = one.plot()
    dots = [line for line in ax.lines if line.get_marker() == "."]
    assert sum(len(line.get_xdata()) for line in dots) == sum(map(len, one.scores.values()))
    hollow = {line.get_xdata()[0] for line in ax.lines if line.get_markerfacecolor() == "white"}
    assert hollow == {value for value, scores in one.scores.items() if len(scores) < 5}
    mpl.pyplot.close("all")


def test_bounds_spare_seeds_and_a_guess_spares_trials() -> None:
    tunes = []
    for changes in ({"bounds": (None, None)}, {}, {"guess": 9}):
        tunes.append(FakeTune(from_width(9)))
        tunes[-1].fit(search(seeds=5, **changes))
    counts = [len(tune.configs) for tune in tunes]
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == 3


def test_seeds_that_all_score_the_same_are_told() -> None:
    with pytest.warns(UserWarning, match="does the trainable use config"):
        found(lambda config: [{"f1": config["width"] / 40}], target=0.5)


# ----- How trials end


def test_a_trial_that_raises_leaves_it_open_and_is_named() -> None:
    def train(config: dict[str, Any]) -> Iterator[dict[str, float]]:
        if config["width"] > 5:
            raise MemoryError(f"no room\nfor {config['width']}")
        yield {"f1": 0.0}

    one = found(train)
    assert (one.status, one.value) == ("open", None)
    assert "width = 16, seed 0: MemoryError: no room" in one.why
    assert "for 16" in one.errors[16, 0]
    untold = search()
    FakeTune(train, tells_errors=False).fit(untold)
    assert "width = 16, seed 0" in untold.threshold().why


@settings(max_examples=30)
@given(st.integers(1, 32), st.integers(2, 6), st.integers(0, 9))
def test_a_trial_that_raises_ahead_of_need_changes_no_answer(
    threshold: int, slots: int, salt: int
) -> None:
    def train(config: dict[str, Any]) -> Iterator[dict[str, float]]:
        if random.Random(f"{salt} {config}").random() < 0.1:
            raise RuntimeError("no room")
        yield {"f1": float(config["width"] >= threshold)}

    alone, together = found(train, seeds=5), found(train, slots, salt, seeds=5)
    for name in ("status", "value", "passed", "failed", "why", "steps"):
        assert getattr(together, name) == getattr(alone, name)


@pytest.mark.parametrize("score", [math.nan, "high", None, "0.5"])
def test_a_metric_that_is_no_number_leaves_it_open(score: Any) -> None:
    one = found(lambda config: [{"f1": score, "loss": 1}])
    assert one.status == "open"
    assert "width = 16, seed 0" in one.why


def test_a_metric_that_is_never_reported_is_told_with_those_that_are() -> None:
    one = found(lambda config: [{"accuracy": 1.0, "eval": {"loss": 2}}])
    assert all(name in one.why for name in ("f1", "accuracy", "eval/loss"))


def test_the_last_metric_counts_whatever_is_reported_after_it() -> None:
    def train(config: dict[str, Any]) -> list[dict[str, float]]:
        return [{"f1": 0.0}, {"f1": float(config["width"] >= 7)}, {"loss": 1.0}]

    assert found(train, slots=3).value == 7


def test_an_infinite_loss_fails_and_a_score_out_of_bounds_ends_it() -> None:
    def diverges(config: dict[str, Any]) -> list[dict[str, float]]:
        return [{"f1": math.inf if config["width"] < 9 else 0.1}]

    assert found(diverges, mode="min", target=0.5, bounds=(0, None)).value == 9
    one = search()
    with pytest.raises(ValueError, match=r"width = 16, seed 0: f1: .*2\.0"):
        FakeTune(lambda config: [{"f1": 2.0}]).fit(one)
    with pytest.raises(ValueError, match=r"2\.0"):
        one.threshold()


def epochs(config: dict[str, Any]) -> Iterator[dict[str, float]]:
    for epoch in range(1, 5):
        yield {"f1": (0.8 + config["width"] / 200 + config["seed"] / 1000) * epoch / 4}


def uneven(config: dict[str, Any]) -> Iterator[dict[str, float]]:
    """One seed reaches the target early, and is still to rise above it as the other needs."""
    for epoch in range(1, 5):
        yield {"f1": (0.7 + config["width"] / 200 + config["seed"] / 5) * (0.92 + epoch / 50)}


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("stop", [{}, {"training_iteration": 4}, {"training_iteration": 9}])
@pytest.mark.parametrize(
    ("train", "target"), [(epochs, 0.83), (epochs, 0.88), (epochs, 0.94), (uneven, 0.85)]
)
def test_with_asha_it_ends_with_the_answer_of_no_scheduler(
    train: Any, target: float, stop: dict[str, int], slots: int
) -> None:
    max_t = stop.get("training_iteration", 4)
    scheduler = ASHAScheduler(metric="f1", mode="max", max_t=max_t, grace_period=1)
    one, tune = search(target=target), FakeTune(train, slots, scheduler=scheduler)
    one.set_search_properties("f1", "max", {}, stop=stop)
    one.set_max_concurrency(slots)
    tune.fit(one)
    assert one.threshold().value == found(train, target=target).value
    assert len(tune.configs) > sum(map(len, one.scores.values())), (
        "some were stopped, and trained again"
    )


def test_trials_that_are_stopped_every_time_leave_it_open() -> None:
    scheduler = ASHAScheduler(metric="f1", mode="max", max_t=4, grace_period=1)
    scheduler.on_trial_result = lambda *of: "STOP" if of[2]["config/width"] < 24 else "CONTINUE"
    one = search()
    FakeTune(epochs, scheduler=scheduler).fit(one)
    assert (one.threshold().status, len(one.threshold().errors)) == ("open", 1)


def test_classes_that_end_by_themselves_are_trained_once() -> None:
    def train(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for epoch in range(1, 4):
            yield {"f1": config["width"] / 40, "done": epoch == 3}

    one, tune = search(target=0.5), FakeTune(train, slots=2)
    tune.fit(one)
    assert one.threshold().value == 20
    assert len(tune.configs) == sum(map(len, one.scores.values()))


def test_a_tuner_that_ends_first_leaves_it_open_and_says_how_to_go_on() -> None:
    one, tune = search(), FakeTune(from_width(9))
    tune.fit(one, most=1)
    assert "num_samples=-1" in one.threshold().why
    tune.fit(one)
    assert one.threshold().value == 9


# ----- In a Tuner


def test_it_is_a_public_name() -> None:
    assert rgr_dist.ThresholdSearch is ThresholdSearch


@pytest.mark.filterwarnings("ignore:Mean of empty slice")  # as Repeater takes it
def test_a_wrapper_that_hides_results_is_refused_with_what_to_use() -> None:
    with pytest.raises(ValueError, match=r"Repeater .* seeds="):
        FakeTune(from_width(9)).fit(Repeater(search(), repeat=2))


def test_a_limiter_counts_trials() -> None:
    limited = ConcurrencyLimiter(search(), max_concurrent=3)
    given = [limited.suggest(f"{number}") for number in range(5)]
    assert sum(isinstance(config, dict) for config in given) == 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"values": []}, "values"),
        ({"values": [1, 2, 1]}, "values"),
        ({"guess": 40}, "40"),
        ({"mode": "minimize"}, "mode"),
        ({"seeds": 0}, "seed"),
        ({"target": 1.5}, "1.5"),
    ],
)
def test_bad_arguments_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        search(**changes)


def test_after_its_answer_it_has_finished() -> None:
    one = search()
    FakeTune(from_width(9)).fit(one)
    assert one.suggest("one more") == Searcher.FINISHED
