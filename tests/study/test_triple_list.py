"""Databases from files: every way to write one, and every bad one refused in one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rgr_dist.study import assets
from rgr_dist.study.errors import StudyError
from rgr_dist.study.triple_list import load_triples, read_triples

HEAD = "key,query,value\n"
FACTS = [("Rome", "in", "Italy"), ("Paris", "river", "Seine"), ("Paris", "in", "France")]
IN_ORDER = [[0, 0, 0], [0, 1, 2], [1, 0, 1]]


def as_csv(between: str = ",", head: str = HEAD, end: str = "\n") -> Callable[[Path], None]:
    def write(path: Path) -> None:
        rows = end.join(between.join(fact) for fact in FACTS)
        path.write_bytes((head.replace("\n", end) + rows).encode())

    return write


def quoted(path: Path) -> None:
    path.write_text(
        '\ufeff"value","key","query"\n'
        + "".join(f'"{value}","{key}","{query}"\n' for key, query, value in FACTS)
    )


def parquet(path: Path) -> None:
    pd.DataFrame(FACTS, columns=["key", "query", "value"]).to_parquet(path, index=False)


def categories(path: Path) -> None:
    frame = pd.DataFrame(FACTS, columns=["key", "query", "value"]).astype("category")
    frame.to_parquet(path, index=False)


WAYS: dict[str, Callable[[Path], None]] = {
    "plain.csv": as_csv(),
    "spaced.csv": as_csv(", ", "key, query, value\n\n"),
    "windows.csv": as_csv(end="\r\n"),
    "quoted.csv": quoted,
    "facts.parquet": parquet,
    "categories.parquet": categories,
}


@pytest.mark.parametrize("name", WAYS)
def test_a_database_is_the_same_however_it_is_written(name: str, tmp_path: Path) -> None:
    WAYS[name](tmp_path / name)
    triples = read_triples(tmp_path / name)
    assert triples.dtype == np.int32
    assert triples.tolist() == IN_ORDER


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
        (tmp_path / "a.csv").write_text(HEAD + text)
        assert read_triples(tmp_path / "a.csv").tolist() == expected


def test_a_database_is_known_by_its_content_and_counted(tmp_path: Path) -> None:
    as_csv()(tmp_path / "a.csv")
    parquet(tmp_path / "b.parquet")
    keys = load_triples(str(tmp_path / "a.csv"))
    assert keys == load_triples(str(tmp_path / "b.parquet"))
    assert assets.get(keys.pop("digest")).tolist() == IN_ORDER
    assert keys == {"family": "file", "keys": 2, "queries": 2, "values": 3, "triples": 3}


BAD = {
    "": "its first line is ''",
    HEAD: "it holds no triples",
    "Paris,in,France\n": "its first line is 'Paris,in,France'",
    "key,query,value,weight\na,b,c,1\n": "its first line is 'key,query,value,weight'",
    HEAD + "a,b,c\n\na,d\n": "line 4 is 'a,d'",
    HEAD + "a,b,c\na,b,c,d\n": "line 3 is 'a,b,c,d'",
    HEAD + "a,,c\na,b,c\n": "a query is missing",
    HEAD + "a,b, \na,b,c\n": "a value is missing",
    HEAD + "a,b,c\nd,b,e\na,b,c\n": "key 'a' is listed twice at query 'b'",
    HEAD + "1,2,3\n4,5,6\n01,2,3\n": "key '1' is listed twice at query '2'",
    HEAD + "a,7,c\na,7,d\n": "key 'a' is listed twice at query '7'",
    HEAD + "a,b,c\nd,b,c\n": "all triples have the same value",
    HEAD + "a" * 10**5 + ",b,c\n" + "a" * 10**5 + ",b,d\n": f"key '{'a' * 40}' is listed twice",
    HEAD + '"a,b,c\n': "unexpected end of data",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_databases_are_refused_in_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(StudyError) as error:
        read_triples(path)
    message = str(error.value)
    assert message.startswith(f"{path}: {BAD[text]}")
    assert message.isprintable()
    assert len(message) < 500


def test_files_that_are_no_databases_are_refused_in_one_line(tmp_path: Path) -> None:
    latin, reals, text, nulls, pipe = (
        tmp_path / name for name in ("l.csv", "r.parquet", "t.parquet", "n.parquet", "pipe")
    )
    latin.write_bytes(HEAD.encode() + b"a,b,\xff\n")
    pd.DataFrame({"key": [1], "query": [1], "value": [0.5]}).to_parquet(reals)
    pd.DataFrame({"key": ["a", None], "query": [1, 2], "value": [1, 2]}).to_parquet(nulls)
    text.write_text(HEAD)
    os.mkfifo(pipe)
    faults = {
        latin: "not a text file in UTF-8",
        reals: "its columns are key (int64), query (int64), value (double",
        nulls: "an entry is missing",
        text: "",
        pipe: "cannot be read: a pipe or a device",
        tmp_path: "cannot be read: Is a directory",
        tmp_path / "none.parquet": "cannot be read: No such file or directory",
    }
    for path, fault in faults.items():
        with pytest.raises(StudyError) as error:
            read_triples(path)
        assert str(error.value).isprintable()
        assert str(error.value).startswith(f"{path}: {fault}")
        assert "three columns" in str(error.value)
