"""Panels as SVG for the page, whose width and colours they take.

A panel fills the width available, while type, marks and heights keep their size in pixels: x is
given in percent, and lines are drawn in a box that is stretched without their strokes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from markupsafe import Markup, escape

from rgr_dist.analysis.drawing.colours import SHAPES, TILES, head_shape
from rgr_dist.analysis.drawing.panel import POWER, SIZES, Key, Line, Panel, Point

STRETCH = 1000
"""Width of the box that lines are drawn in, before it is stretched to the panel's."""

OUTLINES = (*SHAPES.values(), *TILES.values())
"""The outlines of every mark except the arrow, which follows them in the page."""

ARROW = '<path class="bar" d="M-5 0H5M0 0V-16M-4-11L0-16L4-11"/>'
"""The mark of a lower bound."""

FLAW = '<path class="bar" d="M-3-13l6 6m0-6l-6 6"/>'
"""A cross above a point."""


def words(text: str) -> Markup:
    """Our own words for SVG: sizes in italics, ``D_K`` with a subscript, ``x^2`` raised."""
    back = '<tspan dy="{}">&#8203;</tspan>'
    small = r'<tspan dy="{}" font-size="80%">\{}</tspan>'
    slanted = r'<tspan class="size">\1</tspan>'
    lowered = f"{slanted}{small.format(3, 2)}{back.format(-3)}"
    marked = re.sub(r"\b([Dd])_(K|V|k|vo|qk|model)\b", lowered, str(escape(text)))
    marked = re.sub(POWER, small.format(-4, 1) + back.format(4), marked)
    return Markup(re.sub(SIZES, slanted, marked))


def page_panel(panel: Panel) -> Markup:
    """One panel for the page, as wide as the space available."""
    about = " ".join([*panel.title, f"{panel.y.label} against {panel.x.label}."])
    small = "" if panel.links else " small"  # has more points than cells
    return Markup(
        f'<svg class="plot{small}" width="100%" height="{panel.height}" role="group" '
        f'aria-label="{escape(about)}">{_inside(panel)}</svg>'
    )


def shapes() -> Markup:
    """The outlines that the page's points refer to, and the arrow; the page needs them once.

    ``s0``, … have their full size; ``t0``, … are scaled down for panels of small marks, where a
    point is a bare ``use``, which has no origin of its own to be scaled about.
    """
    paths = [f'<path id="s{i}" d="{d}"/>' for i, d in enumerate(OUTLINES)]
    paths += [
        f'<path id="t{i}" transform="scale(.72)" d="{d}"/>' for i, d in enumerate(SHAPES.values())
    ]
    paths.append(ARROW.replace("<path", f'<path id="s{len(OUTLINES)}"'))
    inner = f"<defs>{''.join(paths)}</defs>"
    return Markup(f'<svg width="0" height="0" aria-hidden="true" class="defs">{inner}</svg>')


def legend_mark(key: Key) -> Markup:
    """The mark of a legend entry, 26 by 14 pixels."""
    if key.line is not None:
        inner = f'<path class="line {key.line}" d="M1 7H25"/>'
    else:
        kind = " ".join(_classes(key.h, key.hollow, key.look or "cell"))
        mark = f'<path class="mark" d="{_outline(key)}"/>'
        if key.flawed:
            mark = f'<g transform="translate(0 10)">{FLAW}</g>'
        if key.arrow:
            mark = f'<g transform="translate(0 7) scale(.8)">{ARROW}</g>'
        size = " scale(.5)" if key.look in TILES else ""
        inner = f'<g class="pt {kind}" transform="translate(13 7){size}">{mark}</g>'
    return Markup(f'<svg width="26" height="14" aria-hidden="true">{inner}</svg>')


def head_rules(heads: Iterable[int]) -> str:
    """CSS rules that give each head count its colour."""
    return "".join(f".h{h}{{color:var(--h{h})}}" for h in sorted(set(heads)))


def _pixels(length: float) -> str:
    """A length to a tenth of a pixel."""
    return f"{length:z.1f}".removesuffix(".0")


def _inside(panel: Panel) -> str:
    """Everything drawn inside the panel's axes and next to them."""
    height = panel.height
    parts = []
    for tick in panel.x.ticks:
        inner = f'<path d="M0 0V{height}"/><text y="{height + 15}">{tick.text}</text>'
        kind = "xt finer" if tick.level else "xt"
        parts.append(f'<svg class="{kind}" x="{_across(panel.x.at(tick.value))}">{inner}</svg>')
    for tick in panel.y.ticks:
        inner = f'<line x2="100%"/><text x="-7" dy="4">{tick.text}</text>'
        kind = "yt finer" if tick.level else "yt"
        down = _pixels(height * (1 - panel.y.at(tick.value)))
        parts.append(f'<svg class="{kind}" y="{down}">{inner}</svg>')
    below = f'x="100%" y="{height + 33}" text-anchor="end"'
    parts += [
        f'<line class="base" x2="100%" y1="{height}" y2="{height}"/>',
        f'<text class="axis" x="-40" y="-13">{words(panel.y.label)}</text>',
        f'<text class="axis" {below}>{words(panel.x.label)}</text>',
        _lines(panel),
    ]
    return "".join(parts + [_point(point, panel) for point in panel.points])


