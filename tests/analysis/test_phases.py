"""What heads of ample width can do: phases by hand and by a linear programme, and their figure."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from rgr_dist.analysis.phases import one_head_finding, phases
from rgr_dist.analysis.report import figures, sections
from rgr_dist.analysis.tables import best
from rgr_dist.engines.choose import make_engine
from rgr_dist.planning.search_of import open_portfolio
from rgr_dist.planning.tables import threshold_rows
from rgr_dist.problem.embeddings import sample_embedding
from rgr_dist.problem.graphs import sample_graph
from rgr_dist.running.worker import train_rows
from rgr_dist.study.cell import Cell
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.analysis import made_up

LIMITS = [1000, 4000]
OURS = {"construction": "ours", "iterations": 100}
"""It succeeds here within 70 iterations, if at all."""


@pytest.fixture(scope="module")
def study() -> Study:
    return parse_study(
        {
            "name": "x",
            "model": ["max", {"construction": "one-head"}, OURS],
            "cells": [{"m": [16, 32, 64], "d_model": 8}],
            "training": {"max_steps": LIMITS},
            "search": {"mode": "grid", "D_K": [64], "heads": [1, 2, 8], "seeds": 2},
        }
    )


def trained(study: Study) -> list[Cell]:
    return [cell for cell in study.cells if cell.model == "max"]


@cache
def made(cell: Cell) -> list[dict[str, Any]]:
    """The runs of a construction, of which none is trained."""
    arms = [1] if cell.model == "one-head" else [1, 2, 8]
    runs = [Run(cell=cell, h=h, d_k=8, seed=seed) for h in arms for seed in range(2)]
    return train_rows(make_engine(model=cell.model), runs)


def results_of(study: Study, passes: set[tuple[int, int, int]]) -> Any:
    """Every size, head count and limit was trained, and passes where (m, h, limit) is listed."""
    rows = []
    for cell in trained(study):
        for h in (1, 2, 8):
            is_found = (cell.m, h, cell.training.max_steps) in passes
            more = {} if is_found else {"status": "censored", "D_K_low": 8 * h + 1}
            rows.append(made_up.threshold_row(cell, h, 8 if is_found else None, **more))
    runs = [row for cell in study.cells if cell.model != "max" for row in made(cell)]
    return made_up.results_of(study, runs, rows)


@cache
def is_separable(cell: Cell, seed: int) -> bool:
    """By a linear programme on all m² pairs: some W and tau leave a margin of 1."""
    X, y = sample_embedding(cell, seed), np.where(sample_graph(cell, seed).matrix, 1.0, -1.0)
    pairs = np.einsum("ia,jb->ijab", X, X).reshape(cell.m**2, -1)
    rows = -y.reshape(-1, 1) * np.hstack([pairs, -np.ones((cell.m**2, 1))])
    bounds = [(None, None)] * rows.shape[1]
    return linprog(np.zeros(rows.shape[1]), rows, -np.ones(len(rows)), bounds=bounds).status == 0


def test_a_phase_is_of_training_first_and_then_of_proof(study: Study) -> None:
    passes = {(16, 2, 4000), (16, 8, 1000), (16, 8, 4000), (32, 8, 4000)}
    table = phases(results_of(study, passes)).set_index(["m", "h"])
    assert table["phase"].tolist()[:-1] == [
        *["hard", "slow", "easy"],
        *["impossible", "open", "slow"],
        *["impossible", "open"],
    ]
    assert table["load"].round(4).tolist()[::3] == [0.6931, 1.7329, 4.1589]
    for cell in trained(study)[::2]:
        separable = sum(is_separable(cell, seed) for seed in range(2))
        one = table.loc[(cell.m, 1)]
        assert (one["exact"], one["proved"]) == (separable, 2 - separable)
    assert (table["exact"].groupby("m").diff().dropna() >= 0).all()  # more heads hold no less


def test_what_was_not_trained_is_not_called_hard_and_what_was_not_made_not_impossible(
    study: Study,
) -> None:
    untrained = replace(
        results_of(study, set()), thresholds=made_up.results_of(study, [], []).thresholds
    )
    assert phases(untrained)["phase"].tolist() == ["open"] * 3 + ["impossible", "open", "open"] * 2
    unmade = replace(results_of(study, set()), runs=made_up.results_of(study, [], []).runs)
    assert set(phases(unmade)["phase"]) == {"open"}


def test_a_decided_size_is_finished_though_the_study_lists_more_heads(study: Study) -> None:
    runs = [row for cell in study.cells if cell.model == "one-head" for row in made(cell)]
    search = open_portfolio(study, made_up.results_of(study, runs, []).runs)
    rows = threshold_rows(study, search)
    table = best(made_up.results_of(study, runs, rows)).set_index("model")
    assert set(table.loc["one-head", "status"]) <= {"found", "censored"}


def test_the_page_has_the_phases_and_no_thresholds(study: Study) -> None:
    results = results_of(study, {(16, 8, 1000), (16, 8, 4000)})
    assert [one.name for one in sections(results)] == ["easy-or-hard", "measured"]
    axes = figures(results)["phases"].canvas().axes
    marks = sum(str(line.get_gid()).startswith("tip") for ax in axes for line in ax.get_lines())
    assert marks == len(phases(results))


def test_a_draw_without_a_decision_is_not_counted_as_proved(study: Study) -> None:
    results = results_of(study, set())
    undecided = (results.runs["model"] == "one-head") & (results.runs["seed"] == 1)
    runs = results.runs.assign(stop_reason=results.runs["stop_reason"].mask(undecided, "max_steps"))
    table = phases(replace(results, runs=runs)).set_index(["m", "h"])
    assert table.loc[(64, 1), ["proved", "phase"]].tolist() == [1, "open"]


def test_a_study_of_one_head_says_where_it_can_be_right_and_fits_no_law() -> None:
    study = parse_study(
        {
            "name": "x",
            "model": {"construction": "one-head"},
            "cells": [{"m": [16, 32, 64], "d_model": 8}],
            "search": {"heads": [1], "seeds": 2},
        }
    )
    runs = [row for cell in study.cells for row in made(cell)]
    results = made_up.results_of(study, runs, [])
    can = [all(is_separable(cell, seed) for seed in range(2)) for cell in study.cells]
    none = [not any(is_separable(cell, seed) for seed in range(2)) for cell in study.cells]
    assert sum(can) + sum(none) == 3
    told = one_head_finding(results)
    assert f"at {sum(can)};" in told
    assert f"rules out {sum(none)}." in told
    assert "law" not in figures(results)
