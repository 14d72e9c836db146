"""The cells: D_K*, h*, d_k and their certificates, one row each."""

from __future__ import annotations

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import (
    Column,
    Section,
    Table,
    bits_column,
    cell_column,
)
from rgr_dist.analysis.records import with_bits
from rgr_dist.analysis.rows import Row
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.analysis.thresholds.rows import cells_of

STATUS = {
    "censored": "censored: no pass up to the largest width allowed",
    "inconsistent": "inconsistent: a wider probe fails where a narrower one passes",
    "open": "open: the search is not finished",
}
"""What the status of a cell without a final threshold means."""


def section(results: StudyResults) -> Section:
    """The table of the cells, whose rows other parts of the page link to."""
    axis, cells, best = results.study.search.sizes, cells_of(results), best_of(results)
    width, arm, record = f"{axis.total}*", f"{axis.shown_arm}*", results.study.record
    of_D_K, holds_bits = record.finds == "D_K", record.holds_bits
    columns = [cell_column()]
    if best["max_steps"].nunique() > 1:
        columns.append(Column("step limit", "max_steps"))
    if of_D_K:
        columns.append(Column("m′/d_model", "compression", form=".3g"))
    columns += [
        Column(width, "width_words", axis.total),
        Column(arm, "arm_words", axis.best_arm),
        Column(axis.value, axis.value),
    ]
    if holds_bits:
        columns.append(bits_column())
    if best["confirmed"].notna().any():
        said = {True: "yes", False: "no", None: None}
        columns.append(Column("confirmed", lambda row: said[row["confirmed"]], text=True))
    of_heads = axis.shown_arm == "h"
    ends = "the fewest to the most heads" if of_heads else "the smallest to the largest d_qk"
    columns += [
        Column("status", "status", text=True),
        Column(f"certificate, in {axis.value}", "certificate_words", text=True),
    ]
    return Section(
        name="cells",
        title="Cells",
        words=[*_without_threshold(cells), *_by_first_seeds(results, cells)],
        shown=(
            Table(
                name="table-cells",
                caption="Brackets: "
                + f"{width} from optimistic to conservative; "
                * (results.study.search.total is None)
                + f"{arm} from {ends} tried that pass within 10 % of {axis.total}*, or one "
                f"step of their {axis.value}, each at its own width, with scores that a paired "
                f"t-test cannot tell apart: no interval of {arm}."
                + " Each d_qk allows one d_vo." * (results.study.search.total is not None)
                + (f" Bits: of the graph, per parameter at {width}." if holds_bits else ""),
                columns=columns,
                rows=cells,
                anchored=True,
            ),
        ),
        files={"best": with_bits(best) if holds_bits else best},
    )


def _by_first_seeds(results: StudyResults, cells: list[Row]) -> list[str]:
    """Where the paper's rule, which confirms nothing on fresh seeds, gives another threshold."""
    search = results.study.search
    axis = search.sizes
    known = [row for row in cells if row[axis.first] is not None]
    if not search.confirm_seeds or not known:
        return []
    others = [
        f"{row[axis.first]} at {row['short']}, not {row[axis.total] or 'confirmed'}"
        for row in known
        if row[axis.first] != row[axis.total]
    ]
    rule = f"The paper's rule, the first {search.seeds} seeds alone, gives"
    return [f"{rule} {'; '.join(others) or 'the same thresholds'}."]


def _without_threshold(cells: list[dict[str, str]]) -> list[str]:
    alike: dict[str, list[str]] = {}
    for row in cells:
        if row["status"] != "found":
            alike.setdefault(row["status"], []).append(row["short"])
    each = "; ".join(f"{', '.join(own)} {STATUS[status]}" for status, own in alike.items())
    return [f"Cells without a threshold, or not finished: {each}."] if each else []
