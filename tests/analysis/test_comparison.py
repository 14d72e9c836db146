"""Our cells beside the paper's: which are compared, and when they agree."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from rgr_dist import paper
from rgr_dist.analysis.laws.fits import fits_of
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.analysis.thresholds.comparable import compare, is_papers, laws_for
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up


@pytest.mark.parametrize(
    ("d_k", "agrees"), [(4, True), (5, True), (6, True), (3, False), (7, False)]
)
def test_agreement_is_one_step_of_d_k(d_k: int, agrees: bool) -> None:
    study = made_up.study_of([(64, 16)], heads=[4])
    rows = [made_up.threshold_row(study.cells[0], 4, d_k)]
    results = made_up.results_of(study, [], rows)
    (row,) = compare(best_of(results), study).to_dict("records")
    assert (row["difference"], row["step"]) == (4 * d_k - 20, 4)
    assert row["agrees"] == agrees


def test_a_comparison_known_by_hand() -> None:
    study = made_up.study_of([(64, 16), (96, 16), (128, 16), (64, 64)], heads=[1, 4])
    one, _, two, three = study.cells
    rows = [made_up.threshold_row(one, 4, 6), made_up.threshold_row(two, 4, 21)]
    none = {"status": "censored", "D_K_low": 97}
    rows += [made_up.threshold_row(cell, 1, None, **none) for cell in (one, two, three)]
    results = made_up.results_of(study, [], rows)
    table = compare(best_of(results), study)
    assert list(table["cell_id"]) == [one.cell_id, two.cell_id, three.cell_id]
    columns = "m d_model D_K paper_D_K difference step h_star paper_h d_k paper_d_k agrees"
    assert list(table) == ["cell_id", *columns.split()]
    told = table.astype("object").where(table.notna(), None).drop(columns="cell_id")
    assert told.values.tolist() == [
        [64, 16, 24, 20, 4, 4, 4, 4, 6, 5, True],
        [128, 16, 84, 88, -4, 8, 4, 8, 21, 11, True],
        [64, 64, None, 5, None, None, None, 1, None, 5, None],
    ]


def test_of_an_unfinished_search_nothing_is_compared() -> None:
    """One head is done; four, of which the paper has its D_K, are not."""
    study = made_up.study_of([(64, 16)], heads=[1, 4])
    (cell,) = study.cells
    rows = [made_up.threshold_row(cell, 1, 60), made_up.threshold_row(cell, 4, None)]
    best = best_of(made_up.results_of(study, [], rows))
    assert best["D_K"].tolist() == [60]
    (row,) = compare(best, study).to_dict("records")
    assert row["paper_D_K"] == 20
    assert all(pd.isna(row[name]) for name in ("D_K", "h_star", "difference", "agrees"))


@pytest.mark.parametrize(
    ("cell", "search"),
    [
        ({"training": {"max_steps": 20_001}}, {}),
        ({"training": {"learning_rate": 0.01}}, {}),
        ({"context": {"length": 8}}, {}),
        ({"embedding": {"family": "onehot"}, "d_model": 64}, {}),
        ({"graph": {"family": "regular", "degree": 2}}, {}),
        ({}, {"seeds": 9}),
        ({}, {"target": 0.98}),
        ({}, {"mode": "grid", "heads": [4], "D_K": [20]}),
        ({"m": 96}, {}),
    ],
)
def test_a_cell_that_is_not_set_as_the_papers_is_not_compared(
    cell: dict[str, Any], search: dict[str, Any]
) -> None:
    def study(cell: dict[str, Any], search: dict[str, Any]) -> Study:
        cells = [{"m": 64, "d_model": 16} | cell]
        shared = {key: cells[0].pop(key) for key in ("embedding",) if key in cells[0]}
        return parse_study({"name": "made-up", "cells": cells, "search": search} | shared)

    own, plain = study(cell, search), study({}, {})
    assert is_papers(plain.cells[0], plain.search)
    assert not is_papers(own.cells[0], own.search)


def test_a_cell_whose_hopeless_runs_are_given_up_is_compared() -> None:
    cell = {"m": 64, "d_model": 16, "training": {"give_up_below": 0.8}}
    study = parse_study({"name": "made-up", "cells": [cell]})
    assert is_papers(study.cells[0], study.search)


@pytest.mark.parametrize("model", ["max", "softmax"])
def test_a_cell_with_fewer_items_than_the_papers_contexts_is_fitted_and_not_compared(
    model: str,
) -> None:
    cells = [{"m": m, "d_model": 8, "context": {"length": 4}} for m in (8, 64)]
    study = parse_study({"name": "small", "model": model, "cells": cells, "search": {"heads": [1]}})
    results = made_up.results_of(study, [], [made_up.threshold_row(study.cells[0], 1, 5)])
    assert laws_for(study) == {}
    assert compare(best_of(results), study).empty
    fits = fits_of(results)
    assert fits.cells["D_K"].tolist() == [5]
    assert fits.published == []


def test_laws_are_compared_by_model_and_graph() -> None:
    def theirs(model: str = "max", **graph: Any) -> dict[str, paper.PublishedLaw]:
        cells = [{"m": 128, "d_model": 32}]
        graphs = {"graph": graph} if graph else {}
        return laws_for(parse_study({"name": "x", "model": model, "cells": cells} | graphs))

    assert theirs() == paper.LAWS | {"D_K": paper.LAWS["D_K_wide"]}
    assert laws_for(made_up.study_of([(128, 16), (128, 32)])) == paper.LAWS, "narrow ones too"
    assert laws_for(made_up.study_of([(64, 16)], mode="grid", heads=[1], D_K=[8])) == {}
    assert theirs("softmax") == {}
    assert theirs(family="regular", degree=[4, 16]) == {"D_K": paper.DENSE_LAW}
    assert theirs(family="regular", degree=[4, 17]) == {"D_K_sparse": paper.DENSE_LAW}
