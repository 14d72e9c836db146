"""How every figure looks: sizes, colours and shapes of head counts, axes, marks, and files."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from rgr_dist.study.errors import StudyError

COLUMN, WIDE = 3.3, 6.9
"""Widths in inches: of a paper's column, and of two."""
ON_PAGE, ON_WIDE_PAGE = 4.4, 6.4
"""Widths in inches on the report's page: of one panel, and of several."""
NARROWEST = 1.55
"""Inches that a panel needs: a narrower figure has fewer of them in a row."""
CHARACTERS = 14
"""How many of a title have room in an inch."""

LIGHT = {"ink": "#1c1d20", "soft": "#5c6067", "line": "#d8dade", "page": "#ffffff"}
DARK = {"ink": "#e9eaec", "soft": "#a6abb3", "line": "#3b3e44", "page": "#141518"}
"""Ink, softer ink, rules, page: on paper and a light page, and on a dark one."""

HEADS = {
    "h1": ("#003982", "#5169e8"), "h2": ("#5e1ea0", "#b46ae6"), "h4": ("#93117b", "#e562ba"),
    "h8": ("#b4144e", "#fe738f"), "h16": ("#c33501", "#fe9477"), "h32": ("#b0660d", "#feae64"),
    "h64": ("#a48209", "#fec81f"), "h128": ("#8f9a00", "#e7e824"),
}  # fmt: skip
"""Light and dark colours of a head count, the same in every figure: from blue to yellow with h."""
SHAPES = ("o", "s", "h", "D", "P", "*", "X", "v")
"""Shapes of 1, 2, 4, … 128 heads, so that no reader needs to see hue."""
PHASES = {
    "easy": ("#3f9a8b", "#3f9a8b"), "slow": ("#0b544c", "#a5efe2"),
    "hard": ("#b97700", "#f0b040"), "impossible": ("#8a1538", "#ff7d97"),
}  # fmt: skip
"""Light and dark colours of the phases of training."""

COLOURS = {name: (LIGHT[name], DARK[name]) for name in LIGHT} | HEADS | PHASES
"""Every colour of a page, by its name in CSS."""

STYLE: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": LIGHT["soft"],
    "axes.grid": True,
    "axes.labelcolor": LIGHT["ink"],
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 8,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "grid.color": LIGHT["line"],
    "grid.linewidth": 0.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handletextpad": 0.3,
    "legend.columnspacing": 1.0,
    "lines.linewidth": 1.0,
    "lines.markersize": 4.5,
    "pdf.fonttype": 42,  # TrueType, which journals ask for
    "savefig.dpi": 300,
    "svg.fonttype": "none",
    "text.color": LIGHT["ink"],
    "text.usetex": False,
    "xtick.color": LIGHT["soft"],
    "xtick.labelsize": 7,
    "xtick.major.size": 2,
    "ytick.color": LIGHT["soft"],
    "ytick.labelsize": 7,
    "ytick.major.size": 2,
}
"""Matplotlib's settings for every figure."""


@dataclass(frozen=True)
class Figure:
    """A figure of a study, which can be drawn at any width.

    Attributes:
        name: of its file and of its place on the page.
        caption: what it shows and how to read it.
        draw: draws its rows; called with ``ax`` and ``width``, returns the axes.
        panels: how many axes it has.
    """

    name: str
    caption: str
    draw: Any
    panels: int = 1

    def canvas(self, width: float | None = None, ax: Axes | Sequence[Axes] | None = None) -> Canvas:
        """The drawn figure.

        Args:
            width: in inches; by default that of a paper's column, or of two for several panels.
            ax: axes to draw into, one for each panel, instead of a new figure.

        Raises:
            StudyError: fewer axes are given than it has panels.
        """
        width = width or (COLUMN if self.panels == 1 else WIDE)
        with mpl.rc_context(STYLE):
            axes = np.ravel(self.draw(ax=ax, width=width))
            canvas = axes[0].get_figure(root=True)
            assert isinstance(canvas, Canvas)
            if isinstance(canvas, Sheet):
                ConstrainedLayoutEngine().execute(canvas)  # once: saving it would do so twice
        return canvas


