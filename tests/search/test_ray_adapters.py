"""What Ray Tune may ask of the adapters, and every bad answer it can hand back; no Ray started."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import Searcher

from rgr_dist.search.portfolio import Portfolio
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan, Probe, ProbeKey
from rgr_dist.search.tune.scheduler import SeedScheduler
from rgr_dist.search.tune.searcher import ThresholdSearcher
from tests.search.simulated_cells import axes_to

THRESHOLD = 5


def portfolio(arms: tuple[int, ...] = (1,), seeds: int = 2, **plan: Any) -> Portfolio:
    limits = {arm: 16 // arm for arm in arms}
    plan = {"guess_cost": 8.0, "guess_arm": 1.0, "keep_within": None, "intervals": False} | plan
    return Portfolio([CellPlan("cell", axes_to(limits), **plan)], SeedTest(0.99, seeds))


class Study:
    """The two adapters around one portfolio, wired as a study wires them."""

    def __init__(self, search: Portfolio, record: Callable | None = None) -> None:
        self.portfolio = search
        self.searcher = ThresholdSearcher(search, lambda p: {"arm": p.arm, "value": p.value})
        self.scheduler = SeedScheduler(self.searcher, record or self.record)

    def record(self, probe: Probe, result: dict[str, Any]) -> None:
        for seed, score in result.get("scores", {}).items():
            self.portfolio.tell(probe.cell, probe.arm, probe.value, seed, score)

    def report(self, trial_id: str, scores: dict[int, float]) -> str:
        trial = SimpleNamespace(trial_id=trial_id)
        return self.scheduler.on_trial_result(None, trial, {"scores": scores})

    def run_out(self) -> None:
        """Run trials one by one, as Tune does, until the searcher has finished."""
        for number in range(100):
            config = self.searcher.suggest(f"after {number}")
            if config == Searcher.FINISHED:
                return
            passed = config["value"] >= THRESHOLD
            decision = self.report(f"after {number}", dict.fromkeys(range(2), float(passed)))
            assert decision == TrialScheduler.STOP
            self.searcher.on_trial_complete(f"after {number}", {"scores": {}})
        pytest.fail("the searcher never finishes")


def test_a_trial_is_a_probe_and_the_search_ends_with_finished() -> None:
    study = Study(portfolio())
    study.run_out()
    assert study.portfolio.state("cell").result(1).value == THRESHOLD
    assert study.searcher.suggest("one more") == Searcher.FINISHED


def test_suggest_answers_none_only_while_a_probe_runs() -> None:
    search = portfolio()
    search.look_ahead = 0
    study = Study(search)
    assert study.searcher.suggest("a") == {"arm": 1, "value": 8}
    assert study.searcher.suggest("b") is None
    study.report("a", {0: 1.0, 1: 1.0})
    study.searcher.on_trial_complete("a", {})
    assert isinstance(study.searcher.suggest("b"), dict)


def test_waiting_for_nobody_is_an_error_not_a_hang() -> None:
    search = portfolio()
    search.look_ahead = 0
    search.ask()  # somebody else holds the only probe
    with pytest.raises(RuntimeError, match="no probe is being run"):
        ThresholdSearcher(search, lambda p: {}).suggest("a")


def test_a_trial_goes_on_until_its_verdict_is_known() -> None:
    study = Study(portfolio())
    study.searcher.suggest("a")
    assert study.report("a", {0: 1.0}) == TrialScheduler.CONTINUE
    assert study.report("a", {1: 1.0}) == TrialScheduler.STOP


@pytest.mark.parametrize("result", [None, {}, {"scores": {0: 0.0}, "done": True}])
def test_what_a_trial_ends_with_is_no_evidence(result: dict | None) -> None:
    """Scores arrive through the scheduler alone; Tune may hand back the last result, or none."""
    study = Study(portfolio())
    study.searcher.suggest("a")
    study.report("a", {0: 1.0, 1: 1.0})
    study.searcher.on_trial_complete("a", result)
    study.run_out()
    assert study.portfolio.state("cell").result(1).value == THRESHOLD


def test_a_trial_that_ends_before_any_result_is_run_again() -> None:
    study = Study(portfolio())
    first = study.searcher.suggest("a")
    study.searcher.on_trial_complete("a", None)
    assert study.searcher.suggest("b") == first


def test_a_probe_whose_trials_all_end_in_silence_is_given_up() -> None:
    study = Study(portfolio())
    for trial in range(100):
        if study.searcher.suggest(str(trial)) == Searcher.FINISHED:
            break
        study.searcher.on_trial_complete(str(trial), None)
    assert trial == study.searcher.lost.attempts
    assert study.portfolio.state("cell").result(1).status == "open"


def test_a_trial_in_error_is_asked_for_again_without_the_seeds_known_by_then() -> None:
    study = Study(portfolio())
    study.searcher.suggest("a")
    probe = study.searcher.probes["a"]
    study.portfolio.tell(probe.cell, probe.arm, probe.value, 0, 1.0)
    study.searcher.on_trial_complete("a", None, error=True)
    study.searcher.suggest("b")
    assert study.searcher.probes["b"] == replace(probe, seeds=(1,))


@pytest.mark.parametrize(
    ("causes", "reported"),
    [(("died",) * 3, "died"), (("overdue", "out of memory", "overdue"), "out of memory")],
)
def test_a_probe_that_loses_every_trial_is_reported_and_leaves_its_arm_open(
    causes: tuple[str, ...], reported: str
) -> None:
    study = Study(portfolio(arms=(1, 2)))
    lost: list[tuple[Probe, str]] = []
    study.searcher.on_lost = lambda *report: lost.append(report)
    for trial, cause in zip("abc", causes, strict=True):
        study.searcher.suggest(trial)
        assert not lost
        if cause != "died":
            study.searcher.lost.note(study.searcher.probes[trial], cause)
        study.searcher.on_trial_complete(trial, None, error=True)
    assert [(probe.arm, cause) for probe, cause in lost] == [(1, reported)]
    study.run_out()
    state = study.portfolio.state("cell")
    assert (state.result(1).status, state.result(2).status) == ("open", "found")


def test_a_trial_whose_runs_fail_stops() -> None:
    """A failed run is no reason to train its seeds again and again."""

    def record(probe: Probe, result: dict[str, Any]) -> None:
        search.tell_failed(probe.cell, probe.key)

    search = portfolio(arms=(1, 2))
    study = Study(search, record)
    study.searcher.suggest("a")
    assert study.report("a", {}) == TrialScheduler.STOP


@pytest.mark.parametrize("error", [False, True])
def test_an_unknown_trial_and_a_second_end_change_nothing(error: bool) -> None:
    study = Study(portfolio())
    study.searcher.on_trial_complete("never seen", {"scores": {0: 1.0}}, error=error)
    study.searcher.suggest("a")
    study.report("a", {0: 1.0, 1: 1.0})
    study.searcher.on_trial_complete("a", {})
    study.searcher.on_trial_complete("a", {}, error=error)
    study.run_out()
    assert study.portfolio.state("cell").result(1).value == THRESHOLD


def test_a_result_that_comes_twice_counts_once() -> None:
    study = Study(portfolio())
    study.searcher.suggest("a")
    assert study.report("a", {0: 1.0}) == TrialScheduler.CONTINUE
    assert study.report("a", {0: 1.0}) == TrialScheduler.CONTINUE
    assert study.portfolio.scores("cell", ProbeKey(1, 8)) == {0: 1.0}


def test_a_result_of_an_unknown_trial_stops_it_and_is_not_recorded() -> None:
    study = Study(portfolio(), record=lambda probe, result: pytest.fail("recorded"))
    assert study.report("never seen", {0: 1.0}) == TrialScheduler.STOP


@pytest.mark.parametrize("scores", [{0: float("nan")}, {0: None}, {0: 1.5}])
def test_a_score_that_cannot_be_recorded_ends_the_study_and_says_why(scores: dict) -> None:
    study = Study(portfolio())
    study.searcher.suggest("a")
    assert study.report("a", scores) == TrialScheduler.STOP
    assert isinstance(study.scheduler.fault, ValueError | TypeError)
    study.searcher.on_trial_complete("a", {})
    assert study.searcher.suggest("b") == Searcher.FINISHED
    assert study.portfolio.scores("cell", ProbeKey(1, 8)) == {}


def test_what_cannot_be_recorded_ends_the_study_and_stops_every_trial() -> None:
    disk_full = OSError("no space left")
    recorded = []

    def record(probe: Probe, result: dict[str, Any]) -> None:
        recorded.append(probe)
        raise disk_full

    study = Study(portfolio(), record)
    study.searcher.suggest("a")
    study.searcher.suggest("b")
    assert study.report("a", {0: 1.0}) == TrialScheduler.STOP
    assert study.report("b", {0: 1.0}) == TrialScheduler.STOP
    assert len(recorded) == 1
    assert study.scheduler.fault is disk_full
    assert study.searcher.suggest("c") == Searcher.FINISHED


def test_nothing_is_saved_or_restored(tmp_path: Any) -> None:
    searcher = ThresholdSearcher(portfolio(), lambda p: {})
    searcher.save(str(tmp_path / "state"))
    searcher.restore(str(tmp_path / "state"))
    assert list(tmp_path.iterdir()) == []
