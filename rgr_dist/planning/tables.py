"""The tables of a study that follow from its search: thresholds with their certificates."""

from __future__ import annotations

import json
import math
from typing import Any

from rgr_dist.search.portfolio import Portfolio
from rgr_dist.search.threshold import Key, ProbeResult, Result
from rgr_dist.study.study import Study

Rows = list[dict[str, Any]]


def threshold_rows(study: Study, portfolio: Portfolio) -> Rows:
    """The thresholds table, one row per (cell, h), in the study's order."""
    rows = []
    for cell in study.cells:
        search = portfolio.search(cell.cell_id)
        for h in search.plan.axes:
            result = search.result(h)
            rows.append(
                {
                    "cell_id": cell.cell_id,
                    "model": cell.model_name,
                    "graph": cell.graph.family,
                    "degree": cell.graph.degree,
                    "m": cell.m,
                    "d_model": cell.d_model,
                    "h": h,
                    "d_k": result.value,
                    "D_K": total(h, result.value),
                    "D_K_low": total(h, result.low),
                    "D_K_high": total(h, result.high),
                    "status": result.status,
                    "mean_score": result.passed.mean_score if result.passed else None,
                    "n_seeds": result.passed.n_seeds if result.passed else None,
                    "fails_above": list(result.fails_above),
                    "certificate": _certificate(result),
                    "because": result.why,
                    "n_edges": cell.n_edges,
                    "max_steps": cell.training.max_steps,
                    "confirmed": is_confirmed(result),
                    "fresh_mean": finite(result.fresh.mean_score) if result.fresh else None,
                    "fresh_seeds": result.fresh.n_seeds if result.fresh else None,
                    "D_K_first": total(h, result.first_value),
                }
            )
    return rows


def total(h: int, d_k: int | None) -> int | None:
    """D_K of h heads; None if d_k is."""
    return None if d_k is None else h * d_k


def is_confirmed(result: Result) -> bool | None:
    """Whether a threshold passes on fresh seeds; False if they have refuted all that passes."""
    if result.fresh is None:
        return None
    if result.status == "found":
        return True if result.fresh.value == result.value else None
    return False


def asked_probes(study: Study, portfolio: Portfolio) -> Rows:
    """The probes that the study's search has seen, by the sizes of their layers.

    It uses the first ``n_seeds`` of each; other studies may have stored more, and others.

    Returns:
        ``cell_id, h, d_k, n_seeds``.
    """
    rows = []
    for cell in study.cells:
        asked: dict[Key, int] = {}
        search = portfolio.search(cell.cell_id)
        seen = [(need, scores) for need, _, scores in search.decisions]
        seen += [(need, search.scores(need.key, need.want)) for need in search.needs]
        for need, scores in seen:
            if need.want != "fresh seeds":
                asked[need.key] = max(asked.get(need.key, 0), len(scores))
        rows += [
            {"cell_id": cell.cell_id, "h": h, "d_k": d_k, "n_seeds": seeds}
            for (h, d_k), seeds in sorted(asked.items())
        ]
    return rows


def _certificate(result: Result) -> str | None:
    if result.passed is None:
        return None
    sides = {"pass": result.passed, "fail": result.failed}
    if is_confirmed(result):
        sides["fresh"] = result.fresh
    return json.dumps({side: _shown(result.arm, probe) for side, probe in sides.items()})


def _shown(h: int, probe: ProbeResult | None) -> dict[str, Any] | None:
    return probe and {
        "d_k": probe.value,
        "mean_score": finite(probe.mean_score),
        "n_seeds": probe.n_seeds,
        "D_K": h * probe.value,
    }


def finite(value: float | None) -> float | None:
    """A mean as JSON can hold it: None where a run diverged and the mean is infinite."""
    return value if value is not None and math.isfinite(value) else None
