"""Thresholds as a person reads them: ``18 [14–20]``, ``9 ✓ .995 | 8 ✗ .984``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.wording import with_range
from rgr_dist.cli.listing import Row
from rgr_dist.study.study import Study


def best_rows(records: Sequence[Row], several_limits: bool) -> list[dict[str, Any]]:
    """The best of every cell, from ``analysis.records.best_records``.

    Args:
        several_limits: whether the study has several step limits, which are then shown.
    """
    rows = []
    for row in records:
        by_ten = row["D_K_first"] if row["D_K_first"] != row["D_K"] else None
        rows.append(
            {
                **_cell(row, several_limits),
                "D_K*": with_range(row["D_K"], row["D_K_low"], row["D_K_high"]),
                "h*": with_range(row["h_star"], row["h_low"], row["h_high"]),
                "d_k": row["d_k"],
                "confirmed": _yes_or_no(row["confirmed"]),
                "before fresh seeds": by_ten,
                "bits/parameter": row["bits_per_parameter"],
            }
        )
    return rows


def threshold_rows(
    records: Sequence[Row], several_limits: bool, target: float
) -> list[dict[str, Any]]:
    """The threshold of every (cell, h), from ``analysis.records.threshold_records``.

    Args:
        target: the passing score.
    """
    return [
        {
            **_cell(row, several_limits),
            "h": row["h"],
            "d_k": row["d_k"],
            "D_K": with_range(row["D_K"], row["D_K_low"], row["D_K_high"]),
            "status": row["status"],
            "certificate": certificate_text(row["certificate"], target),
            "confirmed": _yes_or_no(row["confirmed"]),
            "limited by": row.get("limited_by"),
            "bits/parameter": row["bits_per_parameter"],
        }
        for row in records
    ]


def facts_rows(records: Sequence[Row], target: float) -> list[dict[str, Any]]:
    """Thresholds of facts, or the best of every cell, from ``analysis.facts.tables.records``."""
    return [
        {
            "cell": row["cell"],
            "h": row["h"],
            "d_qk": row["d_qk"],
            "d_vo": row["d_vo"],
            "D_V": with_range(row["D_V"], row["D_V_low"], row["D_V_high"]),
            "status": row["status"],
            **(
                {"certificate": certificate_text(row["certificate"], target)}
                if "certificate" in row
                else {}
            ),
            "rank of database": _ends(row["rank_low"], row["rank_high"]),
            **(
                {"rank of logits": at_most(row["layer_rank_bound"])}
                if "layer_rank_bound" in row
                else {}
            ),
        }
        for row in records
    ]


def at_most(bound: int | None) -> str | None:
    """``≤ 96``."""
    return None if bound is None else f"≤ {bound:,}"


def _ends(low: float, high: float) -> str:
    return f"{low:,.0f}" if low == high else f"{low:,.0f}–{high:,.0f}"


def certificate_text(certificate: Mapping[str, Any] | None, target: float) -> str | None:
    """``9 ✓ .995 | 8 ✗ .984``: the d_k that passes and the one that fails, with their means.

    A failing mean is never rounded to the passing score or beyond: .9899 becomes .989. That of a
    probe that stopped early names its seeds, ``2 ✗ .550 of 2``.
    """
    if certificate is None:
        return None
    passed, failed = (certificate.get(key) or {} for key in ("pass", "fail"))
    parts = []
    width = "d_vo" if "d_vo" in {**passed, **failed} else "d_k"
    if passed.get(width) is not None:
        parts.append(f"{passed[width]} ✓ {_mean(round(1000 * passed['mean_score']))}")
    if failed.get(width) is not None:
        mean = failed["mean_score"]
        shown = round(1000 * mean)
        if mean < target <= shown / 1000:
            shown = math.floor(1000 * mean)
        elif shown / 1000 <= target < mean:  # an error, which is minimised
            shown = math.ceil(1000 * mean)
        stopped = failed.get("n_seeds", 0) < passed.get("n_seeds", 0)
        of = f" of {failed['n_seeds']}" if stopped else ""
        parts.append(f"{failed[width]} ✗ {_mean(shown)}{of}")
    return " | ".join(parts) or None


def _mean(thousandths: int) -> str:
    return f"{thousandths / 1000:.3f}".removeprefix("0")


MEANINGS = {
    "censored": "no pass up to the largest D_K",
    "pruned": "not searched further, too far above the best head",
    "inconsistent": "passes below a fail",
    "open": "not finished, or a run failed",
}
"""What the statuses mean that a reader cannot guess."""


def reach(study: Study) -> list[str]:
    """What every threshold of a study is of: its step limit, and the widths of a grid.

    Several step limits of one cell have a column of their own; a construction is not trained.
    """
    told = []
    limits = sorted({cell.training.max_steps for cell in study.cells})
    if not study.has_budgets and study.cells[0].record.algorithm is None:
        span = f"{limits[0]:,}" if len(limits) == 1 else f"{limits[0]:,} to {limits[-1]:,}"
        told.append(f"thresholds within {span} training steps")
    if study.search.mode == "grid":
        told.append("of a grid: the smallest of its listed widths")
    return told


def legend(thresholds: Sequence[Row], best: Sequence[Row]) -> str | None:
    """What is in the two tables where something was not found; None if all was."""
    shown = {row["status"] for row in thresholds}
    told = [f"{status}: {meaning}" for status, meaning in MEANINGS.items() if status in shown]
    if any(row["D_K"] is None for row in best):
        told.append("D_K* as [low–high] or ≥ low alone: no threshold found, or not yet")
    return "; ".join(told) or None


def _cell(row: Row, several_limits: bool) -> dict[str, Any]:
    named = {"cell": row["cell"]} if "cell" in row else {}
    sizes = {**named, "m": row["m"], "d_model": row["d_model"], "degree": row["degree"]}
    return sizes | ({"steps": row["max_steps"]} if several_limits else {})


def _yes_or_no(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"
