"""The thresholds of a grid of settings against trying everything, without Ray."""

from __future__ import annotations

import random
import subprocess
import sys
from bisect import bisect_left
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ray import tune

from rgr_dist.search.protocol import Probe, ProbeResult
from rgr_dist.search.tune.find_threshold import find_threshold, find_thresholds
from rgr_dist.search.tune.progress import CLEARED, ProgressLine
from rgr_dist.search.tune.question import Question
from rgr_dist.search.tune.score_file import ScoreFile
from rgr_dist.search.tune.setting_search import SettingSearch
from rgr_dist.search.tune.threshold import Thresholds

mpl.use("Agg")

ABOUT = {"axis": "width", "metric": "accuracy", "config": {}}
GRID = {"depth": [1, 2, 3], "heads": [1, 4]}


def train(config: dict[str, Any]) -> None:
    """Never called here."""


ABOUT |= {"trainable": train}


def ask(**changes: Any) -> Question:
    options = {
        "axis": "width", "values": range(1, 65), "metric": "accuracy", "target": 0.9,
        "bounds": (0, 1), "seeds": 2,
    }  # fmt: skip
    return Question.checked(**options | changes)


def drive(search: SettingSearch, score: Any, slots: int = 1, seed: int = 0) -> Thresholds:
    """Run what the search asks for in ``slots`` at a time, ending by chance.

    ``score(setting, value, seed)`` is a score, or the exception that the trial raises.
    """
    order, running = random.Random(seed), []
    search.portfolio.slots = slots
    while True:
        while len(running) < slots and isinstance(probe := search.portfolio.ask(), Probe):
            running.append(probe)
        if not running:
            break
        probe = running.pop(order.randrange(len(running)))
        config = search.config(probe)
        value, number = config.pop("width"), config.pop("seed")
        outcome = score(config, value, number)
        if isinstance(outcome, Exception):
            search.note(probe, f"{type(outcome).__name__}: {outcome}".rstrip(": "))
            search.portfolio.tell_failed(probe.cell, probe.key, probe.seeds)
        else:
            search.take_in(probe, outcome)
        search.portfolio.release(probe)
    return search.result()


def found(score: Any, slots: int = 1, **changes: Any) -> Thresholds:
    return drive(SettingSearch(ask(**changes), ScoreFile(None, {})), score, slots)


@pytest.mark.parametrize("on_error", ["stop", "fail"])
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


def trainings(found: Thresholds) -> int:
    return sum(map(len, found.thresholds[0].scores.values()))


def by_bisection(question: Question, score: Any) -> tuple[int | None, int]:
    """Plain bisection that spares seeds as the search does: its answer and its trainings."""
    count = 0

    def passes(value: int) -> bool:
        nonlocal count
        scores: dict[int, float] = {}
        while wave := question.test.next_wave(scores):
            scores |= {seed: score({}, value, seed) for seed in wave}
        count += len(scores)
        return question.test.verdict(scores) == "pass"

    at = bisect_left(question.values, True, key=passes)
    return (question.values[at] if at < len(question.values) else None), count


@given(st.integers(1, 70), st.integers(1, 3), st.integers(0, 99), st.booleans())
def test_with_up_to_three_seeds_and_no_guess_it_trains_what_plain_bisection_trains(
    threshold: int, seeds: int, noise: int, bounded: bool
) -> None:
    def score(_: dict, value: int, seed: int) -> float:
        luck = random.Random(f"{noise} {value} {seed}").random()
        return min(1.0, 0.9 * value / threshold - 0.1 * luck) if value < threshold else 1.0

    options = {"seeds": seeds, "bounds": (0, 1) if bounded else (None, None)}
    result = found(score, **options)
    assert (result.thresholds[0].value, trainings(result)) == by_bisection(ask(**options), score)


def test_what_idle_slots_trained_in_vain_is_counted_apart() -> None:
    def score(_: dict, value: int, seed: int) -> float:
        return float(value >= 40)

    alone, many = found(score), found(score, slots=8)
    (needed,), (ahead,) = alone, many
    assert needed.ahead == 0
    assert ahead.ahead == trainings(many) - trainings(alone) > 0
    assert ahead == replace(needed, scores=ahead.scores)
    search = SettingSearch(ask(), ScoreFile(None, {}))
    search.portfolio.look_ahead = 0
    assert trainings(drive(search, score, slots=8)) == trainings(alone)


