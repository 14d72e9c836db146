"""What a study of facts says: its thresholds, laws, ranks, statements and page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rgr_dist as rgr
from rgr_dist.analysis.facts import tables as facts
from rgr_dist.analysis.load import open_results
from rgr_dist.analysis.thresholds.database_ranks import database_rank
from rgr_dist.engines.choose import make_engine
from rgr_dist.planning.search_of import Feed, open_portfolio, stored_runs
from rgr_dist.problem.databases import sample_triples, tensor
from rgr_dist.running.worker import train_rows
from rgr_dist.search.portfolio import Probe
from rgr_dist.store.store import Store
from rgr_dist.store.verify import verify
from rgr_dist.study.errors import StudyError
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study

TINY = {
    "name": "tiny-facts",
    "model": "facts",
    "cells": [
        {"database": {"family": "low-rank", "keys": 6, "queries": 3, "values": 4, "rank": 3},
         "d_model": 6},
        {"database": {"family": "partial", "keys": [4, 8], "queries": 3, "values": 4,
                      "share": 0.5}, "d_model": 6},
    ],
    "training": {"max_steps": 30, "check_every": 10},
    "search": {"axis": "d_vo", "per": {"d_qk": [1, 2]}, "seeds": 5, "target": 0.8,
               "max_d_vo": 4},
}  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Store]:
    """The tiny study, trained by the plain loop in this process."""
    study, store = parse_study(TINY), Store(tmp_path_factory.mktemp("facts"))
    engine = make_engine("reference", model="facts")
    portfolio = open_portfolio(study, stored_runs(study, store))
    feed = Feed(study, portfolio)
    while isinstance(probe := portfolio.ask(), Probe):
        rows = train_rows(engine, feed.runs_of(probe))
        store.append(rows)
        for row in rows:
            feed.tell(row)
        portfolio.release(probe)
    return study, store


def test_every_stored_run_keeps_propositions_2_1_and_3_5(trained: tuple[Study, Store]) -> None:
    study, store = trained
    runs = facts.runs(open_results(study, store))
    cells = {cell.cell_id: cell for cell in study.cells}
    assert len(runs) > 20
    for row in runs:
        database = cells[row["cell_id"]].database
        assert database is not None
        keys, queries, values = database.keys, database.queries, database.values
        d_model = cells[row["cell_id"]].d_model
        assert row["rank_logits"] <= row["rank_bound"] <= row["D_V"] * queries + d_model
        at_most = min(keys * queries, keys * values, queries * values)  # of any 0/1 tensor
        assert row["rank_argmax"] <= at_most
        assert [tau for tau, _, _ in row["by_tau"]] == sorted(tau for tau, _, _ in row["by_tau"])
        assert all(rank <= at_most for _, _, rank in row["by_tau"])
        accuracies = [accuracy for _, accuracy, _ in row["by_tau"]]
        assert accuracies == sorted(accuracies, reverse=True), "a higher tau asks for more"
        assert row["softmax_accuracy"] <= row["argmax_accuracy"]
        assert row["score"] == row["softmax_accuracy"]
    assert verify(store)[0] == []


def test_the_bounds_on_a_database_hold_its_rank(trained: tuple[Study, Store]) -> None:
    study, _ = trained
    low_rank = study.cells[0]
    low, high = database_rank(low_rank, 2)
    assert low <= 3 <= high, "it has rank 3 by construction"
    assert low_rank.database is not None
    for seed in range(2):
        triples = sample_triples(low_rank.database, low_rank.problem_json, seed)
        own = tensor(triples, (6, 3, 4))
        assert own.sum() == low_rank.m
        assert np.linalg.matrix_rank(own.reshape(own.shape[0], -1)) <= 3


def test_a_study_of_facts_is_an_object_as_any_other(trained: tuple[Study, Store]) -> None:
    opened = rgr.Study.of(*trained)
    thresholds = opened.thresholds()
    assert list(thresholds["d_qk"]) == [1, 2] * 3
    assert len(opened.best()) == 3
    assert {"d_qk", "d_vo", "rank_logits"} <= set(opened.runs())
    with pytest.raises(StudyError, match="curves are of D_K"):
        opened.curves()


def rows_of(law: Any, sizes: tuple[int, ...] = (64, 128, 256, 512)) -> list[dict[str, Any]]:
    study = parse_study({
        "name": "laws", "model": "facts", "search": {"axis": "d_vo", "per": {"d_qk": 8}},
        "cells": [{"database": {"family": "partial", "keys": [n // 8 for n in sizes],
                                "queries": 8, "values": 16, "share": 1.0}, "d_model": 64}],
    })  # fmt: skip
    rows = []
    for cell in study.cells:
        wide = law(cell.m)
        rows.append({
            "cell_id": cell.cell_id, "database": "partial", "facts": cell.m, "h": 1, "d_qk": 8,
            "rank_high": float(cell.m) ** 0.5, "D_V": wide, "D_V_fails": wide - 1,
            "status": "found",
        })  # fmt: skip
    rows[0]["study"] = study
    return rows
