"""What the figures draw of the tables, and what a page draws of the figures."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from rgr_dist.analysis.budgets import section as training_time
from rgr_dist.analysis.drawing import svg
from rgr_dist.analysis.drawing.panel import Figure, Panel, Point
from rgr_dist.analysis.drawing.plot import as_file, mathtext
from rgr_dist.analysis.drawing.points import head_keys
from rgr_dist.analysis.drawing.scales import log2_axis
from rgr_dist.analysis.heads import section as heads
from rgr_dist.analysis.laws import conclusions
from rgr_dist.analysis.laws import section as laws
from rgr_dist.analysis.laws.fits import fits_of
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.render import breakable
from rgr_dist.analysis.page.render import math as math_of
from rgr_dist.analysis.thresholds.section import section as cells_section
from rgr_dist.analysis.transitions import section as transitions
from rgr_dist.analysis.transitions.probes import probes_of
from rgr_dist.analysis.transitions.shares_figure import draw_shares
from rgr_dist.analysis.transitions.transition_fits import rejected_of
from rgr_dist.faults import UserError
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up

SVG = "{http://www.w3.org/2000/svg}"


def searched(*cells: tuple[int, int, int]) -> StudyResults:
    """A study of four heads, found at these (m, d_model, d_k); d_k of 0 is censored above 40."""
    study = made_up.study_of([(m, d_model) for m, d_model, _ in cells], heads=[4])
    rows = [
        made_up.threshold_row(cell, 4, d_k, D_K_low=4 * d_k - 4, D_K_high=4 * d_k + 8)
        if d_k
        else made_up.threshold_row(cell, 4, None, status="censored", D_K_low=44, D_K_high=None)
        for cell, (_, _, d_k) in zip(study.cells, cells, strict=True)
    ]
    return made_up.results_of(study, [], rows)


def figure_of(section: Any, name: str) -> Figure:
    return next(figure for figure in section.figures if figure.name == name)


def cells_of(panel: Panel) -> dict[str | None, Point]:
    return {point.cell: point for point in panel.points if point.look == "cell"}


FOUR = ((64, 16, 6), (64, 32, 2), (128, 16, 21), (128, 32, 5))


def test_the_figures_of_laws_have_the_cells_their_ratios_and_the_papers() -> None:
    results = searched(*FOUR)
    law, best = figure_of(laws.law(results), "law"), figure_of(heads.section(results), "heads")
    (width, ratio), (h_star,) = law.panels, best.panels
    cells = {"m64-d16": (24, 24), "m64-d32": (12, 8), "m128-d16": (56, 84), "m128-d32": (28, 20)}
    implied = {"m64-d16": 20, "m64-d32": 6, "m128-d16": 88, "m128-d32": 21}
    for panel, is_ratio in ((width, False), (ratio, True)):
        papers = {point.cell: point for point in panel.points if point.look == "paper"}
        for cell, point in cells_of(panel).items():
            scale, D_K = cells[str(cell)]
            by = scale if is_ratio else 1
            told = (point.x, point.y, point.low, point.high, papers[cell].y)
            ends = (D_K, D_K - 4, D_K + 8, implied[str(cell)])
            assert told == pytest.approx((scale, *(end / by for end in ends)))
    assert cells_of(width).keys() == cells_of(ratio).keys() == cells.keys()
    loads = {cell: (point.x, point.y) for cell, point in cells_of(h_star).items()}
    assert loads == {"m64-d16": (4, 4), "m64-d32": (2, 4), "m128-d16": (8, 4), "m128-d32": (4, 4)}


def test_a_law_of_other_sizes_is_drawn_at_each_where_the_data_rule_out_the_power() -> None:
    sizes = [(m, d, round(m**2 / d**0.5 / 4)) for m in (64, 128, 256) for d in (16, 36, 64)]
    results = searched(*sizes)
    fits = fits_of(results)
    assert conclusions.better_law(fits) is fits.candidates[0]
    (found, *_) = conclusions.headline(results)
    assert re.match(
        r"D_K\* ≈ 0.9\d+ · m′\^(1\.99|2\.0)\d* d_model\^−0\.[45]\d+ fits best of \d laws", found
    )
    figure = figure_of(laws.law(results), "law")
    assert [key.line for key in figure.legend[:2]] == ["ours", "rest"]
    of_sizes = [line for line in figure.panels[0].lines if line.look == "ours"]
    assert len(of_sizes) == 3, "one for each d_model"
    for line, d_model in zip(of_sizes, (16, 36, 64), strict=True):
        for scale, D_K in line.points:
            m = (D_K * d_model**0.5) ** 0.5
            assert scale == pytest.approx(m * math.log2(m) / d_model, rel=0.05)


@pytest.mark.parametrize(("widths", "drawn"), [((6, 2, 21, 5), True), ((5, 5, 5, 5), False)])
def test_a_power_of_D_K_that_may_be_0_has_no_line(widths: tuple[int, ...], drawn: bool) -> None:
    results = searched(*((*cell[:2], d_k) for cell, d_k in zip(FOUR, widths, strict=True)))
    legend = figure_of(laws.law(results), "law").legend
    assert any(key.text.startswith("power law") for key in legend) == drawn


def test_a_width_without_room_for_the_axes_is_refused() -> None:
    figure = figure_of(laws.law(searched(*FOUR)), "law")
    with pytest.raises(UserError, match=r"^--width 0.5: figure law has no room; give it more$"):
        as_file(figure, "svg", 0.5)
    assert as_file(figure, "svg", 3.4)


def test_shares_that_a_sudden_switch_fits_too_have_points_and_no_curve() -> None:
    """Neither has h*, whose curve was not fitted; other heads without a curve are not shown."""
    cell = {"anchor": "a", "short": "(64, 16)", "D_K": 9, "m": 64, "d_model": 16, "h_star": 4}
    probes = [
        {"anchor": "a", "h": h, "D_K": D_K, "passing": passing, "n_seeds": 4, "text": ""}
        | {"complete": True}
        for h in (1, 2, 4, 8)
        for D_K, passing in ((8, 0), (10, 2), (12, 4))
    ]
    fit = {"anchor": "a", "share_status": "fitted", "share_middle": 10.0, "share_width": 0.1}
    fit |= {"rejected": False}
    fits = [fit | {"h": 1, "share_width_low": 0.05}, fit | {"h": 2, "share_width_low": None}]
    figure = draw_shares([cell], probes, fits)
    assert figure is not None
    (panel,) = figure.panels
    assert [line.h for line in panel.lines if line.look == "head"] == [1]
    assert [point.h for point in panel.points] == [1, 1, 1, 2, 2, 2, 4, 4, 4]
    assert [key.text for key in figure.keys] == ["h = 1", "h = 2", "h = 4", "D_K*"]


def test_a_column_that_says_the_same_of_every_row_is_left_out() -> None:
    results = searched(*FOUR)
    (table,) = cells_section(results).shown
    assert "limited by" not in [column.head for column in table.columns]
    assert "Limited by" not in table.caption
    (cell, *_), runs = results.study.cells, []
    for lost in ([], [0.0]):
        scores = {(4, d_k): [0.9 + d_k / 100, 0.99, *lost] for d_k in (4, 6, 8, 9)}
        runs = made_up.probe_rows(cell, scores)
        (table,) = transitions.section(made_up.results_of(results.study, runs, [])).shown
        assert ("collapsed" in [column.head for column in table.columns]) == bool(lost)


def test_a_curve_that_its_shares_reject_is_not_drawn() -> None:
    """As many seeds as pass at h = 2 pass at first, then all, then half: no curve that rises."""
    study = made_up.study_of([(64, 16)], heads=[1, 2], seeds=10)
    (cell,) = study.cells
    passing = {1: (0, 3, 7, 10, 10, 10), 2: (0, 0, 10, 10, 9, 4)}
    scores = {
        (h, d_k): [1.0] * n + [0.9] * (10 - n)
        for h, shares in passing.items()
        for d_k, n in zip((16, 24, 32, 64, 128, 256), shares, strict=True)
    }
    results = made_up.results_of(study, made_up.probe_rows(cell, scores), [])
    assert rejected_of(results) == {(cell.cell_id, 2)}
    section = transitions.section(results)
    shares = figure_of(section, "shares")
    (panel,) = shares.panels
    assert [line.h for line in panel.lines if line.look == "head"] == [1]
    assert {point.h for point in panel.points} == {1, 2}
    assert "No line is drawn where the curve misses the shares" in shares.caption
    (table,) = section.shown
    half, width = (one for one in table.columns if "pass" in one.head)
    assert [half.shown(row) == width.shown(row) == "rejected" for row in table.rows] == [
        False,
        True,
    ]


def test_a_law_of_several_degrees_has_a_labelled_curve_for_each_inside_the_panel() -> None:
    graph = {"family": "regular", "degree": [1, 2, 4, 8]}
    cells = [{"m": 64, "d_model": 8, "graph": graph}]
    study = parse_study({"name": "denser", "cells": cells, "search": {"heads": [1]}})
    widths = [
        round(0.5 * cell.n_edges * math.log2(64**2 / cell.n_edges) / 8) for cell in study.cells
    ]
    rows = [
        made_up.threshold_row(cell, 1, D_K) for cell, D_K in zip(study.cells, widths, strict=True)
    ]
    panel, ratio = figure_of(laws.law(made_up.results_of(study, [], rows)), "law").panels
    curves = [line for line in panel.lines if line.look == "ours"]
    assert [line.label for line in curves] == [f"degree = {degree}" for degree in (1, 2, 4, 8)]
    assert all(panel.x.at(x) <= 1 and panel.y.at(y) <= 1 for line in curves for x, y in line.points)
    assert not any(line.label for line in ratio.lines)


def test_a_label_stands_where_no_cell_is_in_its_way() -> None:
    cells = (64, 64, 1), (64, 16, 5), (128, 32, 5), (256, 64, 6)
    figure = figure_of(laws.law(searched(*cells)), "law")
    before = {line.label: line.before for line in figure.panels[0].lines if line.label}
    assert before == {"d_model = 16": True, "d_model = 32": False, "d_model = 64": False}


def test_a_cell_without_a_threshold_is_an_arrow_from_its_bound() -> None:
    results = searched((64, 16, 0), (64, 32, 2))
    point = cells_of(figure_of(laws.law(results), "law").panels[0])["m64-d16"]
    assert (point.arrow, point.x, point.y, point.h) == (True, 24, 44, None)
    best = figure_of(heads.section(results), "heads").panels[0]
    assert [*cells_of(best)] == ["m64-d32"], "h* has no bound"
    panel = figure_of(heads.section(results), "splits").panels[0]
    (point,) = panel.points
    assert (point.arrow, point.x, point.y, point.h) == (True, 4, 44, 4)


def test_two_cells_have_no_fitted_line() -> None:
    figure = figure_of(laws.law(searched((64, 16, 6), (64, 32, 2))), "law")
    assert {line.look for line in figure.panels[0].lines} == {"paper", "series"}


def test_the_caption_says_that_larger_cells_made_the_papers_line() -> None:
    wide = [(m, d_model, 4) for m in (64, 128, 256, 512) for d_model in (32, 64)]
    for cells, is_beyond in ((wide[:-2], True), (wide, False)):
        figure = figure_of(laws.law(searched(*cells)), "law")
        assert ("fitted to larger cells too" in figure.caption) == is_beyond


def test_the_legend_says_what_a_thin_line_joins() -> None:
    results = searched(*FOUR)
    law = figure_of(laws.law(results), "law")
    assert [key.text for key in law.keys if key.line == "series"] == ["joins cells of one d_model"]
    alone = figure_of(laws.law(searched((64, 16, 6), (64, 32, 2))), "law")
    assert not [key for key in alone.keys if key.line == "series"], "a cell alone joins nothing"


def test_an_open_cell_is_hollow() -> None:
    study = made_up.study_of([(64, 16), (64, 32)], heads=[4])
    one, two = study.cells
    rows = [made_up.threshold_row(one, 4, 6, status="open"), made_up.threshold_row(two, 4, 2)]
    results = made_up.results_of(study, [], rows)
    points = cells_of(figure_of(laws.law(results), "law").panels[0])
    assert {cell: point.hollow for cell, point in points.items()} == {
        "m64-d16": True,
        "m64-d32": False,
    }


def test_a_panel_of_curves_shows_each_probe_the_target_and_D_K() -> None:
    study = made_up.study_of([(64, 16)], heads=[2, 4], seeds=2)
    (cell,) = study.cells
    scores = {(2, 4): [0.7, 0.8], (2, 8): [0.8], (4, 2): [0.9, 0.94], (4, 5): [1.0, 0.99]}
    runs = made_up.probe_rows(cell, scores)
    results = made_up.results_of(study, runs, [made_up.threshold_row(cell, 4, 5)])
    (panel,) = figure_of(transitions.section(results), "curves").panels
    assert panel.title == ("(64, 16)", "D_K* = 20 at h* = 4 so far")  # h = 2 has no row
    drawn = [(p.h, p.x, pytest.approx(p.y), p.hollow) for p in panel.points]
    assert drawn == [
        (2, 8, 0.75, False),
        (2, 16, 0.8, True),
        (4, 8, 0.92, False),
        (4, 20, 0.995, False),
    ]
    assert panel.points[1].low is None
    table = probes_of(results).iloc[0]
    assert (panel.points[0].low, panel.points[0].high) == (table["low"], table["high"])
    lines = {(line.look, line.h): line.points for line in panel.lines}
    assert lines["target", None] == ((panel.x.low, 0.99), (panel.x.high, 0.99))
    assert lines["guide", None] == ((20, 0), (20, 1))
    assert [x for x, _ in lines["head", 4]] == [8, 20]


def test_a_key_in_a_table_may_break_between_its_words_and_a_number_may_not() -> None:
    told = {
        "training.learning_rate": "training.<wbr/>learning_<wbr/>rate",
        "keys=50,family=partial": "keys=<wbr/>50,<wbr/>family=<wbr/>partial",
        "20,000 steps, 0.99. a_ =": "20,000 steps, 0.99. a_ =",
    }
    assert {text: breakable(text) for text in told} == told


def test_a_full_stop_after_a_power_is_not_raised() -> None:
    said = "It goes as (m log m)^1.5. So does x^a."
    m, h = "<i>m</i>", "<i>h</i>"
    assert math_of(said) == f"It goes as ({m} log {m})<sup>1.5</sup>. So does x<sup>a</sup>."
    assert math_of("m²/m′, h = 2, h*, item, 3 h") == f"{m}²/{m}′, {h} = 2, {h}*, item, 3 h"
    assert mathtext("x^a.") == "$x$$^{a}$."


def test_a_legend_has_the_hollow_marks_and_arrows_that_are_drawn() -> None:
    def keys(**marks: bool) -> list[str]:
        x = log2_axis("m", [1, 2])
        point = Point(x=1.0, y=1.0, text="", **marks)
        figure = Figure(
            name="f", title="", caption="", panels=(Panel(x=x, y=x, points=(point,)),),
            legend=head_keys([1]), hollow="not every seed",
        )  # fmt: skip
        return [key.text for key in figure.keys]

    assert keys() == ["h = 1"]
    assert keys(hollow=True) == ["h = 1", "not every seed"]
    assert keys(arrow=True) == ["h = 1", "lower bound"]


@pytest.mark.parametrize(
    ("sizes", "columns"),
    [
        ([(64, 16), (64, 32), (128, 16), (128, 32)], 2),
        ([(64, 16), (128, 32), (256, 64), (512, 128)], 3),
        ([(64, 16)], 1),
    ],
)
def test_a_grid_of_cells_is_laid_out_as_one(sizes: list[tuple[int, int]], columns: int) -> None:
    results = made_up.results_of(made_up.study_of(sizes, heads=[1]), [], [])
    figure = figure_of(transitions.section(results), "curves")
    assert figure.columns == columns
    assert {panel.title[1] for panel in figure.panels} == {"no run yet"}
    assert not figure.legend


def test_training_time_shows_every_limit_of_a_cell_and_the_others_the_largest() -> None:
    limits = [20_000, 40_000, 80_000]
    cells = [{"m": 64, "d_model": 16, "training": {"max_steps": limits}}, {"m": 64, "d_model": 32}]
    study = parse_study({"name": "made-up", "cells": cells, "search": {"heads": [1, 2]}})
    by_size = {(c.d_model, c.training.max_steps): c for c in study.cells}
    rows = []
    for limit, d_k in zip(limits, (10, 8, 7), strict=True):
        cell = by_size[16, limit]
        rows.append(made_up.threshold_row(cell, 1, 3 * d_k))
        rows.append(made_up.threshold_row(cell, 2, d_k))
    rows += [made_up.threshold_row(by_size[32, 20_000], h, 6) for h in (1, 2)]
    results = made_up.results_of(study, [], rows)
    section = training_time.section(results)
    assert section is not None
    width, best, gain = figure_of(section, "training-time").panels
    assert [(p.x, p.y) for p in width.points] == list(zip(limits, (20, 16, 14), strict=True))
    assert [p.y for p in best.points] == [2, 2, 2]
    assert [p.y for p in gain.points] == [1.5, 1.5, 1.5]
    assert [len(table.rows) for table in section.shown] == [1, 3]
    shown = figure_of(laws.law(results), "law").panels[0]
    assert {p.y for p in shown.points if p.look == "cell"} == {14, 6}
    plain = searched((64, 16, 6))
    assert training_time.section(plain) is None
    assert laws.law(plain) is None, "one point shows no law"


def test_a_line_of_training_time_joins_the_limits_of_one_cell() -> None:
    rates, limits = [0.001, 0.01], [20_000, 80_000]
    cells = [{"m": [64, 128, 256, 512], "d_model": [16, 32]}]
    training = {"learning_rate": rates, "max_steps": limits}
    study = parse_study({"name": "made-up", "cells": cells, "training": training})
    rows = [
        made_up.threshold_row(
            cell, h, 12 - rates.index(cell.training.learning_rate) - (cell.training.max_steps > 3e4)
        )
        for cell in study.cells
        for h in (1, 2)
    ]
    section = training_time.section(made_up.results_of(study, [], rows))
    assert section is not None
    joined = figure_of(section, "training-time").panels[0].lines
    assert [[D_K for _, D_K in line.points] for line in joined] == [[12, 11], [11, 10]] * 8
    assert {line.label for line in joined} == {None}, "sixteen names would overlap"
    panels = figure_of(section, "one-head").panels
    assert [(panel.cell, panel.title) for panel in panels[:2]] == [
        ("m64-d16-2", ("(64, 16, learning rate 0.001)",)),
        ("m64-d16-4", ("(64, 16, learning rate 0.01)",)),
    ]


def test_a_legend_of_many_heads_has_the_powers_of_two() -> None:
    assert [key.h for key in head_keys([3, 1, 3, 12])] == [1, 3, 12]
    assert [key.h for key in head_keys(range(1, 101))] == [1, 2, 4, 8, 16, 32, 64]


def drawn(panel: Panel) -> ET.Element:
    return ET.fromstring(str(svg.page_panel(panel)).replace("<svg", f'<svg xmlns="{SVG[1:-1]}"', 1))


def marks(panel: Panel) -> list[ET.Element]:
    return [node for node in drawn(panel).iter() if (node.get("class") or "").startswith("pt")]


def panel_of(*points: Point, links: bool = False) -> Panel:
    axis = log2_axis("D_K", [2, 32], pad=2)
    return Panel(x=axis, y=axis, points=points, height=200, links=links)


def test_a_point_of_the_page_has_a_text_and_its_place() -> None:
    point = Point(x=8, y=16, text="one\ntwo", cell="m64-d16", h=4, low=8, high=32)
    (node,) = marks(panel_of(point))
    assert (node.get("data-cell"), node.get("class")) == ("m64-d16", "pt h4")
    (title,) = node.findall(f"{SVG}title")
    assert title.text == "one\ntwo"
    assert node.get("x") == "50%"
    assert float(node.get("y") or "") == pytest.approx(200 * (1 - 4 / 6), abs=0.1)
    bar = next(n for n in node if n.get("class") == "bar")
    up, down = map(float, re.findall(r"-?[\d.]+", (bar.get("d") or "").removeprefix("M0 ")))
    assert (up, down) == pytest.approx((-200 / 6, 200 / 6), abs=0.1)


def test_a_point_that_leads_to_its_cell_is_a_link_with_a_name() -> None:
    point = Point(x=8, y=16, text="all of it", cell="m64-d16")
    (link,) = drawn(panel_of(point, links=True)).findall(f"{SVG}a")
    assert link.get("href") == "#m64-d16"
    assert link.findtext(f"{SVG}title") == "all of it"


def test_text_cannot_become_markup() -> None:
    text = '<script>alert(1)</script> & "quotes"'
    point = Point(x=8, y=16, text=text)
    root = drawn(panel_of(point))
    assert [node.text for node in root.iter(f"{SVG}title")] == [text]
    assert not list(root.iter(f"{SVG}script"))


def test_what_leaves_the_panel_is_cut_off() -> None:
    point = Point(x=8, y=4000, text="far", low=1e-9, high=1e9)
    (node,) = marks(panel_of(point))
    assert float(node.get("y") or "") >= -5
    assert not re.search(r"nan|inf", ET.tostring(node).decode())
