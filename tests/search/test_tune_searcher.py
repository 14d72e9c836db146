"""The searcher of a study's portfolio, and every bad end of a trial; no Ray is started."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from ray import cloudpickle, tune
from ray.tune.search import Searcher

from rgr_dist.search.portfolio import Portfolio, Probe
from rgr_dist.search.seed_test import SeedTest
from rgr_dist.search.threshold import Key, Plan
from rgr_dist.search.tune.runner import WhileNeeded, run_trials
from rgr_dist.search.tune.searcher import (
    ATTEMPTS,
    LOW_ON_MEMORY,
    UNKNOWN,
    ProbeSearcher,
    in_a_line,
)

THRESHOLD = 5
DIED = """The actor died unexpectedly before finishing this task.
\tclass_name: ImplicitFunc
The actor is dead because its node has died. Consider more memory for each task."""
RAISED = "ray::ImplicitFunc.train() (pid=1, ip=127.0.0.1)\n  File x\nmine.errors.Odd: odd\n  indeed"


class Study:
    """The searcher of a portfolio, wired as a study wires it."""

    def __init__(
        self,
        arms: tuple[int, ...] = (1,),
        seeds: int = 2,
        slots: int = 9,
        record: Callable[..., None] | None = None,
        **portfolio: Any,
    ) -> None:
        axes = {arm: range(1, 16 // arm + 1) for arm in arms}
        plan = Plan(axes, SeedTest(0.99, seeds), (1, 8), keep_within=None, intervals=False)
        self.portfolio = Portfolio({"cell": plan}, **portfolio)
        self.failed: list[tuple[Probe, str]] = []
        self.searcher = ProbeSearcher(
            self.portfolio,
            lambda probe: {"arm": probe.arm, "value": probe.value},
            record or self.record,
            on_failed=lambda *failed: self.failed.append(failed),
            slots=lambda: slots,
        )

    def record(self, trial_id: str, probe: Probe, result: dict[str, Any]) -> None:
        self.portfolio.tell("cell", probe.key, result.get("scores", {}))

    def end(self, trial_id: str, scores: dict[int, Any]) -> None:
        self.searcher.on_trial_complete(trial_id, {"scores": scores, "done": True})

    def fail(self, trial_id: str, error: str = DIED) -> None:
        self.searcher.on_trial_complete(trial_id, error=True)
        self.searcher.explain(trial_id, error)

    def run_out(self) -> None:
        """Run trials one by one, as Tune does, until the searcher has finished."""
        for number in range(100):
            config = self.searcher.suggest(f"after {number}")
            if config == Searcher.FINISHED:
                return
            passed = config["value"] >= THRESHOLD
            self.end(f"after {number}", dict.fromkeys(range(4), float(passed)))
        pytest.fail("the searcher never finishes")


def test_a_trial_is_a_probe_and_the_search_ends_with_finished() -> None:
    study = Study()
    study.run_out()
    assert study.portfolio.search("cell").result(1).value == THRESHOLD
    assert study.searcher.suggest("one more") == Searcher.FINISHED


def test_suggest_answers_none_only_while_a_probe_runs_and_at_most_slots_run() -> None:
    study = Study(look_ahead=0)
    assert study.searcher.suggest("a") == {"arm": 1, "value": 8}
    assert study.searcher.suggest("b") is None
    study.end("a", {0: 1.0, 1: 1.0})
    assert isinstance(study.searcher.suggest("b"), dict)
    many = Study(seeds=9, slots=2)
    given = [many.searcher.suggest(f"{number}") for number in range(4)]
    assert [config is None for config in given] == [False, False, True, True]


def test_a_trial_goes_on_until_its_verdict_is_known() -> None:
    study = Study(seeds=3)
    stop = WhileNeeded(study.searcher)
    study.searcher.suggest("a")
    assert not stop("a", {})
    assert stop("a", {"done": True})
    study.portfolio.tell("cell", Key(1, 8), {0: 1.0, 1: 1.0, 2: 1.0})
    assert stop("a", {})
    study.end("a", {0: 0.0, 1: 0.0})
    assert study.portfolio.scores("cell", Key(1, 8)) == {0: 1.0, 1: 1.0, 2: 1.0}
    study.run_out()
    assert stop.stop_all()


@pytest.mark.parametrize("result", [None, {}, {"scores": {0: 0.0}}, {"done": True}])
def test_a_trial_that_ends_without_a_score_is_run_again_three_times_at_most(result: Any) -> None:
    study = Study()
    first = study.searcher.suggest("0")
    for trial in range(1, ATTEMPTS + 1):
        study.searcher.on_trial_complete(f"{trial - 1}", result)
        assert not study.portfolio.scores("cell", Key(1, 8))
        again = study.searcher.suggest(f"{trial}")
        assert again == (first if trial < ATTEMPTS else Searcher.FINISHED)
    assert study.portfolio.search("cell").result(1).status == "open"


def test_a_lost_trial_is_asked_for_again_without_the_seeds_known_by_then() -> None:
    study = Study(seeds=4)
    study.end("a", {}) if study.searcher.suggest("a") is None else study.end("a", {0: 1.0})
    study.searcher.suggest("b")
    probe = study.searcher.probes["b"]
    study.portfolio.tell(probe.cell, probe.key, {probe.seeds[0]: 1.0})
    study.fail("b")
    study.searcher.suggest("c")
    assert study.searcher.probes["c"] == replace(probe, seeds=probe.seeds[1:])


@pytest.mark.parametrize("error", [RAISED, None])
def test_what_the_trainable_raises_is_not_tried_again(error: str | None) -> None:
    study = Study()
    study.searcher.suggest("a")
    study.searcher.on_trial_complete("a", error=True)
    if error:
        study.searcher.explain("a", error)
    assert study.searcher.suggest("b") == Searcher.FINISHED
    assert [why for _, why in study.failed] == [error or UNKNOWN]


@pytest.mark.parametrize("last", [DIED, LOW_ON_MEMORY])
def test_a_probe_that_loses_every_trial_is_reported_and_leaves_its_arm_open(last: str) -> None:
    study = Study(arms=(1, 2))
    for trial, error in zip("abc", (DIED, DIED, last), strict=True):
        study.searcher.suggest(trial)
        assert not study.failed
        study.fail(trial, error)
    assert [(probe.arm, why) for probe, why in study.failed] == [(1, last)]
    study.run_out()
    search = study.portfolio.search("cell")
    assert (search.result(1).status, search.result(2).status) == ("open", "found")


def test_of_several_trials_one_of_which_took_the_memory_each_is_tried_alone() -> None:
    study = Study(seeds=4, slots=2, together=2)
    study.portfolio.tell("cell", Key(1, 8), {0: 1.0})
    configs = [study.searcher.suggest(trial) for trial in "ab"]
    study.searcher.killed_for_memory()
    again = study.searcher.suggest("c")
    assert study.searcher.suggest("d") is None
    assert again in configs
    study.searcher.killed_for_memory()  # now it is known which
    assert study.searcher.suggest("e") in configs
    assert study.searcher.suggest("f") is None, "the last of them runs alone too"
    study.end("e", dict.fromkeys(range(4), 1.0))
    config = study.searcher.suggest("f")
    study.end("f", dict.fromkeys(range(4), float(config["value"] >= THRESHOLD)))
    study.run_out()
    assert not study.failed


def test_a_run_that_ends_for_its_memory_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray cannot be made to run out of memory in a test: a Tuner that raises stands for it."""
    ends = [RuntimeError(f"Caught unexpected exception: it was {LOW_ON_MEMORY}"), None, OSError()]
    told = []

    class Tuner:
        def __init__(self, *args: Any, **options: Any) -> None:
            """Take whatever a Tuner takes."""

        def fit(self) -> None:
            if error := ends.pop(0):
                raise error

    class Memory:
        def killed_for_memory(self) -> None:
            told.append("killed")

    monkeypatch.setattr(tune, "Tuner", Tuner)
    monkeypatch.setattr(tune, "TuneConfig", lambda **options: None)
    run_trials(object, Memory(), None)
    assert told == ["killed"]
    with pytest.raises(OSError):  # noqa: PT011 (any other error is not ours)
        run_trials(object, Memory(), None)


