"""The tables of a study: its thresholds with their certificates, and every decision."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from rgr_dist.planning.budgets import AtLimit, limited_by
from rgr_dist.planning.portfolio import shown_arms
from rgr_dist.search.cell_state import CellState
from rgr_dist.search.old_portfolio import Portfolio
from rgr_dist.search.protocol import ArmResult, ProbeKey, ProbeResult
from rgr_dist.store.store import Store
from rgr_dist.study.axis import SizeAxis
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study

Rows = list[dict[str, Any]]


def write_tables(study: Study, store: Store, portfolio: Portfolio) -> None:
    """Write the tables that follow from the study and its runs.

    Raises:
        StoreError: they could not be stored.
    """
    store.write_study_table(study.name, "decisions", decision_rows(study, portfolio))
    store.write_study_table(study.name, "thresholds", threshold_rows(study, portfolio))


def _at_limit(sizes: SizeAxis, result: ArmResult) -> AtLimit:
    """What is known of a threshold at a step limit: if not found, it is above the largest fail."""
    failed = result.failed
    least = None if failed is None else sizes.width(result.arm, failed.value) + 1
    return AtLimit.of(result.status, result.cost, least)


def threshold_rows(study: Study, portfolio: Portfolio) -> Rows:
    """The thresholds table, one row per (cell, h), in the study's order."""
    rows, sizes = [], study.search.sizes
    for cell in study.cells:
        state = portfolio.state(cell.cell_id)
        budgets = [portfolio.state(one.cell_id) for one in study.budgets[cell.cell_id]]
        for arm in shown_arms(state):
            result = state.result(arm)
            fresh, first = result.fresh, result.first_value
            known = [_at_limit(sizes, one.result(arm)) for one in budgets]
            rows.append(
                {
                    "cell_id": cell.cell_id,
                    "model": cell.model_name,
                    "graph": cell.graph.family,
                    "degree": cell.graph.degree,
                    "m": cell.m,
                    "d_model": cell.d_model,
                    **sizes.setting(arm),
                    sizes.value: result.value,
                    sizes.total: result.cost,
                    sizes.low: result.cost_low,
                    sizes.high: result.cost_high,
                    "status": result.status,
                    "mean_score": result.passed.mean_score if result.passed else None,
                    "n_seeds": result.passed.n_seeds if result.passed else None,
                    "certificate": _certificate(
                        sizes, result, _passes_from(study, cell, result, budgets)
                    ),
                    "because": result.because,
                    "limited_by": limited_by(result.cost, known),
                    "n_edges": cell.n_edges,
                    "max_steps": cell.training.max_steps,
                    "confirmed": result.confirmed,
                    "fresh_mean": finite(fresh.mean_score) if fresh else None,
                    "fresh_seeds": fresh.n_seeds if fresh else None,
                    sizes.first: None if first is None else sizes.width(arm, first),
                }
            )
    return rows


def decision_rows(study: Study, portfolio: Portfolio) -> Rows:
    """The decisions table: every probe of every cell's search, in order, with its evidence."""
    sizes = study.search.sizes
    return [
        {
            "cell_id": cell.cell_id,
            "m": cell.m,
            "d_model": cell.d_model,
            "degree": cell.graph.degree,
            "step": step,
            **sizes.config(decision.arm, decision.value),
            "max_steps": cell.training.max_steps,
            "want": decision.want,
            "first_seed": decision.first_seed,
            "reason": decision.reason,
            "verdict": decision.verdict,
            "mean_score": decision.mean_score,
            "n_seeds": decision.n_seeds,
            "evidence": decision.evidence,
            sizes.total: sizes.width(decision.arm, decision.value),
        }
        for cell in study.cells
        for step, decision in enumerate(portfolio.state(cell.cell_id).decisions)
    ]


def asked_probes(study: Study, portfolio: Portfolio) -> Rows:
    """The probes that the study's search asks for, run or not, by the sizes of their layers.

    The search uses the first ``n_seeds`` of each; other studies may have stored more, and others.

    Returns:
        ``cell_id, n_seeds`` and the sizes: ``h, d_k``, and ``d_vo`` where that is searched.
    """
    sizes = study.search.sizes
    return [
        {"cell_id": cell.cell_id, **sizes.config(*key), "n_seeds": seeds}
        for cell in study.cells
        for key, seeds in sorted(portfolio.state(cell.cell_id).asked.items())
    ]


def _passes_from(
    study: Study, cell: Cell, result: ArmResult, budgets: Sequence[CellState]
) -> int | None:
    """The smallest step limit of the study at which the probe of a threshold passes."""
    if len(budgets) < 2 or result.value is None:
        return None
    key = ProbeKey(result.arm, result.value)
    passing = (
        one.training.max_steps
        for one, state in zip(study.budgets[cell.cell_id], budgets, strict=True)
        if state.used.get(key) == "pass" or one == cell
    )
    return next(passing)


def _certificate(sizes: SizeAxis, result: ArmResult, passes_from: int | None) -> str | None:
    passed, failed = result.contradiction or (result.passed, result.failed)
    if passed is None:
        return None
    since = {} if passes_from is None else {"passes_from_max_steps": passes_from}
    sides = {"pass": _probe(sizes, result.arm, passed) | since, "fail": None}
    if failed is not None:
        sides["fail"] = _probe(sizes, result.arm, failed)
    if result.fresh is not None:
        sides["fresh"] = _probe(sizes, result.arm, result.fresh)
    return json.dumps(sides)


def _probe(sizes: SizeAxis, arm: int, probe: ProbeResult) -> dict[str, Any]:
    return {
        sizes.value: probe.value,
        "mean_score": finite(probe.mean_score),
        "n_seeds": probe.n_seeds,
        sizes.total: sizes.width(arm, probe.value),
    }


def finite(value: float | None) -> float | None:
    """A mean as JSON can hold it: None where a run diverged and the mean is infinite."""
    return value if value is not None and math.isfinite(value) else None
