"""What the figures draw of the tables."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

from rgr_dist.analysis.budgets import section as training_time
from rgr_dist.analysis.drawing import svg
from rgr_dist.analysis.drawing.panel import Figure, Panel, Point
from rgr_dist.analysis.drawing.scales import log2_axis
from rgr_dist.analysis.heads import section as heads
from rgr_dist.analysis.laws import section as laws
from rgr_dist.analysis.laws.fits import fits_of
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.splits import section as accuracy
from rgr_dist.analysis.splits.accuracy import splits_of
from rgr_dist.analysis.transitions import section as transitions
from rgr_dist.analysis.transitions.probes import probes_of
from rgr_dist.study.from_yaml import parse_study
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
    return {point.cell or point.key: point for point in panel.points if point.look == "cell"}


FOUR = ((64, 16, 6), (64, 32, 2), (128, 16, 21), (128, 32, 5))
SCALES = {"m64-d16": 24, "m64-d32": 12, "m128-d16": 56, "m128-d32": 28}


def test_the_main_figure_has_the_cells_their_ratios_and_the_papers() -> None:
    figure = figure_of(laws.law(searched(*FOUR)), "law")
    width, ratio = figure.panels
    D_K = {"m64-d16": 24, "m64-d32": 8, "m128-d16": 84, "m128-d32": 20}
    for panel, by in ((width, dict.fromkeys(SCALES, 1)), (ratio, SCALES)):
        points = cells_of(panel)
        assert set(points) == set(SCALES)
        for cell, point in points.items():
            assert point.x == SCALES[str(cell)]
            values = np.array([D_K[str(cell)] + off for off in (0, -4, 8)]) / by[str(cell)]
            assert (point.y, point.low, point.high) == pytest.approx(tuple(values))
            assert point.h == 4
        papers = {point.cell: point.y for point in panel.points if point.look == "paper"}
        implied = {"m64-d16": 20, "m64-d32": 6, "m128-d16": 88, "m128-d32": 21}
        assert papers == pytest.approx({cell: D / by[cell] for cell, D in implied.items()})
    series = {line.label: line.points for line in width.lines if line.look == "series"}
    assert series == {
        "d_model = 16": ((24, 24), (56, 84)),
        "d_model = 32": ((12, 8), (28, 20)),
    }
    assert width.x == ratio.x
    assert width.x.label == "m′ log₂ m / d_model"


def test_a_label_stands_where_no_cell_is_in_its_way() -> None:
    cells = (64, 64, 1), (64, 16, 5), (128, 32, 5), (256, 64, 6)
    figure = figure_of(laws.law(searched(*cells)), "law")
    before = {line.label: line.before for line in figure.panels[0].lines if line.label}
    assert before == {"d_model = 16": True, "d_model = 32": False, "d_model = 64": False}


def test_a_law_is_drawn_as_it_is_fitted() -> None:
    results = searched(*FOUR)
    figure = figure_of(laws.law(results), "law")
    (fit,) = [fit for fit in fits_of(results).laws if fit.name == "D_K"]
    assert fit.slope is not None
    for panel, each in ((figure.panels[0], False), (figure.panels[1], True)):
        (paper,) = [line for line in panel.lines if line.look == "paper"]
        for x, y in paper.points:
            assert y == pytest.approx(1.19 if each else 1.19 * x)


def test_a_cell_without_a_threshold_is_an_arrow_from_its_bound() -> None:
    results = searched((64, 16, 0))
    (point,) = cells_of(figure_of(laws.law(results), "law").panels[0]).values()
    assert (point.arrow, point.x, point.y, point.h) == (True, 24, 44, None)
    best = figure_of(heads.section(results), "heads").panels[0]
    assert not cells_of(best), "h* has no bound"
    (panel,) = figure_of(heads.section(results), "splits").panels
    (point,) = panel.points
    assert (point.arrow, point.x, point.y, point.h) == (True, 4, 44, 4)


def test_two_cells_have_no_fitted_line() -> None:
    figure = figure_of(laws.law(searched((64, 16, 6), (64, 32, 2))), "law")
    assert {line.look for line in figure.panels[0].lines} == {"paper", "series"}


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


def test_the_figure_of_heads_sets_cells_of_one_compression_side_by_side() -> None:
    (panel,) = figure_of(heads.section(searched(*FOUR)), "heads").panels
    points = cells_of(panel)
    assert {cell: point.x for cell, point in points.items()} == {
        "m64-d16": 4,
        "m64-d32": 2,
        "m128-d16": 8,
        "m128-d32": 4,
    }
    assert points["m64-d16"].dodge == -points["m128-d32"].dodge != 0
    assert points["m64-d32"].dodge == 0
    assert {point.y for point in points.values()} == {4}
    (paper,) = [line for line in panel.lines if line.look == "paper"]
    assert all(y == pytest.approx(1.65 * x - 6.64) for x, y in paper.points)
    assert min(y for _, y in paper.points) > 0, "a logarithmic axis has no room for less"


def test_thresholds_by_head_show_what_is_known_of_each() -> None:
    study = made_up.study_of([(64, 16)], heads=[1, 2, 4, 8])
    (cell,) = study.cells
    rows = [
        made_up.threshold_row(cell, 1, None, status="censored", D_K_low=97, D_K_high=None),
        made_up.threshold_row(cell, 2, 12, D_K_low=22, D_K_high=26),
        made_up.threshold_row(cell, 4, 5),
        made_up.threshold_row(cell, 8, None, status="pruned", D_K_low=24, D_K_high=None),
    ]
    section = heads.section(made_up.results_of(study, [], rows))
    (panel,) = figure_of(section, "splits").panels
    assert [(p.h, p.y, p.arrow, p.low, p.high) for p in panel.points] == [
        (1, 97, True, None, None),
        (2, 24, False, 22, 26),
        (4, 20, False, 20, 20),
        (8, 24, True, None, None),
    ]
    (joined,) = [line for line in panel.lines if line.look == "series"]
    assert joined.points == ((2, 24), (4, 20))
    assert panel.title == ("(64, 16)", "D_K* = 20 at h* = 4")


def test_a_panel_of_curves_shows_each_probe_the_target_and_D_K() -> None:
    study = made_up.study_of([(64, 16)], heads=[2, 4], seeds=2)
    (cell,) = study.cells
    scores = {(2, 4): [0.7, 0.8], (2, 8): [0.8], (4, 2): [0.9, 0.94], (4, 5): [1.0, 0.99]}
    runs = [
        made_up.run_row(cell, h, d_k, seed, score)
        for (h, d_k), own in scores.items()
        for seed, score in enumerate(own)
    ]
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


def test_the_figure_of_accuracy_shows_means_runs_and_the_guess() -> None:
    study = parse_study(
        {"name": "made-up", "model": "transformer", "cells": [{"m": 64, "d_model": 16}]}
        | {"context": {"length": 8}}
        | {"search": {"mode": "grid", "D_K": [8, 16], "heads": [1, 2], "seeds": 2}}
    )
    (cell,) = study.cells
    scores = {(1, 8): [0.5, 0.6], (1, 16): [0.7, 0.8], (2, 8): [0.65, 0.75]}
    rows = [
        made_up.run_row(cell, h, D_K // h, seed, score, null_rate=0.1 * seed)
        for (h, D_K), own in scores.items()
        for seed, score in enumerate(own)
    ]
    results = made_up.results_of(study, rows, [])
    left, right = figure_of(accuracy.section(results), "accuracy").panels
    runs = [(p.h, p.x, p.y) for p in left.points if p.faint]
    assert runs == [(h, D_K, s) for (h, D_K), own in scores.items() for s in own]
    means = {(p.h, p.x): (p.y, p.low, p.high) for p in left.points if not p.faint}
    for row in splits_of(results).to_dict("records"):
        values = (row["accuracy"], row["low"], row["high"])
        assert means[row["h"], row["D_K"]] == pytest.approx(values)
    assert [p.y for p in right.points] == [0, 0.1] * 3
    assert {p.dodge for p in left.points if p.h == 1} == {-4.5}
    (target,) = [line for line in left.lines if line.look == "target"]
    assert {y for _, y in target.points} == {1 / 16}
    assert [tick.text for tick in left.x.ticks] == ["8", "16"]


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


def drawn(panel: Panel) -> ET.Element:
    return ET.fromstring(
        str(svg.page_panel(panel, "name")).replace("<svg", f'<svg xmlns="{SVG[1:-1]}"', 1)
    )


def panel_of(*points: Point, links: bool = False) -> Panel:
    axis = log2_axis("D_K", [2, 32], pad=2)
    return Panel(x=axis, y=axis, points=points, height=200, links=links)


def test_a_point_of_the_page_has_an_id_a_text_and_its_place() -> None:
    point = Point(x=8, y=16, key="a", text="one\ntwo", cell="m64-d16", h=4, low=8, high=32)
    (node,) = [n for n in drawn(panel_of(point)) if n.get("id")]
    assert (node.get("id"), node.get("data-cell"), node.get("class")) == (
        "name-a",
        "m64-d16",
        "pt h4",
    )
    (title,) = node.findall(f"{SVG}title")
    assert title.text == "one\ntwo"
    assert node.get("x") == "50%"
    assert float(node.get("y") or "") == pytest.approx(200 * (1 - 4 / 6), abs=0.1)
    bar = next(n for n in node if n.get("class") == "bar")
    up, down = map(float, re.findall(r"-?[\d.]+", (bar.get("d") or "").removeprefix("M0 ")))
    assert (up, down) == pytest.approx((-200 / 6, 200 / 6), abs=0.1)


def test_a_point_that_leads_to_its_cell_is_a_link_with_a_name() -> None:
    point = Point(x=8, y=16, key="a", text="all of it", cell="m64-d16")
    (link,) = drawn(panel_of(point, links=True)).findall(f"{SVG}a")
    assert link.get("href") == "#m64-d16"
    assert link.findtext(f"{SVG}title") == "all of it"


def test_text_cannot_become_markup() -> None:
    text = '<script>alert(1)</script> & "quotes"'
    point = Point(x=8, y=16, key="a", text=text)
    root = drawn(panel_of(point))
    assert [node.text for node in root.iter(f"{SVG}title")] == [text]
    assert not list(root.iter(f"{SVG}script"))


def test_a_file_shows_the_figure_by_itself() -> None:
    point = Point(x=8, y=16, key="a", text="<b>", h=4)
    figure = Figure(name="f", title="A < B", caption="", panels=(panel_of(point),) * 4, columns=3)
    root = ET.fromstring(svg.file(figure))
    assert root.findtext(f"{SVG}title") == "A < B"
    text = svg.file(figure)
    assert "var(--" not in text
    assert "%" not in re.sub(r"80%", "", text), "every place is in pixels"
    rows = [node.get("transform") for node in root.findall(f"{SVG}g")]
    assert len(rows) == 4
    assert len({re.findall(r"[\d.]+", str(row))[1] for row in rows}) == 2


def test_what_leaves_the_panel_is_cut_off() -> None:
    point = Point(x=8, y=4000, key="a", text="far", low=1e-9, high=1e9)
    (node,) = [n for n in drawn(panel_of(point)) if n.get("id")]
    assert float(node.get("y") or "") >= -5
    assert not re.search(r"nan|inf", ET.tostring(node).decode())
