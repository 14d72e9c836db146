"""Winners that must pass on fresh seeds too, against trying every value on both sets of seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.search.cell_search import replay
from rgr_dist.search.old_portfolio import Portfolio
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan, ProbeKey, ProbeResult, Transition
from tests.search.oracles import plans
from tests.search.simulated_cells import SimulatedCell, Workers, axes_to, cell_of, rows, search

CONFIRM = 4


@dataclass(frozen=True)
class ConfirmedCell(SimulatedCell):
    """Each winner must pass on fresh seeds: one that does not is a fail, and the next best wins.

    So must each arm that is searched for its own sake.
    """

    def fresh_mean_passes(self, arm: int, value: int) -> bool:
        fresh = range(self.test.seeds, self.test.seeds + self.plan.confirm_seeds)
        total = sum(Fraction(str(self.score(arm, value, seed))) for seed in fresh)
        return total >= len(fresh) * Fraction(str(self.test.target))

    def passes_first(self, arm: int, value: int) -> bool:
        return super().passes(arm, value)

    @cached_property
    def refuted(self) -> frozenset[tuple[int, int]]:
        """What passes on the first seeds, and does not on the fresh ones where these are asked."""
        refuted: set[tuple[int, int]] = set()
        while True:
            found = {
                arm: next(
                    (d for d in axis if self.passes_first(arm, d) and (arm, d) not in refuted), None
                )
                for arm, axis in self.plan.axes.items()
            }
            known = [(arm, value) for arm, value in found.items() if value is not None]
            asked = {one for one in known if self.plan.keep_within is None}
            asked |= {min(known, key=self.rank)} if known else set()
            new = {one for one in asked if not self.fresh_mean_passes(*one)}
            if not new:
                return frozenset(refuted)
            refuted |= new

    def rank(self, one: tuple[int, int]) -> tuple[int, float, int]:
        """The smallest cost; of equal ones the best mean, then the fewest heads."""
        return one[0] * one[1], -sum(self.scores(*one)), one[0]

    def passes(self, arm: int, value: int) -> bool:
        return self.passes_first(arm, value) and (arm, value) not in self.refuted


@st.composite
def lucky_cells(draw: st.DrawFn) -> ConfirmedCell:
    """From one value on the first seeds pass, from another on the fresh ones."""
    plan = replace(draw(plans(largest=60, intervals=False)), confirm_seeds=CONFIRM)
    test = SeedTest(0.99, draw(st.sampled_from([1, 2, 3])))
    first = {arm: draw(st.integers(1, axis[-1] + 2)) for arm, axis in plan.axes.items()}
    later = {arm: first[arm] + draw(st.integers(-3, 4)) for arm in first}

    def score(arm: int, value: int, seed: int) -> float:
        at = first if seed < test.seeds else later
        return 1.0 if value >= at[arm] else (0.7, 0.9)[seed % 2]

    return ConfirmedCell(plan, test, score)


@settings(max_examples=150)
@given(lucky_cells())
def test_the_winner_passes_on_the_first_and_on_the_fresh_seeds(cell: ConfirmedCell) -> None:
    state, _ = search(cell)
    assert rows(state) == cell.table()
    if state.best is not None:
        assert state.best.confirmed is True
        assert state.best.fresh.n_seeds == CONFIRM
    for arm in cell.plan.axes:
        result = state.result(arm)
        if cell.plan.keep_within is None and result.status == "found":
            assert result.confirmed is True
        if result.first_value not in (None, result.value):
            assert (arm, result.first_value) in cell.refuted


scores_of = st.lists(st.sampled_from([0.97, 0.985, 0.99, 0.995, 1.0]), min_size=10, max_size=10)


@given(scores_of, st.integers(1, 5), st.integers(1, 5))
def test_no_subset_of_the_fresh_seeds_contradicts_the_mean_of_all(
    drawn: list[float], first: int, fresh: int
) -> None:
    scores = dict(enumerate(drawn))
    test = SeedTest(0.99, first).on_fresh(fresh)
    own = range(first, first + fresh)
    wanted = sum(Fraction(str(scores[seed])) for seed in own) >= fresh * Fraction("0.99")
    for size in range(fresh + 1):
        for some in combinations(own, size):
            known = {seed: scores[seed] for seed in (*range(first), *some)}
            assert test.verdict(known) in (None, "pass" if wanted else "fail")
            assert set(test.next_wave(known)) <= set(own) - set(some)
    assert test.verdict(scores) == ("pass" if wanted else "fail")
    assert math.isclose(test.mean(scores), math.fsum(scores[seed] for seed in own) / fresh)


def lucky(arm: int, value: int, seed: int) -> float:
    """4 passes on its first two seeds alone, 5 passes on all."""
    if value == 4:
        return 1.0 if seed < 2 else 0.9
    return float(value >= 5)


def test_a_winner_that_was_lucky_is_a_fail_from_then_on() -> None:
    cell = cell_of({1: 16}, lucky, guess_cost=4.0, confirm_seeds=3)
    state, evidence = search(cell)
    result = state.result(1)
    assert (result.status, result.value, result.first_value) == ("found", 5, 4)
    assert result.confirmed is True
    assert result.because == (
        "passes at value = 5, fails at 4 (it passes on seeds 0 to 1, not on 3 fresh ones)"
    )
    assert result.passed == ProbeResult(5, 1.0, 2)
    assert result.fresh == ProbeResult(5, 1.0, 3)
    assert result.failed == ProbeResult(4, pytest.approx(0.9), 1)
    assert sorted(evidence[ProbeKey(1, 4)]) == [0, 1, 2]  # one of the fresh ones settles it
    fresh = [(d.value, d.verdict, d.first_seed, d.n_seeds) for d in state.decisions if d.first_seed]
    assert fresh == [(4, "fail", 2, 1), (5, "pass", 2, 3)]
    more = {key: {seed: lucky(*key, seed) for seed in range(9)} for key in evidence}
    assert replay(cell.plan, cell.test, more).decisions == state.decisions
    asked = [d.reason for d in state.decisions if d.want == "fresh seeds"]
    assert asked == ["confirm: does it pass on 3 fresh seeds?"] * 2


def test_a_winner_refuted_at_the_end_of_its_axis_is_censored() -> None:
    state, _ = search(cell_of({1: 4}, lucky, guess_cost=4.0, confirm_seeds=3))
    result = state.result(1)
    assert (result.status, result.confirmed, result.first_value) == ("censored", False, 4)
    assert result.fresh == ProbeResult(4, pytest.approx(0.9), 1)
    assert result.because == (
        "no pass up to the largest value allowed, 4 "
        "(it passes on seeds 0 to 1, not on 3 fresh ones)"
    )


def test_the_best_is_confirmed_alone_and_the_next_best_where_it_is_refuted() -> None:
    """4 is refuted; then two of 3 are the best, and one of 7 is near them, and not asked."""

    def score(arm: int, value: int, seed: int) -> float:
        if (arm, value) == (1, 4):
            return float(seed < 2)
        return float(value >= {1: 7, 2: 3}[arm])

    plan = CellPlan("cell", axes_to({1: 16, 2: 8}), 4.0, keep_within=0.2, confirm_seeds=3)
    state, evidence = search(SimulatedCell(plan, SeedTest(0.99, 2), score))
    fresh = [(d.arm, d.value, d.verdict) for d in state.decisions if d.want == "fresh seeds"]
    assert fresh == [(1, 4, "fail"), (2, 3, "pass")]
    near, best = state.result(1), state.result(2)
    assert (best.value, best.confirmed) == (3, True)
    assert (near.value, near.first_value, near.confirmed) == (7, 4, None)
    assert sorted(evidence[ProbeKey(1, 7)]) == [0, 1]


def test_a_fail_above_a_pass_that_fresh_seeds_confirm_does_not_disqualify_it() -> None:
    """4 passes on all seeds; the interval shows that 5, of which two seeds were known, fails."""

    def score(arm: int, value: int, seed: int) -> float:
        return 0.9 if value < 4 or value == 5 else (0.99, 1.0)[seed % 2]

    options = {"guess_cost": 4.0, "intervals": True, "confirm_seeds": 4}
    state, _ = search(cell_of({1: 16}, score, 4, 2, **options))
    asked = [(d.value, d.want, d.verdict) for d in state.decisions]
    assert (5, "every seed", "fail") in asked
    result = state.result(1)
    assert (result.status, result.value, result.confirmed) == ("found", 4, True)
    assert not any(want == "extra seeds" for _, want, _ in asked)


@pytest.mark.parametrize("keep_within", [None, 1.0])
def test_a_winner_whose_fresh_seeds_cannot_be_run_is_open_and_the_next_best_confirmed(
    keep_within: float | None,
) -> None:
    def score(arm: int, value: int, seed: int) -> float | None:
        return None if (arm, seed) == (2, 3) else float(value >= {1: 7, 2: 3}[arm])

    plan = CellPlan("cell", axes_to({1: 16, 2: 8}), 4.0, keep_within=keep_within, confirm_seeds=3)
    cell = SimulatedCell(plan, SeedTest(0.99, 2), score)
    portfolio = Portfolio([plan], cell.test)
    Workers(portfolio, [cell]).run()
    state = portfolio.state("cell")
    lost, best = state.result(2), state.best
    assert (lost.status, lost.value, lost.confirmed) == ("open", None, None)
    assert (lost.first_value, lost.cost_low, lost.cost_high) == (3, 6, 6)
    assert lost.because == "a run on its fresh seeds failed"
    assert (best.arm, best.value, best.confirmed) == (1, 7, True)
    assert not state.is_settled


def test_every_value_near_a_threshold_takes_the_seeds_of_the_transition() -> None:
    def score(arm: int, value: int, seed: int) -> float:
        return float(arm * value >= 16)

    cell = cell_of({1: 32, 4: 8}, score, guess_cost=8.0, transition=Transition(7, 0.2))
    state, evidence = search(cell)
    whole = {key for key, scores in evidence.items() if len(scores) == 7}
    assert whole == {ProbeKey(1, v) for v in range(13, 20)} | {ProbeKey(4, v) for v in (3, 4, 5)}
    assert [state.result(arm).value for arm in (1, 4)] == [16, 4]
    reasons = {(d.arm, d.reason) for d in state.decisions if d.want == "transition"}
    near = "transition: within 20% of the threshold, {}".format
    assert reasons == {(1, near(16)), (4, near(4))}


def test_a_search_uses_the_seeds_that_it_asked_for_and_the_fresh_ones_apart() -> None:
    plan = CellPlan("cell", axes_to({1: 16}), 4.0, intervals=False, confirm_seeds=3)
    cell = SimulatedCell(plan, SeedTest(0.99, 5), lambda arm, v, seed: 1.0 if v >= 5 else 0.9)
    assert replay(plan, cell.test, {}).asked == {ProbeKey(1, 4): 0}
    state, evidence = search(cell)
    assert sorted(evidence[ProbeKey(1, 5)]) == list(range(5 + 3))
    used = {ProbeKey(1, 4): 1, ProbeKey(1, 5): 5, ProbeKey(1, 6): 3}
    assert state.asked == used
    more = {key: {seed: cell.score(1, key.value, seed) for seed in range(9)} for key in evidence}
    more[ProbeKey(1, 9)] = {0: 1.0}
    assert replay(plan, cell.test, more).asked == used
    grid = replace(plan, every_value=True, axes={1: (2, 3)})
    assert replay(grid, cell.test, {}).asked == {ProbeKey(1, 2): 5, ProbeKey(1, 3): 5}