def _across(share: float) -> str:
    """A horizontal position as a percentage of the panel's width."""
    return f"{100 * share:z.1f}".removesuffix(".0") + "%"


def _lines(panel: Panel) -> str:
    """The lines, in one box for each dodge, then the labels at their ends."""
    size = f'width="100%" height="{panel.height}"'
    view = f'viewBox="0 0 {STRETCH} {panel.height}" preserveAspectRatio="none"'
    boxes: dict[float, list[str]] = {}
    for line in panel.lines:
        head = "" if line.h is None else f" h{line.h}"
        d = _path(line.points, panel)
        path = f'<path class="line {line.look}{head}" d="{d}"/>'
        boxes.setdefault(line.dodge, []).append(path)
    drawn = [
        f'<svg class="lines" x="{dodge:g}" {size} {view}>{"".join(paths)}</svg>'
        for dodge, paths in boxes.items()
    ]
    return "".join(drawn + [_end(line, panel) for line in panel.lines if line.label])


def _path(points: Iterable[tuple[float, float]], panel: Panel) -> str:
    """A line's path, kept within 60 pixels above and below; points without a place leave gaps."""
    path, pen = [], "M"
    for x, y in points:
        across, up = panel.x.at(x) * STRETCH, panel.height * (1 - panel.y.at(y))
        if not math.isfinite(across) or math.isnan(up):
            pen = "M"
            continue
        up = min(max(up, -60.0), panel.height + 60.0)
        path.append(f"{pen}{across:z.0f} {_pixels(up)}")
        pen = "L"
    return "".join(path)


def _end(line: Line, panel: Panel) -> str:
    x, y = line.points[-1]
    kind = "end roomy" if line.width_to_label else "end"
    label = words(line.label or "")
    up = panel.height * (1 - panel.y.at(y))
    beside = 'dx="-9" style="text-anchor:end"' if line.before else 'dx="9"'
    dy = 4 if line.level else -6 if line.before else 13
    at = f'x="{_across(panel.x.at(x))}" y="{_pixels(up)}" {beside} dy="{dy}"'
    halo = f'<text class="{kind} halo" aria-hidden="true" {at}>{label}</text>'
    return f'{halo}<text class="{kind}" {at}>{label}</text>'


def _point(point: Point, panel: Panel) -> str:
    """A point with its interval and tooltip."""
    height = panel.height

    def up(value: float) -> float:
        return min(max(height * (1 - panel.y.at(value)), -4.0), height + 4.0)

    x, y = panel.x.at(point.x), up(point.y)
    inner = ""
    if point.low is not None and point.high is not None and point.low < point.high:
        inner = (
            f'<path class="bar" d="M0 {_pixels(up(point.high) - y)}V{_pixels(up(point.low) - y)}"/>'
        )
    if point.flawed:
        inner += FLAW
    kind = " ".join(["pt", *_classes(point.h, point.hollow, point.look)])
    kind += " faint" if point.faint else ""
    shape = len(OUTLINES) if point.arrow else OUTLINES.index(_outline(point))
    mark = f'<use href="#s{shape}"'
    is_plain = not inner and not point.dodge and not point.arrow and not point.faint
    inner += f"{mark}/>"
    if point.dodge:
        inner = f'<g transform="translate({point.dodge:g})">{inner}</g>'
    title = f"<title>{escape(point.text)}</title>"
    at = f'x="{_across(x)}" y="{_pixels(y)}"'
    if panel.links and point.cell is not None:
        return f'<a href="#{point.cell}" class="{kind}">{title}<svg {at}>{inner}</svg></a>'
    cell = "" if point.cell is None or point.cell == panel.cell else f' data-cell="{point.cell}"'
    about = f'class="{kind}"{cell}'
    if is_plain:
        return f'<use href="#{"s" if panel.links else "t"}{shape}" {at} {about}>{title}</use>'
    return f"<svg {at} {about}>{title}{inner}</svg>"


def _classes(h: int | None, hollow: bool, look: str) -> list[str]:
    kind = [look] if look in TILES else [] if h is None else [f"h{h}"]
    return kind + (["hollow"] if hollow or look == "paper" else [])


def _outline(of: Point | Key) -> str:
    if of.look in TILES:
        return TILES[of.look]
    if of.look == "paper":
        return SHAPES["diamond"]
    return SHAPES["circle" if of.h is None else head_shape(of.h)]
