"""Parts as files: what is damage, what a reason says, and calls that never return."""

from __future__ import annotations

import io
import math
import re
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rgr_dist.store.parts import (
    has_digest,
    parse,
    part_name,
    short,
    version_of,
    within,
    written,
)
from rgr_dist.store.schema import KEYS, RUNS, SCHEMA_VERSION
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
    with pytest.raises(pa.ArrowInvalid, match=rf"^a row without {key}$"):
        parse(content(pa.Table.from_pylist(rows, RUNS)), OLDER)


@pytest.mark.parametrize("name", RUNS.names)
def test_a_column_that_is_missing_or_renamed_is_damage(name: str) -> None:
    renamed = [f"{column}x" if column == name else column for column in RUNS.names]
    for table in TWO.drop_columns([name]), TWO.rename_columns(renamed):
        table = table.replace_schema_metadata(RUNS.metadata)
        with pytest.raises(pa.ArrowInvalid, match=rf"^the column {name} is missing$"):
            parse(content(table), OLDER)


def test_a_column_of_another_type_is_damage() -> None:
    other = TWO.set_column(TWO.column_names.index("seed"), "seed", TWO["seed"].cast(pa.int64()))
    with pytest.raises(pa.ArrowInvalid, match=r"^the column seed is not of type int32$"):
        parse(content(other), OLDER)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"score": 1.5}, "a score is outside its bounds"),
        ({"score": -0.1}, "a score is outside its bounds"),
        ({"score": math.nan}, "a score is outside its bounds"),
        ({"score": None}, "a run that ended has no score"),
        ({"D_K": 21}, "D_K is not h * d_k"),
        ({"d_k": 0, "D_K": 0}, "d_k is below 1"),
        ({"h": 0, "D_K": 0}, "h is below 1"),
        ({"m": 0}, "m is below 1"),
        ({"d_model": 0}, "d_model is below 1"),
        ({"steps": -1}, "steps is negative"),
        ({"seed": -1}, "seed is negative"),
        ({"score": None, "stop_reason": "max_steps"}, "a run that ended has no score"),
        ({"seconds": math.nan}, "seconds is negative"),
        ({"stop_reason": "convergee"}, "a stop_reason that does not exist"),
    ],
)
def test_a_value_out_of_bounds_is_damage(change: dict[str, Any], told: str) -> None:
    table = pa.Table.from_pylist([run_row(), {**run_row(seed=1), **change}], RUNS)
    with pytest.raises(pa.ArrowInvalid, match=rf"^{re.escape(told)}$"):
        parse(content(table), OLDER)


def test_an_error_has_no_upper_bound_and_a_run_that_diverged_no_score() -> None:
    rows = [run_row(model="value", score=3.5), run_row(score=None, stop_reason="diverged")]
    assert parse(content(pa.Table.from_pylist(rows, RUNS)), OLDER).num_rows == 2


def test_bytes_that_are_not_those_of_the_name_are_damage() -> None:
    part = written(TWO)
    assert parse(part, part_name(part)) == TWO
    with pytest.raises(pa.ArrowInvalid, match=r"^its bytes are not those of its checksum$"):
        parse(part, part_name(part + b"x"))


def test_a_part_of_an_earlier_version_is_read() -> None:
    (part,) = (Path(__file__).parent / "parts").glob("*.parquet")
    assert not has_digest(part.name)
    rows = parse(part.read_bytes(), part.name).to_pylist()
    assert [row["score"] for row in rows] == [
        0.4084656084656085,
        0.3841698841698842,
        0.4969097651421508,
        0.46564885496183206,
    ]


def test_a_part_says_which_version_wrote_it_and_says_nothing_in_version_1() -> None:
    table = pa.Table.from_pylist([run_row()], RUNS)
    assert version_of(content(table)) == SCHEMA_VERSION
    assert version_of(content(table.replace_schema_metadata(None))) == 1
    assert version_of(content(table.replace_schema_metadata({"other": "x"}))) == 1
    for version in ("", "0", "-3", "three"):
        with pytest.raises(pa.ArrowInvalid, match=r"^its schema version is no number$"):
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


def test_a_call_that_returns_in_time_has_its_outcome() -> None:
    called = []
    within(60, lambda: called.append(threading.current_thread()))
    assert called != [threading.current_thread()]
    for error in (PermissionError("no"), pa.ArrowInvalid("no")):

        def fail(error: Exception = error) -> None:
            raise error

        with pytest.raises(type(error), match=r"^no$"):
            within(60, fail)


def test_a_call_that_never_returns_is_left_behind() -> None:
    end, threads = threading.Event(), []

    def hang() -> None:
        threads.append(threading.current_thread())
        end.wait()

    try:
        with pytest.raises(TimeoutError, match=r"^no answer within 0 s$"):
            within(0.01, hang)
        assert [thread.daemon for thread in threads] == [True], "else it would hold up the exit"
    finally:
        end.set()
