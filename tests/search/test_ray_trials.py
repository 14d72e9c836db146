"""How each end of a trial is taken in, driven by hand; no Ray started."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ray import tune
from ray.air import Result
from ray.tune.search import Searcher
from ray.tune.stopper import MaximumIterationStopper

from rgr_dist.search.tune.question import Question
from rgr_dist.search.tune.score_file import ScoreFile
from rgr_dist.search.tune.setting_search import SettingSearch
from rgr_dist.search.tune.threshold_search import ThresholdSearch
from rgr_dist.search.tune.trials import _stopper, _with_checkpoints
from tests.search.by_hand import search
from tests.search.driven import train


def searcher() -> ThresholdSearch:
    question = Question.checked(
        axis="width", values=range(1, 9), metric="loss", target=0.5, mode="min", bounds=(0, None),
        seeds=1,
    )  # fmt: skip
    search = SettingSearch(question, ScoreFile(None, {}))
    search.portfolio.look_ahead = 0
    trials = ThresholdSearch.of(search)
    trials.set_max_concurrency(1)
    return trials


def end(trials: ThresholdSearch, name: str, *results: dict[str, Any]) -> None:
    """A trial that reports these, as Tune hands them on."""
    for result in results:
        trials.on_trial_result(name, result)
    trials.on_trial_complete(name, {**(results[-1] if results else {}), "done": True, "pid": 1})


RAISED = """\x1b[36mray::train.train()\x1b[39m (pid=1, ip=127.0.0.1)
  File "mine.py", line 1, in train
    raise errors.Mine("mine\\n  indeed")
mine.errors.Mine: mine
  indeed"""


def fail(trials: ThresholdSearch, name: str, error: str) -> None:
    """A trial that ends in error, as Tune and a callback tell it."""
    trials.on_trial_complete(name, error=True)
    trials.explain(name, error)


def test_the_last_metric_of_a_trial_is_its_score_whatever_it_reports_after() -> None:
    trials = searcher()
    assert trials.suggest("a") == {"width": 5, "seed": 0}
    end(trials, "a", {"loss": 0.9}, {"loss": 0.4}, {"epoch": 2})
    assert trials.search.kept.scores[0][:3] == (5, 0, 0.4)
    assert trials.suggest("b")["width"] < 5


@pytest.mark.parametrize(
    ("results", "seen"),
    [([{"accuracy": 1, "eval/f1": 2, "config/rate": 0.1}], "accuracy, eval/f1"), ([], "nothing")],
)
def test_a_metric_that_no_trial_reports_ends_the_search(results: list, seen: str) -> None:
    trials = searcher()
    trials.suggest("a")
    end(trials, "a", *results)
    assert str(trials.fault) == f"metric: the trainable never reported 'loss'; it reported {seen}"
    assert trials.suggest("b") == Searcher.FINISHED


def test_a_metric_that_other_trials_report_is_an_error_of_the_one_that_does_not() -> None:
    trials = searcher()
    trials.suggest("a")
    end(trials, "a", {"loss": 0.9})
    trials.suggest("b")
    end(trials, "b", {"accuracy": 1})
    assert trials.fault is None
    assert trials.suggest("c") == Searcher.FINISHED
    found = trials.search.result()[0]
    assert (found.status, found.because) == ("open", "width = 7, seed 0: ValueError: no loss")


@pytest.mark.parametrize("loss", [math.nan, "high", None, "0.5", b"1"])
def test_a_metric_that_is_no_number_is_an_error_of_its_value(loss: Any) -> None:
    trials = searcher()
    trials.suggest("a")
    end(trials, "a", {"loss": loss})
    assert trials.suggest("b") == Searcher.FINISHED
    error = trials.search.result()[0].errors[0]
    assert (error.value, error.message) == (5, f"ValueError: loss is {loss!r}, no number")


def test_an_infinite_loss_is_a_fail() -> None:
    trials = searcher()
    trials.suggest("a")
    end(trials, "a", {"loss": math.inf})
    assert trials.suggest("b")["width"] > 5


def test_a_score_out_of_bounds_ends_the_search_and_is_not_kept() -> None:
    trials = searcher()
    trials.suggest("a")
    end(trials, "a", {"loss": -1})
    assert str(trials.fault) == "width = 5, seed 0: loss: score -1.0: not in 0…inf"
    assert trials.suggest("b") == Searcher.FINISHED
    assert trials.search.kept.scores == []


def test_what_the_user_raises_is_not_tried_again_but_a_process_that_dies_is() -> None:
    trials = searcher()
    trials.suggest("a")
    fail(trials, "a", RAISED)
    assert trials.suggest("b") == Searcher.FINISHED
    assert trials.search.result()[0].because == "width = 5, seed 0: Mine: mine"
    trials = searcher()
    for name in "abc":
        assert trials.suggest(name) == {"width": 5, "seed": 0}
        fail(trials, name, "The actor died unexpectedly before finishing this task.\n\tpid: 1\n")
    assert trials.suggest("d") == Searcher.FINISHED
    found = trials.search.result()[0]
    assert (found.status, len(found.errors)) == ("open", 3)
    assert found.errors[0].message == "The actor died unexpectedly before finishing this task."


def test_what_the_user_raises_is_told_safely_and_not_at_any_length() -> None:
    trials = searcher()
    trials.suggest("a")
    fail(trials, "a", RAISED.replace("Mine: mine", "Mine: \x1b[31mred\x07" + "x" * 20_000))
    trials.suggest("b")
    found = trials.search.result()[0]
    for text in (found.because, str(found), found.errors[0].message):
        assert text.isprintable()
        assert "Mine: \\x1b[31mred\\x07xxx" in text
        assert len(text) < 500


def test_a_trial_that_is_stopped_as_needless_is_no_error() -> None:
    trials = searcher()
    trials.suggest("a")
    trials.search.portfolio.tell_failed("0", trials.probes["a"].key, trials.probes["a"].seeds)
    assert trials.spare("a")
    end(trials, "a", {"loss": 9.0})
    assert trials.fault is None
    assert trials.search.kept.scores == []
    assert trials.search.result()[0].errors == ()


def test_trials_that_end_by_themselves_after_fewer_iterations_were_not_stopped_early() -> None:
    trials = searcher()
    for number in range(9):
        if trials.suggest(f"{number}") == Searcher.FINISHED:
            break
        ended = {"loss": 0.4, "training_iteration": number + 1, "done": True}
        trials.on_trial_complete(f"{number}", ended)
    found = trials.threshold()
    assert (found.value, found.stopped_early) == (1, ())


def test_a_trial_that_had_not_begun_as_the_search_ended_has_no_checkpoint() -> None:
    trials = searcher()
    while isinstance(trials.suggest("a"), dict):
        end(trials, "a", {"loss": 0.4})
    never_begun = Result(metrics={"trial_id": "a"}, checkpoint=None, error=None, path="")
    found = _with_checkpoints(trials.thresholds(), [never_begun], trials.search)
    assert (found[0].value, found[0].checkpoints) == (1, {})


# ----- What wrappers hide


class Model(tune.Trainable):
    """A class."""


class Loss(Model):
    """Another one."""

    def step(self) -> dict[str, Any]:
        return {"loss": 0}


def test_a_file_knows_what_tunes_wrappers_hold_or_refuses_it(tmp_path: Path) -> None:
    def other(config: dict[str, Any], **data: Any) -> None:
        """Another function."""

    def about(trainable: Any) -> Any:
        return ScoreFile(tmp_path / "scores", {"trainable": trainable}).about

    assert about(tune.with_resources(other, {"cpu": 2})) == about(other) != about(train)
    assert about(tune.with_resources(Model, {"cpu": 2})) == about(Model) != about(Loss)
    assert about(partial(other, n=1)) == about(partial(other, n=1)) != about(partial(other, n=2))
    for trainable in (other, Model):
        with pytest.raises(ValueError, match=r"^store: what tune.with_parameters holds cannot be"):
            about(tune.with_parameters(trainable, n=1))


# ----- When a trial ends


@pytest.mark.parametrize(
    ("users", "result", "ends"),
    [
        ({}, {"epoch": 2}, False),
        ({"epoch": 3}, {"epoch": 2}, False),
        ({"epoch": 3}, {"epoch": 3}, True),
        ({"eval/loss": 1}, {"eval": {"loss": 2}}, True),
        ({"eval/loss": 1}, {"eval": {}}, False),
        ({"eval/loss": 1}, {"eval": {"loss": None}}, False),
        ({"eval/loss": 1}, {"loss": 2}, False),
        ({"eval/loss": 1}, {"eval/loss": 2}, True),
        (lambda trial_id, result: result["epoch"] > 1, {"epoch": 2}, True),
        (lambda trial_id, result: result["epoch"] > 1, {"epoch": 1}, False),
        (MaximumIterationStopper(2), {}, False),
        (MaximumIterationStopper(1), {}, True),
    ],
)
def test_a_trial_ends_where_the_user_says(users: Any, result: dict, ends: bool) -> None:
    trials = searcher()
    trials.suggest("a")
    assert _stopper(trials, users)("a", result) is ends


def test_where_no_ray_is_started_one_trial_runs_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    one = search(max_concurrent=None)
    assert isinstance(one.suggest("a"), dict)
    assert one.suggest("b") is None
