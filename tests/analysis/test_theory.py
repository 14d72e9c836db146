"""Theory beside training: its tables against arithmetic by hand, the figure, the section."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.report.publish import report
from rgr_dist.analysis.rows import rows_of
from rgr_dist.analysis.theory.beside_training import curves_table, families, growths, theory
from rgr_dist.analysis.theory.constructions import (
    constructed_widths,
    construction_runs,
    rates_of_algorithm_1,
)
from rgr_dist.analysis.theory.figure import draw_three_curves
from rgr_dist.analysis.theory.section import section
from rgr_dist.analysis.theory.weight_precision import bits_needed, rounded_means, rounded_thresholds
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.store.store import Store
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import load_study, parse_study
from tests.analysis import made_up
from tests.analysis.written_page import write_report
from tests.store.made_up_runs import study_row

TRAINED = {(32, 8): (4, 6), (64, 8): (8, 7), (64, 16): (2, 9), (128, 16): (8, 7)}
MADE = {(32, 8): 18, (64, 8): 40, (64, 16): 15}


def study_of(model: object, **more: Any) -> Study:
    cells = [{"m": [32, 64], "d_model": 8}, {"m": [64, 128], "d_model": 16}]
    return parse_study({"name": "s", "model": model, "cells": cells, **more})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Constructed widths; wider ones, ones of three draws or not exact, and another embedding's."""
    store = Store(str(tmp_path))
    iterations = {"made": 400, "wider": 300, "few": 200, "inexact": 100, "narrow": 50}
    for name in iterations:
        model = {"construction": "ours", "iterations": iterations[name]}
        more = {"embedding": {"family": "binary"}} if name == "narrow" else {}
        study, rows = study_of(model, **more), []
        for cell in study.cells:
            width = MADE.get((cell.m, cell.d_model))
            if width is not None:
                width += {"made": 0, "wider": 5}.get(name, -5)
                seeds, mean = 3 if name == "few" else 30, 0.995 if name == "inexact" else 1.0
                one = made_up.threshold_row(cell, 1, width, n_seeds=seeds, mean_score=mean)
                rows.append(one)
                store.append([made_up.run_row(cell, 1, width, 0, 1.0)])
        store.write_study_table(name, "thresholds", rows)
    return store


@pytest.fixture
def results(store: Store) -> StudyResults:
    study = study_of("max")
    at = {(cell.m, cell.d_model): cell for cell in study.cells}
    rows = [made_up.threshold_row(at[size], *width) for size, width in TRAINED.items()]
    trained = [
        made_up.run_row(at[size], *width, seed, 0.996)
        for size, width in TRAINED.items()
        for seed in range(10)
    ]
    made = made_up.results_of(study, trained, rows)
    return StudyResults(study, made.runs, made.thresholds, store=store)


@pytest.fixture
def curves(results: StudyResults, store: Store) -> pd.DataFrame:
    widths = constructed_widths(store, construction_runs(store))
    return curves_table(best_of(results), results.study, widths)


def test_a_row_is_what_arithmetic_gives(curves: pd.DataFrame) -> None:
    row = curves[(curves["m"] == 64) & (curves["d_model"] == 16)].iloc[0]
    bits = math.log2(math.factorial(64))
    assert row["bound_1"] == pytest.approx((bits - 1) / 32)
    assert row["bound_0.5"] == pytest.approx((2 * bits - 1) / 32)
    assert row["bits_per_parameter"] == pytest.approx(bits / (2 * 16 * 18 + 1))
    assert (row["trained"], row["constructed"], row["trivial"]) == (18, 15, 64)
    assert (row["constructed_h"], row["constructed_draws"]) == (1, 30)
    assert row["constructed_over_trained"] == pytest.approx(15 / 18)
    assert row["trivial_over_trained"] == pytest.approx(64 / 18)
    assert row["trained_over_bound"] == pytest.approx(18 / ((bits - 1) / 32))
    last = curves[curves["m"] == 128].iloc[0]
    assert pd.isna(last["constructed"])
    assert pd.isna(last["constructed_over_trained"])


