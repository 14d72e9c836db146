"""Studies of facts: from the file to cells, their addresses, and faults in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rgr_dist.facts.cell import FactsCell
from rgr_dist.study.errors import StudyError
from rgr_dist.study.run import Run
from rgr_dist.study.study_file import load_study, parse_study

FUNCTION = {"family": "function", "keys": 4, "queries": 3, "values": 5}


def study_of(**keys: Any) -> dict[str, Any]:
    base = {"name": "x", "model": "facts", "database": FUNCTION, "cells": [{"d_model": 8}]}
    return {**base, "search": {"heads": [1]}, **keys}


def test_lists_of_a_database_and_of_facts_make_cells() -> None:
    cells = [{"d_model": [8, 16], "database": {"keys": [4, 6]}, "facts": {"d_qk": [1, 2, 4]}}]
    study = parse_study(study_of(cells=cells))
    assert len(study.cells) == 12
    assert {cell.m for cell in study.cells} == {12, 18}
    assert len(set(study.cell_names.values())) == 12
    for cell in study.cells:
        assert isinstance(cell, FactsCell)
        assert cell.d_qk(5) in (1, 2, 4)
        assert cell.training.max_steps == 2000


def test_an_entry_of_another_family_stands_alone() -> None:
    other = {"family": "partial", "keys": 10, "queries": 2, "values": 4, "share": 0.5}
    study = parse_study(study_of(cells=[{"d_model": 8}, {"d_model": 8, "database": other}]))
    assert [(cell.family, cell.m) for cell in study.cells] == [("function", 12), ("partial", 10)]


@pytest.mark.parametrize(
    ("name", "at", "d_vo", "run_id"),
    [
        ("facts", {"d_qk": 8}, 5, "fec06f1cc9513ba38edd59fc1993125b"),
        ("facts-routing", {"d_qk": 2}, 7, "18b11e497ff6e1a5187907d685a59f1e"),
        ("facts-routing", {"d_qk": 8}, 3, "4e9837c1ab6d3a5542618f9e444e4b83"),
        ("facts-total", {"total": 33}, 13, "19eafedf96035f6a9c338e99666d384d"),
    ],
)
def test_runs_of_shipped_studies_keep_their_addresses(
    name: str, at: dict[str, int], d_vo: int, run_id: str
) -> None:
    cells = [cell for cell in load_study(name).cells if isinstance(cell, FactsCell)]
    first = next(cell for cell in cells if at.items() <= dict(cell.facts).items())
    assert Run(cell=first, h=1, d_k=d_vo, seed=3).run_id == run_id


def test_cells_that_differ_in_d_qk_are_told_apart() -> None:
    study = parse_study(study_of(facts={"d_qk": [2, 8]}))
    one, other = study.cells
    assert one.cell_id != other.cell_id
    assert one.problem_json == other.problem_json
    ids = {Run(cell=cell, h=1, d_k=3, seed=0).run_id for cell in study.cells}
    assert len(ids) == 2
    split = parse_study(study_of(facts={"total": 5})).cells[0]
    assert Run(cell=split, h=1, d_k=3, seed=0).run_id in ids, "the same layer has one address"


def test_one_batch_of_all_triples_and_no_decay_are_the_defaults() -> None:
    (plain,) = parse_study(study_of()).cells
    (spelt,) = parse_study(study_of(training={"batch_size": 12, "weight_decay": 0.0})).cells
    assert plain == spelt


def test_triples_are_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "facts.csv").write_text("key,query,value\nParis,in,France\nRome,in,Italy\n")
    keys = study_of(database={"family": "file", "file": "facts.csv"})
    (cell,) = parse_study(keys, homes=[tmp_path]).cells
    assert isinstance(cell, FactsCell)
    assert (cell.m, cell.database.shape) == (2, (2, 1, 2))
    assert cell.assets


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"database": {}}, "database: missing"),
        ({"database": {**FUNCTION, "keys": 1, "queries": 1}}, "it has one triple"),
        ({"database": {**FUNCTION, "vlues": 3}}, "vlues"),
        ({"facts": {"d_kq": 3}}, "d_kq"),
        ({"graph": {"family": "regular", "degree": 2}}, "graph"),
        ({"cells": [{"m": 13, "d_model": 8}]}, "m: 13"),
        ({"training": {"batch_size": 13}}, "batch_size"),
        ({"model": "max"}, "database"),
    ],
)
def test_faults_are_told_in_one_line(keys: dict[str, Any], told: str) -> None:
    with pytest.raises(StudyError, match=told) as error:
        parse_study(study_of(**keys))
    assert "\n" not in str(error.value)
