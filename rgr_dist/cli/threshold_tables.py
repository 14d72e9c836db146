"""Thresholds as a person reads them: ``18 [14–20]``, ``9 ✓ .995 | 8 ✗ .984``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rgr_dist.analysis.wording import span, with_range
from rgr_dist.cli.listing import Format, plain, print_listing, say
from rgr_dist.study.study import Study

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    *("cell", "m", "d_model", "degree", "max_steps", "D_K*", "h*", "h", "d_k", "D_K", "status"),
    *("certificate", "confirmed"),
)
MEANINGS = {
    "h*": "the best number of heads [those that a paired t-test cannot tell from it]",
    "certificate": "d_k that passes ✓ and the one below that fails ✗, with their means; of N: the "
    "probe stopped early, after N seeds",
    "censored": "no pass up to the largest width",
    "pruned": "no width near the best head's D_K passes, so not searched further",
    "open": "not finished, or a run failed",
}
"""What columns and values that a reader cannot guess mean."""


def print_thresholds(study: Study, tables: Mapping[str, pd.DataFrame]) -> None:
    """Print thresholds as a person reads them, with what the signs mean.

    Args:
        tables: of ``analysis.tables``: ``thresholds``, ``best``, or one of them.
    """
    rows = {name: [_row(row, study) for row in plain(table)] for name, table in tables.items()}
    print_listing(rows, Format.TABLE, show=COLUMNS)
    limits = span([cell.training.max_steps for cell in study.cells])
    within = f", within {limits} training steps" if study.record.algorithm is None else ""
    say(
        f"D_K [its interval; ≥: the smallest not ruled out] over {study.search.seeds} seeds{within}"
    )
    every = [row for table in rows.values() for row in table]
    seen = {word for row in every for word in (*(key for key in row if row[key]), row["status"])}
    for word in MEANINGS:
        if word in seen:
            say(f"{word}: {MEANINGS[word]}")


def _row(record: dict[str, Any], study: Study) -> dict[str, Any]:
    """A row of either table with the columns named in ``COLUMNS``."""
    row = {name: record[name] for name in ("m", "d_model", "degree", "d_k", "status", "confirmed")}
    if study.has_alike_cells:
        row = {"cell": record["cell"]} | {n: row[n] for n in ("d_k", "status", "confirmed")}
    elif study.has_budgets:
        row["max_steps"] = record["max_steps"]
    width = with_range(record["D_K"], record["D_K_low"], record["D_K_high"])
    if "h_star" in record:
        heads = with_range(record["h_star"], record["h_low"], record["h_high"])
        return row | {"D_K*": width, "h*": heads}
    shown = certificate_text(record["certificate"], study.search.target)
    return row | {"h": record["h"], "D_K": width, "certificate": shown}


def certificate_text(certificate: Mapping[str, Any] | None, target: float) -> str | None:
    """``9 ✓ .995 | 8 ✗ .984``: the width that passes and the one that fails, with their means.

    A failing mean is never rounded to the passing score or beyond: .9899 becomes .989. If a probe
    stopped early, its number of seeds is added: ``2 ✗ .550 of 2``.
    """
    passed, failed = ((certificate or {}).get(key) or {} for key in ("pass", "fail"))
    parts = []
    if passed:
        parts.append(f"{passed['d_k']} ✓ {_mean(round(1000 * passed['mean_score']))}")
    if failed:
        stopped = failed.get("n_seeds", 0) < passed.get("n_seeds", 0)
        of = f" of {failed['n_seeds']}" if stopped else ""
        parts.append(f"{failed['d_k']} ✗ {_failing_mean(failed['mean_score'], target)}{of}")
    return " | ".join(parts) or None


def _failing_mean(mean: float | None, target: float) -> str:
    if mean is None:
        return "diverged"
    shown = round(1000 * mean)
    if mean < target <= shown / 1000:
        shown = math.floor(1000 * mean)
    elif shown / 1000 <= target < mean:  # an error, which is minimised
        shown = math.ceil(1000 * mean)
    return _mean(shown)


def _mean(thousandths: int) -> str:
    return f"{thousandths / 1000:.3f}".removeprefix("0")
