"""Thresholds as a person reads them: ``18 [14–20]``, ``9 ✓ .995 | 8 ✗ .984``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.wording import with_range
from rgr_dist.cli.listing import Row


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


def threshold_rows(records: Sequence[Row], several_limits: bool) -> list[dict[str, Any]]:
    """The threshold of every (cell, h), from ``analysis.records.threshold_records``."""
    return [
        {
            **_cell(row, several_limits),
            "h": row["h"],
            "d_k": row["d_k"],
            "D_K": with_range(row["D_K"], row["D_K_low"], row["D_K_high"]),
            "status": row["status"],
            "certificate": certificate_text(row["certificate"]),
            "confirmed": _yes_or_no(row["confirmed"]),
            "limited by": row.get("limited_by"),
            "bits/parameter": row["bits_per_parameter"],
        }
        for row in records
    ]


def certificate_text(certificate: Mapping[str, Any] | None) -> str | None:
    """``9 ✓ .995 | 8 ✗ .984``: the d_k that passes and the one that fails, with their means.

    A failing mean is rounded away from the passing side, so that .9999 is not told as 1. That of a
    probe that stopped early names its seeds, ``2 ✗ .550 of 2``.
    """
    if certificate is None:
        return None
    passed, failed = (certificate.get(key) or {} for key in ("pass", "fail"))
    parts = []
    if passed.get("d_k") is not None:
        parts.append(f"{passed['d_k']} ✓ {_mean(round(1000 * passed['mean_score']))}")
    if failed.get("d_k") is not None:
        mean = 1000 * failed["mean_score"]
        is_above = mean > 1000 * passed.get("mean_score", 1.0)  # a score that is minimised
        stopped = failed.get("n_seeds", 0) < passed.get("n_seeds", 0)
        of = f" of {failed['n_seeds']}" if stopped else ""
        parts.append(f"{failed['d_k']} ✗ {_mean(math.ceil(mean) if is_above else int(mean))}{of}")
    return " | ".join(parts) or None


def _mean(thousandths: int) -> str:
    return f"{thousandths / 1000:.3f}".removeprefix("0")


def _cell(row: Row, several_limits: bool) -> dict[str, Any]:
    named = {"cell": row["cell"]} if "cell" in row else {}
    sizes = {**named, "m": row["m"], "d_model": row["d_model"], "degree": row["degree"]}
    return sizes | ({"steps": row["max_steps"]} if several_limits else {})


def _yes_or_no(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"
