"""Studies of facts: their cells, the axis of their search, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rgr_dist.planning.search_of import plan_cell
from rgr_dist.study.cell import Cell
from rgr_dist.study.errors import StudyError
from rgr_dist.study.run import Run
from rgr_dist.study.search import Search
from rgr_dist.study.select import cell_named, heads_named
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import load_study, parse_study

FUNCTION = {"family": "function", "keys": 8, "queries": 4, "values": 8}
SEARCH = {"axis": "d_vo", "per": {"d_qk": [1, 2, 4]}}


def document(**changes: Any) -> dict[str, Any]:
    written = {
        "name": "made-up",
        "model": "facts",
        "database": FUNCTION,
        "cells": [{"d_model": 16}],
        "search": SEARCH,
    }
    return {key: value for key, value in {**written, **changes}.items() if value is not None}


def study_of(**changes: Any) -> Study:
    return parse_study(document(**changes))


def test_lists_within_a_database_make_a_cell_for_each_combination() -> None:
    cells = [
        {"database": {"keys": [8, 16], "values": [4, 8]}, "d_model": [16, 32]},
        {"database": {**FUNCTION, "family": "partial", "share": 0.5}, "d_model": 16},
    ]
    study = study_of(cells=cells, facts={"tau": [0.5, 0.95]})
    assert len(study.cells) == 2 * (2 * 2 * 2 + 1)
    assert {cell.m for cell in study.cells} == {32, 64, 16}
    assert len(set(study.cell_names.values())) == len(study.cells)
    for cell in study.cells:
        assert cell_named(study, study.name_of(cell)) == cell
    assert parse_study(yaml.safe_load(study.to_yaml())) == study


def test_a_default_that_is_not_the_models_own_is_written_out() -> None:
    study = study_of(training={"schedule": "constant"})
    assert study.cells[0].training.schedule == "constant"
    assert parse_study(yaml.safe_load(study.to_yaml())) == study


def test_a_file_is_a_database_that_its_content_names(tmp_path: Path) -> None:
    lines = ["key,query,value", *(f"k{i},q{j},{(i * j) % 3}" for i in range(4) for j in range(2))]
    (tmp_path / "facts.csv").write_text("\n".join(lines))
    (tmp_path / "mine.yaml").write_text(
        yaml.safe_dump(document(database={"family": "file", "file": "facts.csv"}))
    )
    study = load_study(str(tmp_path / "mine.yaml"))
    (cell,) = study.cells
    assert (cell.m, cell.family, len(cell.assets)) == (8, "file", 1)
    assert parse_study(yaml.safe_load(study.to_yaml()), home=tmp_path) == study
    known = study.keys_of(cell)
    assert known["database.file"] == "facts.csv"
    assert cell.database.digest[:8] == known["database.digest"]
    assert "database.triples" not in known
    for key in set(known) - {"model", "database.file", "database.digest"}:
        part, _, name = key.partition(".")
        assert known[key] == getattr(getattr(cell, part), name)
    assert {"facts.tau", "database.keys", "training.max_steps"} <= known.keys()
    assert {"training.patience", "context.length", "graph.family"}.isdisjoint(known)
    (tmp_path / "facts.csv").write_text("\n".join([*lines, "k0,q0,2"]))
    with pytest.raises(StudyError, match=r"database\.file: .*2 values"):
        load_study(str(tmp_path / "mine.yaml"))


def test_the_arms_are_what_per_lists() -> None:
    by_width = study_of().search
    assert by_width.arms == (1, 2, 4)
    assert by_width.sizes.config(4, 7) == {"h": 1, "d_k": 4, "d_vo": 7}
    assert by_width.sizes.width(4, 7) == 7
    by_heads = study_of(search={"axis": "d_vo", "per": {"h": [1, 2], "d_qk": 4}}).search
    assert by_heads.arms == (1, 2)
    assert by_heads.sizes.config(2, 7) == {"d_k": 4, "h": 2, "d_vo": 7}
    assert by_heads.sizes.width(2, 7) == 14
    assert by_heads.keep_within is None, "every setting is searched to its end"
    assert heads_named(study_of(), [4]) == (4,)
    with pytest.raises(StudyError, match="d_qk = 3: not in made-up; it has 1, 2, 4"):
        heads_named(study_of(), [3])


def test_a_search_says_which_sizes_it_tries() -> None:
    assert (Search().arms, Search().total) == ((1, 2, 4, 8, 16, 32, 64), None)
    grid = Search(mode="grid", D_K=(6, 8), heads=(1, 2), keep_within=None)
    assert (grid.widths, grid.listed(2)) == ((6, 8), (6, 8))
    alone = Search(axis="d_vo")
    assert (alone.arms, alone.sizes.config(8, 5)) == ((8,), {"h": 1, "d_k": 8, "d_vo": 5})
    listed = Search(axis="d_vo", mode="grid", d_vo=(3, 5))
    assert (listed.widths, listed.listed(2)) == ((3, 5), (3, 5))
    split = Search(**SPLIT)
    assert (split.arms, split.widths, split.total) == ((1, 2, 3, 4, 5), (1, 2, 3, 4, 5), 6)
    assert split.listed(2) == (4,)
    assert Search(axis="d_vo", keep_within=0.5).keep_within == 0.5


def test_a_run_of_relations_says_nothing_of_facts() -> None:
    run = Run(cell=Cell(m=64, d_model=16), h=4, d_k=5, seed=0)
    for key in ("database", "facts", "d_vo", "axis"):
        assert key not in run.config_json
    (cell,) = study_of().cells
    own = Run(cell=cell, h=3, d_k=4, d_vo=2, seed=0)
    assert (own.D_K, own.D_V, run.D_K, run.D_V) == (12, 6, 20, None)
    assert own.with_limit(7).cell == cell.with_limit(7) != cell
    assert (cell.n_edges, cell.family, cell.name) == (32, "function", "facts=32,d_model=16")
    assert (run.cell.n_edges, run.cell.family, run.cell.name) == (
        64,
        "permutation",
        "m=64,d_model=16",
    )
    assert '"d_vo":2' in own.config_json
    assert own.run_id != own.model_copy(update={"d_vo": 3}).run_id
    for one, d_vo in ((cell, None), (run.cell, 2)):
        with pytest.raises(ValueError, match=f"d_vo: {d_vo} is not valid for model {one.model}"):
            Run(cell=one, h=1, d_k=4, d_vo=d_vo, seed=0)


def test_a_database_is_the_same_at_every_width_and_tau() -> None:
    first, second = study_of(facts={"tau": [0.5, 0.9]}).cells
    assert first.problem_json == second.problem_json
    assert first.cell_id != second.cell_id


SPLIT = {"axis": "d_vo", "mode": "grid", "per": {"total": 6}, "seeds": 3}


def test_a_total_is_split_in_every_way() -> None:
    """Of d_qk + d_vo = 6: one d_vo for every d_qk, whatever d_model is."""
    study = study_of(cells=[{"d_model": 4}], search=SPLIT)
    assert parse_study(yaml.safe_load(study.to_yaml())) == study
    plan = plan_cell(study.cells[0], study.search)
    assert {arm: list(axis) for arm, axis in plan.axes.items()} == {a: [6 - a] for a in range(1, 6)}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"per": {"total": 6, "d_qk": [2]}}, r"per\.total: takes one h and no d_qk"),
        ({"per": {"total": 6, "h": [1, 2]}}, r"per\.total: takes one h and no d_qk"),
        ({"mode": "threshold"}, r"per\.total: only for mode grid"),
        ({"d_vo": [3]}, r"per\.total: only for mode grid, without d_vo"),
        ({"per": {"total": 1}}, r"per\.total"),
    ],
)
def test_a_total_that_is_not_split_is_refused(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(StudyError, match=told):
        study_of(search={**SPLIT, **changed})
