"""What a report says of facts: tables and figure from rows that are made up."""

from __future__ import annotations

import json

import pytest

from rgr_dist.analysis.load import StudyResults, open_results
from rgr_dist.analysis.report import page_of
from rgr_dist.facts.cell import FactsCell
from rgr_dist.facts.section import finding, section
from rgr_dist.facts.tables import taus, widths
from rgr_dist.store.store import Store
from rgr_dist.study.study_file import parse_study
from tests.planning.made_up_runs import trained

TOLD = {"rank_logits": 6, "by_tau": [[0.5, 1.0, 9], [0.95, 0.75, 5]]}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> StudyResults:
    """Two databases, each at two d_qk; a width of 3 at d_qk = 2 and of 2 at 4 holds them."""
    study = parse_study(
        {
            "name": "made-up",
            "model": "facts",
            "facts": {"d_qk": [2, 4]},
            "database": {"family": "function", "keys": [4, 6], "queries": 3, "values": 5},
            "cells": [{"d_model": 8}],
            "search": {"heads": [1], "seeds": 3, "confirm_seeds": 0},
        }
    )
    cells = {cell.cell_id: cell for cell in study.cells}

    def holds(probe: object) -> bool:
        cell = cells[probe.cell]
        assert isinstance(cell, FactsCell)
        return bool(probe.value >= (3 if cell.facts.d_qk == 2 else 2))

    store = Store(tmp_path_factory.mktemp("store"))
    rows = trained(study, passes=holds)
    store.append([row | {"details": json.dumps(TOLD)} for row in rows])
    return open_results(study, store)


def test_a_row_for_each_cell_with_its_widths_and_ranks(results: StudyResults) -> None:
    table = widths(results)
    assert table["facts"].tolist() == [12, 12, 18, 18]
    assert table["d_qk"].tolist() == [2, 4, 2, 4]
    assert table["D_V"].tolist() == table["d_vo"].tolist() == [3, 2, 3, 2]
    assert (table["rank_low"] <= table["rank_high"]).all()
    assert table["layer_rank_bound"].tolist() == [12, 9, 12, 9]  # (d_vo + 1) |Q|, as |Q| < d_model


def test_means_over_layers_at_every_tau(results: StudyResults) -> None:
    table = taus(results).set_index("tau")
    assert table.loc[0.5, ["accuracy", "rank", "gap"]].tolist() == [1.0, 9.0, 3.0]
    assert table.loc[0.95, "gap"] == 1.0
    assert table["layers"].nunique() == 1
    assert (table["above_bound"] <= table["layers"]).all()


def test_the_page_shows_them(results: StudyResults) -> None:
    assert finding(results) == "D_V* is 2 to 3 in 4 of 4 cells of 12 to 18 facts."
    (figure,) = section(results).figures
    (ax,) = figure.canvas().axes[:1]
    assert "qk" in ax.get_xlabel()
    page = page_of(results)
    assert "in 4 of 4 cells of 12 to 18 facts" in page
    assert "<svg" in page
