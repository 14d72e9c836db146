"""Whole searches of small cells: each probe with its reason, and what is said of each arm."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rgr_dist.search.cell_search import replay
from rgr_dist.search.cell_state import CellState
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan, Decision, ProbeKey, ProbeResult, Words
from tests.search.oracles import step
from tests.search.simulated_cells import SimulatedCell, axes_to, cell_of, search

NEAR = "near the best, weight = {} (within 10% or one step)"
WORDS = Words(value="width", cost="weight", arms="blocks")


def decisions(cell: SimulatedCell) -> tuple[CellState, list[str]]:
    """The state at the end, and one line for each probe."""
    state, _ = search(cell)
    return state, [f"{d.arm} at {d.value}: {d.verdict}, {d.reason}" for d in state.decisions]


def test_the_level_rises_by_the_spread_then_doubles_then_the_bracket_is_bisected() -> None:
    _, lines = decisions(cell_of({1: 64}, step({1: 58}), guess_arm=1.0))
    assert lines == [
        "1 at 16: fail, look for a first pass at cost near 16",
        "1 at 24: fail, look for a first pass at cost near 24",
        "1 at 48: fail, look for a first pass at cost near 48",
        "1 at 64: pass, look for a first pass at cost near 96",
        "1 at 56: fail, bisect: fails at 48, passes at 64",
        "1 at 60: pass, bisect: fails at 56, passes at 64",
        "1 at 58: pass, bisect: fails at 56, passes at 60",
        "1 at 57: fail, bisect: fails at 56, passes at 58",
    ]


def test_from_a_pass_the_search_walks_down_in_growing_steps() -> None:
    _, lines = decisions(cell_of({1: 64}, step({1: 3}), guess_arm=1.0, guess_cost=40.0))
    assert lines == [
        "1 at 40: pass, look for a first pass at cost near 40",
        "1 at 26: pass, walk down: passes at 40, no fail known below",
        "1 at 13: pass, walk down: passes at 26, no fail known below",
        "1 at 3: pass, walk down: passes at 13, no fail known below",
        "1 at 1: fail, walk down: passes at 3, no fail known below",
        "1 at 2: fail, bisect: fails at 1, passes at 3",
    ]


def test_the_plans_spread_sets_the_first_steps_up_and_down() -> None:
    above, below = (
        decisions(cell_of({1: 64}, step({1: at}), guess_arm=1.0, spread=1.25))[1] for at in (19, 12)
    )
    assert above[:2] == [
        "1 at 16: fail, look for a first pass at cost near 16",
        "1 at 20: pass, look for a first pass at cost near 20",
    ]
    assert below[:2] == [
        "1 at 16: pass, look for a first pass at cost near 16",
        "1 at 12: pass, walk down: passes at 16, no fail known below",
    ]


def test_the_arms_nearest_to_the_expected_one_go_first_and_the_best_bounds_the_others() -> None:
    thresholds = {1: 20, 2: 11, 8: 3, 64: 9}
    limits = {64: 2, 8: 5, 2: 20, 1: 40}
    state, lines = decisions(cell_of(limits, step(thresholds), guess_arm=1.0, words=WORDS))
    assert lines == [
        "1 at 16: fail, look for a first pass at weight near 16",
        "1 at 24: pass, look for a first pass at weight near 24",
        "1 at 20: pass, bisect: fails at 16, passes at 24",
        "1 at 18: fail, bisect: fails at 16, passes at 20",
        "1 at 19: fail, bisect: fails at 18, passes at 20",
        "2 at 11: pass, near the best, weight = 20?",
        "2 at 7: fail, walk down: passes at 11, no fail known below",
        "2 at 9: fail, bisect: fails at 7, passes at 11",
        "2 at 10: fail, bisect: fails at 9, passes at 11",
        "8 at 3: pass, near the best, weight = 20?",
        "8 at 2: fail, walk down: passes at 3, no fail known below",
    ]
    assert {arm: state.result(arm).because for arm in state.plan.axes} == {
        1: "passes at width = 20, fails at 19",
        2: "passes at width = 11, fails at 10",
        8: "passes at width = 3, fails at 2",
        64: f"its smallest width is not {NEAR.format(20)}",
    }
    assert state.tried == [8, 2, 1]


def test_an_arm_that_failed_beyond_the_margin_is_not_probed_within_it() -> None:
    cell = cell_of({1: 40, 2: 20}, step({1: 5, 2: 11}), guess_cost=20.0, words=WORDS)
    state, lines = decisions(cell)
    assert lines[:2] == [
        "2 at 10: fail, look for a first pass at weight near 20",
        "2 at 15: pass, look for a first pass at weight near 30",
    ]
    assert not any(line.startswith("2 ") for line in lines[4:])
    pruned = state.result(2)
    assert (pruned.status, pruned.cost_low, pruned.cost_high) == ("pruned", 8, None)
    assert pruned.because == f"fails at width = 10, so at every width ≤ 3, those {NEAR.format(5)}"
    assert pruned.failed == ProbeResult(10, 0.5, 1)


def test_without_a_margin_an_arm_grows_until_it_passes() -> None:
    cell = cell_of({1: 6, 2: 4, 8: 9}, step({1: 5, 2: 9, 8: 5}), guess_cost=2.0, keep_within=None)
    state, lines = decisions(cell)
    assert lines == [
        "2 at 1: fail, look for a first pass at cost near 2",
        "1 at 3: fail, look for a first pass at cost near 3",
        "2 at 3: fail, look for a first pass at cost near 6",
        "1 at 6: pass, look for a first pass at cost near 6",
        "1 at 4: fail, bisect: fails at 3, passes at 6",
        "1 at 5: pass, bisect: fails at 4, passes at 6",
        "2 at 4: fail, grow until it passes",
        "8 at 1: fail, grow until it passes",
        "8 at 2: fail, grow until it passes",
        "8 at 4: fail, grow until it passes",
        "8 at 8: pass, grow until it passes",
        "8 at 6: pass, bisect: fails at 4, passes at 8",
        "8 at 5: pass, bisect: fails at 4, passes at 6",
    ]
    assert state.result(2).because == "no pass up to the largest value allowed, 4"


def rising(arm: int, value: int, seed: int) -> float:
    """The mean passes 0.99 between 9 and 10; it is unsure by ± 0.0052."""
    return round(0.985 + 0.001 * (value - 5) + (0.002, -0.002, 0.001)[seed], 4)


def test_intervals_are_walked_from_the_certificate_outwards() -> None:
    cell = cell_of({1: 16}, rising, seeds=3, guess_arm=1.0, guess_cost=8.0, intervals=True)
    state, lines = decisions(cell)
    spread = "interval: the spread of seeds at value = {}"
    assert lines == [
        "1 at 8: fail, look for a first pass at cost near 8",
        "1 at 12: pass, look for a first pass at cost near 12",
        "1 at 10: pass, bisect: fails at 8, passes at 12",
        "1 at 9: fail, bisect: fails at 8, passes at 10",
        *(f"1 at {value}: fail, {spread.format(value)}" for value in (9, 8, 7, 6, 5, 4)),
        *(f"1 at {value}: pass, {spread.format(value)}" for value in (10, 11, 12, 13, 14, 15)),
    ]
    at_5 = next(one for one in state.decisions if one.value == 5)
    scores = [rising(1, 5, seed) for seed in range(3)]
    ends = stats.t.interval(0.95, 2, *(f(scores) for f in (np.mean, stats.sem)))
    assert at_5.evidence.endswith("; 95% interval {:.4f} to {:.4f}".format(*ends))
    assert (state.result(1).cost_low, state.result(1).cost_high) == (5, 15)
    assert state.result(1).because == "passes at value = 10, fails at 9"


def lucky(arm: int, value: int, seed: int) -> float:
    """Passes from 8 on, and with its first two seeds at 4."""
    if value >= 8:
        return 1.0
    return 0.995 if value == 4 and seed < 2 else (0.96, 0.99)[seed % 2]


def test_a_retest_trains_both_sides_and_the_intervals_are_walked_anew() -> None:
    options = {"guess_cost": 8.0, "intervals": True, "words": WORDS}
    state, lines = decisions(cell_of({1: 16}, lucky, extra=2, **options))
    spread = "interval: the spread of seeds at width = {}"
    down = [7, 6, 5, 4, 3, 2, 1]
    beyond = f"1 at 8: pass, {spread.format(8)}"
    passing = {4: "pass"}
    assert lines == [
        "1 at 8: pass, look for a first pass at weight near 8",
        "1 at 5: fail, walk down: passes at 8, no fail known below",
        "1 at 6: fail, bisect: fails at 5, passes at 8",
        "1 at 7: fail, bisect: fails at 6, passes at 8",
        *(f"1 at {at}: {passing.get(at, 'fail')}, {spread.format(at)}" for at in down),
        beyond,
        "1 at 4: fail, retest: passes at 4, fails above it at 7",
        "1 at 7: fail, retest: passes at 4, fails above it at 7",
        *(f"1 at {at}: fail, {spread.format(at)}" for at in down),
        beyond,
    ]
    result = state.result(1)
    assert (result.status, result.value, result.cost_low, result.cost_high) == ("found", 8, 1, 8)
    assert result.failed == ProbeResult(7, pytest.approx(0.975), 4)
    retests = [d.want for d in state.decisions if d.reason.startswith("retest")]
    assert retests == ["extra seeds"] * 2


def test_a_pruned_arm_says_which_values_pass_only_until_they_are_retested() -> None:
    def score(arm: int, value: int, seed: int) -> float:
        if arm == 1:
            return float(value >= 6)
        return 0.995 if value == 2 and seed < 2 else (0.96, 0.99)[seed % 2]

    options = {"guess_cost": 6.0, "intervals": True, "words": WORDS, "guess_arm": 1.0}
    state, _ = decisions(cell_of({1: 16, 2: 8}, score, extra=2, **options))
    because = state.result(2).because
    assert because.startswith("fails at width = 4, the largest near the best, weight = 6 ")
    assert because.endswith("; passes at 2 on the first seeds, not with 2 more")


@pytest.mark.parametrize(("confirm", "extra"), [(20, 10), (5, 10), (20, 20)])
def test_what_fresh_seeds_refuted_stays_refuted_by_those_seeds_when_it_is_retested(
    confirm: int, extra: int
) -> None:
    """The seeds that a retest adds to 7 are among those that refuted it."""

    def score(_: int, value: int, seed: int) -> float:
        at_seven = 1.0 if seed < 10 else 0.98
        near = 1.0 if seed % 2 else 0.97
        return {4: 1.0, 5: near, 6: near, 7: at_seven}.get(value, float(value > 7))

    options = {"guess_cost": 8.0, "intervals": True, "confirm_seeds": confirm}
    state, _ = decisions(cell_of({1: 20}, score, 10, extra, **options))
    assert ProbeKey(1, 7) in state.retested & state.refuted
    result = state.result(1)
    assert result.status == "inconsistent"
    assert result.contradiction is not None
    passed, failed = result.contradiction
    assert passed.value == 4
    assert failed == ProbeResult(7, pytest.approx(0.98), confirm // 2 + 1)


def test_a_contradiction_that_cannot_be_retested_ends_the_arm() -> None:
    cell = cell_of({1: 16}, lucky, guess_cost=8.0, intervals=True, words=WORDS)
    state, lines = decisions(cell)
    assert not any("retest" in line for line in lines)
    result = state.result(1)
    assert (result.arm, result.status) == (1, "inconsistent")
    assert result.because == "passes at width = 4, fails above it at 7"
    assert (result.cost_low, result.cost_high) == (4, 8)
    assert (state.bound, state.best_cost, state.best) == (None, None, None)


def test_a_grid_is_retested_like_a_search() -> None:
    axes = {1: (4, 8, 16), 2: (3, 6)}
    plan = CellPlan("cell", axes, 16.0, keep_within=None, every_value=True)
    test = SeedTest(0.99, 2, extra=1)
    passing = (3, 8, 16)
    state, lines = decisions(SimulatedCell(plan, test, lambda a, v, s: (0.9, 1.0)[v in passing]))
    assert lines[5:] == [
        "2 at 3: pass, retest: passes at 3, fails above it at 6",
        "2 at 6: fail, retest: passes at 3, fails above it at 6",
    ]
    one, two = state.result(1), state.result(2)
    assert {key.value: seeds for key, seeds in state.asked.items() if key.arm == 2} == {3: 3, 6: 3}
    assert {seeds for key, seeds in state.asked.items() if key.arm == 1} == {2}
    assert (one.status, one.value, one.cost_low, one.cost_high) == ("found", 8, 8, 8)
    assert one.because == "passes at value = 8, fails at 4"
    assert (two.status, two.cost_low, two.cost_high) == ("inconsistent", 6, 14)
    assert two.because == "passes at value = 3, fails above it at 6"
    assert two.contradiction == (ProbeResult(3, 1.0, 3), ProbeResult(6, pytest.approx(0.9), 3))


def test_of_every_arm_the_largest_of_each_group_is_tried_until_one_fails() -> None:
    cell = cell_of(
        {arm: 30 // arm for arm in range(1, 31)},
        lambda arm, value, seed: float(arm >= 5 and value >= 3),
        every_arm=True,
        guess_cost=8.0,
        guess_arm=3.0,
        words=WORDS,
    )
    state, lines = decisions(cell)
    assert lines == [
        "3 at 3: fail, look for a first pass at weight near 8",
        "3 at 4: fail, look for a first pass at weight near 12",
        "6 at 2: fail, look for a first pass at weight near 12",
        "1 at 12: fail, look for a first pass at weight near 12",
        "3 at 8: fail, look for a first pass at weight near 24",
        "6 at 4: pass, look for a first pass at weight near 24",
        "6 at 3: pass, bisect: fails at 2, passes at 4",
        "4 at 5: fail, near the best, weight = 18?",
        "2 at 10: fail, near the best, weight = 18?",
        "5 at 4: pass, near the best, weight = 18?",
        "5 at 2: fail, walk down: passes at 4, no fail known below",
        "5 at 3: pass, bisect: fails at 2, passes at 4",
        "7 at 3: pass, near the best, weight = 15?",
        "7 at 2: fail, walk down: passes at 3, no fail known below",
        "1 at 16: fail, near the best, weight = 15?",
        "15 at 2: fail, near the best, weight = 15?",
        "16 at 1: fail, near the best, weight = 15?",
    ]
    near = NEAR.format(15)
    assert {arm: state.result(arm).because for arm in (1, 2, 5, 7, 8, 15, 17)} == {
        1: f"fails at width = 16, the largest {near}",
        2: f"fails at width = 10, so at every width ≤ 8, those {near}",
        5: "passes at width = 3, fails at 2",
        7: "passes at width = 3, fails at 2",
        8: f"15 blocks of width = 2 fail, so fewer do at every width ≤ 2, those {near}",
        15: f"fails at width = 2, the largest {near}",
        17: f"its smallest width is not {near}",
    }
    assert state.result(8).cost_low == 24
    assert state.tried == [1, 2, 3, 4, 5, 6, 7, 15, 16]


def test_a_threshold_at_the_bottom_of_the_axis_needs_no_fail() -> None:
    state, _ = decisions(cell_of({1: 8}, step({1: 1}), guess_arm=1.0))
    result = state.result(1)
    assert (result.value, result.failed) == (1, None)
    assert result.because == "passes at value = 1, the smallest there is"


def test_a_decision_says_what_its_verdict_rests_on() -> None:
    plan = CellPlan("cell", axes_to({1: 8}), 4.0)
    evidence = {ProbeKey(1, 4): {0: 0.9, 1: 0.9, 2: 1.0}}
    (decision,) = replay(plan, SeedTest(0.99, 10), evidence).decisions
    assert decision == Decision(
        arm=1,
        value=4,
        want="look",
        first_seed=0,
        seeds=10,
        reason="look for a first pass at cost near 4",
        verdict="fail",
        mean_score=0.9,
        n_seeds=2,
        evidence="mean 0.9000 over 2 of 10 seeds; even if the other 8 score 1, it is 0.98 < 0.99",
    )


def test_an_arm_with_a_failed_run_is_open_and_says_so() -> None:
    """Arm 1 passes from 4 on; arm 2 fails at 1, and a run of it at 3 cannot be trained."""
    plan = CellPlan("cell", axes_to({2: 8, 1: 16}), 2.0, 2.0, intervals=False)
    test, key = SeedTest(0.99, 2), ProbeKey(2, 3)
    known = {(2, 1): 0.5, (1, 2): 0.5, (1, 3): 0.5, (1, 6): 1.0, (1, 4): 1.0}
    evidence = {ProbeKey(*at): dict.fromkeys((0, 1), score) for at, score in known.items()}
    waiting = replay(plan, test, evidence)
    assert [need.key for need in waiting.needs] == [key]
    assert not waiting.is_done
    state = replay(plan, test, evidence, failed={key: {0}})
    failing = next(d for d in state.decisions if d.verdict == "open")
    assert (failing.arm, failing.value, failing.mean_score, failing.n_seeds) == (2, 3, None, 0)
    assert failing.evidence == "a run of this probe failed"
    result = state.result(2)
    assert state.is_done
    assert (result.status, result.cost_low, result.cost_high) == ("open", 4, None)
    assert result.because == "a run failed"
    assert state.tried == [2, 1]


def test_an_unfinished_arm_is_open_not_pruned() -> None:
    """Arm 1 is found at 4, so that arm 2 is of interest up to 3, which is still to be probed."""
    plan = CellPlan("cell", axes_to({1: 16, 2: 8, 8: 8}), 4.0, intervals=False, words=WORDS)
    evidence = {
        ProbeKey(1, value): dict.fromkeys((0, 1), float(value >= 4)) for value in (1, 2, 3, 4)
    }
    state = replay(plan, SeedTest(0.99, 2), evidence)
    assert [need.key for need in state.needs] == [ProbeKey(2, 3)]
    for arm in (2, 8):
        result = state.result(arm)
        assert (result.status, result.value, result.cost_high) == ("open", None, None)
        assert result.cost_low == arm
        assert result.because == "its search goes on"


@pytest.mark.parametrize("every_value", [True, False])
def test_intervals_and_grids_take_every_seed_though_few_settle_the_verdict(
    every_value: bool,
) -> None:
    plan = CellPlan("cell", axes_to({1: 8}), 5.0, every_value=every_value)
    test = SeedTest(0.5, 4)
    state, _ = search(SimulatedCell(plan, test, lambda arm, value, seed: float(value >= 5)))
    looked = [d.n_seeds for d in state.decisions if "look" in d.reason]
    beside = [d.n_seeds for d in state.decisions if d.reason.startswith(("interval", "listed"))]
    assert set(beside) == {4}
    assert len(beside) == (8 if every_value else 2)
    assert looked == ([] if every_value else [3])  # 5, until the interval wanted the other
    assert (state.result(1).cost_low, state.result(1).cost_high) == (5, 5)
    assert (state.result(1).passed, state.result(1).failed) == (
        ProbeResult(5, 1.0, 4),
        ProbeResult(4, 0.0, 4),
    )


@pytest.mark.parametrize("every_value", [True, False])
def test_an_unlucky_fail_that_more_seeds_refute_moves_the_threshold(every_value: bool) -> None:
    """5, 6 and 7 pass with eight seeds, and so does 4, no longer beyond its spread."""

    def score(arm: int, value: int, seed: int) -> float:
        if value == 4:
            return 0.991 if seed < 2 else (0.985, 0.999)[seed % 2]
        if 4 < value < 8:
            return (0.96, 0.99)[seed] if seed < 2 else 1.0
        return float(value >= 8)

    options = {"guess_cost": 8.0, "intervals": True, "every_value": every_value}
    state, _ = search(cell_of({1: 16}, score, extra=6, **options))
    result = state.result(1)
    assert result.passed == ProbeResult(4, pytest.approx(0.99175), 8)
    assert (result.value, result.cost_low, result.cost_high) == (4, 4, 8)


def test_a_censored_arm_counts_exactly_at_the_margins_edge() -> None:
    """Costs up to 22 are of interest, and 11 of arm 2, beyond its limit, would cost 22."""
    cell = cell_of({1: 40, 2: 10, 3: 7}, step({1: 20, 2: 99, 3: 99}), keep_within=0.1)
    state, _ = search(cell)
    results = [state.result(arm) for arm in (1, 2, 3)]
    assert [result.arm for result in results] == [1, 2, 3]
    assert [result.status for result in results] == ["found", "censored", "pruned"]
    assert [result.cost_low for result in results] == [None, 22, 24]


def test_contradictions_of_two_arms_are_both_given_up() -> None:
    axes = dict.fromkeys((1, 3), (2, 4))
    plan = CellPlan("cell", axes, 4.0, keep_within=None, every_value=True)
    test = SeedTest(0.99, 2)
    state, _ = search(SimulatedCell(plan, test, lambda arm, value, seed: float(value == 2)))
    assert state.contradicted == {1: (2, 4), 3: (2, 4)}


def test_only_closed_brackets_bound_the_others() -> None:
    """Arm 1 is found at 20; arm 2 passes at 8, for less, but its threshold is not known yet."""
    plan = CellPlan("cell", axes_to({1: 40, 2: 20}), 20.0, intervals=False)
    evidence = {ProbeKey(1, at): dict.fromkeys((0, 1), float(at >= 20)) for at in range(1, 41)}
    evidence[ProbeKey(2, 11)] = evidence[ProbeKey(2, 7)] = {0: 1.0, 1: 1.0}
    state = replay(plan, SeedTest(0.99, 2), evidence)
    assert state.best_cost == 14
    assert (state.bound, state.margin(2)) == (20, 11)
    assert (state.result(2).arm, state.result(2).status) == (2, "open")


def test_a_failure_rules_out_smaller_arms_and_values_alone() -> None:
    axes = {arm: range(1, 9) for arm in range(1, 5)}
    plan = CellPlan("cell", axes, 6.0, 2.0, intervals=False, every_arm=True)
    state = replay(plan, SeedTest(0.99, 2), {ProbeKey(2, 3): {0: 0.5, 1: 0.5}})
    asked = [(2, 3), (1, 3), (2, 2), (3, 3), (2, 4)]
    assert [key for key in asked if state.ruled_out_by(*key)] == asked[:3]
