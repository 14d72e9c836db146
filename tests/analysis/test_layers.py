"""Layers side by side: their costs against the layers themselves, their order, and the page."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from scipy.stats import gmean

from rgr_dist.analysis.laws.points import with_protocols
from rgr_dist.analysis.layers.costs import compares_layers, costs_of, order_of
from rgr_dist.analysis.layers.section import headline, section
from rgr_dist.analysis.load import StudyResults
from rgr_dist.analysis.page.render import render
from rgr_dist.analysis.report.contents import sections
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.models.own_layer import make_layer, paid
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up

LAYERS: list[Any] = ["max", {"zoo": "multi_query"}, {"zoo": "latent"}]
HEADS = [1, 2, 4]


def study_of(models: Any = LAYERS, **training: Any) -> Study:
    return parse_study(
        {
            "name": "x",
            "model": models,
            "cells": [{"m": [16, 32], "d_model": 8}, {"m": 16, "d_model": 4}],
            "training": {"max_steps": [1000, 4000], "learning_rate": [0.001, 0.01], **training},
            "search": {"heads": HEADS, "seeds": 2},
        }
    )


def price(cell: Cell, h: int, d_k: int) -> dict[str, int]:
    """What a layer itself says that it costs."""
    if cell.layer is None:
        return {"parameters": 2 * cell.d_model * h * d_k, "cached": h * d_k}
    parameters, cached = paid(make_layer(cell, h, d_k))
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
        for tried in (d_k - 1, d_k, 3 * d_k):
            own = price(cell, h, tried) if cell.layer else {}
            runs.append(made_up.run_row(cell, h, tried, 0, 0.9, **own))
        ends = {"D_K_low": h * (d_k - 1), "D_K_high": h * (d_k + 2)}
        if censored in (cell.model_name, "every layer"):
            ends = {"status": "censored", "D_K_low": h * 50}
            thresholds.append(made_up.threshold_row(cell, h, None, **ends))
        else:
            row = made_up.threshold_row(cell, h, d_k, **ends)
            thresholds.append(row | {"model": cell.model_name})
    return made_up.results_of(study, runs, thresholds)


@pytest.mark.parametrize("of", ["cached", "parameters"])
def test_the_least_cost_of_a_layer_is_that_of_every_head_count_and_rate(of: str) -> None:
    study = study_of()
    table = costs_of(results_of(study))
    assert len(table) == 3 * 3 * 2
    for row in table.to_dict("records"):
        arms = [
            (cell, h)
            for cell, h in itertools.product(study.cells, HEADS)
            if (cell.m, cell.d_model) == (row["m"], row["d_model"])
            and (cell.model_name, cell.training.max_steps) == (row["model"], row["max_steps"])
        ]
        assert len(arms) == 2 * len(HEADS)
        costs = {(cell, h): price(cell, h, width_of(cell, h))[of] for cell, h in arms}
        assert row[of] == min(costs.values())
        best = {
            (h, width_of(cell, h), cell.training.learning_rate)
            for (cell, h), cost in costs.items()
            if cost == row[of]
        }
        assert (row[f"{of}_h"], row[f"{of}_d_k"], row[f"{of}_learning_rate"]) in best
        for end, off in (("low", -1), ("high", 2)):
            ends = [price(cell, h, width_of(cell, h) + off)[of] for cell, h in arms]
            assert row[f"{of}_{end}"] == min(ends)
        assert row["status"] == "found"
        assert row["per_cached"] == row["m"] / row["cached"]
        assert row["bits"] == pytest.approx(math.log2(math.factorial(row["m"])) / row["parameters"])


def test_the_order_is_of_geometric_means_over_the_sizes_of_a_compression() -> None:
    results = results_of(study_of())
    costs, order = costs_of(results), order_of(results)
    for row in order.to_dict("records"):
        own = costs[
            (costs["compression"] == row["compression"])
            & (costs["model"] == row["model"])
            & (costs["max_steps"] == row["max_steps"])
        ]
        assert row["n"] == len(own) == {2: 1, 4: 2}[row["compression"]]
        assert row["per_cached"] == pytest.approx(gmean(own["per_cached"].astype(float)))
        highest = (own["n_edges"] / own["cached_high"]).astype(float)
        assert row["low"] == pytest.approx(gmean(highest))
    for _, group in order.groupby(["compression", "max_steps"]):
        assert group["rank"].tolist() == [1, 2, 3]
        assert group["per_cached"].is_monotonic_decreasing
        assert group["beside_best"].tolist()[0]


def test_a_layer_without_a_threshold_has_a_bound_and_no_rank() -> None:
    results = results_of(study_of(), censored="multi_query")
    costs, order = costs_of(results), order_of(results)
    own = costs[costs["model"] == "multi_query"]
    assert set(own["status"]) == {"censored"}
    assert own["cached"].isna().all()
    assert own["cached_low"].tolist() == [50] * len(own)  # of any head count 50 columns are cached
    assert order[order["model"] == "multi_query"]["rank"].isna().all()
    assert "multi_query" not in headline(results)[0]


def test_an_end_that_is_not_known_is_null() -> None:
    study = study_of(["max", "softmax"], learning_rate=0.001, max_steps=1000)
    ends = [{"D_K_low": None, "D_K_high": None}, {"D_K_low": 8, "D_K_high": 20}]
    thresholds = [
        made_up.threshold_row(cell, 4, 3, **ends[cell.model == "softmax"]) for cell in study.cells
    ]
    results = made_up.results_of(study, [], thresholds)
    costs, order = costs_of(results).set_index("model"), order_of(results).set_index("model")
    for of in ("cached", "parameters"):
        own = costs[[of, f"{of}_low", f"{of}_high"]]
        assert own.loc["max"].notna().all().tolist() == [True, False, False]
        assert own.loc["max"].iloc[:, 1:].isna().all(axis=None)
        assert own.loc["softmax"].notna().all(axis=None)
    assert order.loc["max", ["low", "high", "bits_low", "bits_high"]].isna().all(axis=None)
    assert order["beside_best"].all()
    assert "not told apart from softmax" in headline(results)[0]


def test_contexts_of_one_size_are_compared_apart() -> None:
    sizes = {"m": 64, "d_model": 16}
    study = parse_study(
        {
            "name": "x",
            "model": ["max", "softmax"],
            "cells": [sizes, {**sizes, "context": {"length": 64}}],
            "training": {"max_steps": [1000, 4000], "learning_rate": [0.001, 0.01]},
            "search": {"heads": [4]},
        }
    )
    widths = {("max", 16): 10, ("max", 64): 4, ("softmax", 16): 6, ("softmax", 64): 8}
    thresholds = [
        made_up.threshold_row(cell, 4, widths[cell.model, cell.context.length])
        for cell in study.cells
    ]
    results = made_up.results_of(study, [], thresholds)
    costs, order = costs_of(results), order_of(results)
    assert len(costs) == 4 * 2
    for row in costs.to_dict("records"):
        length = int(row["setting"].removeprefix("length="))
        assert row["cached"] == 4 * widths[row["model"], length]
    last = order[order["max_steps"] == 4000].set_index(["setting", "rank"])["model"]
    assert last["length=16"].tolist() == ["softmax", "max"]
    assert last["length=64"].tolist() == ["max", "softmax"]
    best, correlation = headline(results)
    assert "softmax (2.67 at m′/d_model = 4 and length 16, then max with 1.60)" in best
    assert "1.00 of 2 layers at 4 and length 64" in correlation
    assert "(64, 16, length 64)" in render("x", sections(results), {})
    own = section(results)
    assert own is not None
    for panel in own.figures[0].panels:
        series = [line.points for line in panel.lines if line.look == "series"]
        assert [len(points) for points in series] == [1, 1]


def test_every_size_counts_within_its_own_largest_limit() -> None:
    limits = {(64, 16): [2000, 8000], (128, 32): [8000], (256, 32): [20_000], (512, 32): [80_000]}
    study = parse_study(
        {
            "name": "x",
            "model": ["max", "softmax"],
            "cells": [
                {"m": m, "d_model": d_model, "training": {"max_steps": own}}
                for (m, d_model), own in limits.items()
            ],
            "search": {"heads": [4]},
        }
    )
    thresholds = [
        made_up.threshold_row(cell, 4, cell.m // 32 * (2 if cell.model == "max" else 1))
        for cell in study.cells
    ]
    results = made_up.results_of(study, [], thresholds)
    own = section(results)
    assert own is not None
    (figure,) = own.figures
    assert [len(panel.points) for panel in figure.panels] == [4, 4]
    assert "within 8,000 to 80,000 training steps" in figure.caption
    (told,) = headline(results)  # at no compression do two orders have the same sizes
    for ratio, held in ((4, gmean([8, 8])), (8, 8), (16, 8)):
        assert f"{held:.2f} at m′/d_model = {ratio}, then max with {held / 2:.2f}" in told
    first = order_of(results).query("model == 'softmax'").iloc[:2]
    assert first["max_steps"].tolist() == [2000, 8000]
    assert first["n"].tolist() == [1, 2]


def test_a_study_whose_layers_never_pass_has_a_finding_and_a_page() -> None:
    results = results_of(study_of(), censored="every layer")
    (told,) = headline(results)
    assert told.startswith("Within 4,000 steps no layer that says what it caches passes")
    assert "passes at every size of a compression" in render("x", sections(results), {})


def test_layers_that_hold_the_same_have_no_correlation_of_orders() -> None:
    study = study_of(["max", "softmax"], learning_rate=0.001)
    thresholds = [made_up.threshold_row(cell, 4, 3) for cell in study.cells]
    (told,) = headline(made_up.results_of(study, [], thresholds))
    assert "nan" not in told


def test_the_page_sets_the_layers_side_by_side() -> None:
    results = results_of(study_of())
    assert [one.name for one in sections(results)][:3] == ["summary", "layers", "cells"]
    own = section(results)
    assert own is not None
    (figure,) = own.figures
    assert [panel.title[0] for panel in figure.panels] == ["max", "multi_query", "latent(width=2)"]
    assert all(len(panel.points) == 3 for panel in figure.panels)
    costs = costs_of(results)
    for panel in figure.panels:
        (counting,) = (line.points for line in panel.lines if line.look == "guide")
        own = costs[(costs["model"] == panel.title[0]) & (costs["max_steps"] == 4000)]
        own = own[(own["cached_h"] == own["parameters_h"])]
        expected = own["cached"] * own["m"].map(math.factorial).map(math.log2) / own["parameters"]
        assert sorted(y for _, y in counting) == pytest.approx(sorted(expected.astype(float)))
        assert counting
    first, correlation = headline(results)
    assert first.startswith("Most relations for each cached number: multi_query (")
    assert first.endswith("; 3.77 at m′/d_model = 4, then latent(width=2) with 1.62).")
    assert "Kendall's rank correlation of the orders within the smallest" in correlation


def test_laws_are_of_one_layer_each() -> None:
    results = results_of(study_of(learning_rate=0.001))
    protocols = with_protocols(best_of(results), results.study)["protocol"]
    assert set(protocols) == {"", "model = multi_query", "model = latent(width=2)"}


def test_one_layer_is_not_compared() -> None:
    study = study_of({"zoo": "latent"})
    assert not compares_layers(study)
    assert "layers" not in [one.name for one in sections(results_of(study))]
