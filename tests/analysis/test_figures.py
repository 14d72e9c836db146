"""Figures draw what the tables hold: read from the axes, not from pixels."""

from __future__ import annotations

import io
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure as Canvas
from matplotlib.image import imread
from matplotlib.lines import Line2D

from rgr_dist.analysis.accuracy import accuracy
from rgr_dist.analysis.figures import style
from rgr_dist.analysis.figures.phases import phases
from rgr_dist.analysis.growth import laws
from rgr_dist.analysis.layers import costs
from rgr_dist.analysis.probes import probes
from rgr_dist.analysis.report import figures, figures_named
from rgr_dist.analysis.tables import best, thresholds
from rgr_dist.analysis.training_time import gains
from rgr_dist.study.errors import StudyError
from tests.analysis.studies import made

SVG = "{http://www.w3.org/2000/svg}"


def drawn(kind: str, name: str) -> Canvas:
    return figures_named(made(kind), [name])[0].canvas()


def marks(ax: Any) -> list[tuple[float, float]]:
    """The places of the marks that have words."""
    lines = [one for one in ax.get_lines() if str(one.get_gid() or "").startswith(style.TIP)]
    return [(float(one.get_xdata()[0]), float(one.get_ydata()[0])) for one in lines]


def pairs(table: pd.DataFrame, *columns: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in table[[*columns]].itertuples(index=False)]


def bars(ax: Any) -> set[tuple[float, float, float]]:
    """x, low and high of the intervals."""
    segments = [each for one in ax.collections for each in getattr(one, "get_segments", list)()]
    return {(float(one[0][0]), float(one[0][1]), float(one[1][1])) for one in segments}


def test_the_law_has_a_mark_for_each_cell_and_its_interval() -> None:
    results = made("twelve")
    (ax,) = drawn("twelve", "law").axes
    table = best(results)
    assert sorted(marks(ax)) == sorted(pairs(table, "scale", "D_K"))
    wide = table[table["D_K_low"] < table["D_K_high"]]
    columns = ["scale", "D_K_low", "D_K_high"]
    assert bars(ax) == {tuple(map(float, row)) for row in wide[columns].itertuples(index=False)}
    ours = laws(results)
    told = ours[ours["formula"] == "c · (m′ log₂ m / d_model)^a"].iloc[0]["parameters"]
    powers = [
        np.polyfit(np.log(line.get_xdata()), np.log(line.get_ydata()), 1)
        for line in ax.get_lines()
        if len(line.get_xdata()) == 2
    ]
    wanted = [[told["a"], np.log(told["c"])], [1, np.log(1.19)]]
    assert np.allclose(sorted(map(tuple, powers)), sorted(map(tuple, wanted)))


def test_vertices_at_equal_edges_have_a_panel_for_each_limit_and_for_what_is_constructed() -> None:
    results = made("equal edges")
    axes, table = drawn("equal edges", "vertices").axes, best(results)
    kinds = [own for _, own in table.groupby(["protocol", "max_steps"])]
    assert len(axes) == len(kinds) == 3
    expected = {tuple(sorted(pairs(own, "m", "D_K"))) for own in kinds}
    assert {tuple(sorted(marks(ax))) for ax in axes} == expected
    for ax in axes:
        lines = [line.get_xydata() for line in ax.get_lines() if len(line.get_xdata()) > 1]
        assert sorted(map(len, lines)) == [2, 3, 4]
        assert all((np.diff(line[:, 0]) > 0).all() for line in map(np.asarray, lines))


def test_a_panel_for_each_cell_has_the_threshold_of_every_head() -> None:
    results = made("thresholds")
    axes, table = drawn("thresholds", "heads").axes, thresholds(results)
    assert len(axes) == table["cell_id"].nunique() == 5
    for ax, (_, own) in zip(axes, table.groupby("cell_id", sort=False), strict=True):
        found = own[own["D_K"].notna()]
        bounds = own[own["D_K"].isna() & (own["D_K_low"] > own["h"])]
        expected = pairs(found, "h", "D_K") + pairs(bounds, "h", "D_K_low")
        assert sorted(marks(ax)) == sorted(expected)


@pytest.mark.parametrize("kind", ["thresholds", "messages", "grid"])
def test_curves_have_a_mark_for_each_probe(kind: str) -> None:
    axes, table = drawn(kind, "curves").axes, probes(made(kind))
    for ax, (_, own) in zip(axes, table.groupby("cell_id", sort=False), strict=True):
        known = own[own["mean_score"].notna() & np.isfinite(own["mean_score"].astype(float))]
        assert sorted(marks(ax)) == pytest.approx(sorted(pairs(known, "D_K", "mean_score")))


def test_longer_training() -> None:
    left, right = drawn("step limits", "training-time").axes
    table = gains(made("step limits"))
    found = table[table["D_K"].notna()]
    assert sorted(marks(left)) == sorted(pairs(found, "max_steps", "D_K"))
    gained = table[table["gain"].notna()]
    assert sorted(marks(right)) == sorted(pairs(gained, "max_steps", "gain"))


def test_layers_and_splits() -> None:
    table = costs(made("layers")).query("max_steps == 20_000")
    axes = drawn("layers", "layers").axes
    assert [ax.get_title(loc="left") for ax in axes] == ["max", "multi_query"]
    assert sorted(y for ax in axes for _, y in marks(ax)) == sorted(table["cached"].astype(float))
    splits = accuracy(made("transformer"))
    axes = drawn("transformer", "accuracy").axes
    heights = sorted(y for ax in axes for _, y in marks(ax))
    assert heights == pytest.approx(sorted(splits["accuracy"].astype(float)))