def test_what_a_file_brought_was_not_trained_in_vain(tmp_path: Path) -> None:
    def score(_: dict, value: int, seed: int) -> float:
        return float(value >= 40)

    path = tmp_path / "scores.log"
    drive(SettingSearch(ask(seeds=9), ScoreFile(path, ABOUT)), score)
    (fewer,) = drive(SettingSearch(ask(seeds=2), ScoreFile(path, ABOUT)), score)
    assert max(map(len, fewer.scores.values())) == 9
    assert fewer.ahead == 0
    assert "in vain" not in fewer.explain()


@pytest.mark.parametrize(("seeds", "share"), [(5, 0.82), (10, 0.66)])
def test_with_more_seeds_it_takes_fewer_trainings_than_plain_bisection(
    seeds: int, share: float
) -> None:
    taken = plain = 0
    for threshold in range(1, 66):

        def score(_: dict, value: int, seed: int, threshold: int = threshold) -> float:
            return 1.0 if value >= threshold else 0.8 * value / threshold

        result = found(score, seeds=seeds)
        answer, count = by_bisection(ask(seeds=seeds), score)
        assert result.thresholds[0].value == answer
        taken, plain = taken + trainings(result), plain + count
    assert taken < share * plain


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


def rising(thresholds: dict[int, int]) -> Any:
    return lambda setting, value, seed: float(value >= thresholds[setting.get("depth", 0)])


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
    asked: dict[Any, int] = {}
    for keep_within in (None, 0.1):
        search = SettingSearch(
            ask(
                over={"depth": [1, 2, 3]}, cost=lambda v, s: v * s["depth"], keep_within=keep_within
            ),
            ScoreFile(None, {}),
        )
        result = drive(search, rising({1: 40, 2: 15, 3: 60}))
        assert result.best is not None
        assert (dict(result.best.setting), result.best.cost) == ({"depth": 2}, 30)
        asked[keep_within] = len(search.kept.scores)
    assert asked[0.1] < asked[None]


def test_a_line_says_what_was_found_and_what_shows_it() -> None:
    result = found(rising({1: 40, 2: 1, 3: 90}), over={"depth": [1, 2, 3]}, cost=lambda v, s: v)
    assert repr(result).splitlines() == [
        "3 thresholds (* the best)",
        "  depth=1: width = 40: accuracy 1 (2 seeds) ≥ 0.9; at 39: 0 (1 seed); cost 40",
        "* depth=2: width = 1: accuracy 1 (2 seeds) ≥ 0.9; cost 1",
        "  depth=3: censored: no pass up to the largest width allowed, 64",
    ]
    assert repr(result[0]).startswith("Threshold(depth=1: width = 40: accuracy 1 (2 seeds)")
    assert [row["width"] for row in result.rows()] == [40, 1, None]
    assert [row["is_best"] for row in result.rows()] == [False, True, False]


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
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
    )
    line = "Threshold(width = 2: accuracy 1 (1 seed) ≥ 0.9; at 1: 0 (1 seed)) False False"
    assert (done.stdout.strip(), done.stderr) == (line, "")


# ----- Arguments

