"""The thresholds of a grid of settings against trying everything, without Ray."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.search.protocol import ProbeResult
from rgr_dist.search.tune.find_threshold import find_threshold, find_thresholds
from rgr_dist.search.tune.score_file import ScoreFile
from rgr_dist.search.tune.setting_search import SettingSearch
from tests.search.driven import (
    ABOUT,
    ask,
    drive,
    found,
    in_a_process,
    rising,
    train,
    trainings,
)

GRID = {"depth": [1, 2, 3], "heads": [1, 4]}


@pytest.mark.parametrize("on_error", ["stop", "fail"])
@settings(max_examples=40)
@given(st.integers(1, 64), st.integers(2, 8), st.integers(0, 9))
def test_a_seed_that_raises_ahead_of_need_changes_no_answer(
    on_error: str, threshold: int, slots: int, salt: int
) -> None:
    def score(setting: Any, value: int, seed: int) -> float | Exception:
        raises = random.Random(f"{salt} {value} {seed}").random() < 0.1
        return RuntimeError("no room") if raises else float(value >= threshold)

    alone, together = (found(score, count, seeds=5, on_error=on_error)[0] for count in (1, slots))
    for name in ("status", "value", "passed", "failed", "because", "decisions"):
        assert getattr(together, name) == getattr(alone, name)


@st.composite
def grids(draw: st.DrawFn) -> tuple[dict[str, list[int]], dict[tuple, int], dict[tuple, float]]:
    """A grid, and a threshold and a price for each of its settings."""
    names = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True))
    over = {
        n: draw(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True)) for n in names
    }
    keys = [(a, b) for a in over[names[0]] for b in (over[names[1]] if len(names) > 1 else [0])]
    thresholds = {key: draw(st.integers(1, 34)) for key in keys}
    return over, thresholds, {key: draw(st.sampled_from([0.1, 0.9, 1.0, 3.5])) for key in keys}


def key_of(setting: dict[str, int], over: dict[str, list[int]]) -> tuple[int, ...]:
    return (*(setting[name] for name in over), 0)[:2]


@settings(max_examples=40)
@given(grids(), st.sampled_from([None, 0.0, 0.2]), st.integers(1, 4), st.booleans())
def test_every_setting_has_its_threshold_and_the_best_costs_least(
    drawn: tuple, keep_within: float | None, slots: int, minimise: bool
) -> None:
    over, thresholds, price = drawn
    values = range(1, 33)

    def score(setting: dict[str, int], value: int, seed: int) -> float:
        good = value >= thresholds[key_of(setting, over)]
        return float(good != minimise)

    def cost(value: int, setting: dict[str, int]) -> float:
        return price[key_of(setting, over)] * (value + 3)

    result = found(
        score, slots, values=values, over=over, cost=cost, keep_within=keep_within,
        mode="min" if minimise else "max", target=0.1 if minimise else 0.9,
    )  # fmt: skip
    exact = {}
    for one in result:
        least = thresholds[key_of(dict(one.setting), over)]
        exact[key_of(dict(one.setting), over)] = least if least in values else None
    costs = {key: price[key] * (value + 3) for key, value in exact.items() if value}
    best = min(costs.values(), default=None)
    assert (result.best and result.best.cost) == best
    for one in result:
        key = key_of(dict(one.setting), over)
        if one.status == "found":
            assert (one.value, one.cost) == (exact[key], costs[key])
            assert one.passed == ProbeResult(one.value, float(not minimise), 2)
            assert (one.failed is None) == (one.value == 1)
        elif one.status == "censored":
            assert exact[key] is None
        else:
            assert (one.status, keep_within is not None) == ("pruned", True)
            near = [v for v in values if price[key] * (v + 3) <= best * (1 + Fraction(keep_within))]
            assert exact[key] is None or exact[key] not in near


def test_settings_share_one_pool_and_stay_in_the_order_of_the_grid() -> None:
    result = found(rising({1: 40, 2: 20, 3: 90}), 3, over=GRID)
    assert [dict(one.setting) for one in result] == [
        {"depth": depth, "heads": heads} for depth in (1, 2, 3) for heads in (1, 4)
    ]
    assert [one.value for one in result] == [40, 40, 20, 20, None, None]
    assert result.best is None
    assert result.at(depth=2, heads=4).value == 20
    with pytest.raises(KeyError, match="2 settings have depth=2; there are: depth=1, heads=1; "):
        result.at(depth=2)


def test_a_margin_spares_trials() -> None:
    grid = {"over": {"depth": [1, 2, 3]}, "cost": lambda value, setting: value * setting["depth"]}
    score = rising({1: 40, 2: 15, 3: 60})
    every, kept = found(score, **grid), found(score, **grid, keep_within=0.1)
    for result in (every, kept):
        assert (dict(result.best.setting), result.best.cost) == ({"depth": 2}, 30)
    assert trainings(kept) < trainings(every)


def test_fails_above_a_pass_are_reported_even_where_the_search_did_not_need_them() -> None:
    def score(setting: dict[str, int], value: int, seed: int) -> float:
        return float(20 <= value < 40)

    one = found(score, values=range(1, 65), guess=30)[0]
    assert (one.status, one.value, one.fails_above) == ("found", 20, ())
    question, kept = ask(guess=30), ScoreFile(None, {})
    for seed in (0, 1):
        kept.add(50, seed, 0.5)
    one = drive(SettingSearch(question, kept), score)[0]
    assert (one.status, one.value) == ("found", 20)
    assert one.fails_above == (ProbeResult(50, 0.5, 2),)
    assert repr(one).endswith("; yet fails above it, at 50)")
    kept = ScoreFile(None, {})
    for value, mean in ((1, 0.95), (2, 0.5)):
        for seed in (0, 1):
            kept.add(value, seed, mean)
    one = drive(SettingSearch(ask(values=range(1, 65), guess=20), kept), score)[0]
    assert (one.status, one.value) == ("found", 20)
    assert repr(one).endswith("; yet a value below 2 passes, as scores shows)")
    kept = ScoreFile(None, {})
    for seed in (0, 1):
        kept.add(2, seed, 0.95)
    one = drive(SettingSearch(ask(values=range(1, 9), guess=8), kept), lambda *run: 0.1)[0]
    assert (one.status, one.scores[2]) == ("censored", {0: 0.95, 1: 0.95})
    assert repr(one).endswith("allowed, 8; yet a value below 8 passes, as scores shows)")


def test_a_threshold_that_fresh_seeds_refute_is_a_fail() -> None:
    def lucky(setting: dict[str, int], value: int, seed: int) -> float:
        return 0.95 if value >= 30 or (value >= 20 and seed < 2) else 0.5

    first = found(lucky)[0]
    assert (first.value, first.fresh) == (20, None)
    one = found(lucky, confirm_seeds=4)[0]
    assert (one.value, one.fresh) == (30, ProbeResult(30, pytest.approx(0.95), 4))
    assert one.failed.value == 29
    assert one.fails_above == ()
    assert ", on fresh seeds 0.95 (4 seeds); at 29: " in repr(one)


# ----- Errors


def test_a_value_that_raises_ends_the_search_and_is_reported() -> None:
    error = RuntimeError("no GPU\nat all")
    one = found(lambda s, value, seed: error if value > 30 else 0.5)[0]
    assert (one.status, one.value, one.because) == (
        "open", None, "width = 33, seed 0: RuntimeError: no GPU",
    )  # fmt: skip
    assert [(e.value, e.seed, e.message) for e in one.errors] == [(33, 0, "RuntimeError: no GPU")]
    assert repr(one) == "Threshold(open: width = 33, seed 0: RuntimeError: no GPU)"


@pytest.mark.parametrize(("least", "most"), [(1, 30), (1, 12), (28, 64), (40, 64)])
def test_a_value_that_raises_fails_if_asked(least: int, most: int) -> None:
    def score(setting: dict[str, int], value: int, seed: int) -> float | Exception:
        error = MemoryError("3 are wanted, none is left")
        return error if not least <= value <= most else float(value >= 11)

    one = found(score, slots=2, on_error="fail")[0]
    assert (one.status, one.value) == ("found", max(11, least))
    assert all(not least <= error.value <= most for error in one.errors)
    if least > 11:
        assert one.failed is None
        below = least - 1
        told = f"{below} could not be run (at {below}: MemoryError: 3 are wanted, none is left)"
        assert one.because == f"passes at width = {least}, {told}"
        assert repr(one).endswith(f"1 (2 seeds) ≥ 0.9; {told})")


def test_a_trainable_that_always_raises_has_no_threshold_and_says_why() -> None:
    one = found(lambda *run: OSError("disk"), on_error="fail", values=[1, 2, 4])[0]
    assert one.status == "censored"
    assert one.because == (
        "no pass up to the largest width allowed, 4; could not be run at width = 1, 2, 4 "
        "(at 1: OSError: disk)"
    )


def test_under_stop_an_error_ends_its_setting_alone() -> None:
    def score(setting: dict[str, int], value: int, seed: int) -> float | Exception:
        return ValueError("odd") if setting["depth"] == 2 else float(value >= 7)

    result = found(score, over={"depth": [1, 2, 3]})
    assert [(one.status, one.value) for one in result] == [
        ("found", 7), ("open", None), ("found", 7),
    ]  # fmt: skip


def test_a_score_out_of_bounds_names_its_value() -> None:
    with pytest.raises(ValueError, match=r"^width = 33, seed 0: accuracy: score 2\.0: not in 0…1$"):
        found(lambda *run: 2.0)


# ----- The file of scores


def test_a_search_goes_on_from_its_file_with_another_grid_and_needs_no_ray(tmp_path: Path) -> None:
    path, score = tmp_path / "scores.log", rising({1: 40, 2: 20, 3: 9})
    for depths in ([1, 2], [3]):
        question = ask(over={"depth": depths})
        drive(SettingSearch(question, ScoreFile(path, ABOUT)), score)
    search = {"axis": "width", "metric": "accuracy", "target": 0.9, "bounds": (0, 1), "seeds": 2}
    answer = find_thresholds(
        train, values=range(1, 65), over={"depth": [3, 1]}, store=path, **search
    )
    assert [one.value for one in answer] == [9, 40]
    assert answer[0].scores[9] == {0: 1.0, 1: 1.0}
    single = tmp_path / "single.log"
    question = ask()
    drive(SettingSearch(question, ScoreFile(single, ABOUT)), rising({0: 33}))
    assert find_threshold(train, values=range(1, 65), store=single, **search).value == 33
    with pytest.raises(ValueError, match=r"scores\.log holds scores of .*; give another file"):
        find_threshold(train, values=range(1, 65), store=path, **search | {"metric": "loss"})


SCRIPT = """
import sys
from rgr_dist.search.tune.find_threshold import find_threshold
from rgr_dist.search.tune.score_file import ScoreFile

def train(config):
    raise AssertionError("trained again")

about = {"axis": "width", "metric": "accuracy", "config": {}, "trainable": train}
kept = ScoreFile("scores.log", about)
kept.add(1, 0, 0.0)
kept.add(2, 0, 1.0)
search = {"axis": "width", "values": [1, 2, 3], "metric": "accuracy", "target": 0.9, "seeds": 1}
found = find_threshold(train, **search, store="scores.log")
print(found, "ray" in sys.modules, "matplotlib" in sys.modules)
"""


def test_a_file_that_answers_all_does_without_ray(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = in_a_process(tmp_path / "script.py")
    line = "Threshold(width = 2: accuracy 1 (1 seed) ≥ 0.9; at 1: 0 (1 seed)) False False"
    assert (done.stdout.strip(), done.stderr) == (line, "")
