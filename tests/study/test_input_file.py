"""Edge lists and databases from files, however written; every bad one is refused in one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from rgr_dist.study.edge_list import read_edges
from rgr_dist.study.errors import StudyError
from rgr_dist.study.input_file import read_tensor
from rgr_dist.study.triple_list import read_triples

Read = Callable[[Path], Any]
EDGES = pd.DataFrame([[0, 3], [0, 1], [5, 5], [2, 0]], columns=["source", "target"])
HEAD = "key,query,value\n"
FACTS = [("Rome", "in", "Italy"), ("Paris", "river", "Seine"), ("Paris", "in", "France")]
TRIPLES = pd.DataFrame(FACTS, columns=["key", "query", "value"])


def lines(table: pd.DataFrame, between: str, head: str = "", end: str = "\n") -> bytes:
    rows = (between.join(map(str, row)) for row in table.to_numpy())
    return (head.replace("\n", end) + end.join(rows)).encode()


WAYS: list[tuple[Read, str, bytes | pd.DataFrame]] = [
    (read_edges, "blanks.txt", lines(EDGES, " ")),
    (read_edges, "tabs.edges", lines(EDGES, "\t", "# who likes whom\n\n")),
    (read_edges, "plain.csv", lines(EDGES, ",")),
    (read_edges, "named.csv", lines(EDGES, ", ", "source,target\n")),
    (read_edges, "named.txt", lines(EDGES, "   ", "source target # of an edge\n")),
    (read_edges, "edges.parquet", EDGES.astype("uint16")),
    (read_triples, "plain.csv", lines(TRIPLES, ",", HEAD)),
    (read_triples, "spaced.csv", lines(TRIPLES, ", ", "key, query, value\n\n")),
    (read_triples, "windows.csv", lines(TRIPLES, ",", HEAD, "\r\n")),
    (
        read_triples,
        "quoted.csv",
        (
            '\ufeff"value","key","query"\n' + "".join(f'"{v}","{k}","{q}"\n' for k, q, v in FACTS)
        ).encode(),
    ),
    (read_triples, "facts.parquet", TRIPLES),
    (read_triples, "categories.parquet", TRIPLES.astype("category")),
]
IN_ORDER = {
    read_edges: [[0, 1], [0, 3], [2, 0], [5, 5]],
    read_triples: [[0, 0, 0], [0, 1, 2], [1, 0, 1]],
}


@pytest.mark.parametrize(("read", "name", "content"), WAYS)
def test_what_is_read_is_the_same_however_it_is_written(
    read: Read, name: str, content: bytes | pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        content.to_parquet(path, index=False)
    rows = read(path)
    assert rows.dtype == np.int32
    assert rows.tolist() == IN_ORDER[read]


def test_the_only_table_of_a_safetensors_file_needs_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, table = tmp_path / "one.safetensors", np.ones((400, 500), np.float16)

    def read(**tables: Any) -> Any:
        save_file({"bias": table[0], **tables}, path)
        with path.open("rb") as file:
            return read_tensor(file)

    assert read(only=table).shape == table.shape
    with pytest.raises(ValueError, match=r"^its tables are one, two$"):
        read(one=table, two=table)
    with pytest.raises(ValueError, match=r"^its tables are none$"):
        read()
    monkeypatch.setenv("RGR_LARGEST_FILE", "1")  # MiB; float64 takes 1.6, the file 0.4
    with pytest.raises(ValueError, match="cannot be read: larger than 1 MiB; RGR_LARGEST_FILE"):
        read(only=table)
    monkeypatch.setenv("RGR_LARGEST_FILE", "2")
    assert read(only=table).shape == table.shape
    for limit in ("²", "1" * 10, "1.5"):
        monkeypatch.setenv("RGR_LARGEST_FILE", limit)
        with pytest.raises(StudyError, match=f"RGR_LARGEST_FILE={limit}: give the largest file"):
            read(only=table)


BAD_EDGES = {
    "": "it holds no edge",
    "source target\n": "it holds no edge",
    "0 1\n1 2 3\n": "line 2 is '1 2 3'",
    "0\n": "line 1 is '0'",
    "0 1\n\nx 3\n": "line 3 is 'x 3'",
    "0.5 1\n": "line 1 is '0.5 1'",
    "1e3 1\n": "line 1 is '1e3 1'",
    "0 1\n-1 2\n": "item -1 is out of range",
    "0 2147483647\n": "item 2147483647 is out of range",
    "0 99999999999999999999999\n": "line 1 is '0 999",
    "0 1\n1 0\n0 1\n": "the edge 0 1 is listed twice",
    "a,b\n0,\n": "line 2 is '0,'",
    "0;1\n": "line 1 is '0;1'; an edge list has",
    "0.0,1.0\n1.0,2.0\n": "line 1 is '0.0,1.0'; an edge list has",
    "a,b\nb,c\na,b\n": "the edge a b is listed twice",
    'a,b\nc,"d\n': "line 2 has a quote that is not closed, or text right after one; an",
    f"a,{'b' * 140_000}\n": "line 1 cannot be read: field larger than field limit",
    'source target\n"a", "b"\n"b", "a"\n': "line 2 has a quote that is not closed, or text right",
    "a; b\nb; c\nc; a\n": "line 1 has 'a;' among spaces; such names need quotes; an edge list",
    "a: b\nb: c\nc: a\n": "line 1 has 'a:' among spaces",
    "a b\nb |c\n": "line 2 has '|c' among spaces",
    "New York;Boston\nBoston;New York\n": "line 1 has 'York;Boston' among spaces",
    "source target\na, b\nb, a\n": "line 2 has 'a,' among spaces",
    "a b\nc d e\n": "line 2 is 'c, d, e'; an edge list has",
    "a,b\nc,\n": "line 2 is 'c, '; an edge list has",
    "a b\n1 2\nc d\n": "line 3 is 'c d'; an edge list has",
    "1 2\nc d\n": "line 2 is 'c d'; an edge list has",
}
BAD_TRIPLES = {
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
BAD = [(read_edges, *one) for one in BAD_EDGES.items()]
BAD += [(read_triples, *one) for one in BAD_TRIPLES.items()]


def refused(read: Read, path: Path) -> str:
    """What is said of a file, in one line of moderate length that begins with its path."""
    with pytest.raises(StudyError) as error:
        read(path)
    message = str(error.value)
    assert message.isprintable()
    assert len(message) < 500
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize(("read", "text", "said"), BAD, ids=range(len(BAD)))
def test_bad_lines_are_refused(read: Read, text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    assert refused(read, path).startswith(said)


@pytest.mark.parametrize(("read", "table"), [(read_edges, EDGES), (read_triples, TRIPLES)])
def test_a_damaged_footer_is_refused_in_one_line(
    read: Read, table: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "damaged.parquet"
    table.to_parquet(path)
    content = path.read_bytes()
    for size in range(4, 400, 4):  # of the footer, which then begins amid its bytes
        path.write_bytes(content[:-8] + size.to_bytes(4, "little") + content[-4:])
        assert "cannot be read: " in refused(read, path)


@pytest.mark.parametrize(
    ("read", "columns", "said", "wanted"),
    [
        (read_edges, {"a": ["x"], "b": [1]}, "its columns are a (", "two columns"),
        (
            read_triples,
            {"key": [1], "query": [1], "value": [0.5]},
            "its columns are key (int64), query (int64), value (double",
            "three columns",
        ),
        (
            read_triples,
            {"key": ["a", None], "query": [1, 2], "value": [1, 2]},
            "an entry is missing",
            "three columns",
        ),
    ],
)
def test_files_that_hold_no_list_are_refused(
    read: Read, columns: dict[str, Any], said: str, wanted: str, tmp_path: Path
) -> None:
    binary, table, text, pipe = (
        tmp_path / name for name in ("b.csv", "c.parquet", "t.parquet", "p")
    )
    binary.write_bytes(HEAD.encode() + b"a,b,\xff\n")
    pd.DataFrame(columns).to_parquet(table)
    text.write_text(HEAD)
    os.mkfifo(pipe)
    faults = {
        binary: "not a text file",
        table: said,
        text: "",
        pipe: "cannot be read: a pipe or a device",
        tmp_path: "cannot be read: Is a directory",
        tmp_path / "none.parquet": "cannot be read: No such file or directory",
    }
    for path, fault in faults.items():
        message = refused(read, path)
        assert message.startswith(fault)
        assert wanted in message