@pytest.mark.parametrize("family", ["gaussian", "binary"])
def test_a_head_for_each_edge_is_a_width_for_unit_rows_alone(family: str, store: Store) -> None:
    study = study_of("max", embedding={"family": family})
    rows = [made_up.threshold_row(cell, 4, 6) for cell in study.cells]
    made = made_up.results_of(study, [], rows)
    table = curves_table(best_of(made), study, {})
    edges = [32, 64, 64, 128] if family == "gaussian" else [None] * 4
    assert [row["trivial"] for row in rows_of(table)] == edges
    ratios = [edge and edge / 24 for edge in edges]
    assert [row["trivial_over_trained"] for row in rows_of(table)] == ratios
    results = StudyResults(study, made.runs, made.thresholds, store=store)
    assert section(results) is not None


def test_growth_has_the_interval_of_students_t() -> None:
    """Four points about a line of slope 1 in logarithms, by hand."""
    x, off = np.array([1.0, 2, 4, 8]), np.array([1, -1, -1, 1]) * 0.1
    frame = pd.DataFrame({"compression": x, "trained_over_bound": x * np.exp(off)})
    empty = dict.fromkeys(("constructed_over_trained", "trivial_over_trained"))
    (fit,) = growths(frame.assign(**empty)).to_dict("records")
    spread = (np.log(x) - np.log(x).mean()) ** 2
    half = 4.302653 * math.sqrt(0.04 / 2 / spread.sum())  # two degrees of freedom
    assert [fit[name] for name in ("power", "low", "high")] == pytest.approx(
        [1, 1 - half, 1 + half]
    )
    logs = np.log(x), np.log(x) + off
    without = ([np.delete(log, i) for log in logs] for i in range(4))
    powers = [stats.linregress(*three).slope for three in without]
    assert (fit["least"], fit["most"]) == pytest.approx((min(powers), max(powers)))
    assert growths(frame.assign(compression=2.0, **empty)).empty
    assert growths(frame.assign(**empty).head(2)).empty


def test_protocols_are_not_mixed(store: Store) -> None:
    """Four sizes with two learning rates: the growth is that of one rate, a line has one rate."""

    def gaps(**training: Any) -> tuple[Any, list[list[tuple[str, int]]]]:
        study = study_of("max", cells=[{"m": [32, 64, 128, 256], "d_model": 8}], training=training)
        rows = [
            made_up.threshold_row(cell, 4, 6 + i + round(1000 * cell.training.learning_rate))
            for i, cell in enumerate(study.cells)
        ]
        made = made_up.results_of(study, [], rows)
        shown = section(StudyResults(study, made.runs, made.thresholds, store=store))
        (table,) = (one for one in shown.shown if one.name == "table-gaps")
        (figure,) = (one for one in shown.figures if one.name == "three-curves")
        lines = [
            [place for line in panel.lines if line.look == "ours" for place in line.points]
            for panel in figure.panels
        ]
        return table, lines

    (one, alone), (several, lines) = gaps(), gaps(learning_rate=[0.003, 0.01])
    assert one.rows[0]["cells"] == several.rows[0]["cells"] == 4
    assert [[m for m, _ in line] for line in [*alone, *lines]] == [[32, 64, 128, 256]] * 3
    left_out = " Cells with another protocol than most are left out."
    assert several.caption == one.caption + left_out