class Sheet(Canvas):
    """A figure of its own, not the axes of somebody else's; a notebook displays it."""

    def _repr_svg_(self) -> str:
        file = io.StringIO()
        with mpl.rc_context({"svg.fonttype": "path"}):
            self.savefig(file, format="svg")
        return file.getvalue()[file.getvalue().index("<svg") :]


def axes_of(
    ax: Axes | Sequence[Axes] | None, panels: int, width: float, height: float
) -> list[Axes]:
    """The axes to draw into: those given, or those of a new figure.

    Args:
        width: of the new figure, in inches.
        height: of each panel, in inches; more if panels are wide.

    Raises:
        StudyError: fewer axes are given than there are panels.
    """
    if ax is not None:
        given = [ax] if isinstance(ax, Axes) else [*ax]
        if len(given) != panels:
            raise StudyError(f"ax: this figure has {panels} panels; give as many axes")
        return given
    columns = max(1, min(panels, int(width / NARROWEST)))
    rows = math.ceil(panels / columns)
    columns = math.ceil(panels / rows)  # six stand in two rows of three
    height = max(height, 0.6 * width / columns)
    canvas = Sheet(figsize=(width, rows * height))
    places = canvas.subplots(rows, columns, squeeze=False).ravel()
    for empty in places[panels:]:
        empty.remove()
    return [*places[:panels]]


def colour_of(h: float) -> str:
    """The colour of a head count; between powers of two, that of the smaller."""
    return [*HEADS.values()][_place(h)][0]


def shape_of(h: float) -> str:
    """The shape of a head count's marks."""
    return SHAPES[_place(h)]


def _place(h: float) -> int:
    return min(int(math.log2(h)), len(SHAPES) - 1)


def tex(text: str) -> str:
    """``D_K``, ``d_model``, ``h*`` and ``m`` in our own words as mathtext sets them."""
    text = re.sub(r"\b([Dd])_(K|k|model)\b", r"$\1_{\\mathrm{\2}}$", text)
    return re.sub(r"(?<![\w$\\{])([mhT])(?![\w}])", r"$\1$", text)


