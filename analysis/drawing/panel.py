"""What a figure is made of: panels with axes, lines and points, all of them plain values.

A figure draws tables and computes nothing. ``rgr_dist.analysis.drawing.svg`` turns panels into SVG.
"""

from __future__ import annotations

from dataclasses import dataclass

from rgr_dist.analysis.drawing.scales import Axis

Place = tuple[float, float]
POWER = r" ?\^ ?([−-]?\w+(?:\.\w+)?)"
"""An exponent in our own words, such as in ``x^1.5``; a full stop after it is not part of it."""
SIZES = r"(?<![A-Za-z0-9_-])(m(?![A-Za-z0-9_-])|h(?=\*| [=·]| heads))"
"""Letters in our own words that stand for sizes, and are set in italics."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line through points given in the axes' units; what leaves the panel is cut off.

    Attributes:
        look: ``ours``, ``also``, ``paper``, ``rest``, ``series``, ``target``, ``guide`` or
            ``head``.
        h: the head count that gives its colour.
        label: the text at its end, if any.
        width_to_label: the panel's width in pixels from which there is room for the label.
        level: whether the label is level with the end, instead of clear of a mark there.
        before: whether the label stands left of the end and above it, not right and below.
        dodge: pixels by which it is shifted to the right, like its points.
    """

    points: tuple[Place, ...]
    look: str
    h: int | None = None
    label: str | None = None
    width_to_label: int = 0
    level: bool = False
    before: bool = False
    dodge: float = 0


@dataclass(frozen=True, kw_only=True)
class Point:
    """A measured or published value.

    Attributes:
        text: everything about it, in words; the first line is its name.
        cell: the anchor of its cell (``rgr_dist.analysis.rows``).
        h: the head count that gives its colour and shape; a point without one is grey.
        low, high: ends of its interval on the y axis.
        hollow: not final, or not from every seed.
        arrow: y is a lower bound.
        faint: one of many, such as a single run.
        flawed: some of its runs collapsed, diverged or failed.
        look: ``cell``, ``paper`` for a published value, or one of ``colours.TILES``.
        dodge: pixels by which it is shifted to the right, to separate points at one place.
    """

    x: float
    y: float
    text: str
    cell: str | None = None
    h: int | None = None
    low: float | None = None
    high: float | None = None
    hollow: bool = False
    arrow: bool = False
    faint: bool = False
    flawed: bool = False
    look: str = "cell"
    dodge: float = 0


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: the lines of text above it.
        height: of the axes, in pixels; the width is the page's.
        cell: the anchor of the cell that the whole panel belongs to.
        links: whether each point links to its cell's row.
    """

    x: Axis
    y: Axis
    title: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
    points: tuple[Point, ...] = ()
    height: int = 200
    cell: str | None = None
    links: bool = False


@dataclass(frozen=True, kw_only=True)
class Key:
    """An entry of a legend: a line's look, a head count, or a kind of point."""

    text: str
    line: str | None = None
    h: int | None = None
    look: str | None = None
    hollow: bool = False
    arrow: bool = False
    flawed: bool = False


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Panels with one legend and one caption.

    Attributes:
        name: of the figure, of its file, and the first part of its ids.
        title: what it shows, in a few words.
        caption: how to read it.
        hollow, arrow: what these marks mean, where the legend does not say so.
        joins: what a thin line joins.
        columns: panels in a row on a wide page; 1 stacks them.
        zoom: whether a reader can zoom into it.
    """

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    legend: tuple[Key, ...] = ()
    hollow: str = "search not finished"
    arrow: str = "lower bound"
    joins: str = ""
    columns: int = 1
    zoom: bool = False

    @property
    def keys(self) -> tuple[Key, ...]:
        """The legend, with entries for the thin lines, hollow marks and arrows in its panels."""
        points = [point for panel in self.panels for point in panel.points]
        lines = [line for panel in self.panels for line in panel.lines if len(line.points) > 1]
        keys = list(self.legend)
        if self.joins and any(line.look == "series" for line in lines):
            keys.append(Key(text=f"joins {self.joins}", line="series"))
        if self.hollow and any(point.hollow for point in points):
            keys.append(Key(text=self.hollow, hollow=True))
        if self.arrow and any(point.arrow for point in points):
            keys.append(Key(text=self.arrow, arrow=True))
        return tuple(keys)

    @property
    def heads(self) -> list[int]:
        """The head counts that have a colour in it, in order."""
        points = [point.h for panel in self.panels for point in panel.points]
        lines = [line.h for panel in self.panels for line in panel.lines]
        every = {*points, *lines, *(key.h for key in self.legend)}
        return sorted(h for h in every if h is not None)
