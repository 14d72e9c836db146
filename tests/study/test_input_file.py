"""Edge lists and databases from files, however written; every bad one is refused in one line."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from safetensors.numpy import save_file

from rgr_dist.study import edge_list, triple_list
from rgr_dist.study.edge_list import read_edges
from rgr_dist.study.errors import StudyError
from rgr_dist.study.input_file import opened, read_tensor
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
    (read_edges, "quoted.csv", b'"source","target"\n"0","3"\n"0","1"\n"5","5"\n"2","0"\n'),
    (read_edges, "commented.csv", b"# 9,9\n\nsource,target\n0,3 # 1\n0,1\n\n#\n5,5\n2,0"),
    (read_edges, "signed.parquet", EDGES[["target", "source"]].astype("int8")),
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
    path, table = tmp_path / "one.safetensors", np.ones((256, 513), np.float16)

    def read(**tables: Any) -> Any:
        save_file({"bias": table[0], **tables}, path)
        with path.open("rb") as file:
            return read_tensor(file)

    assert read(only=table).shape == table.shape
    with pytest.raises(ValueError, match=r"^its tables are one, two$"):
        read(one=table, two=table)
    with pytest.raises(ValueError, match=r"^its tables are none$"):
        read()
    kinds = "F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64"
    with pytest.raises(ValueError, match=rf"^only is not of type {kinds}$"):
        read(only=table.astype(bool))
    save_file({"one": table, "two": 2 * table}, path)
    with path.open("rb") as file:
        np.testing.assert_array_equal(read_tensor(file, ("none", "two", "one")), 2 * table)
    for size, said in (
        (2**22, "Error while"),
        (2**22 + 1, "its header is larger than 4,194,304 b"),
    ):
        path.write_bytes(size.to_bytes(8, "little"))
        with path.open("rb") as file, pytest.raises(Exception, match=said):
            read_tensor(file)
    monkeypatch.setenv("RGR_LARGEST_FILE", "1")  # MiB; float64 takes 2 KiB more, the file a quarter
    with pytest.raises(ValueError, match="cannot be read: larger than 1 MiB; RGR_LARGEST_FILE"):
        read(only=table)
    assert read(only=table[:, :512].copy()).shape == (256, 512)
    for limit in ("²", "1" * 10, "1.5"):
        monkeypatch.setenv("RGR_LARGEST_FILE", limit)
        with pytest.raises(StudyError, match=f"RGR_LARGEST_FILE={limit}: give the largest file"):
            read(only=table)


QUOTE = "has a quote that is not closed, or text right after one"
GLUED = "among spaces; such names need quotes"
BAD_EDGES = {
    "": "it holds no edges",
    "source target\n": "it holds no edges",
    "0 1\n1 2 3\n": "line 2 is '1 2 3'",
    "0\n": "line 1 is '0'",
    "0 1\n\nx 3\n": "line 3 is 'x 3'",
    "0.5 1\n": "line 1 is '0.5 1'",
    "1e3 1\n": "line 1 is '1e3 1'",
    "0 1\n-1 2\n": "item -1 is out of range; items are numbered from 0",
    "0 2147483646\n0 2147483646\n": "the edge 0 2147483646 is listed twice",
    f"0 {'9' * 18}\n": f"item {'9' * 18} is out of range; items are numbered from 0",
    f"0 1{'0' * 18}\n": f"line 1 is '0 1{'0' * 18}'",
    f"0 1 {'x' * 50}\n": f"line 1 is '0 1 {'x' * 36}'",
    "x y\nz 1\n": "line 2 is 'z 1'",
    "x y\n\nz w v\n": "line 3 is 'z, w, v'",
    f"a b\n{'x' * 50} y z\n": f"line 2 is '{'x' * 40}'",
    f"a b\n{'x' * 50}; z\n": f"line 2 has '{'x' * 40}' {GLUED}",
    f"{'x' * 50},b\na,c\nc,a\n": (
        f"its first line, '{'x' * 40}', has names that no other line has: write 'source,target' in "
        "its place if it is a heading, above it if it is an edge"
    ),
    "a,source\n0,1\n": ("one column is headed as the other end, the other as neither: a, source"),
    f"{'x' * 90},source\n0,1\n": (
        f"one column is headed as the other end, the other as neither: {'x' * 80}"
    ),
    "src,from\n0,1\n": "both columns are headed as one end: src, from",
    "0 2147483647\n": "item 2147483647 is out of range; items are numbered from 0",
    "0 99999999999999999999999\n": "line 1 is '0 99999999999999999999999'",
    "0 1\n1 0\n0 1\n": "the edge 0 1 is listed twice",
    "a,b\n0,\n": "line 2 is '0,'",
    "0;1\n": "line 1 is '0;1'",
    "0.0,1.0\n1.0,2.0\n": "line 1 is '0.0,1.0'",
    "a,b\nb,c\na,b\n": "the edge a b is listed twice",
    'a,b\nc,"d\n': f"line 2 {QUOTE}",
    f"a,{'b' * 140_000}\n": "line 1 cannot be read: field larger than field limit (131072)",
    'source target\n"a", "b"\n"b", "a"\n': f"line 2 {QUOTE}",
    "a; b\nb; c\nc; a\n": f"line 1 has 'a;' {GLUED}",
    "a: b\nb: c\nc: a\n": f"line 1 has 'a:' {GLUED}",
    "a b\nb |c\n": f"line 2 has '|c' {GLUED}",
    "New York;Boston\nBoston;New York\n": f"line 1 has 'York;Boston' {GLUED}",
    "source target\na, b\nb, a\n": f"line 2 has 'a,' {GLUED}",
    "a b\nc d e\n": "line 2 is 'c, d, e'",
    "a,b\nc,\n": "line 2 is 'c, '",
    "a b\n1 2\nc d\n": "line 3 is 'c d'",
    "1 2\nc d\n": "line 2 is 'c d'",
}
BAD_TRIPLES = {
    "": "its first line is ''",
    HEAD: "it holds no triples",
    "Paris,in,France\n": "its first line is 'Paris,in,France'",
    "key,query,value,weight\na,b,c,1\n": "its first line is 'key,query,value,weight'",
    f"{'x' * 50}\n": f"its first line is '{'x' * 40}'",
    f"{HEAD}{'x' * 50},b\n": f"line 2 is '{'x' * 40}'",
    f"{HEAD}a,{'x' * 41},b\na,{'x' * 41},c\n": f"key 'a' is listed twice at query '{'x' * 40}'",
    f"{HEAD}7,b,1\n7.{'0' * 16},b,2\n": f"the same key is written '7' and '7.{'0' * 16}'",
    f"{HEAD}7,b,1\n7.{'0' * 17},b,1\n": "all triples have the same value",
    f"{HEAD}{'9' * 18},b,1\n0{'9' * 17},b,1\n": "all triples have the same value",
    f"{HEAD}a,b,1\na,b,1.0\n": "the same value is written '1' and '1.0'",
    HEAD + "a,b,c\n\na,d\n": "line 4 is 'a,d'",
    HEAD + "a,b,c\na,b,c,d\n": "line 3 is 'a,b,c,d'",
    HEAD + "a,,c\na,b,c\n": "a query is missing",
    HEAD + "a,b, \na,b,c\n": "a value is missing",
    HEAD + "a,b,c\nd,b,e\na,b,c\n": "key 'a' is listed twice at query 'b'",
    HEAD + "1,2,3\n4,5,6\n01,2,3\n": "key '1' is listed twice at query '2'",
    HEAD + "a,7,c\na,7,d\n": "key 'a' is listed twice at query '7'",
    HEAD + "a,b,c\nd,b,c\n": "all triples have the same value",
    HEAD
    + "a" * 10**5
    + ",b,c\n"
    + "a" * 10**5
    + ",b,d\n": f"key '{'a' * 40}' is listed twice at query 'b'",
    HEAD + '"a,b,c\n': "unexpected end of data",
}
WANTED = {read_edges: edge_list.COLUMNS, read_triples: triple_list.COLUMNS}
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
    assert refused(read, path) == f"{said}; {WANTED[read]}"


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


SAID: list[tuple[Exception, str]] = [  # what fails as a file is read, and what is said of it
    (StudyError("as it is."), "as it is."),
    (ValueError("one. \nof two"), "f: one; w"),
    (csv.Error("a quote"), "f: a quote; w"),
    (pa.ArrowInvalid("a footer"), "f: a footer; w"),
    (OSError(5, "a disk"), "f: cannot be read: a disk; w"),
    (OSError("no number"), "f: cannot be read: no number; w"),
    (UnicodeDecodeError("utf-8", b"x", 0, 1, "why"), "f: not a text file in UTF-8; w"),
    (KeyError(), "f: cannot be read: KeyError; w"),
    (RuntimeError("boom"), "f: cannot be read: boom; w"),
]


@pytest.mark.parametrize(("fault", "said"), SAID)
def test_whatever_fails_as_a_file_is_read_is_said_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f").write_bytes(b"x" * 2**20)
    with pytest.raises(StudyError, match=f"^{re.escape(said)}$"), opened(Path("f"), "w", 1):
        raise fault


def test_a_file_may_be_as_large_as_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for size, largest in ((2**20, 1), (2**20 + 1, None)):
        path.write_bytes(b"x" * size)
        with opened(path, "w", largest) as file:
            assert len(file.read()) == size
    with pytest.raises(StudyError, match="larger than 1 MiB"), opened(path, "w", 1):
        pass


@pytest.mark.parametrize(("read", "rows"), [(read_edges, 2**16), (read_triples, 2**20 // 24)])
def test_a_parquet_file_is_as_large_as_what_is_read_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Read, rows: int
) -> None:
    """Eight bytes for each entry of a column, or its texts."""
    monkeypatch.setenv("RGR_LARGEST_FILE", "1")
    names = EDGES if read is read_edges else TRIPLES
    path, texts = tmp_path / "f.parquet", 2**21 * (read is read_triples)
    for size in (rows, rows + 1):
        columns = [np.arange(size) % 250, np.arange(size) // 250, np.arange(size) % 2]
        table = dict(zip(names, columns, strict=False))
        pd.DataFrame(table).astype("int16").to_parquet(path)
        if size == rows:
            assert len(read(path)) == size
    said = "cannot be read: larger than 1 MiB; RGR_LARGEST_FILE sets another limit"
    assert refused(read, path) == f"{said}; {WANTED[read]}"
    if texts:
        pd.DataFrame({name: ["x" * texts, "y"] for name in names}).to_parquet(path)
        assert refused(read, path) == f"{said}; {WANTED[read]}"


@pytest.mark.parametrize(
    ("read", "columns", "said"),
    [
        (read_edges, {"a": [0.5], "b": [1]}, "its columns are a (double), b (int64)"),
        (read_edges, {"a" * 121: [0.5], "b": [1]}, f"its columns are {'a' * 120}"),
        (
            read_edges,
            {"a": [1], "b": [1], "c": [1]},
            "its columns are a (int64), b (int64), c (int64)",
        ),
        (
            read_triples,
            {"key": [1], "query": [1], "value": [0.5]},
            "its columns are key (int64), query (int64), value (double)",
        ),
        (
            read_triples,
            {"key": ["a", None], "query": [1, 2], "value": [1, 2]},
            "an entry is missing",
        ),
    ],
)
def test_files_that_hold_no_list_are_refused(
    read: Read, columns: dict[str, Any], said: str, tmp_path: Path
) -> None:
    binary, table, pipe = (tmp_path / name for name in ("b.csv", "c.parquet", "p"))
    binary.write_bytes(HEAD.encode() + b"a,b,\xff\n")
    pd.DataFrame(columns).to_parquet(table)
    os.mkfifo(pipe)
    faults = {
        binary: "not a text file in UTF-8",
        table: said,
        pipe: "cannot be read: a pipe or a device",
        tmp_path: "cannot be read: Is a directory",
        tmp_path / "none.parquet": "cannot be read: No such file or directory",
    }
    for path, fault in faults.items():
        assert refused(read, path) == f"{fault}; {WANTED[read]}"
