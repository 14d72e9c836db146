"""Figures as matplotlib draws them: for papers, notebooks, and as files beside a report.

Sizes are those of print: a column or a page of a paper in inches, type of 7 to 8 points, fonts
embedded. Colours and shapes are those of the page.
"""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.ticker import NullLocator
from matplotlib.transforms import Transform, offset_copy

from rgr_dist.analysis.drawing.colours import INKS, PHASES, TILES, head_colour, head_shape
from rgr_dist.analysis.drawing.panel import POWER, Figure, Key, Line, Panel, Point
from rgr_dist.analysis.drawing.scales import NEAR_ONE, Axis
from rgr_dist.faults import UserError
from rgr_dist.study.errors import StudyError

COLUMN, PAGE = 3.4, 7.0
"""Widths of a column and of a page of a paper with two columns, in inches."""
PIXELS = 120
"""Pixels of a panel's height per inch of print."""
WIDEST_TITLE = 36
"""The most characters in a line of a title, which then fits a third of a page."""
NARROWEST = 1.6
"""Inches that a panel needs: a narrower figure has fewer panels in a row."""
INK = INKS["light"]

STYLE: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK["soft"],
    "axes.grid": True,
    "axes.labelcolor": INK["soft"],
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 8,
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "grid.color": INK["line"],
    "grid.linewidth": 0.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # TrueType, which journals ask for
    "savefig.dpi": 300,
    "svg.fonttype": "path",
    "svg.hashsalt": "rgr-dist",  # the same figure gives the same bytes
    "text.usetex": False,  # LaTeX would take other fonts, if there is one
    "text.color": INK["ink"],
    "xtick.color": INK["soft"],
    "xtick.labelsize": 7,
    "xtick.major.size": 0,
    "ytick.color": INK["soft"],
    "ytick.labelsize": 7,
    "ytick.major.size": 0,
}
"""Matplotlib's settings for every figure."""

LINES: dict[str, dict[str, Any]] = {
    "ours": {"color": INK["ink"], "linewidth": 1.2},
    "also": {"color": INK["ink"], "linewidth": 1.0, "linestyle": (0, (1, 2.5))},
    "paper": {"color": INK["soft"], "linewidth": 1.0, "linestyle": (0, (5, 3))},
    "rest": {"color": INK["soft"], "linewidth": 1.0, "linestyle": (0, (7, 2, 1.5, 2))},
    "series": {"color": INK["soft"], "linewidth": 0.7, "alpha": 0.55},
    "target": {"color": INK["soft"], "linewidth": 0.7, "linestyle": (0, (4, 3))},
    "guide": {"color": INK["ink"], "linewidth": 0.7, "linestyle": (0, (1, 3))},
    "head": {"linewidth": 0.9},
}
"""``Line.look`` as matplotlib draws it."""

FRAME = [(-3, -3), (3, -3), (3, 3), (-3, 3)]
HOLE = [(-1, -1), (-1, 1), (1, 1), (1, -1)]
MARKERS: dict[str, tuple[Any, float]] = {
    "circle": ("o", 1.0),
    "square": ("s", 0.95),
    "hexagon": ("H", 1.15),
    "diamond": ("D", 0.95),
    "plus": ("P", 1.3),
    "star": ("*", 1.7),
    "bar": ([(-6, -2.4), (6, -2.4), (6, 2.4), (-6, 2.4)], 1.3),
    "column": ([(-2.4, -6), (2.4, -6), (2.4, 6), (-2.4, 6)], 1.3),
    "easy": ("s", 2.8),
    "slow": ([*FRAME, FRAME[0], *HOLE, HOLE[0], FRAME[0]], 2.8),
    "hard": ("D", 2.1),
    "impossible": ("X", 2.8),
}
"""The outlines of ``SHAPES`` and ``TILES`` as matplotlib's markers, each with a scale factor."""
Corner = Literal["outside upper left", "outside lower left"]
ARROW = Path(
    [(-5, 0), (5, 0), (0, 0), (0, 16), (-4, 11), (0, 16), (4, 11)],
    [Path.MOVETO, Path.LINETO, Path.MOVETO, Path.LINETO, Path.MOVETO, Path.LINETO, Path.LINETO],
)
"""An arrow upwards from a lower bound, as the page draws it."""


def plot(
    figure: Figure, ax: Axes | Sequence[Axes] | None = None, width: float | None = None
) -> Canvas:
    """Draw a figure.

    Args:
        ax: axes to draw into, one for each panel; if None, a new figure is made, with the legend.
        width: of that new figure, in inches; by default ``COLUMN`` if its panels stand in one
            column, else ``PAGE``.

    Returns:
        The figure of the axes, which can save itself: ``.savefig("law.pdf")``.

    Raises:
        StudyError: they are no axes, or not as many as there are panels.
    """
    with mpl.rc_context(STYLE):
        if ax is None:
            return _whole(figure, width)
        axes = [*ax] if isinstance(ax, Iterable) else [ax]
        if not all(isinstance(one, Axes) for one in axes):
            raise StudyError(f"ax: give axes of matplotlib, not {ax!r}")
        if len(axes) != len(figure.panels):
            raise StudyError(
                f"the figure {figure.name} has {len(figure.panels)} panels; give ax as many axes, "
                f"not {len(axes)}"
            )
        for each, panel in zip(axes, figure.panels, strict=True):
            _draw(each, panel)
        canvas = axes[0].get_figure(root=True)
        assert isinstance(canvas, Canvas)
        return canvas


