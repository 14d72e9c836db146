"""Parts: what is damage, and what is read of parts of earlier versions."""

from __future__ import annotations

import io
import math
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rgr_dist.store.parts import UNREADABLE, has_digest, parse, part_name, version_of, written
from rgr_dist.store.schema import KEYS, RUNS, SCHEMA_VERSION
from rgr_dist.store.storage import short
from tests.store.made_up_runs import CELL, run_row


def content(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


OLDER = "part-00000000000000000001-0123abcd.parquet"
"""The name of a part from before names told a checksum."""
TWO = pa.Table.from_pylist([run_row(), run_row(seed=1)], RUNS)


@pytest.mark.parametrize("key", KEYS)
def test_a_row_without_a_key_is_damage(key: str) -> None:
    rows = [run_row(), {**run_row(seed=1), key: None}]
    with pytest.raises(ValueError, match=rf"^a row without {key}$"):
        parse(content(pa.Table.from_pylist(rows, RUNS)), OLDER)


@pytest.mark.parametrize("name", RUNS.names)
def test_a_column_that_is_missing_or_of_another_type_is_damage(name: str) -> None:
    column = TWO.column_names.index(name)
    for table in (
        TWO.drop_columns([name]),
        TWO.append_column(name, TWO[name]),
        TWO.set_column(column, f"{name}x", TWO[name]),
        TWO.set_column(column, name, pa.array([[1], [2]])),
    ):
        table = table.replace_schema_metadata(RUNS.metadata)
        with pytest.raises(ValueError, match=f"^the column {name} is missing, or of another type$"):
            parse(content(table), OLDER)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"score": 1.0}, None),
        ({"score": 0.0}, None),
        ({"score": 1.001}, "a score is outside its bounds"),
        ({"score": -0.001}, "a score is outside its bounds"),
        ({"score": math.nan}, "a score is outside its bounds"),
        ({"score": 3.5, "model": "value"}, None),
        ({"score": -0.1, "model": "value"}, "a score is outside its bounds"),
        ({"score": None}, "a run that ended has no score"),
        ({"score": None, "stop_reason": "max_steps"}, "a run that ended has no score"),
        ({"score": None, "stop_reason": "diverged"}, None),
        ({"score": None, "stop_reason": "failed"}, None),
    ],
)
def test_a_score_out_of_bounds_is_damage(change: dict[str, Any], told: str | None) -> None:
    part = content(pa.Table.from_pylist([run_row(), {**run_row(seed=1), **change}], RUNS))
    if told is None:
        assert parse(part, OLDER).num_rows == 2
        return
    with pytest.raises(ValueError, match=f"^{told}$"):
        parse(part, OLDER)
    assert parse(part, OLDER, schema=pa.schema([RUNS.field("run_id")])).num_rows == 2


def test_bytes_that_are_not_those_of_the_name_are_damage() -> None:
    part = written(TWO)
    assert parse(part, part_name(part)) == TWO
    with pytest.raises(ValueError, match=r"^its bytes are not those of its checksum$"):
        parse(part, part_name(part + b"x"))


def test_a_part_says_which_version_wrote_it_and_says_nothing_in_version_1() -> None:
    table = pa.Table.from_pylist([run_row()], RUNS)
    assert version_of(content(table)) == SCHEMA_VERSION
    assert version_of(content(table.replace_schema_metadata(None))) == 1
    assert version_of(content(table.replace_schema_metadata({"other": "x"}))) == 1
    for version in ("", "three"):
        with pytest.raises(UNREADABLE):
            version_of(content(table.replace_schema_metadata({"version": version})))


def test_only_the_wanted_cells_are_read() -> None:
    part = content(pa.Table.from_pylist([run_row(), run_row(cell_id="other")], RUNS))
    assert parse(part, OLDER)["cell_id"].to_pylist() == [CELL.cell_id, "other"]
    assert parse(part, OLDER, {"other"})["cell_id"].to_pylist() == ["other"]
    assert parse(part, OLDER, []).num_rows == 0
    assert parse(part, OLDER, []).schema == RUNS


def test_names_of_parts_sort_by_time_and_are_all_different() -> None:
    names = [part_name(bytes([number])) for number in range(100)]
    assert [name[:25] for name in names] == sorted(name[:25] for name in names)
    assert len({name[25:] for name in names}) == len(names)
    assert all(has_digest(name) for name in names)
    assert not has_digest(OLDER)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (FileNotFoundError(2, "No such file or directory", "x"), "No such file or directory"),
        (OSError("plain"), "plain"),
        (pa.ArrowInvalid("two\n  lines"), "two lines"),
    ],
)
def test_a_reason_is_one_line_without_detail(error: Exception, reason: str) -> None:
    assert short(error) == reason
