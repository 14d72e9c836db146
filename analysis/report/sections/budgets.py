"""Training time: thresholds, head counts and gains as the step limit grows."""

from __future__ import annotations

from typing import Any

from analysis.budgets import families, gains, limits, sentences
from analysis.figures.budgets import cell_title, draw_gains, draw_heads, draw_thresholds
from analysis.report.section import Column, Section, Table
from analysis.report.tables import Tables
from analysis.wording import with_range


def section(tables: Tables) -> Section | None:
    """What is capacity and what is training time; None where every cell has one step limit."""
    study = tables.study
    if not study.has_budgets:
        return None
    table, ends = gains(tables.results), limits(tables.results)
    rows = {row["cell_id"]: row | {"text": _text(row)} for row in tables.named(table)}
    curves = [[rows[cell.cell_id] for cell in family] for family in families(study)]
    last = {row["anchor"]: row for row in tables.named(ends)}
    figures = [draw_thresholds(curves, last), draw_heads(curves)]
    gained = draw_gains(curves)
    return Section(
        name="training-time",
        title="Capacity or training time?",
        words=sentences(ends, tables.results),
        figures=[*figures, *([gained] if gained else [])],
        shown=(_fates(list(last.values())), _gains([row for rows in curves for row in rows])),
        files={"budgets": table, "budget-limits": ends},
    )


def _text(row: dict[str, Any]) -> str:
    lines = [f"{row['full']}, {row['max_steps']:,} steps"]
    if row["D_K"] is not None:
        lines.append(f"D_K* = {with_range(row['D_K'], row['D_K_low'], row['D_K_high'])}")
        lines.append(f"h* = {with_range(row['h_star'], row['h_low'], row['h_high'])}")
    if row["D_K_one"] is not None:
        lines.append(f"one head: {with_range(row['D_K_one'], row['one_low'], row['one_high'])}")
    elif row["one_low"] is not None:
        lines.append(f"one head: D_K ≥ {row['one_low']}")
    return "\n".join(lines)


def _endless(row: Any) -> str | None:
    if row["D_K_limit"] is None:
        return None
    return f"{row['D_K_limit']:.1f} [{row['limit_low']:.1f}–{row['limit_high']:.1f}]"


def _fates(rows: list[dict[str, Any]]) -> Table:
    return Table(
        name="table-limits",
        caption=(
            "At the largest step limit: whether D_K* still falls (budget) or not (capacity), what "
            "an endless budget would need by D_K(T) = D_K(∞) + a T^−b with a rough 95 % interval, "
            "and what became of the advantage of several heads."
        ),
        columns=[
            Column("cell", cell_title, text=True, names=True),
            Column("D_K*", lambda row: row["D_K"]),
            Column("limited by", lambda row: row["limited_by"], text=True),
            Column("D_K(∞)", _endless, lambda row: row["D_K_limit"]),
            Column("or why not", lambda row: row["reason"] or "", text=True),
            Column("gain of several heads", lambda row: row["gain"], text=True),
        ],
        rows=rows,
    )


def _gains(rows: list[dict[str, Any]]) -> Table:
    def gain(row: Any) -> str | None:
        if row["gain"] is None:
            return None if row["gain_low"] is None else f"≥ {row['gain_low']:.2f}"
        ends = f"{row['gain_low']:.2f}–"
        if row["gain_high"] is not None:
            ends += f"{row['gain_high']:.2f}"
        return f"{row['gain']:.2f} [{ends}]"

    def one(row: Any) -> str | None:
        if row["D_K_one"] is None:
            return None if row["one_low"] is None else f"≥ {row['one_low']}"
        return with_range(row["D_K_one"], row["one_low"], row["one_high"])

    return Table(
        name="table-gains",
        caption="One head against the best head count at every step limit. Intervals over seeds.",
        columns=[
            Column("cell", cell_title, text=True, names=True),
            Column("max_steps", lambda row: row["max_steps"]),
            Column(
                "D_K*",
                lambda row: with_range(row["D_K"], row["D_K_low"], row["D_K_high"]),
                lambda row: row["D_K"],
            ),
            Column(
                "h*",
                lambda row: with_range(row["h_star"], row["h_low"], row["h_high"]),
                lambda row: row["h_star"],
            ),
            Column("D_K(1)", one, lambda row: row["D_K_one"]),
            Column("D_K(1) / D_K*", gain, lambda row: row["gain"]),
        ],
        rows=rows,
        folded=f"One head against the best at every step limit: {len(rows)} rows",
    )
