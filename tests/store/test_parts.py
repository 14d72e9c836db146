"""Parts as files: what is damage, what a reason says, and calls that never return."""

from __future__ import annotations

import io
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rgr_dist.store.parts import parse, part_name, short, version_of, within
from rgr_dist.store.schema import RUNS, SCHEMA_VERSION
from tests.store.made_up_runs import CELL, run_row


def content(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def test_a_row_without_its_address_is_damage() -> None:
    rows = [run_row(), run_row(run_id=None)]
    with pytest.raises(pa.ArrowInvalid, match=r"^a row without run_id$"):
        parse(content(pa.Table.from_pylist(rows, RUNS)))


def test_a_part_says_which_version_wrote_it_and_says_nothing_in_version_1() -> None:
    table = pa.Table.from_pylist([run_row()], RUNS)
    assert version_of(content(table)) == SCHEMA_VERSION
    assert version_of(content(table.replace_schema_metadata(None))) == 1
    assert version_of(content(table.replace_schema_metadata({"other": "x"}))) == 1


def test_only_the_wanted_cells_are_read() -> None:
    part = content(pa.Table.from_pylist([run_row(), run_row(cell_id="other")], RUNS))
    assert parse(part)["cell_id"].to_pylist() == [CELL.cell_id, "other"]
    assert parse(part, {"other"})["cell_id"].to_pylist() == ["other"]
    assert parse(part, []).num_rows == 0
    assert parse(part, []).schema == RUNS


def test_names_of_parts_sort_by_time_and_are_all_different() -> None:
    names = [part_name() for _ in range(100)]
    assert [name[:25] for name in names] == sorted(name[:25] for name in names)
    assert len({name[25:] for name in names}) == len(names)
    assert all(len(name) == len("part--.parquet") + 20 + 8 for name in names)


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
