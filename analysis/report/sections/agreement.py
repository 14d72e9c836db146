"""Agreement with the paper: what it gives for these cells, and what we find."""

from __future__ import annotations

from analysis.report import findings
from analysis.report.section import Column, Section, Table
from analysis.report.tables import Tables


def section(tables: Tables) -> Section | None:
    """Our numbers beside the paper's; none for a grid: its thresholds are as coarse as its D_K."""
    study = tables.study
    if study.search.mode == "grid":
        return None
    words = findings.agreement(tables.comparison, tables.laws, tables.published)
    if study.search.retest_steps and tables.thresholds["limited_by"].notna().any():
        words.append(findings.limits(tables.thresholds, study.search.retest_steps))
    shown = []
    if not tables.comparison.empty:
        shown.append(_table(tables))
    return Section(
        name="agreement",
        title="Agreement with the paper",
        words=words,
        shown=shown,
        files={"comparison": tables.comparison},
    )


def _table(tables: Tables) -> Table:
    verdicts = {True: "agrees", False: "differs", None: "no threshold yet"}
    return Table(
        name="table-agreement",
        caption=(
            "The paper’s d_k is quoted from its Table 1; its D_K* and h* are inferred from that. "
            "A cell agrees if D_K* is at most one step of d_k away: the larger of the two head "
            "counts. Shaded: differs."
        ),
        columns=[
            Column(
                "cell", lambda row: row["short"], lambda row: row["m"] * 1e6 + row["d_model"], True
            ),
            Column("D_K*", lambda row: row["D_K"]),
            Column("paper: D_K*", lambda row: row["paper_D_K"]),
            Column(
                "ours − paper",
                lambda row: _signed(row["difference"]),
                lambda row: row["difference"],
            ),
            Column("one step", lambda row: row["step"]),
            Column("h*", lambda row: row["h_star"]),
            Column("paper: h*", lambda row: row["paper_h"]),
            Column("d_k", lambda row: row["d_k"]),
            Column("paper: d_k", lambda row: row["paper_d_k"]),
            Column("verdict", lambda row: verdicts[row["agrees"]], text=True),
        ],
        rows=tables.named(tables.comparison),
        apart=lambda row: row["agrees"] is False,
    )


def _signed(difference: int | None) -> str | None:
    if difference is None:
        return None
    return f"{difference:+d}".replace("-", "−") if difference else "0"
