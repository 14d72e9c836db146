"""The words of the tips over cells and over thresholds, and what a status means in words."""

from __future__ import annotations

from rgr_dist.analysis import wording
from rgr_dist.analysis.rows import Row
from rgr_dist.study.axis import SizeAxis

STATUS = {
    "found": "found",
    "censored": "censored: no pass up to the largest width allowed",
    "pruned": "pruned: cannot come within the kept margin of the best head",
    "inconsistent": "inconsistent: a wider probe fails where a narrower one passes",
    "open": "open: the search is not finished",
}


def cell_hover_text(axis: SizeAxis, row: Row) -> str:
    """The tip of a row of ``thresholds.rows.cells_of``."""
    lines = [row["full"]]
    if row[axis.total] is None:
        known = row["width_words"] != wording.MISSING
        bound = f"{axis.total}* {row['width_words']}, " if known else ""
        lines.append(bound + STATUS[row["status"]])
    else:
        so_far = ", so far" if row["status"] == "open" else ""
        value = f"{axis.value} = {row[axis.value]}"
        lines.append(f"{axis.total}* = {row['width_words']}{so_far}")
        lines.append(f"{axis.shown_arm}* = {row['arm_words']}, {value}")
    return _with_certificate(lines, row)


def head_hover_text(axis: SizeAxis, row: Row) -> str:
    """The tip of a row of ``heads.by_heads.heads_of``."""
    is_ = "= " if row[axis.total] is not None else ""
    lines = [
        f"{row['full']}, {axis.shown_arm} = {row[axis.arm]}",
        f"{axis.total} {is_}{row['width_words']}, {row['status']}",
    ]
    return _with_certificate(lines, row)


def _with_certificate(lines: list[str], row: Row) -> str:
    if row["certificate_words"] != wording.MISSING:
        lines.append(row["certificate_words"])
    return "\n".join(lines)
