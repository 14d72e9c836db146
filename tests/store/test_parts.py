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


@pytest.mark.parametrize("key", KEYS["runs"])
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


NOWHERE = (math.inf, -math.inf, math.nan)
"""Where no number is."""
OUTSIDE: dict[str, tuple[Any, ...]] = {
    "seconds": (-1e-9, 1e300, *NOWHERE),
    "threshold_tau": NOWHERE,
    "null_rate": (-0.1, 1.1, *NOWHERE),
    "argmax_accuracy": (1.1, math.nan),
    "positive_rate": (1.5,),
    "steps": (-1, 2**60),
    "seed": (-1,),
    "rank_logits": (-1,),
    "finished_at": (-1, 300_000_000_000_000_000),
    **dict.fromkeys(
        ("m", "d_model", "h", "d_k", "D_K", "d_vo", "max_steps", "trained_to"), (0, -8)
    ),
}


@pytest.mark.parametrize("text", ["", "7", "[[0.5, 1.0]]", "[[0.5, 1.5, 7]]", "[[0.5, NaN, 7]]"])
def test_accuracies_by_tau_that_are_none_are_damage(text: str) -> None:
    part = content(pa.Table.from_pylist([run_row() | {"by_tau": text}], RUNS))
    with pytest.raises(ValueError, match=r"^by_tau holds no list"):
        parse(part, OLDER)


def test_text_that_is_none_is_damage() -> None:
    part = bytearray(content(pa.Table.from_pylist([run_row(engine="made up!")], RUNS)))
    for at in (i for i in range(len(part)) if part.startswith(b"made up!", i)):
        part[at] = 0xFF
    with pytest.raises(UNREADABLE, match="UTF8"):
        parse(bytes(part), OLDER)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"score": 1.0}, None),
        ({"score": 0.0}, None),
        ({"score": 1.001}, "score is outside its bounds"),
        ({"score": -0.001}, "score is outside its bounds"),
        ({"score": math.nan}, "score is outside its bounds"),
        ({"score": 3.5, "model": "value"}, None),
        ({"score": -0.1, "model": "value"}, "score is outside its bounds"),
        ({"score": math.inf, "model": "value"}, "score is outside its bounds"),
        ({"val_score": 1.001}, "val_score is outside its bounds"),
        ({"val_score": 3.5, "model": "value"}, None),
        ({"val_score": None, "threshold_tau": None}, None),
        ({"threshold_tau": -7.0}, None),
        *(
            ({name: value}, f"{name} is outside its bounds")
            for name, values in OUTSIDE.items()
            for value in values
        ),
        ({"stop_reason": "tired"}, "a stop_reason that there is not"),
        ({"by_tau": "[[0.5, 1.0, 7]]"}, None),
        ({"score": None}, "a run that ended has no score"),
        ({"score": None, "stop_reason": "max_steps"}, "a run that ended has no score"),
        ({"score": None, "stop_reason": "diverged"}, None),
        ({"score": None, "stop_reason": "failed"}, None),
    ],
)
def test_a_value_that_may_not_be_is_damage(change: dict[str, Any], told: str | None) -> None:
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
    def version(metadata: dict[str, str] | None) -> int:
        table = pa.Table.from_pylist([run_row()], RUNS).replace_schema_metadata(metadata)
        return version_of(pq.read_schema(pa.BufferReader(content(table))))

    assert version(RUNS.metadata) == SCHEMA_VERSION
    assert (version(None), version({"other": "x"})) == (1, 1)
    for wrong in ("", "three"):
        with pytest.raises(UNREADABLE):
            version({"version": wrong})


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
