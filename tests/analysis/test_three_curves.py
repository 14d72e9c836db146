"""Theory beside training: the table against arithmetic by hand, the figure's lines, the page."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis import three_curves
from analysis.figures.three_curves import draw_three_curves
from analysis.load import StudyResults
from analysis.report import theory
from analysis.three_curves import curves_table, growths, panels, printed_limit, words
from rgr_dist.store.schema import RUNS
from rgr_dist.store.store import Store
from rgr_dist.study.from_yaml import parse_study
from rgr_dist.study.study import Cell, Study

TRAINED = {(32, 8): (24, 3), (64, 8): (56, 7), (64, 16): (18, 2), (128, 16): (56, 8)}
MADE = {(32, 8): 18, (64, 8): 40, (64, 16): 15}


def study_of(model: object) -> Study:
    cells = [{"m": [32, 64], "d_model": 8}, {"m": [64, 128], "d_model": 16}]
    return parse_study({"name": "s", "model": model, "cells": cells})


def rows_of(study: Study, widths: dict[tuple[int, int], Any]) -> list[dict[str, Any]]:
    rows = []
    for cell in study.cells:
        found = widths.get((cell.m, cell.d_model))
        if found is None:
            continue
        D_K, h = found if isinstance(found, tuple) else (found, 1)
        rows.append(
            {
                "cell_id": cell.cell_id, "model": cell.model, "graph": "permutation", "degree": 1,
                "m": cell.m, "d_model": cell.d_model, "h": h, "d_k": D_K // h, "D_K": D_K,
                "D_K_low": D_K, "D_K_high": D_K, "status": "found", "mean_score": 1.0,
                "n_seeds": 30, "certificate": None, "because": None, "limited_by": None,
                "n_edges": cell.m,
            }
        )  # fmt: skip
    return rows


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(str(tmp_path))
    made = study_of({"construction": "ours"})
    wide = {key: width + 5 for key, width in MADE.items()}
    store.write_study_table("made", "thresholds", rows_of(made, MADE))
    store.write_study_table("wider", "thresholds", rows_of(made, wide))
    return store


@pytest.fixture
def table(store: Store, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    monkeypatch.setattr(three_curves, "LIMIT_DRAWS", 1)
    study = study_of("max")
    best = pd.DataFrame(rows_of(study, TRAINED)).rename(columns={"h": "h_star"})
    return curves_table(best, study, store)


def test_a_row_is_what_arithmetic_gives(table: pd.DataFrame) -> None:
    row = table[(table["m"] == 64) & (table["d_model"] == 16)].iloc[0]
    bits = math.log2(math.factorial(64))
    assert row["bound_1"] == pytest.approx((bits - 1) / 32)
    assert row["bound_0.5"] == pytest.approx((2 * bits - 1) / 32)
    assert row["bits_per_parameter"] == pytest.approx(bits / (2 * 16 * 18 + 1))
    assert (row["trained"], row["constructed"], row["trivial"]) == (18, 15, 64)
    assert row["constructed_over_trained"] == pytest.approx(15 / 18)
    assert row["trivial_over_trained"] == pytest.approx(64 / 18)
    assert row["trained_over_bound"] == pytest.approx(18 / ((bits - 1) / 32))
    last = table[table["m"] == 128].iloc[0]
    assert pd.isna(last["constructed"])
    assert pd.isna(last["constructed_over_trained"])


def test_growth_recovers_a_power_law() -> None:
    x = np.array([2.0, 4, 8, 16, 32])
    made = {"compression": x, "trivial_over_trained": 3 * x**-0.7}
    frame = pd.DataFrame(made | dict.fromkeys(("trained_over_bound", "constructed_over_trained")))
    (fit,) = growths(frame)
    assert fit.power == pytest.approx(-0.7)
    assert fit.low <= fit.power <= fit.high
    assert fit.n == 5


def test_words_say_what_they_rest_on(table: pd.DataFrame) -> None:
    text = " ".join(words(table, growths(table)))
    assert "(4 cells)" in text
    assert "0.71 to 0.83 times the trained width (3 cells; 30 draws" in text
    assert "need less than training at 3 of them" in text
    assert "have not begun at 4 of 4 cells" in text
    assert "none of them is the bound" in text


def test_the_figure_draws_the_table(table: pd.DataFrame) -> None:
    two = table.assign(d_model=8, m=[32, 64, 128, 256])
    shown = panels(two)
    assert [title for title, *_ in shown] == ["d_model = 8"]
    (axes,) = draw_three_curves(shown).axes
    lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    assert len(lines) == 6
    drawn = next(ys for label, ys in lines.items() if str(label).startswith("trained"))
    assert list(drawn) == [24, 56, 18, 56]


def test_the_limit_is_not_tried_for_other_graphs() -> None:
    regular = Cell.model_validate(
        {"m": 32, "d_model": 8, "graph": {"family": "regular", "degree": 2}}
    )
    assert printed_limit(regular) == (None, None)


def test_the_page_is_written_where_something_was_constructed(store: Store, tmp_path: Path) -> None:
    study, runs = study_of("max"), pd.DataFrame(columns=RUNS.names)
    results = StudyResults(study, runs, pd.DataFrame(rows_of(study, TRAINED)))
    files = theory.files(results, store)
    assert {"theory.html", "three-curves.csv"} <= set(files)
    page = files["theory.html"].decode()
    assert "times the trained width" in page
    assert "http" not in page.replace("http-equiv", "")
    assert theory.files(results, Store(str(tmp_path / "empty"))) == {}
    made = study_of({"construction": "ours"})
    assert theory.files(StudyResults(made, runs, results.thresholds), store) == {}
