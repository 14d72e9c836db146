"""What a training step costs, and what a study still needs if thresholds are as expected.

Work becomes time while a study runs: ``Summary.seconds_for`` in ``running/progress.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pandas as pd

from rgr_dist.planning.budgets import trained_steps
from rgr_dist.search.portfolio import Portfolio
from rgr_dist.search.seed_test import Verdict
from rgr_dist.search.threshold import Key, Need, Search, Want
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
STEP_COST, LAYER_STEP_COST = 5e4, 4e6
"""What a step costs beside its products, in multiply-adds: 2.5 µs in the fused engine, on the
smallest cells of ``base-grid``; 200 µs in a user's layer, on ``variants``."""
LAYER_FILE_COST = 5
"""How many times longer a multiply-add takes in a user's layer than in the fused engine."""
COMPILE_COST = 2e11
"""What it costs to compile a user's layer for a probe, in multiply-adds: ten seconds."""
PROJECTIONS = 100
"""Alternating projections that a run usually takes where it passes."""
EVALUATIONS = 1000
"""Evaluations of all pairs' scores and their gradient that it usually takes to decide one head."""


def step_cost(cell: Cell, width: float) -> float:
    """Multiply-adds of a training step, roughly: projections and their gradient.

    Args:
        width: D_K.

    For the transformer, everything except attention itself; its output layer has no weight
    gradient. A construction scores all pairs in each of its steps; ``one-head`` has one step, which
    looks for weights and for a proof. What else a step takes is counted as products too. A model
    with a room of its own says what its steps cost.
    """
    if cell.record.room is not None:
        return cell.step_cost(width)
    if cell.record.algorithm == "one-head":
        proof = 4 * cell.d_model**6  # products of matrices with d_model² + 1 rows
        return EVALUATIONS * 4 * cell.m**2 * cell.d_model + proof
    if cell.record.task == "construction":
        return 2 * cell.m**2 * width
    if cell.record.task == "matching":
        example = 6 * cell.d_model * (width + cell.d_model) + 2 * cell.m * cell.d_model
        return example * (cell.training.batch_size or 1)
    products = 6 * cell.context.length * cell.d_model * width
    if cell.layer is not None:
        return cell.training.relations * (LAYER_STEP_COST + LAYER_FILE_COST * products)
    return cell.training.relations * (STEP_COST + products)


@dataclass(frozen=True)
class Forecast:
    """Work that is left.

    Attributes:
        probes, runs, steps: how many of each.
        work: multiply-adds of those steps.
        at_least: whether more may follow, depending on what the seeds of an interval show.
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


Played = dict[str, tuple[Search, set[Key], Forecast, set[Key]]]
"""By cell_id: a search and what longer runs bring, as they stood; what it needs, and its probes."""


def forecast(study: Study, portfolio: Portfolio, played: Played | None = None) -> list[Forecast]:
    """What each cell of a study still needs, in the study's order.

    Plays each search to its end, and assumes the expected verdict for every missing probe. A probe
    that a longer run brings along at a smaller step limit is not counted.

    Args:
        played: what an earlier call found; this call updates it. A search that has not changed is
            not played again.
    """
    played = {} if played is None else played
    for cell in sorted(study.cells, key=lambda cell: -cell.training.max_steps):
        search, limit = portfolio.search(cell.cell_id), cell.training.max_steps
        brought: set[Key] = set()
        if not cell.training.path_depends_on_limit:
            for one in study.budgets[cell.cell_id]:
                if one.training.max_steps > limit:
                    brought |= played[one.cell_id][3]
        known = played.get(cell.cell_id)
        if known is None or known[0] is not search or known[1] != brought:
            played[cell.cell_id] = search, brought, *_forecast_cell(cell, search, brought)
    return [played[cell.cell_id][2] for cell in study.cells]


def _forecast_cell(cell: Cell, search: Search, brought: set[Key]) -> tuple[Forecast, set[Key]]:
    """What a cell still needs, if every verdict is as expected; and all probes of its search.

    Which seeds an interval wants next depends on scores, so only its first probe is counted.
    """
    total, at_least = Forecast(), False
    assumed: dict[tuple[Key, Want], Verdict] = {}
    while (needs := search.needs) and not at_least:
        for need in needs:
            passes = _expected_pass(search, need)
            if need.key not in brought:
                total += _probe_work(cell, search, need, passes)
            assumed[need.key, need.want] = "pass" if passes else "fail"
        at_least = any(need.want == "every seed" for need in needs)
        search = Search(search.plan, search.evidence, search.failed, assumed)
    at_least &= not search.plan.every_value
    probed = {key for key, _ in assumed} | {one.need.key for one in search.decisions}
    return replace(total, at_least=at_least), probed


def work_done(runs: pd.DataFrame, study: Study) -> float:
    """Multiply-adds of the study's runs."""
    taken = runs[["cell_id", "D_K"]].assign(steps=trained_steps(runs))
    total = taken.groupby(["cell_id", "D_K"], as_index=False, sort=False)["steps"].sum()
    cells = {cell.cell_id: cell for cell in study.cells}
    rows = zip(*(total[name].tolist() for name in total), strict=True)
    return float(sum(step_cost(cells[cell_id], wide) * steps for cell_id, wide, steps in rows))


def seconds_per_work(runs: pd.DataFrame, study: Study) -> float:
    """Seconds of one core for a multiply-add: measured on the study's runs, else a guess."""
    work = work_done(runs, study)
    return float(runs["seconds"].sum()) / work if work else 1 / MULTIPLY_ADDS_PER_SECOND


def most_steps(cell: Cell) -> int:
    """Steps of a run that goes on to its limit."""
    if cell.record.task == "construction":
        return cell.construction.iterations if cell.record.algorithm == "ours" else 1
    return cell.training.max_steps


def _expected_pass(search: Search, need: Need) -> bool:
    """Whether a probe is expected to pass: its width reaches that of the guess, at its heads."""
    if need.want == "fresh seeds":
        return True
    axis, (fails, passing) = search.plan.axes[need.key.arm], search.bracket(need.key.arm)
    best_arm, cost = search.plan.guess
    away = abs(math.log2(need.key.arm / best_arm))
    expected = math.ceil(cost * (1 + HEAD_PENALTY * away) / need.key.arm)
    least = axis[min(fails, len(axis) - 1)]
    most = expected if passing is None else axis[passing]
    return need.key.value >= max(least, min(expected, most))


def _probe_work(cell: Cell, search: Search, need: Need, passes: bool) -> Forecast:
    """The work of a probe's missing seeds if it passes, or if it fails."""
    test = search.test_of(need.want)
    known = sum(seed in test.in_order for seed in search.evidence.get(need.key, {}))
    on_fail = test.seeds if need.want == "every seed" else FAIL_SEEDS
    whole = (test.look or test.seeds) if passes else on_fail
    runs = max(0, min(whole, test.seeds) - known)
    steps: float = runs * most_steps(cell)
    if passes and cell.record.task == "construction":
        steps = runs * min(PROJECTIONS, most_steps(cell))
    elif passes and cell.record.stops_early:
        steps *= PASS_SHARE
    work = steps * step_cost(cell, need.key.arm * need.key.value)
    if runs and cell.layer is not None:
        work += COMPILE_COST
    return Forecast(1, runs, steps, work)