REFUSED = [
    ({"mode": "minimize"}, "mode: should be 'max' or 'min', not 'minimize'"),
    ({"on_error": "ignore"}, "on_error: should be 'stop' or 'fail', not 'ignore'"),
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
    ({"seeds": 0}, "seeds: should be greater than 0, not 0"),
    ({"confirm_seeds": -1}, "confirm_seeds: should be greater than or equal to 0, not -1"),
    ({"slots": 1.5}, "slots: give a positive integer, not 1.5"),
    ({"guess": 65}, "guess: 65 lies outside the values 1…64"),
    ({"axis": "seed"}, "axis: 'seed' is set by the search; name another"),
    ({"metric": ""}, "metric: String should have at least 1 character, not ''"),
    ({"config": {"width": 3}}, "config: 'width' is set by the search"),
    ({"config": {"depth": 3}}, "config: 'depth' is set by the search"),
    ({"trainable": "train"}, "trainable: give a function of a config or a class of ray.tune"),
    ({"trainable": int}, "trainable: give a function of a config or a class of ray.tune"),
    ({"stop": {"loss": "small"}}, "stop: loss: give a finite number, not 'small'"),
    ({"config": {"rate": tune.uniform(0, 1)}}, "config: 'rate' is a search space, and the search "),
    ({"config": {"rate": tune.grid_search([1])}}, "config: 'rate' is a search space, and the "),
    ({"num_samples": 20}, "num_samples: the search decides how many trials it needs"),
    ({"scheduler": None}, "scheduler: pass rgr_dist.ThresholdSearch to a Tuner of your own"),
    ({"keep": "best"}, "keep: give 'threshold', or nothing, not 'best'"),
    ({"seed_key": "depth"}, "over: 'depth' is set by the search"),
    ({"stop": 10}, "stop: give names and numbers, not 10"),
    ({"over": {}}, "over: give at least one name"),
    ({"over": {"depth": 3}}, "over: give a list of values for 'depth', not 3"),
    ({"over": {"depth": []}}, "over: 'depth' has no value"),
    ({"over": {"depth": [1, 1]}}, "over: 'depth' has 1 twice"),
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
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["over", "cost", "keep_within"])
def test_one_threshold_is_not_that_of_a_grid(name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}: ask find_thresholds$"):
        find_threshold(train, "width", range(1, 65), "accuracy", 0.9, **{name: None})


# ----- The line that tells how far it is


def told(live: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: live, raising=False)
    search = SettingSearch(ask(over={"depth": [1, 2]}), ScoreFile(None, {}))
    line = ProgressLine(search)
    with line:
        for _ in range(4):
            probe = search.portfolio.ask()
            line.show(1)
            line.show(1)
            search.take_in(probe, float(probe.value >= 20))
            search.portfolio.release(probe)
    return capsys.readouterr().err


def test_a_line_for_each_bracket_where_it_is_piped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = told(False, capsys, monkeypatch).splitlines()
    assert lines[0] == "depth=1, width: 64 values; 1 more settings are open"
    assert lines[1].startswith("depth=1, width: passes at 33; 1 more")
    assert len(lines) == len(set(lines))


def test_one_line_in_a_terminal_with_the_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = told(True, capsys, monkeypatch)
    assert "\n" not in text
    assert "0 trained, 1 run\r" in text
    assert "3 trained, 1 run; about 1 min left" in text
    assert text.endswith(CLEARED)


def test_a_line_that_is_not_wanted_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressLine(SettingSearch(ask(), ScoreFile(None, {})), is_shown=False) as line:
        line.show(0)
    assert capsys.readouterr().err == ""


# ----- Figures


def test_a_figure_has_every_score_and_hollow_means_where_seeds_are_spared() -> None:
    one = found(rising({0: 20}), seeds=5)[0]
    ax = one.plot()
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("width", "accuracy", one.because)
    dots = [line for line in ax.lines if line.get_marker() == "."]
    assert sum(len(line.get_xdata()) for line in dots) == sum(map(len, one.scores.values()))
    hollow = {
        line.get_xdata()[0]
        for line in ax.lines
        if line.get_markerfacecolor() == "white" and len(line.get_xdata())
    }
    assert hollow == {value for value, scores in one.scores.items() if len(scores) < 5}
    assert hollow
    several = found(rising({1: 40, 2: 99}), over={"depth": [1, 2]}).plot()
    labels = [text.get_text() for text in several.get_legend().get_texts()]
    assert labels[:2] == ["depth=1: width = 40", "depth=2: censored"]
    assert labels[2:] == ["mean of fewer than 2 seeds", "target 0.9"]
    mpl.pyplot.close("all")


def test_without_matplotlib_plot_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    one = found(rising({0: 20}))[0]
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib"):
        one.plot()