@pytest.mark.parametrize("error", [False, True])
def test_an_unknown_trial_and_a_second_end_change_nothing(error: bool) -> None:
    study = Study(slots=1)
    study.searcher.on_trial_complete("never seen", {"scores": {0: 1.0}, "done": True}, error=error)
    study.searcher.explain("never seen", DIED)
    study.searcher.suggest("a")
    study.end("a", {0: 1.0, 1: 1.0})
    study.end("a", {0: 0.0})
    study.searcher.on_trial_complete("a", {}, error=error)
    study.run_out()
    assert study.portfolio.search("cell").result(1).value == THRESHOLD


def test_what_cannot_be_recorded_ends_the_study_and_stops_every_trial() -> None:
    disk_full = OSError("no space left")

    def record(*ended: Any) -> None:
        raise disk_full

    study = Study(seeds=4, record=record, together=1)
    for trial in "ab":
        study.searcher.suggest(trial)
    for trial in "ab":
        study.end(trial, {0: 1.0})
    assert study.searcher.fault is disk_full
    assert WhileNeeded(study.searcher).stop_all()
    assert study.searcher.suggest("c") == Searcher.FINISHED
    lost = Study()
    lost.searcher.on_failed = record
    lost.searcher.suggest("a")
    lost.fail("a", RAISED)
    assert lost.searcher.fault is disk_full


def test_nothing_of_a_study_is_saved() -> None:
    assert vars(cloudpickle.loads(cloudpickle.dumps(Study().searcher))) == {}


def test_what_was_raised_is_told_in_a_line_and_rays_advice_is_not_cut() -> None:
    assert in_a_line(RAISED) == "Odd: odd"
    assert in_a_line(DIED) == " ".join(DIED.split())
