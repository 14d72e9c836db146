"""What the figures show, read from their axes: every point, line and label is of the tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from analysis.accuracy import splits
from analysis.comparison import compare, laws_for
from analysis.curves import curves
from analysis.figures.accuracy import draw_accuracy
from analysis.figures.curves import draw_curves
from analysis.figures.laws import draw_capacity, draw_heads
from analysis.laws import fit_laws
from analysis.thresholds import best_of
from analysis.wording import three_digits
from rgr_dist.study.from_yaml import parse_study


def points(axes: Axes) -> list[tuple[str, list[float], list[float]]]:
    """What is drawn in markers alone: label, x and y; unlabelled ones have an empty label."""
    return [
        (_label(line), *_data(line)) for line in axes.get_lines() if line.get_linestyle() == "None"
    ]


def lines(axes: Axes) -> dict[str, tuple[list[float], list[float]]]:
    """What is drawn as a line and has a label."""
    drawn = [line for line in axes.get_lines() if line.get_linestyle() != "None"]
    return {_label(line): _data(line) for line in drawn if _label(line)}


def bars(axes: Axes) -> list[tuple[float, float, float]]:
    """The vertical bars: x, low and high."""
    return [
        (float(segment[0][0]), float(segment[0][1]), float(segment[-1][1]))
        for bunch in axes.collections
        if isinstance(bunch, LineCollection)
        for segment in bunch.get_segments()
    ]


def _label(line: Any) -> str:
    return "" if line.get_label().startswith("_") else line.get_label()


def _data(line: Any) -> tuple[list[float], list[float]]:
    x, y = (np.asarray(side, dtype=float) for side in line.get_data())
    return x.tolist(), y.tolist()


def searched(made_up: SimpleNamespace, *cells: tuple[int, int, int]) -> Any:
    """A study of four heads, found at these (m, d_model, d_k); d_k of 0 is censored above 40."""
    study = made_up.study_of([(m, d_model) for m, d_model, _ in cells], heads=[4])
    rows = [
        made_up.threshold_row(cell, 4, d_k, D_K_low=4 * d_k - 4, D_K_high=4 * d_k + 8)
        if d_k
        else made_up.threshold_row(cell, 4, None, status="censored", D_K_low=44, D_K_high=None)
        for cell, (_, _, d_k) in zip(study.cells, cells, strict=True)
    ]
    return made_up.results_of(study, [], rows)


def law_figures(results: Any) -> tuple[Axes, Axes]:
    best = best_of(results)
    parts = (best, fit_laws(best), compare(best, results.study), laws_for(results.study))
    return draw_capacity(*parts).axes[0], draw_heads(*parts).axes[0]


def test_the_figure_of_D_K_shows_the_cells_the_fits_and_the_papers(
    made_up: SimpleNamespace,
) -> None:
    results = searched(made_up, (64, 16, 6), (64, 32, 2), (128, 16, 21), (128, 32, 5))
    axes, _ = law_figures(results)
    x = {16: [24.0, 56.0], 32: [12.0, 28.0]}
    assert points(axes) == [
        ("the paper, inferred from its Table 1", [24, 12, 56, 28], [20, 6, 88, 21]),
        ("$d_{model}$ = 16", [24], [24]),
        ("$d_{model}$ = 32", [12], [8]),
        ("", [56], [84]),
        ("", [28], [20]),
    ]
    assert bars(axes) == [(24, 20, 32), (12, 4, 16), (56, 80, 92), (28, 16, 28)]
    laws = {law.name: law for law in fit_laws(best_of(results))}
    drawn = lines(axes)
    labels = {
        "the paper: 1.19 x": 1.19,
        f"fit: {laws['D_K'].slope:.2f} x": laws["D_K"].slope,
        f"fit without $d_{{model}}$ = 16, m > 64: {laws['D_K_wide'].slope:#.3g} x": laws[
            "D_K_wide"
        ].slope,
    }
    assert set(drawn) == set(labels)
    for label, slope in labels.items():
        at, height = drawn[label]
        assert (min(at), max(at)) == pytest.approx((12 / 1.25, 56 * 1.25))
        assert height == pytest.approx([slope * value for value in at])
    assert axes.get_xlabel() == "m' log$_2$ m / $d_{model}$"
    assert axes.get_ylabel() == "smallest total key width $D_K^*$"
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.get_xlim() == pytest.approx((min(x[32]) / 1.25, max(x[16]) * 1.25))
    assert axes.get_ylim() == pytest.approx((4 / 1.35, 92 * 1.35))
    legend = axes.get_legend()
    assert legend is not None
    assert {text.get_text() for text in legend.get_texts()} == {
        *labels,
        "the paper, inferred from its Table 1",
        "$d_{model}$ = 16",
        "$d_{model}$ = 32",
    }


def test_the_figure_of_h_shows_the_cells_the_fit_and_the_papers(made_up: SimpleNamespace) -> None:
    results = searched(made_up, (64, 16, 6), (64, 32, 2), (128, 16, 21), (128, 32, 5))
    _, axes = law_figures(results)
    left, right = 1.05**-0.5, 1.05**0.5  # cells of one compression are drawn side by side
    x = [4 * left, 2 * right, 8 * left, 4 * right]
    told = points(axes)
    assert told[0][0] == "the paper, inferred from its Table 1"
    assert told[0][1] == pytest.approx(x)
    assert told[0][2] == [4, 1, 8, 1]
    assert [label for label, _, _ in told[1:]] == ["$d_{model}$ = 16", "$d_{model}$ = 32", "", ""]
    assert [at for _, (at,), _ in told[1:]] == pytest.approx(x)
    assert [height for _, _, (height,) in told[1:]] == [4, 4, 4, 4]
    assert np.array(bars(axes)) == pytest.approx(np.array([(at, 4, 4) for at in x]))
    drawn = lines(axes)
    fitted = next(law for law in fit_laws(best_of(results)) if law.name == "h")
    equation = f"{three_digits(fitted.slope)} x + {three_digits(fitted.intercept)}"
    assert set(drawn) == {"the paper: 1.65 x − 6.64", f"fit: {equation}"}
    at, height = drawn["the paper: 1.65 x − 6.64"]
    assert height == pytest.approx([1.65 * value - 6.64 for value in at])
    assert min(height) > 0, "a logarithmic axis has no room for less"
    assert axes.get_xlabel() == "compression m' / $d_{model}$"
    assert axes.get_ylabel() == "best number of heads $h^*$"
    assert axes.get_xlim() == pytest.approx((2 / 1.35, 8 * 1.35))
    assert axes.get_ylim() == pytest.approx((1 / 1.3, 8 * 1.3))


def test_a_cell_without_a_threshold_is_an_arrow_from_its_bound(made_up: SimpleNamespace) -> None:
    axes, heads = law_figures(searched(made_up, (64, 16, 0)))
    assert points(axes) == [("the paper, inferred from its Table 1", [24], [20])]
    assert [(line.get_xdata(), line.get_ydata()) for line in axes.get_lines()][-1] == ([24], [44])
    (arrow,) = axes.texts
    assert arrow.xy == (24, 44 * 1.25)
    assert arrow.get_position() == (24, 44)
    assert arrow.arrowprops["arrowstyle"] == "->"
    assert bars(axes) == []
    assert not heads.texts, "h* has no bound"
    assert set(lines(axes)) == {"the paper: 0.966 x"}


def test_two_cells_have_no_fitted_line(made_up: SimpleNamespace) -> None:
    axes, heads = law_figures(searched(made_up, (64, 16, 6), (64, 32, 2)))
    assert set(lines(axes)) == {"the paper: 0.966 x"}
    assert set(lines(heads)) == {"the paper: 1.65 x − 6.64"}


def test_degrees_are_told_apart_where_d_model_is_one(made_up: SimpleNamespace) -> None:
    graph = {"family": "regular", "degree": [1, 4, 16, 32]}
    study = parse_study(
        {"name": "made-up", "cells": [{"m": 128, "d_model": 32}], "graph": graph}
        | {"search": {"heads": [2], "seeds": 10}}
    )
    widths = [9, 30, 50, 96]
    rows = [made_up.threshold_row(c, 2, d) for c, d in zip(study.cells, widths, strict=True)]
    results = made_up.results_of(study, [], rows)
    axes, heads = law_figures(results)
    assert [label for label, _, _ in points(axes)] == ["r = 1", "r = 4", "r = 16", "r = 32"]
    laws = {law.name: law for law in fit_laws(best_of(results))}
    assert set(lines(axes)) == {
        "the paper: 0.46 x",
        f"fit: {laws['D_K'].slope:#.3g} x",
        f"fit of degrees up to 16: {laws['D_K_sparse'].slope:#.3g} x",
    }
    assert points(heads)[1][1] == [16]


def test_an_open_cell_has_a_white_centre(made_up: SimpleNamespace) -> None:
    study = made_up.study_of([(64, 16), (64, 32)], heads=[4])
    one, two = study.cells
    rows = [made_up.threshold_row(one, 4, 6, status="open"), made_up.threshold_row(two, 4, 2)]
    axes, _ = law_figures(made_up.results_of(study, [], rows))
    marks = [line for line in axes.get_lines() if "d_{model}" in str(line.get_label())][:2]
    assert [mark.get_markerfacecolor() == "white" for mark in marks] == [True, False]
    assert marks[0].get_color() != marks[1].get_color()
    assert marks[0].get_marker() != marks[1].get_marker()


def curve_figure(results: Any) -> Figure:
    return draw_curves(curves(results.runs, results.study), best_of(results), results.study)


def test_a_panel_of_curves_shows_each_probe_the_target_and_D_K(made_up: SimpleNamespace) -> None:
    study = made_up.study_of([(64, 16)], heads=[2, 4], seeds=2)
    (cell,) = study.cells
    scores = {(2, 4): [0.7, 0.8], (2, 8): [0.8], (4, 2): [0.9, 0.94], (4, 5): [1.0, 0.99]}
    runs = [
        made_up.run_row(cell, h, d_k, seed, score)
        for (h, d_k), own in scores.items()
        for seed, score in enumerate(own)
    ]
    results = made_up.results_of(study, runs, [made_up.threshold_row(cell, 4, 5)])
    figure = curve_figure(results)
    (axes,) = figure.axes
    assert axes.get_title("left") == (
        "m = 64, $d_{model}$ = 16\n$D_K^*$ = 20 at h = 4 so far"  # h = 2 has no row
    )
    plain = [_data(line) for line in axes.get_lines() if line.get_linestyle() == "-"]
    assert plain == [([8, 16], pytest.approx([0.75, 0.8])), ([8, 20], pytest.approx([0.92, 0.995]))]
    dots = [(x, y) for _, x, y in points(axes)]
    assert dots == [
        ([8], [0.75]),
        ([16], [0.8]),
        ([8, 20], pytest.approx([0.92, 0.995])),
        ([], []),
    ]
    hollow = [line for line in axes.get_lines() if line.get_markerfacecolor() == "white"]
    assert [_data(line)[0] for line in hollow] == [[16], []]
    table = curves(results.runs, study)
    full = table[table["complete"]]
    ends = zip(full["D_K"], full["low"].clip(lower=0), full["high"].clip(upper=1), strict=True)
    assert np.array(bars(axes)) == pytest.approx(np.array(list(ends)))
    dashes = [_data(line) for line in axes.get_lines() if str(line.get_linestyle()) == "--"]
    assert ([0, 1], [0.99, 0.99]) in dashes
    assert ([20, 20], [0, 1]) in [_data(line) for line in axes.get_lines()]
    assert axes.get_ylim() == (0, 1)
    assert axes.get_xlim() == pytest.approx((8 / 1.15, 20 * 1.15))
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["2", "4"]
    assert legend.get_title().get_text() == "heads h"
    assert figure.get_supxlabel() == "total key width $D_K$"
    assert figure.get_supylabel() == "mean test score"


def test_panels_form_a_table_of_m_by_d_model(made_up: SimpleNamespace) -> None:
    sizes = [(64, 16), (64, 32), (128, 16), (128, 32)]
    study = made_up.study_of(sizes[::-1], heads=[1])
    figure = curve_figure(made_up.results_of(study, [], []))
    where = {
        axes.get_title("left").split("\n")[0]: (
            axes.get_subplotspec().rowspan.start,
            axes.get_subplotspec().colspan.start,
        )
        for axes in figure.axes
    }
    assert where == {
        "m = 64, $d_{model}$ = 16": (0, 0),
        "m = 64, $d_{model}$ = 32": (0, 1),
        "m = 128, $d_{model}$ = 16": (1, 0),
        "m = 128, $d_{model}$ = 32": (1, 1),
    }
    assert {axes.get_title("left").split("\n")[1] for axes in figure.axes} == {"no runs yet"}
    assert not figure.legends


def test_panels_of_a_sparse_grid_stand_in_rows_of_three(made_up: SimpleNamespace) -> None:
    diagonal = [(64, 16), (128, 32), (256, 64), (512, 128)]
    figure = curve_figure(made_up.results_of(made_up.study_of(diagonal, heads=[1]), [], []))
    specs = [axes.get_subplotspec() for axes in figure.axes]
    assert [(spec.rowspan.start, spec.colspan.start) for spec in specs] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
    ]


def test_a_panel_names_its_graph_and_the_status(made_up: SimpleNamespace) -> None:
    graph = {"family": "regular", "degree": 4}
    cells = [{"m": 64, "d_model": 16}]
    study = parse_study({"name": "made-up", "cells": cells, "graph": graph})
    run = made_up.run_row(study.cells[0], 1, 8, 0, 0.5)
    (axes,) = curve_figure(made_up.results_of(study, [run], [])).axes
    assert axes.get_title("left") == "m = 64, $d_{model}$ = 16, r = 4\nopen"


def test_the_figure_of_accuracy_shows_means_runs_and_the_guess(made_up: SimpleNamespace) -> None:
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
    runs = made_up.results_of(study, rows, []).runs
    table = splits(runs, study)
    figure = draw_accuracy(table, runs, study)
    left, right = figure.axes
    shift = {1: 1.035**-0.5, 2: 1.035**0.5}
    for axes, column in ((left, "score"), (right, "null_rate")):
        for (_, x, y), (h, own) in zip(points(axes), runs.groupby("h"), strict=True):
            assert x == pytest.approx((own["D_K"] * shift[h]).to_list())
            assert y == pytest.approx(own[column].to_list())
        assert axes.get_ylim() == (-0.02, 1.02)
        assert axes.get_xlabel() == "total key width $D_K$"
    means = [_data(line) for line in left.get_lines() if line.get_linestyle() == "-"]
    for (x, y), (h, own) in zip(means, table.groupby("h"), strict=True):
        assert x == pytest.approx((own["D_K"] * shift[h]).to_list())
        assert y == pytest.approx(own["accuracy"].to_list())
    ends = sorted(
        (row["D_K"] * shift[row["h"]], max(0, row["low"]), min(1, row["high"]))
        for row in table.to_dict("records")
    )
    assert np.array(sorted(bars(left))) == pytest.approx(np.array(ends))
    assert ([0, 1], [1 / 16, 1 / 16]) in [_data(line) for line in left.get_lines()]
    assert left.get_title("left") == "m = 64, d_model = 16"
    assert (left.get_ylabel(), right.get_ylabel()) == ("test accuracy", "share answered NULL")
    assert [tick.get_text() for tick in left.get_xticklabels()] == ["8", "16"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["1", "2"]
    assert legend.get_title().get_text() == "heads h"


def test_the_figure_of_accuracy_says_where_nothing_ran(made_up: SimpleNamespace) -> None:
    study = parse_study(
        {"name": "made-up", "model": "transformer", "cells": [{"m": 64, "d_model": 16}]}
        | {"search": {"mode": "grid", "D_K": [8], "heads": [1], "seeds": 2}}
    )
    runs = made_up.results_of(study, [], []).runs
    figure = draw_accuracy(splits(runs, study), runs, study)
    assert figure.axes[0].get_title("left") == "m = 64, d_model = 16: no run yet"
    assert not figure.legends
    assert isinstance(runs, pd.DataFrame)