def log_axis(ax: Axes, which: Literal["x", "y"], values: Iterable[Any], label: str) -> None:
    """A logarithmic axis around positive values, labelled with plain numbers."""
    known = [float(value) for value in values if value == value and value and value < math.inf]
    low, high = min(known, default=1.0) / 1.2, max(known, default=2.0) * 1.2
    getattr(ax, f"set_{which}scale")("log", base=2)
    getattr(ax, f"set_{which}lim")(low, high)
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(FixedLocator(ticks_of(low, high)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_label_text(tex(label))


def ticks_of(low: float, high: float, most: int = 5) -> list[float]:
    """Powers of two, or of ten below 0.1, thinned; where few fit, round numbers between them."""
    base = 2.0 if low >= 0.1 else 10.0
    first, last = math.ceil(math.log(low, base)), math.floor(math.log(high, base))
    powers = [base**k for k in range(first, last + 1)]
    if len(powers) > 1:
        return powers[:: math.ceil(len(powers) / most)]
    step = next(
        s * 10.0**k for k in range(-3, 6) for s in (1, 2, 5) if high - low < 4 * s * 10.0**k
    )
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


SCORES = (0.0, 0.9, 0.99, 1.0)


def score_axis(ax: Axes, label: str) -> None:
    """A vertical axis of scores that widens towards 1, to separate 0.98 from 0.99."""

    def wide(score: Any) -> Any:
        return -np.log10(np.maximum(0, 1 - np.asarray(score, float)) + 1e-3)

    def score(place: Any) -> Any:
        return 1 + 1e-3 - 10 ** -np.asarray(place, float)

    ax.set_yscale("function", functions=(wide, score))
    ax.set_ylim(0, 1.0005)
    ax.yaxis.set_major_locator(FixedLocator(SCORES))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set_ylabel(tex(label))


def mark(ax: Axes, x: float, y: float, tip: str, h: float | None = None, **look: Any) -> None:
    """A point of a table, with words that a page shows when a reader points at it.

    Args:
        h: the head count that gives its colour and shape.
        look: ``hollow=True``: not final, or not of every seed; others as ``Axes.plot`` has them.
    """
    colour = LIGHT["soft"] if h is None or h != h else colour_of(h)
    shape = "o" if h is None or h != h else shape_of(h)
    hollow = look.pop("hollow", False)
    kept: dict[str, Any] = {
        "marker": shape,
        "color": colour,
        "markerfacecolor": LIGHT["page"] if hollow else colour,
        "markeredgewidth": 1.0 if hollow else 0.0,
        "linestyle": "none",
        "zorder": 3,
        "clip_on": False,
    }
    (drawn,) = ax.plot([x], [y], **(kept | look))
    drawn.set_gid(TIP + tip)


def bar(ax: Axes, x: float, low: Any, high: Any, h: float | None = None) -> None:
    """An interval; nothing where one of its ends is not known."""
    if pd.notna(low) and pd.notna(high) and low < high:
        colour = LIGHT["soft"] if h is None or h != h else colour_of(h)
        ax.vlines([x], [low], [high], color=colour, linewidth=1.2, zorder=2)


def bound(ax: Axes, x: float, low: float, tip: str, h: float | None = None) -> None:
    """An arrow upwards from a lower bound: no smaller width passes."""
    mark(ax, x, low, tip, h, marker="$↑$", markersize=9, markeredgewidth=0)


def handle(h: int) -> Line2D:
    """What stands for a head count in a legend."""
    return Line2D([], [], marker=shape_of(h), color=colour_of(h), linestyle="none")


def legend(ax: Axes, heads: Iterable[Any], more: Sequence[tuple[Any, str]] = ()) -> None:
    """A legend of head counts above the figure of some axes.

    Args:
        more: further entries, each a handle with its words.
    """
    counts = sorted({int(h) for h in heads if h is not None and h == h})
    entries: list[tuple[Any, str]] = [(handle(h), f"{h}") for h in counts]
    if entries:
        entries[0] = entries[0][0], f"h = {entries[0][1]}"
    entries += more
    if not entries:
        return
    canvas = ax.get_figure(root=True)
    handles, words = [handle for handle, _ in entries], [tex(words) for _, words in entries]
    if isinstance(canvas, Sheet):
        entry = 0.75 if counts else 0.35 + 0.065 * max(len(one) for one in words)  # inches
        columns = min(len(entries), max(2, int(canvas.get_figwidth() / entry)))
        canvas.legend(handles, words, loc="outside upper left", ncols=columns)
    else:  # the axes of a figure that somebody else lays out
        ax.legend(handles, words)


def titles(axes: Sequence[Axes], names: Sequence[str]) -> None:
    """The name of each panel's cell; the first says what the numbers are, if it has room."""
    for i, (ax, name) in enumerate(zip(axes, names, strict=True)):
        words = f"(m, d_model) = {name}" if i == 0 and len(name) < 11 else name
        place, canvas = ax.get_subplotspec(), ax.get_figure(root=True)
        columns = 1 if place is None else place.get_gridspec().ncols
        room = int(CHARACTERS * canvas.get_figwidth() / columns) if canvas else 40
        words = "\n".join(textwrap.wrap(words, room, break_on_hyphens=False))
        ax.set_title(tex(words), y=1.0)  # given, its place need not be sought


def outer_labels(axes: Sequence[Axes], x: str, y: str, same: Literal["x", "y", ""] = "") -> None:
    """Labels below the lowest panel of each column, and left of each row.

    Args:
        same: the axis that all panels share; inner panels do not repeat its numbers.
    """
    for i, ax in enumerate(axes):
        place = ax.get_subplotspec()
        columns = 1 if place is None else place.get_gridspec().ncols
        if i % columns == 0:
            ax.set_ylabel(tex(y))
        elif same == "y":
            ax.tick_params(labelleft=False)
        if i + columns >= len(axes):
            ax.set_xlabel(tex(x))
        elif same == "x":
            ax.tick_params(labelbottom=False)


TIP = "tip: "
"""What the group id of a mark with words begins with; ``as_svg`` makes a title of it."""
SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"


def as_file(figure: Figure, kind: str, width: float | None = None) -> bytes:
    """A figure as ``pdf``, ``svg`` or ``png`` (300 dots an inch), with its fonts embedded.

    Args:
        width: in inches; by default that of a paper's column, or of two.
    """
    file = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    # SVG's text as outlines: whoever opens the file may lack the font.
    with mpl.rc_context({**STYLE, "svg.fonttype": "path", "svg.hashsalt": figure.name}):
        canvas = figure.canvas(width)
        for drawn in canvas.findobj(lambda one: str(one.get_gid() or "").startswith(TIP)):
            drawn.set_gid(None)
        canvas.savefig(file, format=kind, metadata=undated)
    return file.getvalue()


def as_svg(figure: Figure) -> str:
    """A figure as SVG to stand in a page: its colours are the page's, its marks have titles."""
    file = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.hashsalt": figure.name}):
        canvas = figure.canvas(ON_PAGE if figure.panels == 1 else ON_WIDE_PAGE)
        for text in canvas.findobj(Text):
            assert isinstance(text, Text)
            text.set_parse_math(False)  # the page sets them, in its own type
        canvas.savefig(file, format="svg", metadata={"Date": None})
    tree = ElementTree.fromstring(file.getvalue())
    for node in [*tree.iter()]:
        for child in [*node]:
            if child.tag in (f"{SVG}metadata", f"{SVG}style") or child.tag.endswith("}metadata"):
                node.remove(child)
        name = node.get("id", "")
        if name.startswith(TIP):
            del node.attrib["id"]
            title = ElementTree.Element(f"{SVG}title")
            title.text = name.removeprefix(TIP)
            node.insert(0, title)
        elif name and not re.fullmatch(r"[a-zA-Z][0-9a-f]{10}", name):  # nothing refers to it
            del node.attrib["id"]
        if node.tag == f"{SVG}text":
            _typeset(node)
        if LINK in node.attrib:
            node.set("href", node.attrib.pop(LINK))
    for name in ("width", "height"):
        del tree.attrib[name]
    tree.set("role", "img")
    tree.set("aria-labelledby", f"{figure.name}-caption")
    ElementTree.register_namespace("", SVG[1:-1])
    drawn = ElementTree.tostring(tree, encoding="unicode")
    for name, (light, _) in COLOURS.items():
        drawn = drawn.replace(light, f"var(--{name})")
    return drawn


def _typeset(node: ElementTree.Element) -> None:
    """Mathtext within a text: italics, subscripts and powers that flow in any type."""
    style = node.get("style", "")
    node.set("style", re.sub(r"'[^']*', ?|font-family: [^;]*;?", "", style))
    pattern = r"\$(\w?)(?:([_^])\{(?:\\mathrm\{)?([\w.-]+)\}+)?\$"
    node.text, *parts = re.split(pattern, node.text or "")
    for letter, sign, index, rest in zip(*(parts[at::4] for at in range(4)), strict=True):
        italic = ElementTree.SubElement(node, f"{SVG}tspan", {"font-style": "italic"})
        italic.text, italic.tail = letter, "" if index else rest
        if index:
            off = 2 if sign == "_" else -3
            small = ElementTree.SubElement(
                node, f"{SVG}tspan", {"dy": f"{off}", "font-size": "75%"}
            )
            small.text = index
            back = ElementTree.SubElement(node, f"{SVG}tspan", {"dy": f"{-off}"})
            back.text = rest or "\u200b"  # a shift needs a character
