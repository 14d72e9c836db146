"""The section of thresholds as the step limit grows."""

from __future__ import annotations

from typing import Any

from rgr_dist.analysis.budgets.figures import (
    cell_title,
    draw_one_head,
    draw_training_time,
    gain_words,
    so_far,
    tip,
    width_words,
)
from rgr_dist.analysis.budgets.step_limits import families, gains, limits
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Column, Row, Section, Table
from rgr_dist.analysis.rows import named, rows_of
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.analysis.wording import with_range

GAINS = {
    "stays": "stays",
    "shrinks": "shrinks, but stays",
    "ends": "ends",
    "none": "no gain at any limit",
    "cannot tell": "cannot be told",
}
FALLS = {True: "yes", False: "no", None: ""}


def section(results: StudyResults) -> Section | None:
    """D_K*(T), h*(T) and the gain of several heads; None where each cell has one limit."""
    groups = families(results.study)
    if not groups:
        return None
    by_id = {row["cell_id"]: row for row in named(results, gains(results))}
    status = best_of(results).set_index("cell_id")["status"]
    ends = named(results, limits(results))
    for row in (*by_id.values(), *ends):
        row["status"] = status[row["cell_id"]]
    for row in by_id.values():
        row["text"] = tip(row)
    curves = [[by_id[cell.cell_id] for cell in family] for family in groups]
    for curve in curves:
        curve.sort(key=lambda row: row["max_steps"])
    return Section(
        name="training-time",
        title="What longer training changes",
        template="training-time",
        values={
            "limits": rows_of(limits(results)),
            "has_one_head": (results.thresholds["h"] == 1).any(),
        },
        figures=(draw_training_time(curves), draw_one_head(curves)),
        shown=(_limits(ends), _gains([row for curve in curves for row in curve])),
        files={"gains": gains(results), "limits": limits(results)},
    )


def _limits(rows: list[dict[str, Any]]) -> Table:
    def width(row: Row) -> str | None:
        return None if row["D_K"] is None else f"{row['D_K']}{so_far(row)}"

    return Table(
        name="table-limits",
        caption=(
            "Each cell at its largest step limit T. Still falls: does D_K* fall between the two "
            "largest? Gain: does training several heads still need less D_K than training one?"
        ),
        columns=[
            Column("cell", cell_title, text=True),
            Column("D_K* at the largest T", width, "D_K"),
            Column("still falls", lambda row: FALLS[row["falls"]], text=True),
            Column("gain of several heads", lambda row: GAINS[row["gain"]], text=True),
        ],
        rows=rows,
    )


def _gains(rows: list[dict[str, Any]]) -> Table:
    def ranged(head: str, *names: str) -> Column:
        return Column(head, lambda row: with_range(*(row[name] for name in names)), names[0])

    return Table(
        name="table-gains",
        caption="D_K* beside the threshold of one head, at every step limit.",
        columns=[
            Column("cell", cell_title, text=True),
            Column("T", "max_steps"),
            Column("D_K*", width_words, "D_K"),
            ranged("h*", "h_star", "h_low", "h_high"),
            ranged("D_K(1)", "D_K_one", "one_low", "one_high"),
            Column("gain", gain_words, "gain"),
        ],
        rows=sorted(rows, key=lambda row: (row["m"], row["d_model"], row["max_steps"])),
        folded="The gain of several heads at every step limit",
    )