def as_file(figure: Figure, kind: str, width: float | None = None) -> bytes:
    """A figure as a file.

    Args:
        kind: ``pdf``, ``svg`` or ``png`` (300 dots per inch).
        width: in inches, as for ``plot``.

    Raises:
        UserError: it is too narrow for its axes.
    """
    file = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "constrained_layout not applied")
        try:
            plot(figure, width=width).savefig(file, format=kind, metadata=undated)
        except UserWarning:
            given = "" if width is None else f"--width {width:g}: "
            raise UserError(f"{given}figure {figure.name} has no room; give it more") from None
    return file.getvalue()


class Drawing(Canvas):
    """A matplotlib figure that a notebook shows, and that embeds its fonts when it is saved."""

    def savefig(self, fname: Any, *, transparent: bool | None = None, **kwargs: Any) -> None:
        """Save it as matplotlib does: as PDF, SVG or PNG, by the ending of the file's name."""
        with mpl.rc_context(STYLE):
            super().savefig(fname, transparent=transparent, **kwargs)

    def _repr_svg_(self) -> str:
        file = io.StringIO()
        self.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue().partition("<!DOCTYPE")[2].partition(">")[2].lstrip()


def _whole(figure: Figure, width: float | None) -> Canvas:
    columns = max(1, min(figure.columns, len(figure.panels)))
    width = width or (COLUMN if columns == 1 else PAGE)
    columns = max(1, min(columns, int(width / NARROWEST)))
    letters = min(WIDEST_TITLE, int(20 * (width / columns - 0.5)))  # the axis takes half an inch
    rows = [figure.panels[i : i + columns] for i in range(0, len(figure.panels), columns)]
    heights = [
        max(panel.height / PIXELS + 0.15 * len(_title(panel, letters)) for panel in r) for r in rows
    ]
    legends = _legends(figure.keys, width)
    above = sum(0.17 * -(-len(keys) // across) for _, keys, across in legends)
    size = (width, sum(heights) + 0.4 * len(rows) + above)
    canvas = Drawing(figsize=size, layout="constrained")
    axes = canvas.subplots(len(rows), columns, squeeze=False, height_ratios=heights).ravel()
    for i, ax in enumerate(axes):
        if i < len(figure.panels):
            _draw(ax, figure.panels[i], letters)
            _spare_labels(ax, figure.panels, i, columns)
        else:
            ax.set_axis_off()
    for place, keys, across in legends:
        marks, names = [_mark(key) for key in keys], [mathtext(key.text) for key in keys]
        canvas.legend(marks, names, loc=place, ncols=across)
    return canvas


def _legends(keys: Sequence[Key], width: float) -> list[tuple[Corner, Sequence[Key], int]]:
    """Corner, entries and entries per row of each legend: heads go below if others are long.

    Args:
        width: of the figure, in inches.
    """
    heads = [key for key in keys if key.h is not None]
    others = [key for key in keys if key.h is None]
    parted: list[tuple[Corner, Sequence[Key]]]
    parted = [("outside upper left", others), ("outside lower left", heads)]
    if _across(keys, width) >= min(3, len(keys)):
        parted = [("outside upper left", keys)]
    return [(place, some, _across(some, width)) for place, some in parted if some]


def _across(keys: Sequence[Key], width: float) -> int:
    """How many entries of a legend fit side by side."""
    longest = max((len(key.text) for key in keys), default=0)
    return max(1, min(len(keys), int(width / (0.45 + 0.062 * longest))))


def _spare_labels(ax: Axes, panels: Sequence[Panel], i: int, columns: int) -> None:
    """Leave out a label that the panel to the left, or the one below, has as well."""
    if i % columns and panels[i - 1].y.label == panels[i].y.label:
        ax.set_ylabel("")
    below = panels[i + columns : i + columns + 1]
    if below and below[0].x.label == panels[i].x.label:
        ax.set_xlabel("")


def _draw(ax: Axes, panel: Panel, letters: int = WIDEST_TITLE) -> None:
    ax.set_title("\n".join(mathtext(line) for line in _title(panel, letters)))
    ax.set_xlabel(mathtext(panel.x.label))
    ax.set_ylabel(mathtext(panel.y.label))
    ax.set_xscale(**_scale(panel.x))
    ax.set_yscale(**_scale(panel.y))
    for axis, of in ((panel.x, ax.xaxis), (panel.y, ax.yaxis)):
        shown = [tick for tick in axis.ticks if not tick.level]
        of.set_ticks([tick.value for tick in shown], labels=[tick.text for tick in shown])
        of.set_minor_locator(NullLocator())
    ax.set(xlim=(panel.x.low, panel.x.high), ylim=(panel.y.low, panel.y.high))
    for line in panel.lines:
        _line(ax, line)
    for point in panel.points:
        _point(ax, point, panel)


def _title(panel: Panel, letters: int) -> list[str]:
    """The lines of a panel's title, of that many letters at most; a long name takes several."""
    spaced = (re.sub(r",(?=[a-zA-Z])", ", ", line) for line in panel.title)
    wrap = textwrap.TextWrapper(letters, break_on_hyphens=False).wrap
    return [part for line in spaced for part in wrap(line)]


def _scale(axis: Axis) -> dict[str, Any]:
    """The arguments of ``set_xscale``."""
    if axis.scale != "score":
        return {"value": axis.scale}
    return {
        "value": "function",
        "functions": (
            lambda score: -np.log10(np.maximum(0, 1 - score) + NEAR_ONE),
            lambda place: 1 + NEAR_ONE - 10**-place,
        ),
    }


def _line(ax: Axes, line: Line) -> None:
    look = LINES[line.look] | ({} if line.h is None else {"color": head_colour(line.h, "light")})
    x, y = [place[0] for place in line.points], [place[1] for place in line.points]
    ax.plot(x, y, transform=_beside(ax, line.dodge), **look)
    if line.label:
        ax.annotate(
            mathtext(line.label),
            line.points[-1],
            (-6 if line.before else 6, 0 if line.level else 6 if line.before else -6),
            textcoords="offset points",
            ha="right" if line.before else "left",
            va="center",
            color=INK["soft"],
            fontsize=7,
            bbox={"facecolor": INK["page"], "edgecolor": "none", "pad": 0.3},
        )


def _point(ax: Axes, point: Point, panel: Panel) -> None:
    colour = _colour(point)
    at = _beside(ax, point.dodge)
    size = (5.0 if panel.links else 3.6) * (0.6 if point.faint else 1)
    inside = 0 <= panel.x.at(point.x) <= 1 and 0 <= panel.y.at(point.y) <= 1
    if point.low is not None and point.high is not None and point.low < point.high:
        ax.plot([point.x] * 2, [point.low, point.high], color=colour, lw=1.1, transform=at)
    look = _marker(point, colour, size) | {"alpha": 0.4 if point.faint else 1, "zorder": 3}
    ax.plot([point.x], [point.y], transform=at, clip_on=not inside, **look)
    if point.flawed:
        above = offset_copy(at, ax.get_figure(root=True), y=6, units="points")
        ax.plot([point.x], [point.y], transform=above, **_cross(colour))


def _beside(ax: Axes, dodge: float) -> Transform:
    """The axes' own units, shifted ``dodge`` pixels to the right."""
    return offset_copy(
        ax.transData, ax.get_figure(root=True), x=72 * dodge / PIXELS, units="points"
    )


def _marker(of: Point | Key, colour: str, size: float) -> dict[str, Any]:
    """The mark of a point or of an entry of the legend."""
    if of.arrow:
        line = {"markerfacecolor": "none", "markeredgecolor": colour, "markeredgewidth": 1.2}
        return {"marker": ARROW, "linestyle": "none", "markersize": 4 * size, **line}
    hollow = of.hollow or of.look == "paper"
    shape = "diamond" if of.look == "paper" else "circle" if of.h is None else head_shape(of.h)
    shape = of.look if of.look in TILES else shape
    marker, larger = MARKERS[shape]
    return {
        "marker": marker,
        "color": colour,
        "linestyle": "none",
        "markersize": larger * size,
        "markerfacecolor": INK["page"] if hollow else colour,
        "markeredgecolor": colour if hollow else INK["page"],
        "markeredgewidth": 1.0 if hollow else 0.0 if of.look in TILES else 0.5,
    }


def _cross(colour: str) -> dict[str, Any]:
    return {"marker": "x", "color": colour, "linestyle": "none", "markersize": 3.5}


def _mark(key: Key) -> Line2D:
    """The mark beside a legend entry."""
    if key.line is not None:
        return Line2D([], [], **{"color": INK["ink"]} | LINES[key.line])
    size = 2.4 if key.look in TILES or key.arrow else 5.0
    colour = _colour(key)
    return Line2D([], [], **(_cross(colour) if key.flawed else _marker(key, colour, size)))


def _colour(of: Point | Key) -> str:
    if of.look in TILES:
        return PHASES["light"][of.look]
    return INK["soft"] if of.h is None else head_colour(of.h, "light")


def mathtext(text: str) -> str:
    """Our own words for matplotlib, with ``D_K``, ``m′``, ``h*`` and the like as mathematics."""
    marked = re.sub(
        r"\b([Dd])_(K|V|k|vo|qk|model)\b", r"$\1_{\\mathrm{\2}}$", text.replace("$", r"\$")
    )
    marked = re.sub(POWER, r"$^{\1}$", marked)
    return re.sub(r"(?<![\w${])([mhx])(′?)(?!\w)", r"$\1$\2", marked)
