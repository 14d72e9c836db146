"""The tables of a study: its thresholds with their certificates, and every decision."""

from __future__ import annotations

import json
import math
from typing import Any

from rgr_dist.planning.portfolio import shown_heads
from rgr_dist.store.store import Store
from rgr_dist.study.study import Study
from search.portfolio import Portfolio
from search.protocol import ArmResult, ProbeResult

Rows = list[dict[str, Any]]


def write_tables(study: Study, store: Store, portfolio: Portfolio) -> None:
    """Write the tables that follow from the study and its runs.

    Raises:
        StoreError: they could not be stored.
    """
    store.write_study_table(study.name, "decisions", decision_rows(study, portfolio))
    store.write_study_table(study.name, "thresholds", threshold_rows(study, portfolio))


def threshold_rows(study: Study, portfolio: Portfolio) -> Rows:
    """The thresholds table, one row per (cell, h), in the study's order."""
    rows = []
    for cell in study.cells:
        state = portfolio.state(cell.cell_id)
        for h in shown_heads(state):
            result = state.result(h)
            rows.append(
                {
                    "cell_id": cell.cell_id,
                    "model": cell.model,
                    "graph": cell.graph.family,
                    "degree": cell.graph.degree,
                    "m": cell.m,
                    "d_model": cell.d_model,
                    "h": h,
                    "d_k": result.value,
                    "D_K": result.cost,
                    "D_K_low": result.cost_low,
                    "D_K_high": result.cost_high,
                    "status": result.status,
                    "mean_score": result.passed.mean_score if result.passed else None,
                    "n_seeds": result.passed.n_seeds if result.passed else None,
                    "certificate": _certificate(result),
                    "because": result.because,
                    "limited_by": result.limited_by,
                    "n_edges": cell.n_edges,
                }
            )
    return rows


def decision_rows(study: Study, portfolio: Portfolio) -> Rows:
    """The decisions table: every probe of every cell's search, in order, with its evidence."""
    return [
        {
            "cell_id": cell.cell_id,
            "m": cell.m,
            "d_model": cell.d_model,
            "degree": cell.graph.degree,
            "step": step,
            "h": decision.arm,
            "d_k": decision.value,
            "longer": decision.extended,
            "reason": decision.reason,
            "verdict": decision.verdict,
            "mean_score": decision.mean_score,
            "n_seeds": decision.n_seeds,
            "evidence": decision.evidence,
            "D_K": decision.arm * decision.value,
        }
        for cell in study.cells
        for step, decision in enumerate(portfolio.state(cell.cell_id).decisions)
    ]


def _certificate(result: ArmResult) -> str | None:
    passed, failed = result.contradiction or (result.passed, result.failed)
    if passed is None:
        return None
    probes = {"pass": passed, "fail": failed}
    if result.extended is not None:
        probes["longer"] = result.extended
    return json.dumps({side: _probe(result.arm, probe) for side, probe in probes.items()})


def _probe(h: int, probe: ProbeResult | None) -> dict[str, Any] | None:
    if probe is None:
        return None
    return {
        "d_k": probe.value,
        "mean_score": finite(probe.mean_score),
        "n_seeds": probe.n_seeds,
        "D_K": h * probe.value,
    }


def finite(value: float | None) -> float | None:
    """A mean as JSON can hold it: None where a run diverged and the mean is infinite."""
    return value if value is not None and math.isfinite(value) else None
