"""Agreement with the paper: every number that it states, beside ours, with a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rgr_dist.analysis.agreement.paper_beside_ours import published_figures_of
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Column, Row, Section, Table, cell_column
from rgr_dist.analysis.rows import named, rows_of
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.analysis.thresholds.comparable import comparison_of
from rgr_dist.analysis.wording import number, plural


def section(results: StudyResults) -> Section | None:
    """Our numbers beside the paper's; None for a grid: its thresholds are as coarse as its D_K."""
    study = results.study
    if study.search.mode == "grid":
        return None
    rows = rows_of(published_figures_of(results))
    measured = [row for row in rows if row["verdict"] in ("agrees", "differs")]
    others = [row for row in rows if row not in measured]
    words = []
    if measured:
        words.append(agreeing(measured))
    elif best_of(results)["D_K"].isna().all() or not comparison_of(results).empty:
        words.append("No cell has a threshold to set beside the paper's.")
    else:
        words.append("The paper gives no number for cells of this model, size and protocol.")
    whole = [row for row in measured if AT not in row["quantity"]]
    shown = [_table("table-agreement", RESULTS, whole)] if whole else []
    if len(whole) < len(measured):
        shown.append(_cells(results, measured))
    if others:
        shown.append(
            _table("table-others", OTHERS, others, "Its protocol, and what else it states")
        )
    return Section(
        name="agreement",
        title="Agreement with the paper",
        template="agreement",
        words=words,
        shown=shown,
        values={"is_measured": bool(measured)},
        files={"paper": published_figures_of(results), "comparison": comparison_of(results)},
    )


AT = " at (m, d_model) = "
"""What the name of a number of one cell holds."""


def agreeing(measured: Sequence[Row]) -> str:
    """How many numbers agree: D_K* and h* cell by cell, from which d_k* follows, and the others."""
    agree = {row["quantity"]: row["verdict"] == "agrees" for row in measured}
    widths, heads = (
        [said for what, said in agree.items() if what.startswith(f"{name}*{AT}")]
        for name in ("D_K", "h")
    )
    others, words = [said for what, said in agree.items() if AT not in what], []
    if widths:
        cells = plural(len(widths), "cell")
        same = f"D_K* agrees in {sum(widths)} of {cells} with what the paper’s Table 1 implies"
        words.append(f"{same}, h* in {sum(heads)}.")
    if others:
        numbers = plural(len(others), "other number" if widths else "number")
        verb = "agrees" if sum(others) == 1 else "agree"
        words.append(f"Of {numbers} of the paper that this study measures, {sum(others)} {verb}.")
    return " ".join(words)


RESULTS = (
    "What the paper finds and what this study finds; the rule of each verdict stands beside it. "
    "The paper does not publish the values of its figures: D_K* and h* of single cells are "
    "inferred from the d_k of its Table 1. Shaded: differs."
)
OTHERS = (
    "Settings of the paper’s protocol beside those of this study, and numbers measured elsewhere."
)


def _table(name: str, caption: str, rows: Sequence[Row], folded: str | None = None) -> Table:
    return Table(
        name=name,
        caption=caption,
        columns=[
            Column("what", "quantity", text=True),
            Column("verdict", "verdict", text=True),
            Column("the paper", "theirs"),
            Column("here", "ours"),
            Column("difference", _difference, "difference"),
            Column("where", "place", text=True),
            Column("note", lambda row: row["note"] or "", text=True),
        ],
        rows=rows,
        cell=None,
        apart=lambda row: row["verdict"] in ("differs", "not as the paper"),
        folded=folded,
    )


def _cells(results: StudyResults, measured: Sequence[Row]) -> Table:
    """The cells of Table 1: its d_k, and the D_K* and h* that it implies."""
    verdicts = {row["quantity"]: row["verdict"] for row in measured}

    def verdict(name: str) -> Callable[[Row], str | None]:
        return lambda row: verdicts.get(f"{name}*{AT}{row['m'], row['d_model']}")

    columns = [cell_column()]
    for name, ours in (("D_K", "D_K"), ("h", "h_star"), ("d_k", "d_k")):
        columns += [
            Column(f"{name}*, the paper", f"paper_{name}"),
            Column("here", ours),
            Column("verdict", verdict(name), text=True),
        ]
    return Table(
        name="table-agreement-cells",
        caption=(
            "Cell by cell. The paper’s d_k* is quoted from its Table 1; D_K* and h* are inferred "
            "from it. D_K* agrees within one step of d_k at the larger of the two head counts, "
            "d_k* within 1, h* if our interval holds theirs. Shaded: D_K* differs."
        ),
        columns=columns,
        rows=named(results, comparison_of(results)),
        apart=lambda row: row["agrees"] is False,
    )


def _difference(row: Row) -> str | None:
    if row["difference"] is None:
        return None
    value = row["difference"]
    return number(value, "+.0f" if value == int(value) else "+.3g") if value else "0"