def test_the_figure_draws_the_table(curves: pd.DataFrame) -> None:
    rows = rows_of(curves.assign(d_model=8, m=[32, 64, 128, 256], protocol=""))
    rows = [row | {"anchor": f"a{row['m']}"} for row in rows]
    shown = families([row | {"full": "(8)"} for row in rows])
    assert [title for title, _ in shown] == ["d_model = 8"]
    figure = draw_three_curves(shown, 0.99)
    (panel,) = figure.panels
    lines = {line.label or line.look: [y for _, y in line.points] for line in panel.lines}
    assert lines["ours"] == [24, 56, 18, 56]
    assert lines["also"] == [18, 40, 15]
    assert lines["paper"] == [32, 64, 64, 128]
    assert lines["1 bit"] == pytest.approx(curves["bound_1"].tolist())
    assert [point.y for point in panel.points if point.hollow] == [18, 40, 15]
    assert len(panel.points) == 7
    assert panel.points[0].text == "(8), constructed\nD_K = 18 at h = 1, exact in 30 draws"
    trained = "(8), trained\nD_K* = 24 [24–24] at h* = 4, so far\n"
    assert panel.points[1].text == f"{trained}0.31 bits of the graph per parameter"
    assert {key.h for key in figure.legend} == {None, 1, 2, 4, 8}


def test_rates_are_counts_of_stored_draws(results: StudyResults, store: Store) -> None:
    far = [{"m": 64, "d_model": 16}, {"m": 512, "d_model": 256}]
    options = {"limit": {"signatures": "orthogonal", "tau": "best"}, "finite": {}}
    scores = {"limit": {64: [0.6, 1.0, 0.8], 512: [1.0] * 4}, "finite": {64: [0.2] * 2}}
    for name, more in options.items():
        made = parse_study({"name": name, "model": {"construction": 1, **more}, "cells": far})
        for cell in made.cells:
            h = cell.m // cell.d_model
            rows = [
                made_up.run_row(cell, h, 16, seed, score)
                for seed, score in enumerate(scores[name].get(cell.m, []))
            ]
            store.append([*rows, made_up.run_row(cell, 2 * h, 16, 0, 1.0)])  # not as printed
    binary = parse_study(
        {"name": "b", "model": {"construction": 1}, "embedding": {"family": "binary"}, "cells": far}
    )
    store.append([made_up.run_row(binary.cells[0], 4, 16, 0, 1.0)])
    table = rates_of_algorithm_1(results.study, construction_runs(store))
    told = [
        (row["m"], row["signatures"], row["tau"], row["exact"], row["draws"])
        for row in table.to_dict("records")
    ]
    assert told == [
        (64, "orthogonal", "best", 1, 3),
        (64, "rademacher", "printed", 0, 2),
        (512, "orthogonal", "best", 4, 4),
    ]
    assert table["mean_f1"].tolist() == pytest.approx([0.8, 0.2, 1.0])
    assert table["success_high"].tolist()[1] == pytest.approx(1 - 0.025**0.5)  # 0 of 2
    page = report(results)[0]
    assert "∞ (limit, 16 wide)" in page
    assert "1 of 3" in page


def all_pairs_rows(cell: Any, h: int, d_k: int, means: dict[str, float]) -> list[dict[str, Any]]:
    return [
        {
            "run_id": f"{cell.cell_id}-{seed}", "cell_id": cell.cell_id, "m": cell.m,
            "d_model": cell.d_model, "h": h, "d_k": d_k, "D_K": h * d_k, "seed": seed,
            "precision": precision, "bits": int(precision.lstrip("floatin")), "score": mean,
            "f1": mean if seed else 1.0, "failed_pairs": seed, "margin": 0.1 - 0.2 * seed,
        }
        for precision, mean in means.items()
        for seed in range(2)
    ]  # fmt: skip


def test_the_bits_needed_are_the_fewest_from_which_on_all_pass(results: StudyResults) -> None:
    cell = results.study.cells[0]
    means = {"float32": 0.995, "int8": 0.995, "int6": 0.992, "int5": 0.98, "int4": 0.991}
    table = rounded_means(pd.DataFrame(all_pairs_rows(cell, 3, 8, means)), 0.99)
    assert table["passes"].tolist() == [True, True, True, False, True]
    (row,) = bits_needed(table).to_dict("records")
    assert (row["bits"], row["tried_below"], row["exact"], row["seeds"]) == (6, 5, 1, 2)