def test_a_tile_for_each_size_and_phase() -> None:
    every = ["easy", "slow", "hard", "impossible", "open"]
    rows = pd.DataFrame(
        {"m": 64, "d_model": [4, 8, 16, 32, 4], "h": [1, 1, 1, 1, 2], "phase": every}
        | {"compression": [16.0, 8.0, 4.0, 2.0, 16.0], "exact": 1, "draws": 2, "proved": 0}
    )
    one, two = phases(rows)
    assert (len(marks(one)), len(marks(two))) == (4, 1)
    looks = {(str(line.get_marker()), str(line.get_color())) for line in one.get_lines()}
    assert len(looks) == 4, "told apart by shape and colour"


def test_somebody_elses_axes_are_drawn_into() -> None:
    results = made("one cell")
    canvas = Canvas(figsize=(9, 3))
    ours, other = canvas.subplots(1, 2)
    assert figures(results)["curves"].canvas(ax=ours) is canvas
    assert marks(ours)
    assert not other.get_lines()
    with pytest.raises(StudyError, match="5 panels"):
        figures(made("thresholds"))["curves"].canvas(ax=[ours, other])
    with pytest.raises(StudyError, match="'nope'"):
        figures_named(results, ["nope"])


@pytest.mark.parametrize(
    "kind", ["twelve", "step limits", "equal edges", "transformer", "layers", "shared", "kinds"]
)
def test_every_figure_can_be_drawn_into_axes_that_are_given(kind: str) -> None:
    for figure in figures(made(kind)).values():
        own = figure.canvas()
        canvas = Canvas(figsize=tuple(own.get_size_inches()))
        given = np.ravel(canvas.subplots(1, figure.panels))
        assert figure.canvas(ax=given if len(given) > 1 else given[0]) is canvas
        for ours, theirs in zip(given, own.axes, strict=True):
            assert marks(ours) == marks(theirs)
            for one, other in zip(ours.get_lines(), theirs.get_lines(), strict=True):
                np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())
                assert one.get_linewidth() == other.get_linewidth() < 2
            assert len(ours.texts) == len(theirs.texts)
            assert ours.get_title() == theirs.get_title()
        assert any(map(marks, given))


@pytest.mark.parametrize("width", [style.COLUMN, style.WIDE])
def test_files_have_the_width_of_a_papers_column_or_two(width: float) -> None:
    figure = figures(made("thresholds"))["curves"]
    image = imread(io.BytesIO(style.as_file(figure, "png", width)))
    assert image.shape[1] == pytest.approx(300 * width, abs=2)
    pdf = style.as_file(figure, "pdf", width)
    assert pdf.startswith(b"%PDF")
    assert pdf == style.as_file(figure, "pdf", width), "the same bytes again"


def test_an_svg_file_stands_alone_and_one_in_a_page_takes_its_colours() -> None:
    figure = figures(made("twelve"))["law"]
    alone = style.as_file(figure, "svg").decode()
    assert "<text" not in alone, "outlines: a reader may lack the font"
    assert "var(--" not in alone
    assert "tip:" not in alone
    page = style.as_svg(figure)
    tree = ElementTree.fromstring(page)
    assert tree.tag == f"{SVG}svg"
    colours = {*re.findall(r"#[0-9a-f]{6}\b", re.sub(r"#m\w+|url\(#\w+\)", "", page))}
    assert colours <= {"#000000"}, "all others are the page's"
    titles = [one.text for one in tree.iter(f"{SVG}title")]
    table = best(made("twelve"))
    assert len(titles) == len(table)
    assert all(f"D_K* = {D_K} " in text for D_K, text in zip(table["D_K"], titles, strict=True))
    text = "".join("".join(one.itertext()) for one in tree.iter(f"{SVG}text"))
    assert "$" not in text
    assert "DK" in text.replace("\u200b", "")


def contrast(colour: str, page: str) -> float:
    """Contrast of two colours as WCAG has it."""

    def luminance(code: str) -> float:
        parts = np.array([int(code[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    high, low = sorted((luminance(colour), luminance(page)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_marks_stand_out_from_their_page_and_heads_from_each_other() -> None:
    for place, page in enumerate(style.COLOURS["page"]):
        for colours in (style.HEADS, style.PHASES):
            assert all(contrast(pair[place], page) >= 3 for pair in colours.values())
        assert contrast(style.COLOURS["soft"][place], page) >= 4.5
    looks = {(style.colour_of(2**i), style.shape_of(2**i)) for i in range(8)}
    assert len(looks) == 8
    assert style.colour_of(3) == style.colour_of(2)
    assert style.shape_of(1024) == style.shape_of(128)


@pytest.mark.parametrize(("low", "high"), [(1, 2), (3, 5), (13, 70), (100, 160), (2, 1100)])
def test_ticks_are_round_few_and_inside(low: float, high: float) -> None:
    ticks = style.ticks_of(low, high)
    assert 2 <= len(ticks) <= 6
    assert all(low <= tick <= high for tick in ticks)


def test_words_are_set_as_the_field_sets_them() -> None:
    assert style.tex("D_K* of m") == r"$D_{\mathrm{K}}$* of $m$"
    assert style.tex("mean d_model") == r"mean $d_{\mathrm{model}}$"
    assert isinstance(style.handle(4), Line2D)


def test_a_notebook_shows_a_figure_as_svg() -> None:
    (figure, *_) = figures(made("one cell")).values()
    assert figure.canvas()._repr_svg_().startswith("<svg")
