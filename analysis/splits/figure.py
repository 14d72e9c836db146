"""A transformer's study: accuracy and NULL share against D_K (Sec. 7.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rgr_dist.analysis.drawing.panel import Figure, Line, Panel, Point
from rgr_dist.analysis.drawing.points import dodges, head_keys
from rgr_dist.analysis.drawing.scales import Axis, Tick, log2_axis, share_axis
from rgr_dist.analysis.page.section import Row

CAPTION = (
    "Accuracy: the mean over seeds for each head count, with its 95 % t-interval; each faint "
    "mark is a run. Dashed: a random guess among the items of the context; a run below it "
    "collapsed. NULL: the share of test queries that each run answered with NULL, which is never "
    "correct. Head counts at one D_K stand side by side."
)


def draw_accuracy(
    cells: Sequence[Row], splits: Sequence[Row], runs: Sequence[Row], guesses: Mapping[str, float]
) -> Figure:
    """Accuracy and NULL share against D_K: two panels for each cell.

    Args:
        cells: the names of each cell: ``anchor, short``.
        splits: rows of ``splits.accuracy.splits_of`` with ``anchor`` and ``text``.
        runs: the runs: ``anchor, h, d_k, D_K, seed, score, null_rate``.
        guesses: accuracy of a random guess, by anchor.
    """
    heads = sorted({row["h"] for row in runs})
    shift = dodges(heads)
    panels = []
    for cell in cells:
        anchor = cell["anchor"]
        own = [row for row in runs if row["anchor"] == anchor]
        means = [row for row in splits if row["anchor"] == anchor]
        widths = sorted({row["D_K"] for row in own})
        x = log2_axis("total key width D_K", widths or [1, 2], pad=1.5)
        x = Axis(x.label, x.low, x.high, tuple(Tick(D_K, f"{D_K:,}") for D_K in widths))
        guess = guesses[anchor]
        level = Line(points=((x.low, guess), (x.high, guess)), look="target")
        lines = [
            Line(
                points=tuple((row["D_K"], row["accuracy"]) for row in means if row["h"] == h),
                look="head",
                h=h,
                dodge=shift[h],
            )
            for h in heads
        ]
        mean_points = [
            Point(
                x=row["D_K"], y=row["accuracy"], text=row["text"], h=row["h"],
                low=row["low"], high=row["high"], dodge=shift[row["h"]],
            )
            for row in means
        ]  # fmt: skip
        tried = () if own else ("no run yet",)
        panels += [
            Panel(
                title=(f"{cell['short']}: accuracy", *tried), x=x,
                y=share_axis("test accuracy"), lines=(level, *lines), height=230, cell=anchor,
                points=(*_runs(own, "score", shift), *mean_points),
            ),
            Panel(
                title=(f"{cell['short']}: answers of NULL", *tried), x=x,
                y=share_axis("share answered NULL"), height=230, cell=anchor,
                points=tuple(_runs(own, "null_rate", shift)),
            ),
        ]  # fmt: skip
    return Figure(
        name="accuracy",
        title="Accuracy and answers of NULL against D_K",
        caption=CAPTION,
        panels=tuple(panels),
        legend=head_keys(heads),
        columns=2,
    )


def _runs(runs: Sequence[Row], of: str, shift: Mapping[int, float]) -> list[Point]:
    return [
        Point(
            x=row["D_K"],
            y=row[of],
            text=f"h = {row['h']}, D_K = {row['D_K']}, seed {row['seed']}: {row[of]:.3f}",
            h=row["h"],
            faint=True,
            dodge=shift[row["h"]],
        )
        for row in runs
        if row[of] is not None
    ]
