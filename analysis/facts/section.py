"""A study of facts: the widths that hold a database, its rank, and the summary's statements."""

from __future__ import annotations

import pandas as pd

from rgr_dist.analysis.facts import tables as facts
from rgr_dist.analysis.facts.figures import draw_ranks, draw_splits, draw_taus
from rgr_dist.analysis.facts.statements import statements
from rgr_dist.analysis.facts.tables import rows_of_facts
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Column, Section, Table, cell_column
from rgr_dist.analysis.rows import named
from rgr_dist.analysis.thresholds.rows import cells_of
from rgr_dist.facts.ranks import summed_rank_bound

SIZES = ("queries", "h", "d_vo", "d_model")
"""Keys of the sizes in the bound of Prop. 3.5 as a sum."""


def ranks(results: StudyResults) -> Section:
    """The rank that a layer's logits can have, against that of the database."""
    search = results.study.search
    rows, arm = [row for row in rows_of_facts(results) if row["D_V"]], search.sizes.shown_arm
    if search.total:  # each d_qk allows one d_vo: only the cell's smallest is a threshold
        least = {row["cell_id"]: row["D_V"] for row in cells_of(results)}
        rows = [row for row in rows if row["D_V"] == least[row["cell_id"]]]
    columns = [
        cell_column(),
        Column(arm, arm),
        Column("D_V", "D_V"),
        Column("rank of database", "rank_words", "rank_high"),
        Column("rank of logits, at most", "layer_rank_bound"),
        Column("as a sum", lambda row: summed_rank_bound(*(row[size] for size in SIZES))),
    ]
    table = Table(
        name="table-ranks",
        caption="Rank of database: from the rank of its unfoldings to the bound of Prop. 2.1, "
        "means over seeds. Rank of logits: the bound of Prop. 3.5 for a layer at the threshold, as "
        "we prove it. As a sum: d_model + h d_vo |Q|, most likely the paper’s form of this bound.",
        columns=columns,
        rows=rows,
    )
    return Section(
        name="ranks",
        title="Threshold against rank bound",
        figures=(draw_ranks(rows, arm, is_of_each_arm=search.total is None),),
        shown=(table,),
    )


def splits(results: StudyResults) -> Section | None:
    """The score at each split of a fixed d_qk + d_vo; None without such a total or without runs."""
    total, table = results.study.search.total, facts.by_split(results)
    if total is None or table.empty:
        return None
    target = results.study.search.target
    figure = draw_splits(named(results, table), cells_of(results), total, target)
    title = f"A fixed total of d_qk + d_vo = {total}"
    return Section(name="totals", title=title, figures=(figure,), files={"totals": table})


def taus(results: StudyResults) -> Section | None:
    """Mean accuracy and rank of the trained layers at each tau; None if there are none."""
    measured = facts.runs(results)
    if not measured:
        return None
    at = facts.by_tau(measured)
    columns = [
        Column("τ", "tau", form="g"),
        Column("distance from rank of L", "gap", form=".2f"),
        Column("accuracy", "accuracy", form=".3f"),
        Column("rank, from below", "rank", form=".1f"),
        Column("above the bound on L", "above_bound"),
        Column("layers", "n"),
    ]
    table = Table(
        name="table-taus",
        caption="Ranks are the largest of an unfolding. Above the bound: layers whose "
        "softmax≥τ(L) has provably more rank than their logits can have (Prop. 3.5).",
        columns=columns,
        rows=at,
        cell=None,
    )
    return Section(
        name="taus",
        title="The threshold on the probability",
        figures=(draw_taus(at),),
        shown=(table,),
        files={"taus": pd.DataFrame(at)},
    )


def said(results: StudyResults) -> Section:
    """Each statement of the summary, what we measured, and a verdict."""
    arm = results.study.search.sizes.shown_arm
    # With a fixed total each d_qk allows one d_vo: the thresholds follow from the design.
    found = [] if results.study.search.total else rows_of_facts(results)
    rows = statements(found, facts.runs(results), arm)
    return Section(
        name="statements",
        title="What the summary states",
        template="statements",
        values={"statements": rows},
        files={"statements": pd.DataFrame(rows)},
    )
