"""What the study cost."""

from __future__ import annotations

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Column, Section, Table, cell_column
from rgr_dist.analysis.rows import named
from rgr_dist.analysis.runs import cost_of
from rgr_dist.analysis.wording import duration

TOTALS = ["probes", "runs", "failed", "spared", "steps", "seconds"]


def section(results: StudyResults) -> Section:
    """Runs, training steps and time of each cell."""
    costs = cost_of(results)
    given_up = [Column("given up before it", "given_up")] if costs["given_up"].any() else []
    table = Table(
        name="table-cost",
        caption=(
            "Every stored run of these cells and heads: retests, extra and fresh seeds, and the "
            "runs of other studies in the store. Processor time is that of one core or device."
        ),
        columns=[
            cell_column(),
            Column("probes", "probes"),
            Column("runs", "runs"),
            Column("failed", "failed"),
            Column("at the step limit", "at_limit"),
            *given_up,
            Column("seeds not run", "spared"),
            Column("training steps", "steps"),
            Column("processor time", lambda row: duration(row["seconds"]), "seconds"),
        ],
        rows=named(results, costs),
        file="cost",
    )
    return Section(
        name="cost",
        title="Cost",
        template="cost",
        values={"total": costs[TOTALS].sum()},
        shown=(table,),
        files={"cost": costs},
    )