def test_whether_rounded_weights_pass_is_exact(results: StudyResults) -> None:
    cell, means = results.study.cells[0], {"float32": 0.3, "int8": 0.5, "int4": 0.7}
    rows = pd.DataFrame(all_pairs_rows(cell, 3, 8, means))
    assert rounded_means(rows, 0.5)["passes"].tolist() == [False, True, True]
    table = rounded_means(
        pd.concat([rows.head(1).assign(score=score) for score in (0.988, 0.99, 0.992)]), 0.99
    )
    assert table["mean_score"][0] < 0.99  # as floats are added
    assert table["passes"].tolist() == [True]


def test_the_section_is_in_the_report_of_a_study_with_something_to_compare(
    results: StudyResults, store: Store, tmp_path: Path
) -> None:
    cells = {(c.m, c.d_model): c for c in results.study.cells}
    first = cells[32, 8]
    stale = all_pairs_rows(cells[64, 16], 2, 8, {"float32": 0.999})  # not at the threshold
    now = all_pairs_rows(first, 4, 6, {"float32": 0.995, "int8": 0.995, "int4": 0.5})
    store.write_study_table("elsewhere", "all_pairs", [*now, *stale])
    found = theory(results)
    assert found is not None
    assert set(found.rounded["cell_id"]) == {first.cell_id}
    page = write_report(results, tmp_path / "report").read_text("utf-8")
    assert (
        "0.71 to 0.83 times the trained width (3 cells). They need less than training at 3" in page
    )
    assert "none of them is the bound" in page
    needed = page[page.index('<table id="table-all-pairs"') :]
    assert re.findall(r">([^<]+)</td></tr>", needed)[0] == "8"
    assert {"0.9950", "0.0050"} <= set(re.findall(r">([^<]+)</td>", needed))  # mean and slack
    assert 'id="table-theory"' in page
    for name in ("theory.csv", "all-pairs.csv"):
        assert (tmp_path / "report" / name).exists()


def test_without_anything_to_compare_there_is_no_section(
    results: StudyResults, store: Store, tmp_path: Path
) -> None:
    for study, held in (
        (results.study, None),
        (results.study, Store(str(tmp_path / "empty"))),
        (study_of("softmax"), store),
        (study_of("max", search={"mode": "grid", "D_K": [64]}), store),
    ):
        told = StudyResults(study, results.runs, results.thresholds, store=held)
        assert theory(told) is None
        assert section(told) is None


def test_a_cell_without_a_best_head_has_no_rounded_weights(tmp_path: Path) -> None:
    store, study = Store(tmp_path), load_study("quickstart")
    store.write_study_table("s", "all_pairs", [study_row("all_pairs", cell_id="c")])
    best = pd.DataFrame({"cell_id": ["c"], "D_K": [2], "h_star": [None], "d_k": [None]})
    assert rounded_thresholds(store, study, best.convert_dtypes()).empty


def test_rounded_weights_alone_are_shown_and_of_no_float32_nothing_is_exact(
    results: StudyResults, tmp_path: Path
) -> None:
    """A store without a construction, whose weights were tested as int8 alone."""
    store, cell = Store(str(tmp_path / "alone")), results.study.cells[0]
    (best,) = best_of(results).query("cell_id == @cell.cell_id").to_dict("records")
    rows = all_pairs_rows(cell, best["h_star"], best["d_k"], {"int8": 0.995})
    store.write_study_table("s", "all_pairs", rows)
    told = StudyResults(results.study, results.runs, results.thresholds, store=store)
    (table,) = (one for one in section(told).shown if one.name == "table-all-pairs")
    shown = {column.head: column.shown(table.rows[0]) for column in table.columns}
    assert (shown["exact"], shown["bits needed"]) == ("–", "≤ 8")
