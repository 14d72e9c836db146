"""What a study expects of its cells: the paper's constants, then the cells that are solved."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock, call

import pytest

from rgr_dist.paper import DENSE_LAW, LAWS, capacity_scale, compression
from rgr_dist.planning.budgets import records
from rgr_dist.planning.first_guesses import (
    expectations,
    papers_expectation,
    record,
    width_scale,
)
from rgr_dist.planning.portfolio import plan_cell
from rgr_dist.store.storage import StoreError
from rgr_dist.store.store import Store
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study


def study_of(*cells: tuple[int, int], name: str = "prior", **other: Any) -> Study:
    items = [{"m": m, "d_model": d} for m, d in cells]
    return parse_study({"name": name, "cells": items, **other})


def scale(cell: Cell) -> float:
    return capacity_scale(cell.m, cell.d_model, cell.n_edges)


def solve(store: Store, study: Study, ratio: float, h: int = 4, status: str = "found") -> None:
    """Write the thresholds that a study would find if the law had this slope."""
    is_found = status == "found"
    widths = [int(ratio * scale(cell)) // h if is_found else None for cell in study.cells]
    rows = [
        {
            "cell_id": cell.cell_id,
            "model": cell.model,
            "graph": cell.graph.family,
            "degree": 1,
            "m": cell.m,
            "d_model": cell.d_model,
            "h": h,
            "d_k": width,
            "D_K": None if width is None else h * width,
            "status": status,
        }
        for cell, width in zip(study.cells, widths, strict=True)
    ]
    store.write_study_table(study.name, "thresholds", rows)


def test_solved_cells_of_any_study_move_the_first_bracket(tmp_path: Path) -> None:
    store = Store(tmp_path)
    solve(store, study_of((64, 16), (128, 16), (128, 32), (256, 32), name="solved"), ratio=3.0)
    solve(store, study_of((256, 64), (512, 64), name="other"), ratio=9.0, status="pruned")
    study = study_of((512, 32))
    (cell,) = study.cells
    expected = expectations(study, store)[cell.cell_id]
    assert pytest.approx(3.0 * scale(cell), rel=0.05) == expected.D_K
    assert expected.h == pytest.approx(4)
    assert expected.source == "4 solved cells"
    assert plan_cell(cell, study.search, expected).guess_cost == expected.D_K


@pytest.mark.parametrize(
    "sizes", [((512, 64), (514, 64), (516, 64)), ((16, 16), (32, 16), (64, 8))]
)
def test_cells_whose_heads_grow_fast_teach_no_more_heads_than_there_is_width(
    sizes: tuple[tuple[int, int], ...], tmp_path: Path
) -> None:
    store, study = Store(tmp_path), study_of((2**20, 4), (16, 1024))
    for size, h in zip(sizes, (1, 16, 512), strict=True):
        solve(store, study_of(size, name=f"{size[0]}"), ratio=128.0, h=h)
    for expected in expectations(study, store).values():
        assert expected.source == "3 solved cells"
        assert 1 <= expected.h <= max(1, expected.D_K)


def test_an_expectation_is_fixed_when_the_study_is_first_run(tmp_path: Path) -> None:
    store, study = Store(tmp_path), study_of((512, 32))
    first = expectations(study, store)
    record(study, store, first)
    assert store.read_text("studies/prior/study.yaml") == study.to_yaml()
    solve(store, study_of((64, 16), (128, 16), (128, 32), name="solved"), ratio=3.0)
    assert expectations(study, store) == first
    wider = study_of((512, 32), (1024, 64))
    later = expectations(wider, store)
    old, new = (later[cell.cell_id] for cell in wider.cells)
    assert {study.cells[0].cell_id: old} == first
    assert math.isclose(new.D_K, 3.0 * scale(wider.cells[1]), rel_tol=0.05)
    without = study_of((1024, 64))
    record(without, store, expectations(without, store))
    assert first.items() <= expectations(wider, store).items(), "of a cell that was taken out too"


def test_the_tables_of_the_store_are_read_once_however_many_cells_are_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    for name in ("one", "two"):
        solve(store, study_of((64, 16), (128, 16), (128, 32), name=name), ratio=3.0)
    monkeypatch.setattr(store, "read_study_table", read := Mock(wraps=store.read_study_table))
    expected = expectations(study_of((256, 16), (256, 32), (512, 32), (512, 64)), store)
    assert {one.source for one in expected.values()} == {"3 solved cells"}
    assert read.call_args_list == [call("one", "thresholds"), call("two", "thresholds")]


def recorded_as(D_K: str, spread: str = "2.0") -> str:
    return f'{{"x": {{"D_K": {D_K}, "h": 1.0, "spread": {spread}, "source": "it"}}}}'


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"x": {"D_K": 1}}', '{"x": 3}', "\udcff"]
    + [recorded_as(number) for number in ("NaN", "-1", "1e308", '"wide"', "null")]
    + [recorded_as("1", spread=spread) for spread in ("1.0", "1e308")],
)
def test_a_damaged_record_is_told_in_one_line(content: str, tmp_path: Path) -> None:
    store, study = Store(tmp_path), study_of((64, 16))
    store.write_text("studies/prior/prior.json", recorded_as("1"))
    assert expectations(study, store)
    record = tmp_path / "studies/prior/prior.json"
    record.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(StoreError, match=r"prior\.json is damaged; remove it"):
        expectations(study, store)


@pytest.mark.parametrize("place", [Path.touch, os.mkfifo, lambda path: path.symlink_to("gone")])
def test_what_stands_for_the_folder_of_a_study_is_told(
    place: Callable[[Path], None], tmp_path: Path
) -> None:
    store, study = Store(tmp_path), study_of((64, 16))
    (tmp_path / "studies").mkdir()
    place(tmp_path / "studies" / study.name)
    with pytest.raises(StoreError, match=f"studies/{study.name} is no folder; move it away"):
        expectations(study, store)


@pytest.mark.parametrize("place", [Path.mkdir, os.mkfifo])
def test_a_record_that_is_no_file_is_told(place: Callable[[Path], None], tmp_path: Path) -> None:
    store, study = Store(tmp_path), study_of((64, 16))
    record(study, store, {})
    kept = tmp_path / "studies/prior/prior.json"
    kept.unlink()
    place(kept)
    with pytest.raises(StoreError, match=r"prior\.json cannot be read: it is no file"):
        expectations(study, store)


def test_a_lost_record_of_cells_that_were_searched_is_told(tmp_path: Path) -> None:
    """Their searches start elsewhere, so that what was found may be open again."""
    store, study = Store(tmp_path), study_of((64, 16))
    first = expectations(study, store)
    assert store.left_out == [], "it was not searched"
    solve(store, study, ratio=3.0)
    record(study, store, first)
    assert expectations(study, store) == first
    assert expectations(study_of((64, 16), (128, 16)), store).items() >= first.items()
    assert store.left_out == [], "a new cell has no start to lose"
    (tmp_path / "studies/prior/prior.json").unlink()
    again = expectations(study, store)
    (line,) = store.left_out
    assert line.startswith(
        f"studies/prior/prior.json in {tmp_path} does not say where the searches"
    )
    record(study, Store(tmp_path), again)  # by another process
    assert expectations(study, store) == again
    assert store.left_out == []


def test_heads_follow_the_power_law_of_solved_cells(tmp_path: Path) -> None:
    """√x heads at a compression of x, whatever the paper says of them."""
    store, study = Store(tmp_path), study_of((576, 16))
    for size, h in (((64, 16), 2), ((512, 32), 4), ((1024, 16), 8)):
        solve(store, study_of(size, name=f"of-{h}"), ratio=3.0, h=h)
    (expected,) = expectations(study, store).values()
    assert expected.h == pytest.approx(math.sqrt(576 / 16))


@pytest.mark.parametrize("name", ["model", "graph", "cell_id"])
def test_cells_of_another_kind_a_cell_itself_and_a_damaged_table_teach_nothing(
    name: str, tmp_path: Path
) -> None:
    store, study = Store(tmp_path), study_of((512, 32))
    (cell,) = study.cells
    solved = study_of((64, 16), (128, 16), (128, 32), name="solved")
    solve(store, solved, ratio=3.0)
    (expected,) = expectations(study, store).values()
    assert expected.source == "3 solved cells"
    table = store.read_study_table("solved", "thresholds")
    assert table is not None
    table.loc[0, name] = {"model": "softmax", "graph": "regular", "cell_id": cell.cell_id}[name]
    store.write_study_table("solved", "thresholds", records(table))
    assert expectations(study, store) == {cell.cell_id: papers_expectation(cell)}
    for impossible in (
        {"D_K": -1},
        {"n_edges": 0},
        {"d_model": 0},
        {"m": 1},
        {"h": 0},
        {"D_K": None},
        {"m": None},
    ):
        store.write_study_table("solved", "thresholds", records(table.assign(**impossible)))
        assert expectations(study, store) == {cell.cell_id: papers_expectation(cell)}
    (tmp_path / "studies/solved/thresholds.parquet").write_bytes(b"PAR1 and no more")
    assert expectations(study, store) == {cell.cell_id: papers_expectation(cell)}


def test_the_papers_expectation_is_its_law_for_the_graph() -> None:
    for degree, law in ((1, LAWS["D_K"]), (4, DENSE_LAW)):
        graph = {"graph": {"family": "regular", "degree": degree}} if degree > 1 else {}
        for m, d_model in ((64, 16), (1024, 16)):
            cell = Cell.model_validate({"m": m, "d_model": d_model} | graph)
            expected = papers_expectation(cell)
            assert pytest.approx(law.slope * degree * m * math.log2(m) / d_model) == expected.D_K
            heads = LAWS["h"].slope * compression(m, d_model, degree * m) + LAWS["h"].intercept
            assert expected.h == pytest.approx(max(1.0, heads))
            assert expected.spread == 1.5


@pytest.mark.parametrize(("d_model", "D_V"), [(2, 1), (16, 4)])
def test_facts_begin_at_a_share_of_d_model_whatever_is_solved(d_model: int, D_V: float) -> None:
    database = {"family": "function", "keys": 8, "queries": 4, "values": 8}
    own = {"model": "facts", "database": database, "m": 32, "d_model": d_model}
    cell = Cell.model_validate(own)
    expected = papers_expectation(cell)
    assert width_scale(cell) == expected.D_K == D_V
    assert (expected.h, expected.spread, expected.source) == (8, 2, "a share of d_model")


def test_a_law_is_fitted_to_the_best_head_of_each_cell_and_to_its_edges(tmp_path: Path) -> None:
    """Of heads with the same D_K, fewer are better."""
    store, study = Store(tmp_path), study_of((512, 32))
    for ratio, h in ((6.0, 1), (3.0, 6), (3.0, 2)):
        solve(store, study_of((64, 16), (128, 16), (128, 32), name=f"{ratio}-{h}"), ratio, h)
        table = store.read_study_table(f"{ratio}-{h}", "thresholds")
        assert table is not None
        table["n_edges"] = [*(2 * table["m"])[:2], None]  # as an earlier version left it
        table.loc[2, ["d_k", "D_K"]] /= 2
        store.write_study_table(f"{ratio}-{h}", "thresholds", records(table))
    (expected,) = expectations(study, store).values()
    assert expected.source == "3 solved cells"
    assert pytest.approx(1.5 * scale(study.cells[0]), rel=0.02) == expected.D_K
    assert expected.h == pytest.approx(2)
