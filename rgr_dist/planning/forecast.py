"""What a training step costs, and what a study still needs if thresholds are as expected.

Work becomes time while a study runs: ``Summary.seconds_for`` in ``running/progress.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from rgr_dist.planning.budgets import trained_steps
from rgr_dist.search.cell_search import replay, transition_needs
from rgr_dist.search.cell_state import Assumed, CellState
from rgr_dist.search.old_portfolio import Portfolio
from rgr_dist.search.probe_verdict import Verdict
from rgr_dist.search.protocol import Need, ProbeKey, Want
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study

PASS_SHARE = 0.5
"""Share of the step limit that a passing run takes before it converges, on average."""
FAIL_SEEDS = 2
"""Seeds that a failing probe usually takes before the rest are spared."""
HEAD_PENALTY = 0.5
"""Share that each factor of two away from the best head count adds to the expected D_K."""
MULTIPLY_ADDS_PER_SECOND = 2e10
"""One core's pace where the store holds no run to measure it by: the fused engine's, measured
on ``base-grid``, ``softmax`` and ``gpt2-small``."""
LAYER_FILE_COST = 20
"""How many times longer a multiply-add takes in a layer's file than in the fused engine: 9 to 34 on
``variants`` and ``variants-16-heads``. Compiling is most of a short run."""
PROJECTIONS = 100
"""Alternating projections that a run usually takes where it passes."""
EVALUATIONS = 1000
"""Evaluations of all pairs' scores and their gradient that it usually takes to decide one head."""


def step_cost(cell: Cell, width: float) -> float:
    """Multiply-adds of a training step, roughly: projections and their gradient.

    Args:
        width: total over the heads of the searched width: D_K, or D_V of facts.

    For the transformer, everything except attention itself; its output layer has no weight
    gradient. A construction scores all pairs in each of its steps; ``one-head`` has one step, which
    looks for weights and for a proof. For facts, the logits of every asked pair. Multiply-adds in a
    layer's file are slower and count ``LAYER_FILE_COST`` times.
    """
    if cell.database is not None:
        facts = min(cell.m, cell.training.batch_size or cell.m)
        return 6 * facts * (cell.database.values * (cell.d_model + 1) + width)
    if cell.record.algorithm == "one-head":
        proof = 4 * cell.d_model**6  # products of matrices with d_model² + 1 rows
        return EVALUATIONS * 4 * cell.m**2 * cell.d_model + proof
    if cell.record.task == "construction":
        return 2 * cell.m**2 * width
    if cell.record.task == "matching":
        example = 6 * cell.d_model * (width + cell.d_model) + 2 * cell.m * cell.d_model
        return example * (cell.training.batch_size or 1)
    slower = 1 if cell.layer is None else LAYER_FILE_COST
    return slower * 6 * cell.context.length * cell.d_model * width


@dataclass(frozen=True)
class Forecast:
    """Work that is left.

    Attributes:
        probes, runs, steps: how many of each.
        work: multiply-adds of those steps.
        at_least: whether more may follow, depending on what the seeds of intervals or retests show.
            A grid trains every seed anyway, so little can follow.
    """

    probes: int = 0
    runs: int = 0
    steps: float = 0.0
    work: float = 0.0
    at_least: bool = False

    def __add__(self, other: Forecast) -> Forecast:
        return Forecast(
            self.probes + other.probes,
            self.runs + other.runs,
            self.steps + other.steps,
            self.work + other.work,
            self.at_least or other.at_least,
        )


Played = dict[str, tuple[CellState, Forecast, CellState]]
"""By cell_id: a search as it stood, what it needed, and how it was expected to end."""


def forecast(study: Study, portfolio: Portfolio, played: Played | None = None) -> list[Forecast]:
    """What each cell of a study still needs, in the study's order.

    Plays each search to its end, after those that it follows, and assumes the expected verdict for
    every missing probe.

    Args:
        played: what an earlier call found; this call updates it. A search that has not changed, or
            that still waits, is not played again.
    """
    played = {} if played is None else played
    cells = {cell.cell_id: cell for cell in study.cells}

    def play(cell_id: str) -> tuple[CellState, Forecast, CellState]:
        state, known = portfolio.state(cell_id), played.get(cell_id)
        if known is None or not (known[0] is state or (known[0].is_waiting and state.is_waiting)):
            guides = {name: play(name)[2] for name in state.plan.guides}
            played[cell_id] = state, *_forecast_cell(cells[cell_id], state, guides)
        return played[cell_id]

    return [play(cell_id)[1] for cell_id in cells]


