"""The cells: D_K*, h*, d_k and their certificates, one row each."""

from __future__ import annotations

from analysis.load import StudyResults
from analysis.page.section import Column, Section, Table, bits_column, cell_column
from analysis.records import with_bits
from analysis.thresholds.best import best_of
from analysis.thresholds.findings import STATUS
from analysis.thresholds.rows import cells_of


def section(results: StudyResults) -> Section:
    """The table of the cells, whose rows other parts of the page lead to."""
    cells = cells_of(results)
    unfinished = [row for row in cells if row["status"] != "found"]
    words = []
    if unfinished:
        alike: dict[str, list[str]] = {}
        for row in unfinished:
            alike.setdefault(row["status"], []).append(row["short"])
        each = "; ".join(f"{', '.join(own)} {STATUS[status]}" for status, own in alike.items())
        words.append(f"Cells without a threshold, or not finished: {each}.")
    columns = [
        cell_column(),
        Column("m′/d_model", lambda row: f"{row['compression']:g}"),
        Column("D_K*", lambda row: row["D_K_words"], lambda row: row["D_K"]),
        Column("h*", lambda row: row["h_words"], lambda row: row["h_star"]),
        Column("d_k", lambda row: row["d_k"]),
        bits_column(),
    ]
    if "max_steps" in best_of(results) and best_of(results)["max_steps"].nunique() > 1:
        columns.insert(1, Column("step limit", lambda row: row["max_steps"]))
    if "confirmed" in best_of(results) and best_of(results)["confirmed"].notna().any():
        said = {True: "yes", False: "no", None: None}
        columns.append(Column("confirmed", lambda row: said[row["confirmed"]], text=True))
    columns += [
        Column("certificate, in d_k", lambda row: row["certificate_words"], text=True),
        Column("status", lambda row: row["status"], text=True),
    ]
    table = Table(
        name="table-cells",
        caption=(
            "In brackets: D_K* from optimistic to conservative, h* from the fewest to the most "
            "heads not told apart. Bits: of the graph, per parameter at D_K*."
        ),
        columns=columns,
        rows=cells,
        anchored=True,
    )
    return Section(
        name="cells",
        title="Cells",
        words=words,
        shown=(table,),
        files={"best": with_bits(best_of(results))},
    )
