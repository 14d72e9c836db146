"""Layers side by side: their costs against what the layers themselves say."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from rgr_dist.analysis.layers import compares_layers, costs
from rgr_dist.analysis.load import StudyResults
from rgr_dist.cli.listing import plain
from rgr_dist.models.layer import make_layer, paid
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up

LAYERS: list[Any] = ["max", {"zoo": "multi_query"}, {"zoo": "latent"}]
HEADS = [1, 2, 4]


def study_of(models: Any = LAYERS, **keys: Any) -> Study:
    return parse_study(
        {
            "name": "x",
            "model": models,
            "cells": [{"m": [16, 32], "d_model": 8}, {"m": 16, "d_model": 4}],
            "training": {"max_steps": [1000, 4000], "learning_rate": [0.001, 0.01]},
            "search": {"heads": HEADS, "seeds": 2},
        }
        | keys
    )


def price(cell: Cell, h: int, d_k: int) -> dict[str, int]:
    """What a layer itself says that it costs."""
    if cell.layer is None:
        return {"parameters": 2 * cell.d_model * h * d_k, "cached": h * d_k}
    parameters, cached = paid(make_layer(Run(cell=cell, h=h, d_k=d_k, seed=0)))
    assert cached is not None
    return {"parameters": parameters, "cached": cached}


def width_of(cell: Cell, h: int) -> int:
    """A made-up threshold: some d_k for every layer, rate, limit and head count."""
    longer = cell.training.max_steps == 4000
    layers = ["max", "multi_query", "latent(width=2)"]
    shift = layers.index(cell.model_name) + (cell.training.learning_rate == 0.01)
    return max(2, cell.m // cell.d_model * 6 // h + shift - longer)


def results_of(study: Study, censored: str = "") -> StudyResults:
    runs, thresholds = [], []
    for cell, h in itertools.product(study.cells, HEADS):
        d_k = width_of(cell, h)
        for tried in (d_k - 1, d_k, d_k + 2):
            own = price(cell, h, tried) if cell.layer else {}
            runs.append(made_up.run_row(cell, h, tried, 0, 0.9, **own))
        ends = {"D_K_low": h * (d_k - 1), "D_K_high": h * (d_k + 2)}
        if censored == cell.model_name:
            ends = {"status": "censored", "D_K_low": h * 50}
            thresholds.append(made_up.threshold_row(cell, h, None, **ends))
        else:
            row = made_up.threshold_row(cell, h, d_k, **ends)
            thresholds.append(row | {"model": cell.model_name})
    return made_up.results_of(study, runs, thresholds)


@pytest.mark.parametrize("of", ["cached", "parameters"])
def test_the_least_cost_of_a_layer_is_that_of_every_head_count_and_rate(of: str) -> None:
    study = study_of()
    table = plain(costs(results_of(study)))
    assert len(table) == 3 * 3 * 2
    for row in table:
        arms = [
            (cell, h)
            for cell, h in itertools.product(study.cells, HEADS)
            if (cell.m, cell.d_model) == (row["m"], row["d_model"])
            and (cell.model_name, cell.training.max_steps) == (row["model"], row["max_steps"])
        ]
        assert len(arms) == 2 * len(HEADS)
        least = {(cell, h): price(cell, h, width_of(cell, h))[of] for cell, h in arms}
        assert row[of] == min(least.values())
        best = [arm for arm, cost in least.items() if cost == row[of]]
        assert (row[f"{of}_h"], row[f"{of}_d_k"]) in {(h, width_of(cell, h)) for cell, h in best}
        for end, off in (("low", -1), ("high", 2)):
            around = [price(cell, h, width_of(cell, h) + off)[of] for cell, h in best]
            assert row[f"{of}_{end}"] in around
        assert row["status"] == "found"
        assert row["per_cached"] == row["m"] / row["cached"]


def test_a_layer_that_passes_nowhere_is_censored_and_has_no_cost() -> None:
    table = costs(results_of(study_of(), censored="multi_query")).set_index("model")
    assert set(table.loc["multi_query", "status"]) == {"censored"}
    assert table.loc["multi_query", ["cached", "parameters", "per_cached"]].isna().all().all()
    assert table.loc["max", "cached"].notna().all()


def test_problems_of_one_size_are_not_mixed() -> None:
    cells = [{"m": 16, "d_model": 8}, {"m": 16, "d_model": 8, "context": {"length": 8}}]
    table = costs(results_of(study_of(cells=cells)))
    assert table["setting"].nunique() == 2
    assert len(table) == 2 * 3 * 2


def test_only_several_layers_are_compared() -> None:
    assert compares_layers(study_of())
    assert not compares_layers(study_of("max"))
