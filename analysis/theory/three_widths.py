"""Proved impossible, known to be possible, and trained: three answers for every (cell, h)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rgr_dist.analysis.drawing.panel import Figure, Key, Panel, Point
from rgr_dist.analysis.drawing.points import head_keys
from rgr_dist.analysis.drawing.scales import log2_axis
from rgr_dist.analysis.heads.figures import columns_of
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.section import Column, Row, Table, cell_column, limit_columns
from rgr_dist.analysis.rows import named
from rgr_dist.analysis.thresholds.rows import drawn_cells_of, thresholds_of
from rgr_dist.analysis.wording import with_range

NOT_TRAINED = ("construction", "constructed start")
CAPTION = (
    "Total key width D_K by the number of heads, a panel for each cell. Filled marks: the trained "
    "threshold. Hollow marks: the smallest width at which known weights pass, if it is smaller or "
    "training passes at no width. An arrow: for at least one draw it is proved that no weights of "
    "one head, however wide, are right on all pairs."
)


def three_widths(results: StudyResults) -> Sequence[Row]:
    """The (cell, h) about which something is known, at their largest step limit.

    Returns:
        Rows of ``thresholds_of`` with the names of their cells; none if all that is known comes
        from training.
    """
    largest = {row["cell_id"] for row in drawn_cells_of(results)}
    rows = [row for row in named(results, thresholds_of(results)) if row["cell_id"] in largest]
    known = [row for row in rows if row["limited_by"] is not None or row["possible_D_K"]]
    other = any(row["possible_source"] in NOT_TRAINED or row["proved_draws"] for row in known)
    return known if other else []


def widths_table(rows: Sequence[Row]) -> Table:
    """The three widths of each row, and what limits the trained one."""

    def width(kind: str) -> Column:
        def shown(row: Row) -> str | None:
            source = row[f"{kind}_source"]
            return None if source is None else f"{row[f'{kind}_D_K']} ({source})"

        return Column("passes from" if kind == "possible" else "exact from", shown, f"{kind}_D_K")

    limits = limit_columns(rows)
    return Table(
        name="table-three-widths",
        caption=(
            "One head impossible: in how many of the study’s draws a certificate proves that no "
            "weights of one head, however wide, are right on all pairs. Passes from: the smallest "
            "D_K with known weights that pass the study’s test; exact from: with known weights "
            "that are right on all pairs of every draw; in brackets: how they were found."
            + " Limited by: as in the table of cells."
            * bool(limits)
        ),
        columns=[
            cell_column(),
            Column("h", "h"),
            Column("one head impossible", _proved, "proved_draws"),
            width("possible"),
            width("exact"),
            Column("trained", lambda row: with_range(row["D_K"], row["D_K_low"], row["D_K_high"])),
            *limits,
        ],
        rows=rows,
    )


def _proved(row: Row) -> str | None:
    decided = row["decided_draws"]
    return None if decided is None else f"{row['proved_draws']} of {decided}"


def draw_three_widths(rows: Sequence[Row]) -> Figure:
    """A panel for each cell: trained and possible widths by heads, and what is proved.

    Args:
        rows: of ``three_widths``.
    """
    anchors = dict.fromkeys(row["anchor"] for row in rows)
    cells = [[row for row in rows if row["anchor"] == anchor] for anchor in anchors]
    return Figure(
        name="three-widths",
        title="Impossible, possible and trained widths",
        caption=CAPTION,
        panels=tuple(_panel(own) for own in cells),
        legend=(Key(text="trained", look="cell"), *head_keys(row["h"] for row in rows)),
        hollow="weights known",
        arrow="one head impossible",
        columns=columns_of([own[0] for own in cells]),
    )


def _panel(rows: Sequence[Row]) -> Panel:
    widths = [row[name] for row in rows for name in ("D_K", "possible_D_K") if row[name]]
    y = log2_axis("D_K", widths or [row["d_model"] for row in rows], pad=1.5, above=2.2)
    return Panel(
        title=(rows[0]["short"],),
        x=log2_axis("heads h", [row["h"] for row in rows], pad=1.35),
        y=y,
        points=tuple(point for row in rows for point in _points(row, y.high / 1.3)),
        height=150,
        cell=rows[0]["anchor"],
    )


def _points(row: Row, top: float) -> Iterator[Point]:
    """The marks of one (cell, h); an arrow stands at the top."""

    def point(y: float, words: str, **more: Any) -> Point:
        text = f"{row['full']}, h = {row['h']}\n{words}"
        return Point(x=row["h"], y=y, h=row["h"], cell=row["anchor"], text=text, **more)

    D_K, possible = row["D_K"], row["possible_D_K"]
    if D_K is not None:
        limit = f", limited by {row['limited_by']}" if row["limited_by"] else ""
        ends = {end: row[f"D_K_{end}"] for end in ("low", "high")}
        yield point(D_K, f"trained: D_K = {D_K}{limit}", **ends)
    if possible is not None and possible != D_K:
        words = f"possible: D_K = {possible}, {row['possible_source']}"
        yield point(possible, words, hollow=True)
    if row["proved_draws"]:
        words = f"proved impossible at any width in {_proved(row)} draws"
        yield point(top, words, arrow=True)