def _forecast_cell(
    cell: Cell, state: CellState, guides: Mapping[str, CellState]
) -> tuple[Forecast, CellState]:
    """What a cell still needs, and its search as it is expected to end."""
    total = Forecast()
    if state.is_done:
        return total, state
    assumed: dict[tuple[ProbeKey, Want], Verdict] = {}
    state = _look_ahead(state, assumed, guides)
    longer = None if cell.training.path_depends_on_limit else state.longer
    # A longer run is read off at this limit: no training.
    brought = {*longer.used} if longer else set[ProbeKey]()
    while needs := state.needs:
        for need in needs:
            passes = _expected_pass(state, need)
            if need.key not in brought:
                total += _probe_work(cell, state, need, passes)
            assumed[need.key, need.want] = "pass" if passes else "fail"
        state = _look_ahead(state, assumed, guides)
        if not all(need.ends_early for need in needs):
            # Which seeds are wanted next depends on these scores, so only those near the thresholds
            # are counted; searches that follow take it as ended.
            state.needs = ()
            if needs[0].want == "transition":
                return total, state
            if state.plan.transition.seeds:
                if longer:
                    near = transition_needs(longer, longer.plan.axes)
                    brought = {*brought, *(need.key for need in near)}
                for need in transition_needs(state, state.plan.axes):
                    if need.key not in brought:
                        total += _probe_work(cell, state, need, _expected_pass(state, need))
            return total + Forecast(at_least=not state.plan.every_value), state
    return total, state


def work_done(runs: pd.DataFrame, study: Study) -> float:
    """Multiply-adds of the study's runs."""
    width = study.search.sizes.total
    taken = runs[["cell_id", width]].assign(steps=trained_steps(runs))
    total = taken.groupby(["cell_id", width], as_index=False, sort=False)["steps"].sum()
    cells = {cell.cell_id: cell for cell in study.cells}
    rows = zip(*(total[name].tolist() for name in total), strict=True)
    return float(sum(step_cost(cells[cell_id], wide) * steps for cell_id, wide, steps in rows))


def seconds_per_work(runs: pd.DataFrame, study: Study) -> float:
    """Seconds of one core for a multiply-add: measured on the study's runs, else a guess."""
    work = work_done(runs, study)
    if work:
        return float(runs["seconds"].sum()) / work
    return 1 / MULTIPLY_ADDS_PER_SECOND


def most_steps(cell: Cell) -> int:
    """Steps of a run that goes on to its limit."""
    if cell.record.task == "construction":
        return cell.construction.iterations if cell.record.algorithm == "ours" else 1
    return cell.training.max_steps


def _look_ahead(state: CellState, assumed: Assumed, guides: Mapping[str, CellState]) -> CellState:
    """The search of a cell if the assumed verdicts hold."""
    return replay(state.plan, state.test, state.evidence, state.failed, assumed, guides)


def _expected_pass(state: CellState, need: Need) -> bool:
    """Whether a probe is expected to pass: its width reaches that of the guess, at its heads."""
    key = need.key
    if need.want == "fresh seeds":
        return True
    bracket = state.brackets[key.arm]
    cost, arm, _ = state.start
    away = abs(math.log2(key.arm / arm))
    expected = math.ceil(state.plan.value_at(key.arm, cost * (1 + HEAD_PENALTY * away)))
    expected = max(bracket.low + 1, min(expected, bracket.high or expected))
    return key.value >= expected


def _share_until_given_up(limit: int) -> float:
    """Share of the step limit that failing runs take where hopeless ones are given up.

    On runs near the thresholds of the base grid it was 0.67 of 20,000 and 0.24 of 640,000 steps.
    """
    return min(1.0, 0.67 * math.pow(20_000 / limit, 0.3))


def _probe_work(cell: Cell, state: CellState, need: Need, passes: bool) -> Forecast:
    """The work of a probe's missing seeds if it passes, or if it fails."""
    test = state.test_of(need.key, need.want)
    known = sum(seed in test.in_order for seed in state.evidence.get(need.key, {}))
    on_fail = FAIL_SEEDS if need.ends_early else test.seeds
    whole = (test.look or test.seeds) if passes else on_fail
    runs = max(0, min(whole, test.seeds) - known)
    steps: float = runs * most_steps(cell)
    if passes and cell.record.task == "construction":
        steps = runs * min(PROJECTIONS, most_steps(cell))
    elif passes and cell.record.stops_early:
        steps *= PASS_SHARE
    elif cell.training.give_up_below is not None:
        steps *= _share_until_given_up(most_steps(cell))
    return Forecast(1, runs, steps, steps * step_cost(cell, state.plan.cost_of(*need.key)))
