"""Databases from files: every way to write one, and every bad one refused in one line."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rgr_dist.study import assets
from rgr_dist.study.errors import StudyError
from rgr_dist.study.triple_list import load_triples, read_triples


@given(
    st.dictionaries(
        st.tuples(st.integers(-5, 10**12), st.integers(0, 9)), st.integers(0, 9), min_size=2
    ).filter(lambda facts: len(set(facts.values())) > 1)
)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_integers_are_numbered_in_their_order_whatever_that_of_the_lines(
    tmp_path: Path, facts: dict[tuple[int, int], int]
) -> None:
    rows = [(key, query, value) for (key, query), value in facts.items()]
    expected = sorted(
        np.stack(
            [np.unique(column, return_inverse=True)[1] for column in np.array(rows).T], 1
        ).tolist()
    )
    for order in (rows, rows[::-1]):
        text = "".join(f"{k},{q},{v}\n" for k, q, v in order)
        (tmp_path / "a.csv").write_text("key,query,value\n" + text)
        assert read_triples(tmp_path / "a.csv").tolist() == expected


def test_a_quoted_integer_is_one_after_a_blank_too(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('"key", "query", "value"\n"1", "10", "9"\n"1", "9", "10"\n')
    assert read_triples(tmp_path / "a.csv").tolist() == [[0, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("7,1,1\n+7,1,2\n", "the same key is written '7' and '\\+7'"),
        ("1,7.0,1\n2,7,2\n", "the same query is written '7.0' and '7'"),
        ("7\0,1,1\n7,1,2\n", "zero bytes"),
    ],
)
def test_a_number_is_written_in_one_way(tmp_path: Path, rows: str, said: str) -> None:
    (tmp_path / "a.csv").write_text("key,query,value\n" + rows)
    with pytest.raises(StudyError, match=said):
        read_triples(tmp_path / "a.csv")


def test_texts_that_look_like_numbers_stay_apart_among_others(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("key,query,value\n7,a,1\n7.0,b,2\nx,a,1\n")
    assert read_triples(tmp_path / "a.csv")[:, 0].tolist() == [0, 1, 2]
    (tmp_path / "a.csv").write_text(f"key,query,value\n1e{'9' * 20},1,1\n2,1,2\n")
    assert read_triples(tmp_path / "a.csv")[:, 0].tolist() == [0, 1]


def test_a_database_is_known_by_its_content_and_counted(tmp_path: Path) -> None:
    facts = [["Rome", "in", "Italy"], ["Paris", "river", "Seine"], ["Paris", "in", "France"]]
    table = pd.DataFrame(facts, columns=["key", "query", "value"])
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "b.parquet", index=False)
    keys = load_triples(str(tmp_path / "a.csv"))
    assert keys == load_triples(str(tmp_path / "b.parquet"))
    assert assets.get(keys.pop("digest")).tolist() == [[0, 0, 0], [0, 1, 2], [1, 0, 1]]
    assert keys == {"family": "file", "keys": 2, "queries": 2, "values": 3, "triples": 3}


def test_texts_are_numbered_alike_however_a_parquet_file_codes_them(tmp_path: Path) -> None:
    rows = [{"key": key, "query": " q ", "value": key * 2} for key in ("b", "a", " c")]
    table = pa.Table.from_pylist(rows)
    with pq.ParquetWriter(tmp_path / "a.parquet", table.schema) as writer:
        for row in range(3):  # a dictionary for each group
            writer.write_table(table.slice(row, 1))
    assert read_triples(tmp_path / "a.parquet").tolist() == [[0, 0, 0], [1, 0, 1], [2, 0, 2]]


def test_lines_that_repeat_their_entries_take_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [(i // 100, i % 100, i % 7) for i in range(50_000)]
    path.write_text("key,query,value\n" + "".join("{},{},{}\n".format(*row) for row in rows))
    assert read_triples(path).tolist() == [list(row) for row in rows]  # imports what it needs
    tracemalloc.start()
    read_triples(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * path.stat().st_size
