"""Curves to simulate on: what was measured stays as it was, and between it nothing leaps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgr_dist.search.protocol import ProbeKey
from threshold_search.curves import SHAPES, RecordedCurve, SyntheticCurve
from threshold_search.simulate import SimulatedRun

scores = st.floats(0, 1)
measured = st.dictionaries(st.integers(1, 60), scores, min_size=1, max_size=8)


def recorded(by_value: dict[int, float], arm: int = 2) -> RecordedCurve:
    """A score for each value, its time and steps fixed by it."""
    return RecordedCurve(
        {(arm, value): {0: SimulatedRun(s, 9 - s, round(900 * s))} for value, s in by_value.items()}
    )


@given(measured)
def test_a_measured_run_is_given_back_as_it_was(by_value: dict[int, float]) -> None:
    curve = recorded(by_value)
    for value, score in by_value.items():
        run = SimulatedRun(score, 9 - score, round(900 * score))
        assert curve.run(ProbeKey(2, value), 0) == run


@given(measured, st.integers(1, 70))
def test_what_was_not_measured_lies_between_its_neighbours(
    by_value: dict[int, float], value: int
) -> None:
    run = recorded(by_value).run(ProbeKey(2, value), 0)
    below = [by_value[w] for w in sorted(by_value) if w <= value][-1:] or [0.0]
    above = [by_value[w] for w in sorted(by_value) if w >= value][:1] or below
    ends = sorted(below + above)
    assert ends[0] - 1e-9 <= run.score <= ends[-1] + 1e-9
    assert 8 <= run.seconds <= 9
    assert 0 <= run.steps <= 900


def test_half_way_between_two_measured_values_a_run_is_half_way() -> None:
    run = recorded({10: 0.2, 20: 0.6}).run(ProbeKey(2, 15), 0)
    assert (run.score, run.seconds, run.steps) == pytest.approx((0.4, 8.6, 360))


def test_seeds_and_arms_that_were_not_measured_take_the_runs_of_others() -> None:
    runs = {seed: SimulatedRun(0.1 * seed, 1.0) for seed in (0, 1, 4)}
    curve = RecordedCurve({(2, 6): runs, (16, 1): {0: SimulatedRun(0.9, 1.0)}})
    assert [curve.run(ProbeKey(2, 6), seed).score for seed in (0, 1, 2, 3, 4)] == pytest.approx(
        [0, 0.1, 0.4, 0, 0.4]
    )
    assert curve.run(ProbeKey(4, 3), 0) == curve.run(ProbeKey(2, 6), 0)  # the same cost
    assert curve.run(ProbeKey(3, 4), 1) == curve.run(ProbeKey(2, 6), 1)
    with pytest.raises(ValueError, match="no run"):
        RecordedCurve({})


@pytest.mark.parametrize("shape", SHAPES)
def test_a_synthetic_curve_rises_with_the_value_and_repeats(shape: str) -> None:
    curve = SyntheticCurve({1: 20, 4: 6}, shape, name="x")
    for arm in (1, 4):
        for seed in range(10):
            runs = [curve.run(ProbeKey(arm, value), seed) for value in range(1, 60)]
            assert runs == [curve.run(ProbeKey(arm, value), seed) for value in range(1, 60)]
            values = [run.score for run in runs]
            assert values == sorted(values)
            assert 0 <= values[0] < 0.9
            assert all(run.seconds > 0 and 0 < run.steps <= 20_000 for run in runs)


def mean(curve: SyntheticCurve, arm: int, value: int) -> float:
    return sum(curve.run(ProbeKey(arm, value), seed).score for seed in range(40)) / 40


def test_the_shapes_are_what_they_are_called() -> None:
    curves = {shape: SyntheticCurve({1: 20, 4: 8}, shape, name="x") for shape in SHAPES}
    for shape in ("sharp", "plateau", "bimodal"):
        assert mean(curves[shape], 4, 7) < 0.97 < 0.99 <= mean(curves[shape], 4, 8) + 1e-9
    rise = {s: mean(curves[s], 4, 9) - mean(curves[s], 4, 7) for s in ("sharp", "wide")}
    assert rise["wide"] < 0.5 * rise["sharp"]
    assert mean(curves["plateau"], 1, 60) == pytest.approx(0.98)
    scores = {curves["bimodal"].run(ProbeKey(1, 60), seed).score for seed in range(40)}
    assert scores == {0.6, 1.0}
    assert mean(curves["plateau"], 4, 30) == mean(curves["bimodal"], 4, 30) == 1.0
