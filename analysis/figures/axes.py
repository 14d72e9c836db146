"""How figures look: the common style, the axes' scales and ticks, and export to SVG and PNG."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from analysis.figures.scales import round_ticks

INK = "#222222"
FAINT = "#8a8a8a"
GRID = "#e6e6e6"

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.7,
    "axes.labelcolor": INK,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "legend.fontsize": 8,
}

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")

NEAR_ONE = 1e-3
"""Distance from 1 at which the score axis stops widening."""

SCORE_TICKS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99, 1.0)

Vector = npt.NDArray[np.float64]


@contextmanager
def style(name: str) -> Iterator[None]:
    """Applies the common look to what is drawn or written inside.

    Args:
        name: of the figure; SVG ids are salted with it, so that figures can share a page.
    """
    with rc_context({**STYLE, "svg.hashsalt": name}):
        yield


def to_svg(figure: Figure, name: str) -> str:
    """The figure as an SVG element for HTML: no prolog, no metadata, the same bytes each time."""
    text = io.StringIO()
    silent = dict.fromkeys(["Date", "Creator", "Format", "Type"])
    with style(name):
        figure.savefig(text, format="svg", metadata=silent)
    svg = text.getvalue()
    return svg[svg.index("<svg") :].rstrip() + "\n"


def to_png(figure: Figure, name: str) -> bytes:
    """The figure as a PNG at 160 dots per inch."""
    image = io.BytesIO()
    with style(name):
        figure.savefig(image, format="png", dpi=160, facecolor="white")
    return image.getvalue()


def ranks(values: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Colour and marker of each value, in order from dark to light."""
    shades = np.linspace(0.0, 0.86, len(values)) if len(values) != 1 else np.array([0.3])
    colours = [to_hex(colour) for colour in colormaps["viridis"](shades)]
    markers = [MARKERS[i % len(MARKERS)] for i in range(len(values))]
    return dict(zip(values, zip(colours, markers, strict=True), strict=True))


def log2_axis(axes: Axes, which: str, values: Sequence[float], pad: float = 1.15) -> None:
    """Makes a log₂ axis around the positive ``values``, labelled with plain integers."""
    low, high = min(values) / pad, max(values) * pad
    axis = axes.xaxis if which == "x" else axes.yaxis
    if which == "x":
        axes.set_xscale("log", base=2)
        axes.set_xlim(low, high)
    else:
        axes.set_yscale("log", base=2)
        axes.set_ylim(low, high)
    ticks = integer_ticks(low, high)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter([f"{tick:,}" for tick in ticks]))
    axis.set_minor_locator(NullLocator())


def integer_ticks(low: float, high: float) -> list[int]:
    """At most nine integers in [low, high]: powers of two, with steps between if few fit."""
    for per_octave in (1, 2, 4, 8):
        steps = {i * 2**k for k in range(40) for i in range(1, 2 * per_octave)}
        ticks = sorted(tick for tick in steps if low <= tick <= high)
        if len(ticks) >= 3:
            break
    return ticks[:: max(1, (len(ticks) + 8) // 9)]


def score_axis(axes: Axes) -> None:
    """Makes a score axis from 0 to 1 that widens towards 1, to separate 0.98 from 0.99."""

    def stretch(score: Vector) -> Vector:
        room = np.clip(1 - np.asarray(score, dtype=np.float64), 0, None)
        return -np.log10(room + NEAR_ONE)

    def shrink(stretched: Vector) -> Vector:
        return 1 + NEAR_ONE - 10 ** -np.asarray(stretched, dtype=np.float64)

    axes.set_yscale("function", functions=(stretch, shrink))
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_locator(FixedLocator(SCORE_TICKS))
    axes.yaxis.set_major_formatter(FixedFormatter([f"{tick:g}" for tick in SCORE_TICKS]))
    axes.yaxis.set_minor_locator(NullLocator())


def error_axis(axes: Axes, values: Sequence[float], pad: float = 1.15) -> None:
    """Makes a logarithmic axis around the positive errors, labelled 0.1, 0.2, 0.5, 1, …"""
    shown = [value for value in values if 0 < value < np.inf] or [1.0]
    low, high = min(shown) / pad, max(shown) * pad
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    ticks = round_ticks(low, high)
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_major_formatter(FixedFormatter([f"{tick:g}" for tick in ticks]))
    axes.yaxis.set_minor_locator(NullLocator())
