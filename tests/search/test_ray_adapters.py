"""What Ray Tune may ask of the searcher, and every bad answer it can hand back; no Ray started."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from ray import cloudpickle
from ray.tune.search import Searcher

from rgr_dist.search.old_portfolio import Portfolio
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan, Probe, ProbeKey
from rgr_dist.search.tune.lost_workers import ATTEMPTS, LOW_ON_MEMORY
from rgr_dist.search.tune.runner import WhileNeeded
from rgr_dist.search.tune.searcher import ProbeSearcher
from tests.search.simulated_cells import axes_to

THRESHOLD = 5
DIED = "The actor died unexpectedly before finishing this task."
RAISED = "ray::ImplicitFunc.train() (pid=1, ip=127.0.0.1)\n  File x\nValueError: odd"


def portfolio(arms: tuple[int, ...] = (1,), seeds: int = 2, **plan: Any) -> Portfolio:
    limits = {arm: 16 // arm for arm in arms}
    plan = {"guess_cost": 8.0, "guess_arm": 1.0, "keep_within": None, "intervals": False} | plan
    return Portfolio([CellPlan("cell", axes_to(limits), **plan)], SeedTest(0.99, seeds))


class Study:
    """The searcher of a portfolio, wired as a study wires it."""

    def __init__(self, search: Portfolio, record: Callable | None = None, slots: int = 9) -> None:
        self.portfolio = search
        self.failed: list[tuple[Probe, str]] = []
        self.searcher = ProbeSearcher(
            search,
            lambda p: {"arm": p.arm, "value": p.value},
            record or self.record,
            on_failed=lambda *failed: self.failed.append(failed),
            slots=lambda: slots,
        )

    def record(self, trial_id: str, probe: Probe, result: dict[str, Any]) -> None:
        for seed, score in result.get("scores", {}).items():
            self.portfolio.tell(probe.cell, probe.arm, probe.value, seed, score)

    def end(self, trial_id: str, scores: dict[int, Any], **result: Any) -> None:
        self.searcher.on_trial_complete(trial_id, {"scores": scores, "done": True} | result)

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
    study.end("a", {0: 1.0, 1: 1.0})
    assert isinstance(study.searcher.suggest("b"), dict)


def test_no_more_trials_run_than_there_are_slots() -> None:
    study = Study(portfolio(seeds=9), slots=2)
    study.portfolio.slots = 2
    given = [study.searcher.suggest(f"{number}") for number in range(4)]
    assert [config is None for config in given] == [False, False, True, True]


def test_waiting_for_nobody_is_an_error_not_a_hang() -> None:
    search = portfolio()
    search.look_ahead = 0
    search.ask()  # somebody else holds the only probe
    with pytest.raises(RuntimeError, match="no probe is being run"):
        Study(search).searcher.suggest("a")


def test_a_trial_goes_on_until_its_verdict_is_known() -> None:
    study = Study(portfolio(seeds=3))
    stop = WhileNeeded(study.searcher)
    study.portfolio.tell("cell", 1, 8, 0, 1.0)
    study.searcher.suggest("a")
    assert not stop("a", {})
    assert stop("a", {"done": True})
    study.portfolio.tell("cell", 1, 8, 1, 1.0)
    assert not stop("a", {})
    study.portfolio.tell("cell", 1, 8, 2, 1.0)
    assert stop("a", {})
    study.end("a", {1: 0.0, 2: 0.0})
    assert study.portfolio.scores("cell", ProbeKey(1, 8)) == {0: 1.0, 1: 1.0, 2: 1.0}
    assert not stop.stop_all()
    study.run_out()
    assert stop.stop_all()


@pytest.mark.parametrize("result", [None, {}, {"scores": {0: 0.0}}, {"done": True}])
def test_a_trial_that_ends_before_its_own_end_is_run_again(result: dict | None) -> None:
    study = Study(portfolio())
    first = study.searcher.suggest("a")
    study.searcher.on_trial_complete("a", result)
    assert study.searcher.suggest("b") == first
    assert study.portfolio.scores("cell", ProbeKey(1, 8)) == {}


def test_a_probe_whose_trials_all_end_in_silence_is_given_up() -> None:
    study = Study(portfolio())
    for trial in range(100):
        if study.searcher.suggest(str(trial)) == Searcher.FINISHED:
            break
        study.searcher.on_trial_complete(str(trial), None)
    assert trial == ATTEMPTS
    assert study.portfolio.state("cell").result(1).status == "open"


def test_a_trial_in_error_is_asked_for_again_without_the_seeds_known_by_then() -> None:
    study = Study(portfolio())
    study.searcher.suggest("a")
    probe = study.searcher.probes["a"]
    study.portfolio.tell(probe.cell, probe.arm, probe.value, 0, 1.0)
    study.fail("a")
    study.searcher.suggest("b")
    assert study.searcher.probes["b"] == replace(probe, seeds=(1,))


@pytest.mark.parametrize("error", [RAISED, None])
def test_what_the_trainable_raises_is_not_tried_again(error: str | None) -> None:
    study = Study(portfolio())
    study.searcher.suggest("a")
    study.searcher.on_trial_complete("a", error=True)
    if error:
        study.searcher.explain("a", error)
    assert study.searcher.suggest("b") == Searcher.FINISHED
    assert len(study.failed) == 1


@pytest.mark.parametrize(
    ("causes", "reported"),
    [(("died",) * 3, "died"), (("overdue", "out of memory", "died"), "out of memory")],
)
def test_a_probe_that_loses_every_trial_is_reported_and_leaves_its_arm_open(
    causes: tuple[str, ...], reported: str
) -> None:
    study = Study(portfolio(arms=(1, 2)))
    for trial, cause in zip("abc", causes, strict=True):
        study.searcher.suggest(trial)
        assert not study.failed
        if cause == "overdue":
            probe = study.searcher.probes[trial]
            study.searcher.losses.causes[probe.cell, probe.key] = cause
        study.fail(trial, LOW_ON_MEMORY if cause == "out of memory" else DIED)
    assert [(probe.arm, cause) for probe, cause in study.failed] == [(1, reported)]
    study.run_out()
    state = study.portfolio.state("cell")
    assert (state.result(1).status, state.result(2).status) == ("open", "found")


def test_seeds_that_are_lost_together_have_each_an_attempt_of_their_own() -> None:
    study = Study(portfolio(seeds=3))
    study.portfolio.slots, study.portfolio.together = 3, 1
    for number in range(3):  # a node dies with all seeds of a probe, again and again
        given = [f"{seed} {number}" for seed in range(3)]
        assert all(isinstance(study.searcher.suggest(trial), dict) for trial in given)
        assert {study.searcher.losses.of(study.searcher.probes[one]) for one in given} == {number}
        assert not study.failed
        for trial in given:
            study.fail(trial)
    assert [probe.seeds for probe, _ in study.failed] == [(0,), (1,), (2,)]


def test_of_several_trials_one_of_which_took_the_memory_each_is_tried_alone() -> None:
    study = Study(portfolio(seeds=4))
    study.portfolio.slots = study.portfolio.together = 2
    configs = [study.searcher.suggest(trial) for trial in "ab"]
    study.searcher.killed_for_memory()
    again = study.searcher.suggest("c")
    assert study.searcher.suggest("d") is None
    study.searcher.killed_for_memory()  # now it is known which
    assert study.searcher.losses.of(Probe("cell", 1, 8, (0, 1, 2, 3))) == 1
    assert again in configs
    study.searcher.suggest("e")
    assert study.searcher.suggest("f") is None, "the last of them runs alone too"
    study.end("e", dict.fromkeys(range(4), 1.0))
    assert isinstance(study.searcher.suggest("f"), dict)
    study.run_out()
    assert not study.failed


def test_a_trial_whose_runs_fail_is_not_run_again() -> None:
    """A failed run is no reason to train its seeds again and again."""

    def record(trial_id: str, probe: Probe, result: dict[str, Any]) -> None:
        search.tell_failed(probe.cell, probe.key, probe.seeds)

    search = portfolio(arms=(1,))
    study = Study(search, record)
    study.searcher.suggest("a")
    study.end("a", {})
    assert study.searcher.suggest("b") == Searcher.FINISHED
    assert not study.failed


@pytest.mark.parametrize("error", [False, True])
def test_an_unknown_trial_and_a_second_end_change_nothing(error: bool) -> None:
    study = Study(portfolio(), slots=1)
    study.searcher.on_trial_complete("never seen", {"scores": {0: 1.0}, "done": True}, error=error)
    study.searcher.explain("never seen", DIED)
    study.searcher.suggest("a")
    study.end("a", {0: 1.0, 1: 1.0})
    study.end("a", {0: 0.0})
    study.searcher.on_trial_complete("a", {}, error=error)
    study.run_out()
    assert study.portfolio.state("cell").result(1).value == THRESHOLD


def test_what_cannot_be_recorded_ends_the_study_and_stops_every_trial() -> None:
    disk_full = OSError("no space left")
    recorded = []

    def record(trial_id: str, probe: Probe, result: dict[str, Any]) -> None:
        recorded.append(probe)
        raise disk_full

    study = Study(portfolio(seeds=4), record)
    study.portfolio.together = 2
    for trial in "ab":
        study.searcher.suggest(trial)
    for trial in "ab":
        study.end(trial, {0: 1.0})
    assert len(recorded) == 1
    assert study.searcher.fault is disk_full
    assert WhileNeeded(study.searcher).stop_all()
    assert study.searcher.suggest("c") == Searcher.FINISHED


def test_what_cannot_be_recorded_of_a_lost_probe_ends_the_study_too() -> None:
    study = Study(portfolio())

    def full(probe: Probe, cause: str) -> None:
        raise OSError("no space left")

    study.searcher.on_failed = full
    study.searcher.suggest("a")
    study.fail("a", RAISED)
    assert isinstance(study.searcher.fault, OSError)


def test_nothing_of_a_study_is_saved(tmp_path: Any) -> None:
    searcher = Study(portfolio()).searcher
    searcher.save_to_dir(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    assert vars(cloudpickle.loads(cloudpickle.dumps(searcher))) == {}
