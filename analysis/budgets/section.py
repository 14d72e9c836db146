"""Capacity or training time? Thresholds as the step limit grows."""

from __future__ import annotations

from typing import Any

from analysis.budgets.figure import draw_training_time
from analysis.budgets.one_head_figure import cell_title, draw_one_head
from analysis.budgets.step_limits import families, gains, limits, sentences
from analysis.load import StudyResults
from analysis.page.section import Column, Section, Table
from analysis.rows import named
from analysis.wording import with_range

GAINS = {
    "survives": "survives",
    "shrinks": "shrinks, but stays",
    "vanishes": "vanishes",
    "none": "no gain at any limit",
    "cannot tell": "cannot be told",
}


def section(results: StudyResults) -> Section | None:
    """D_K*(T), h*(T) and the gain of several heads; None where cells have one step limit."""
    if not results.study.record.finds_D_K:
        return None
    groups = families(results.study)
    if not groups:
        return None
    within = {cell.cell_id for family in groups for cell in family}
    rows = [row for row in named(results, gains(results)) if row["cell_id"] in within]
    rows = [_told(row) for row in sorted(rows, key=lambda row: row["max_steps"])]
    by_id = {row["cell_id"]: row for row in rows}
    curves = [[by_id[cell.cell_id] for cell in family] for family in groups]
    ends = {row["anchor"]: row for row in named(results, limits(results))}
    return Section(
        name="training-time",
        title="Capacity or training time?",
        words=sentences(limits(results), results),
        figures=(draw_training_time(rows), draw_one_head(curves, ends)),
        shown=(_limits(results), _gains(rows)),
        files={"gains": gains(results), "limits": limits(results)},
    )


def _told(row: dict[str, Any]) -> dict[str, Any]:
    row["size"] = cell_title(row)
    row["D_K_words"] = with_range(row["D_K"], row["D_K_low"], row["D_K_high"])
    row["one_words"] = with_range(row["D_K_one"], row["one_low"], row["one_high"])
    row["h_words"] = with_range(row["h_star"], row["h_low"], row["h_high"])
    is_ = "= " if row["D_K"] is not None else ""
    at = f" at h* = {row['h_words']}" if row["h_star"] is not None else ""
    row["text"] = (
        f"{row['size']}, T = {row['max_steps']:,}\nD_K* {is_}{row['D_K_words']}{at}\n"
        f"one head: {row['one_words']}, gain {_gain(row)}"
    )
    return row


def _gain(row: Any) -> str:
    if row["gain"] is None:
        return "–" if row["gain_low"] is None else f"≥ {row['gain_low']:.2f}"
    ends = ("?" if row[end] is None else f"{row[end]:.2f}" for end in ("gain_low", "gain_high"))
    return f"{row['gain']:.2f} [{'–'.join(ends)}]"


def _limits(results: StudyResults) -> Table:
    def limit(row: Any) -> str | None:
        if row["D_K_limit"] is None:
            return None
        return f"{row['D_K_limit']:.1f} [{row['limit_low']:.1f}–{row['limit_high']:.1f}]"

    return Table(
        name="table-limits",
        caption=(
            "What each cell’s step limits say of an endless one. D_K(∞) is extrapolated by "
            "D_K(T) = D_K(∞) + a T^−b; its interval is rough, since the limits share their "
            "seeds. Gain: whether several heads still need less than one at the largest limit."
        ),
        columns=[
            Column("cell", cell_title, text=True),
            Column("D_K* at the largest T", lambda row: row["D_K"]),
            Column("D_K(∞)", limit, lambda row: row["D_K_limit"]),
            Column("limits with a D_K*", lambda row: row["n"]),
            Column("limited by", lambda row: row["limited_by"] or "", text=True),
            Column("gain of several heads", lambda row: GAINS[row["gain"]], text=True),
            Column("note", lambda row: row["reason"] or "", text=True),
        ],
        rows=named(results, limits(results)),
    )


def _gains(rows: list[dict[str, Any]]) -> Table:
    return Table(
        name="table-gains",
        caption="D_K* beside the threshold of one head, at every step limit.",
        columns=[
            Column("cell", lambda row: row["size"], text=True),
            Column("T", lambda row: row["max_steps"]),
            Column("D_K*", lambda row: row["D_K_words"], lambda row: row["D_K"]),
            Column("h*", lambda row: row["h_words"], lambda row: row["h_star"]),
            Column("D_K(1)", lambda row: row["one_words"], lambda row: row["D_K_one"]),
            Column("gain", _gain, lambda row: row["gain"]),
        ],
        rows=sorted(rows, key=lambda row: (row["m"], row["d_model"], row["max_steps"])),
        folded=f"The gain of several heads at every step limit: {len(rows)} rows",
    )
