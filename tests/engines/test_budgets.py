"""A training through several step limits gives to the bit what a training for each would."""

import math
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.engines.api import Engine, Outcome
from rgr_dist.engines.choose import ENGINES, make_engine
from rgr_dist.engines.early_stopping import Checks
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from tests.engines.shapes import make_run
from tests.engines.test_facts import NARROW as NARROW_FACTS
from tests.engines.test_facts import QUICK as QUICK_FACTS
from tests.engines.test_facts import run_of as facts_run_of

BOTH = {"max_steps", "converged"}
EVERY = {"max_steps", "given_up"}
BUDGETS = [7, 20, 50, 60, 150]
"""Multiples of the interval between checks and others, the tenth check of the hopeless among
them, and one beyond convergence."""
QUICK = {"check_every": 20, "patience": 2, "validation_contexts": 20, "test_contexts": 30}


def run_of(model: str = "max", seed: int = 0, **training: float) -> Run:
    training = QUICK | {"max_steps": 200} | training
    return make_run(12, 8, 2, 3, 5, seed=seed, model=model, **training)


def timeless(outcomes: list[Outcome]) -> list[Outcome]:
    return [replace(outcome, seconds=0.0) for outcome in outcomes]


def apart(engine: Engine, runs: list[Run], budgets: list[int]) -> list[list[Outcome]]:
    own = runs[0].cell.training.max_steps
    ends = [engine.train([run.with_limit(limit) for run in runs]) for limit in (*budgets, own)]
    return [timeless(list(outcomes)) for outcomes in zip(*ends, strict=True)]


FAST = {"learning_rate": 0.03, "check_every": 20, "max_steps": 400}
WARM = {**QUICK_FACTS, "training": {"schedule": "warmup", "warmup_steps": 5}}
RUNS = {  # runs of three seeds, and how they end
    "max": ([run_of(seed=s, learning_rate=0.03, stop_score=0.7) for s in range(3)], BOTH),
    "wild": ([run_of(seed=s, learning_rate=1e30) for s in range(3)], {"diverged"}),
    "hopeless": ([run_of(seed=s, check_every=5, give_up_below=0.5) for s in range(3)], EVERY),
    "softmax": ([run_of("softmax", s, learning_rate=0.03, stop_score=0.8) for s in range(3)], BOTH),
    "value": ([run_of("value", s, learning_rate=0.03, tolerance=0.2) for s in range(3)], BOTH),
    "facts": ([facts_run_of(QUICK_FACTS, s, **FAST) for s in range(3)], BOTH),
    "warm facts": ([facts_run_of(WARM, s, **FAST) for s in range(3)], BOTH),
    "narrow facts": ([facts_run_of(NARROW_FACTS, s, **FAST) for s in range(3)], {"max_steps"}),
}
CASES = [(engine, name) for name in RUNS for engine in RUNS[name][0][0].cell.record.engines]


@pytest.mark.parametrize(("name", "runs"), [case for case in CASES if case[0] != "reference"])
def test_every_budget_is_what_a_run_of_its_own_gives(name, runs):
    runs, reasons = RUNS[runs]
    engine = make_engine(name, model=runs[0].cell.model)
    together = [timeless(outcomes) for outcomes in engine.train_through(runs, BUDGETS)]
    assert together == apart(engine, runs, BUDGETS)
    assert {outcome.stop_reason for outcomes in together for outcome in outcomes} == reasons


@pytest.mark.parametrize("runs", RUNS)
def test_the_reference_which_trains_each_budget_apart_ends_the_same(runs):
    runs = RUNS[runs][0][:1]
    engines = (make_engine(name, model=runs[0].cell.model) for name in ("reference", "fused"))
    given, fused = (engine.train_through(runs, BUDGETS)[0] for engine in engines)
    assert [(o.steps, o.stop_reason) for o in given] == [(o.steps, o.stop_reason) for o in fused]
    for one, other in zip(given[:4], fused[:4], strict=True):  # before rounding tells
        if one.facts is not None:
            assert (one.score, one.facts.by_tau) == (other.score, other.facts.by_tau)
            assert one.facts.rank_logits == other.facts.rank_logits


LIMITS = {
    "max": {"max_steps": 200},
    "transformer": {"max_steps": 160, "batch_size": 4, "weight_decay": 0.0},
    "ours": {},
}
TIMED = [("max", name) for name in ENGINES] + [("transformer", "lanes"), ("ours", "auto")]


@pytest.mark.parametrize(("model", "name"), TIMED)
def test_time_grows_on_the_way_up_to_what_passed(model, name):
    engine = make_engine(name, model=model)
    runs = [make_run(12, 8, 2, 3, 5, seed=seed, model=model, **LIMITS[model]) for seed in range(2)]
    began = time.perf_counter()
    through = engine.train_through(runs, BUDGETS)
    passed = time.perf_counter() - began
    for outcomes in through:
        seconds = [outcome.seconds for outcome in outcomes]
        assert seconds == sorted(seconds)
        assert seconds[0] > 0
    assert sum(outcomes[-1].seconds for outcomes in through) <= passed


scores_of = st.lists(st.sampled_from([0.2, 0.6, 0.996, 0.999]), min_size=60, max_size=60)


def ends_at(cell: Cell, budgets: list[int], scores: list[float]) -> list[tuple[int, str]]:
    """Step and reason of the end at each limit; step s has score ``scores[s - 1]``."""
    checks, steps, ends = Checks(cell, budgets), 0, []
    while checks.limits:
        steps += checks.steps_to_next(steps)
        ends += [(steps, reason) for reason in checks.after(steps, scores[steps - 1])]
    return ends


@settings(max_examples=200, deadline=None)
@given(
    scores_of,
    st.just(60) | st.integers(0, 60),
    st.sets(st.integers(1, 59), max_size=5),
    st.integers(1, 7),
    st.integers(1, 3),
    st.sampled_from([None, 0.3, 0.7, 1.0]),
)
def test_checks_through_many_limits_are_those_of_each(
    scores, finite, budgets, every, patience, bar
):
    scores[finite:] = [math.nan] * (60 - finite)
    training = {"max_steps": 60, "check_every": every, "patience": patience, "give_up_below": bar}
    cell = Cell(m=12, d_model=8, context={"length": 5}, training=training)
    together = ends_at(cell, sorted(budgets), scores)
    each = [ends_at(cell.with_limit(limit), [], scores)[0] for limit in (*sorted(budgets), 60)]
    assert together == each
