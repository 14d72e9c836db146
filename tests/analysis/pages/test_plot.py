"""What matplotlib draws of the figures: the values of the page, and files that stand alone."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import pytest
from markupsafe import escape
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from rgr_dist.analysis.drawing import plot
from rgr_dist.analysis.drawing.panel import Figure, Key, Line, Panel, Point
from rgr_dist.analysis.drawing.scales import log2_axis, score_axis
from rgr_dist.study.errors import StudyError
from tests.analysis.pages.conftest import Made

Places = Counter[tuple[tuple[float, float], ...]]


def values(panel: Panel) -> Places:
    """Every line, interval and point of a panel, in the axes' units."""
    lines = [line.points for line in panel.lines]
    bars = [
        ((point.x, point.low), (point.x, point.high))
        for point in panel.points
        if point.low is not None and point.high is not None and point.low < point.high
    ]
    points = [((point.x, point.y),) for point in panel.points]
    crosses = [((point.x, point.y),) for point in panel.points if point.flawed]
    return Counter([*lines, *bars, *points, *crosses])


def values_of(ax: Axes) -> Places:
    return Counter(tuple(zip(*line.get_data(), strict=True)) for line in ax.lines)


@pytest.mark.parametrize("name", ["thresholds", "step-limits", "transformer", "facts"])
def test_the_page_and_its_files_draw_the_same_values(
    name: str, made: Callable[[str], Made]
) -> None:
    page, _, figures = made(name)
    assert figures
    for figure in figures:
        for panel, ax in zip(figure.panels, plot.plot(figure).axes, strict=False):
            assert values_of(ax) == values(panel)
            assert ax.get_xlim() == (panel.x.low, panel.x.high)
            assert ax.get_ylim() == (panel.y.low, panel.y.high)
            for point in panel.points:
                assert f"<title>{escape(point.text)}</title>" in page
            seen = [t.get_text() for t in ax.get_yticklabels()]
            assert seen == [tick.text for tick in panel.y.ticks if not tick.level]


def made_up(**more: object) -> Figure:
    width, score = log2_axis("D_K", [2, 32], pad=2), score_axis("mean test score")
    points = tuple(
        Point(x=x, y=0.99, text="", h=h, low=0.9, high=1, **more)  # type: ignore[arg-type]
        for x, h in ((4, 1), (8, 3))
    )
    line = Line(points=((2, 0.5), (32, 1.0)), look="ours", label="d_model = 16")
    panel = Panel(x=width, y=score, points=points, lines=(line,), title=("h* = 3 < 4",))
    return Figure(
        name="f", title="", caption="", panels=(panel,) * 4, columns=3, legend=(Key(text="h", h=3),)
    )


@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
def test_a_figure_gives_the_same_file_each_time(kind: str) -> None:
    with rc_context({"text.usetex": True}):  # as writers of papers set it
        again = plot.as_file(made_up(), kind)
    assert again == plot.as_file(made_up(), kind)


def test_a_file_stands_alone() -> None:
    drawn = ET.fromstring(plot.as_file(made_up(), "svg"))
    width, height = (
        float((drawn.get(side) or "").removesuffix("pt")) for side in ("width", "height")
    )
    assert drawn.get("viewBox") == f"0 0 {width:.9g} {height:.9g}"
    assert width == pytest.approx(72 * plot.PAGE)
    assert not [node for node in drawn.iter() if node.tag.endswith("text")], "type is outlines"
    assert b"/FontFile2" in plot.as_file(made_up(), "pdf"), "TrueType, embedded"


@pytest.mark.parametrize(("width", "columns"), [(3.4, 2), (2.5, 1), (7, 3), (None, 3)])
def test_it_is_as_wide_as_it_is_asked_to_be_and_no_title_reaches_another(
    width: float | None, columns: int
) -> None:
    figure = made_up()
    title = "D_K* = 18 at h* = 2, max_steps = 320,000"
    panels = [replace(panel, title=(title,)) for panel in figure.panels]
    canvas = plot.plot(replace(figure, panels=tuple(panels)), width=width)
    assert canvas.get_size_inches()[0] == (width or plot.PAGE)
    FigureCanvasAgg(canvas).draw()
    places = [ax.get_subplotspec().colspan.start for ax in canvas.axes]
    assert max(places) + 1 == columns
    ends = [ax._left_title.get_window_extent() for ax in canvas.axes[: len(panels)]]
    assert not any(one.overlaps(other) for one, other in combinations(ends, 2))
    assert max(end.x1 for end in ends) <= canvas.bbox.x1


def test_it_draws_into_axes_of_a_users_own() -> None:
    canvas = Canvas()
    axes = canvas.subplots(2, 2)
    assert plot.plot(made_up(), axes.ravel()) is canvas
    assert all(values_of(ax) == values(made_up().panels[0]) for ax in axes.ravel())
    with pytest.raises(StudyError, match="has 4 panels; give ax as many axes, not 1"):
        plot.plot(made_up(), axes[0, 0])


def test_a_long_name_of_a_cell_takes_several_lines() -> None:
    name = "(256, 32, learning_rate=0.0003,max_steps=160000)"
    panel = replace(made_up().panels[0], title=(name, "D_K* = 64 at h* = 4"))
    (ax,) = plot.plot(replace(made_up(), panels=(panel,))).axes
    first, second, found = ax.get_title(loc="left").split("\n")
    assert (first, second) == ("(256, 32, learning_rate=0.0003,", "max_steps=160000)")
    assert found == plot.mathtext("D_K* = 64 at h* = 4")


def test_numbers_and_words_of_a_title_stay_whole() -> None:
    title = (
        "a threshold after more than 160,000 steps",
        "the graph of this cell is the well-known",
    )
    panel = replace(made_up().panels[0], title=title)
    (ax,) = plot.plot(replace(made_up(), panels=(panel,))).axes
    lines = ax.get_title(loc="left").split("\n")
    assert lines == [
        "a threshold after more than 160,000", "steps",
        "the graph of this cell is the", "well-known",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "set_as"),
    [
        ("D_K* = 20 at h* = 4", r"$D_{\mathrm{K}}$* = 20 at $h$* = 4"),
        ("m′ log₂ m / d_model", r"$m$′ log₂ $m$ / $d_{\mathrm{model}}$"),
        ("1.19 x ^1.02", r"1.19 $x$$^{1.02}$"),
        ("max of h=8 heads", "max of $h$=8 heads"),
        ("5 $", r"5 \$"),
    ],
)
def test_our_words_are_set_as_mathematics(text: str, set_as: str) -> None:
    assert plot.mathtext(text) == set_as
