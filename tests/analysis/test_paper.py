"""When a number of the paper's base grid counts as agreeing with ours."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from rgr_dist.analysis.agreement.paper_beside_ours import published_figures
from rgr_dist.analysis.laws.fits import fits_of
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.paper import IMPLIED, TABLE_1_D_K_OF_A_HEAD, TABLE_2_MAX_STEPS
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up

SIZES = list(TABLE_1_D_K_OF_A_HEAD)


def figures(changes: dict[tuple[int, int], Any]) -> dict[str, Any]:
    """The paper's figures by what they are, where our cells are Table 1's but for these changes."""
    cells = [
        {"m": m, "d_model": d_model, "training": {"max_steps": TABLE_2_MAX_STEPS[m, d_model]}}
        for m, d_model in SIZES
    ]
    study = parse_study({"name": "made-up", "cells": cells})
    rows = []
    for cell in study.cells:
        size = cell.m, cell.d_model
        D_K, h = IMPLIED[size]
        row = {
            "cell_id": cell.cell_id, "m": cell.m, "d_model": cell.d_model, "D_K": D_K, "h_star": h,
            "h_low": None, "h_high": None, "d_k": TABLE_1_D_K_OF_A_HEAD[size],
            "status": "found",
        }  # fmt: skip
        rows.append(row | changes.get(size, {}))
    none = fits_of(made_up.results_of(study, [], []))
    told = published_figures(none, pd.DataFrame(rows, dtype="object"), study)
    return {row["quantity"]: row for row in told.to_dict("records")}


def told(figure: dict[str, Any]) -> tuple[Any, ...]:
    """Theirs, ours, the difference and the verdict."""
    return figure["theirs"], figure["ours"], figure["difference"], figure["verdict"]


@pytest.mark.parametrize(
    ("largest", "difference", "verdict"),
    [(23, -1, "agrees"), (25, 1, "agrees"), (22, -2, "differs"), (26, 2, "differs")],
)
def test_a_width_of_the_grid_agrees_within_one_step(
    largest: int, difference: int, verdict: str
) -> None:
    by_quantity = figures({(256, 64): {"d_k": largest}})
    figure = by_quantity["largest d_k* on the base grid"]
    assert told(figure) == ("24", str(largest), difference, verdict)
    assert figure["note"] == "agrees if within one step of d_k"
    assert told(by_quantity["d_k* at (m, d_model) = (256, 64)"]) == told(figure)


def test_the_median_of_table_1_is_not_that_of_the_text() -> None:
    figure = figures({})["median d_k* on the base grid"]
    assert told(figure) == ("11", "8", -3, "differs")
    assert figure["note"] == (
        "agrees if within one step of d_k; the paper's Table 1 has a median of 8"
    )


def test_a_cell_without_a_threshold_leaves_the_grid_unmeasured() -> None:
    none = {"D_K": None, "h_star": None, "d_k": None}
    by_quantity = figures({(64, 16): none})
    for quantity, theirs in (
        ("smallest d_k* on the base grid", "5"),
        ("median d_k* on the base grid", "11"),
        ("d_k* at (m, d_model) = (64, 16)", "5"),
        ("D_K* at (m, d_model) = (64, 16)", "20"),
        ("h* at (m, d_model) = (64, 16)", "4"),
    ):
        figure = by_quantity[quantity]
        assert (figure["theirs"], figure["ours"], figure["verdict"]) == (
            theirs, "–", "not measured here",
        )  # fmt: skip
        assert pd.isna(figure["difference"])


@pytest.mark.parametrize(
    ("D_K", "h", "verdict"),
    [(24, 4, "agrees"), (25, 4, "differs"), (28, 8, "agrees"), (12, 1, "differs")],
)
def test_a_total_width_agrees_within_one_step_of_the_larger_head_count(
    D_K: int, h: int, verdict: str
) -> None:
    figure = figures({(64, 16): {"D_K": D_K, "h_star": h}})["D_K* at (m, d_model) = (64, 16)"]
    assert told(figure) == ("20", str(D_K), D_K - 20, verdict)
    assert figure["note"].endswith(f"agrees if within one step of d_k, {max(h, 4)}")


@pytest.mark.parametrize(
    ("h", "low", "high", "verdict"),
    [
        (4, None, None, "agrees"),
        (8, None, None, "differs"),
        (8, 4, 16, "agrees"),
        (2, 2, 4, "agrees"),
        (8, 8, 16, "differs"),
        (2, 1, 2, "differs"),
    ],
)
def test_a_head_count_agrees_where_our_interval_holds_it(
    h: int, low: int | None, high: int | None, verdict: str
) -> None:
    change = {"h_star": h, "h_low": low, "h_high": high}
    figure = figures({(64, 16): change})["h* at (m, d_model) = (64, 16)"]
    assert told(figure) == ("4", str(h), h - 4, verdict)


def of_the_laws(**keys: Any) -> list[str]:
    """The verdicts on the paper's slopes, powers and R², of a base grid with some keys changed."""
    cells = [
        {"m": m, "d_model": d_model, "training": {"max_steps": TABLE_2_MAX_STEPS[m, d_model]}}
        for m, d_model in SIZES
    ]
    study = parse_study({"name": "made-up", "cells": cells, "search": {"heads": [1]}, **keys})
    rows = [made_up.threshold_row(one, 1, IMPLIED[one.m, one.d_model][0]) for one in study.cells]
    results = made_up.results_of(study, [], rows)
    told = published_figures(fits_of(results), best_of(results), study).to_dict("records")
    return [row["verdict"] for row in told if " over m′" in row["quantity"]]


def test_the_papers_laws_are_tested_on_cells_with_its_protocol_alone() -> None:
    assert "agrees" in of_the_laws()
    none = {"not measured here"}
    assert set(of_the_laws(search={"heads": [1], "target": 0.8})) == none
    assert set(of_the_laws(search={"heads": [1], "seeds": 3})) == none
    assert set(of_the_laws(context={"length": 64})) == none
    longer = of_the_laws(search={"heads": [1], "retest_steps": 4})
    assert longer == of_the_laws()


def test_a_slope_stands_beside_that_of_the_papers_own_cells() -> None:
    """Cells that need what Table 1 implies have its slope, with the narrow ones and without."""
    limits = [{"m": m, "d_model": d, "training": {"max_steps": TABLE_2_MAX_STEPS[m, d]}}
              for m, d in SIZES]  # fmt: skip
    heads = sorted({h for _, h in IMPLIED.values()})
    study = parse_study({"name": "made-up", "cells": limits, "search": {"heads": heads}})
    rows = []
    for cell in study.cells:
        D_K, best = IMPLIED[cell.m, cell.d_model]
        d_k = {h: D_K // h if h == best else None for h in heads}
        status = {h: "found" if h == best else "pruned" for h in heads}
        rows += [made_up.threshold_row(cell, h, d_k[h], status=status[h]) for h in heads]
    results = made_up.results_of(study, [], rows)
    told = published_figures(fits_of(results), best_of(results), study)
    slopes = told[told["quantity"].str.startswith("slope of D_K*") & (told["ours"] != "–")]
    implied = "; the D_K* that its Table 1 implies for these {} cells have {}"
    for n, ours, note in zip((12, 9), slopes["ours"], slopes["note"], strict=True):
        assert note.endswith(implied.format(n, ours))
