"""Edge lists from files: every way to write one, and every bad one refused in one line."""

from __future__ import annotations

import csv
import tracemalloc
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rgr_dist.study import assets
from rgr_dist.study.edge_list import read_edges
from rgr_dist.study.errors import StudyError
from rgr_dist.study.select import cell_named
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import load_study, parse_study


@given(st.sets(st.tuples(st.integers(0, 10**6), st.integers(0, 99)), min_size=1).map(sorted))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_order_of_lines_does_not_matter(tmp_path: Path, edges: list[tuple[int, int]]) -> None:
    digests = set()
    for order in (edges, edges[::-1]):
        (tmp_path / "a.csv").write_text("".join(f"{p},{q}\n" for p, q in order))
        digests.add(assets.add(read_edges(tmp_path / "a.csv")))
    assert len(digests) == 1
    assert assets.get(digests.pop()).tolist() == [list(edge) for edge in edges]


@pytest.mark.parametrize("text", ["0,1\n1,0\n", "a,b\nb,a\n", "source,target\na,b\nb,a\n"])
def test_a_byte_order_mark_is_no_part_of_a_list(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8-sig")
    assert read_edges(tmp_path / "a.csv").tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize("between", [",", "\t"])
def test_a_name_may_hold_a_hash(tmp_path: Path, between: str) -> None:
    rows = ("5 3#main", "5 4#main"), ("5 4#main", "6 1#b")
    (tmp_path / "a.csv").write_text("".join(f"{between.join(row)}\n" for row in rows))
    assert read_edges(tmp_path / "a.csv").tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize("head", ["", "source,target\n", "source target\t# ends\n"])
@pytest.mark.parametrize("between", [",", " ", "\t", ", "])
@pytest.mark.parametrize("comment", ["", "\t# a,b", " # ab", "#ab", '\t# "a', '\t# "a\tb"'])
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_comment_makes_no_names_of_numbers(
    tmp_path: Path, head: str, between: str, comment: str, quote: str
) -> None:
    rows = [(0, 1), (1, 0), (2, 0)]
    lines = (between.join(f"{quote}{end}{quote}" for end in row) + f"{comment}\n" for row in rows)
    (tmp_path / "a.csv").write_text(head + "".join(lines))
    assert read_edges(tmp_path / "a.csv").tolist() == [list(row) for row in rows]


@given(
    st.sets(
        st.tuples(*[st.text("abc é#-", min_size=1).map(str.strip).filter(bool)] * 2), min_size=1
    ),
    st.sampled_from([None, ("source", "target"), ("From", "To")]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_names_are_numbered_by_the_alphabet(
    tmp_path: Path, edges: set[tuple[str, str]], header: tuple[str, str] | None
) -> None:
    assume(not any(source.startswith("#") for source, _ in edges))
    first, *rest = sorted(edges)
    others = [name for edge in rest for name in edge]
    assume(header or not {*first}.isdisjoint(others) or len({*others}) == len(others))
    table = pd.DataFrame(sorted(edges), columns=["a", "b"])
    table.to_csv(tmp_path / "n.csv", index=False, header=header or False)
    codes, _ = pd.factorize(table.to_numpy().ravel(), sort=True)
    assert read_edges(tmp_path / "n.csv").tolist() == sorted(codes.reshape(-1, 2).tolist())


def test_a_heading_in_words_of_its_own_is_no_edge(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("teacher,student\na,b\nb,c\n")
    with pytest.raises(StudyError, match="its first line, 'teacher, student', has names that no"):
        read_edges(tmp_path / "n.csv")
    (tmp_path / "n.csv").write_text("d,e\na,b\n")
    assert len(read_edges(tmp_path / "n.csv")) == 2, "where no name occurs again, each is an edge"
    (tmp_path / "n.csv").write_text("source,target\nd,e\na,b\nb,c\n")
    assert read_edges(tmp_path / "n.csv").tolist() == [[0, 1], [1, 2], [3, 4]]


@pytest.mark.parametrize("items", [[2, 0, 1], ["c", "a", "b"]])
@pytest.mark.parametrize("header", [("target", "source"), ("To", "From")])
def test_columns_the_other_way_round_are_read_by_their_names(
    tmp_path: Path, header: tuple[str, str], items: list[int | str]
) -> None:
    table = pd.DataFrame([items[:2], items[1:]], columns=header)
    table.to_csv(tmp_path / "n.csv", index=False)
    paths = [tmp_path / "n.csv"]
    if items[0] == 2:
        table.to_parquet(tmp_path / "n.parquet", index=False)
        table.to_csv(tmp_path / "n.txt", sep="\t", index=False, quoting=csv.QUOTE_ALL)
        paths += [tmp_path / "n.parquet", tmp_path / "n.txt"]
    table[table.columns[::-1]].to_csv(tmp_path / "turned.csv", index=False)
    for path in paths:
        assert read_edges(path).tolist() == read_edges(tmp_path / "turned.csv").tolist()
        assert read_edges(path).tolist() == [[0, 2], [1, 0]]


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        pytest.param("dst_id,src_id\n0,1\n0,2\n", [[1, 0], [2, 0]], id="headings with an ending"),
        pytest.param('"a;" "b|"\n"b|" "a;"\n', [[0, 1], [1, 0]], id="any sign in quotes"),
        pytest.param(
            "source,target\nfrom,to\ntarget,source\n", [[0, 3], [2, 1]], id="below a heading"
        ),
        pytest.param(
            "Smith\tDoe, Jane\nDoe, Jane\tSmith\n", [[0, 1], [1, 0]], id="commas and tabs"
        ),
        pytest.param("a,\tb\nb,\ta\n", [[0, 1], [1, 0]], id="a tab after a comma"),
        pytest.param("a\t,b\nb\t,a\n", [[0, 1], [1, 0]], id="a tab before a comma"),
        pytest.param("#x y\n\na b\n#c d\n b   a \n", [[0, 1], [1, 0]], id="comments and blanks"),
        pytest.param("Target Source\nb a\nc a\n", [[0, 1], [0, 2]], id="turned, in capitals"),
        pytest.param('"target","source"\n"b","a"\n', [[0, 1]], id="turned, in quotes"),
        pytest.param("sp|P1|A GO:1\nGO:1 sp|P1|A\n", [[0, 1], [1, 0]], id="signs among spaces"),
    ],
)
def test_names_and_headings_are_told_apart(
    tmp_path: Path, text: str, edges: list[list[int]]
) -> None:
    (tmp_path / "n.csv").write_text(text)
    assert read_edges(tmp_path / "n.csv").tolist() == edges


@pytest.mark.parametrize(
    "target", ["target", "dst", "Dest_id", "destination", "ToNode", "TO", "tonode"]
)
@pytest.mark.parametrize("source", ["source", "src", "fromNode", "From_id", "SOURCEID", "sources"])
def test_columns_are_exchanged_if_their_heads_say_so(
    tmp_path: Path, source: str, target: str
) -> None:
    for name, header, lines in (
        ("in-order.csv", f"{source},{target}", ["0,1", "0,2", "1,2"]),
        ("turned.csv", f"{target},{source}", ["1,0", "2,0", "2,1"]),
    ):
        (tmp_path / name).write_text("\n".join([header, *lines]))
        assert read_edges(tmp_path / name).tolist() == [[0, 1], [0, 2], [1, 2]]
    table = pa.table({target: [1, 2, 2], source: [0, 0, 1]})
    pq.write_table(table, tmp_path / "turned.parquet")
    assert read_edges(tmp_path / "turned.parquet").tolist() == [[0, 1], [0, 2], [1, 2]]


@pytest.mark.parametrize("header", ["town,from_city", "destination,origin", "a,source"])
def test_a_head_in_the_place_of_the_other_end_is_refused(tmp_path: Path, header: str) -> None:
    (tmp_path / "e.csv").write_text(f"{header}\n0,1\n0,2\n")
    with pytest.raises(StudyError, match="one column is headed as the other end"):
        read_edges(tmp_path / "e.csv")


@pytest.mark.parametrize("header", ["topic,fromage", "count,token", "source,a"])
def test_other_heads_exchange_nothing(tmp_path: Path, header: str) -> None:
    (tmp_path / "e.csv").write_text(f"{header}\n0,1\n0,2\n")
    assert read_edges(tmp_path / "e.csv").tolist() == [[0, 1], [0, 2]]


@pytest.mark.parametrize("blank", ["", " ", "  ", "\t", " \t"])
@pytest.mark.parametrize("separator", [",", "\t", " "])
def test_quotes_are_no_part_of_a_name(tmp_path: Path, separator: str, blank: str) -> None:
    names = ["New York", "B, and C", '"D"', "#"]
    edges = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 0)]
    if separator == "\t":
        blank = blank.replace("\t", " ")
    if separator == " ":
        names[1] = "B and C"  # a comma in the first line would separate
    order = sorted(names)
    quoted = ['"{}"'.format(name.replace('"', '""')) for name in names]
    (tmp_path / "n.csv").write_text(
        "".join(f"{quoted[p]}{separator}{blank}{quoted[q]} \n" for p, q in edges)
    )
    expected = sorted([order.index(names[p]), order.index(names[q])] for p, q in edges)
    assert read_edges(tmp_path / "n.csv").tolist() == expected


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'x,"a\tb"\ny,"a\tb"\n', "line 1 has a tab or an outer blank within quotes"),
        (b'source,target\n" a",a\n', "line 2 has a tab or an outer blank within quotes"),
        (b'# a\na,b\n\n#\nb,"a "\n', "line 5 has a tab or an outer blank within quotes"),
        (b'a b\n"c\xc2\xa0d" a\n', "line 2 has a tab or an outer blank within quotes"),
        (b"source,src\n0,1\n", "both columns are headed as one end: source, src"),
        ("0,1\n1,1".encode("utf-16-le"), "zero bytes"),
        ("a,b\nb,a".encode("utf-16-be"), "zero bytes"),
    ],
)
def test_what_other_readers_would_read_otherwise_is_refused(
    tmp_path: Path, content: bytes, said: str
) -> None:
    (tmp_path / "e.csv").write_bytes(content)
    with pytest.raises(StudyError, match=said):
        read_edges(tmp_path / "e.csv")


def test_names_may_hold_quotes_and_numbers_special_blanks(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text('"He said ""hi""",x\n"a ""b"" c",x\nx,"a ""b"" c"\n')
    assert read_edges(tmp_path / "n.csv").tolist() == [[0, 2], [1, 2], [2, 1]]
    (tmp_path / "e.csv").write_text("\u00a01,2\u00a0\n\u00a02,3\u00a0\n")
    assert read_edges(tmp_path / "e.csv").tolist() == [[1, 2], [2, 3]]


def test_names_that_differ_in_a_special_blank_are_two(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text('"a\u00a0b","a b"\n"a b",c\nc,a\u00a0b\n')
    assert read_edges(tmp_path / "n.csv").max() == 2


def test_items_are_counted_where_m_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("New York\tBoston\nBoston\tChicago\n")
    graph = {"family": "edges", "file": "n.csv"}
    keys = {"name": "x", "cells": [{"d_model": 16}], "graph": graph, "context": {"length": 2}}
    study = parse_study(keys, home=tmp_path)
    assert [(cell.m, cell.n_edges) for cell in study.cells] == [(3, 2)]
    (tmp_path / "mine.yaml").write_text(study.to_yaml())
    assert load_study(str(tmp_path / "mine.yaml")).cells == study.cells
    with pytest.raises(StudyError, match="m: missing"):
        parse_study({"name": "x", "cells": [{"d_model": 16}]})


@pytest.mark.parametrize(
    ("text", "absent", "items", "first"),
    [("1,2\n2,3\n3,1\n", 1, 4, 0), ("0,1\n1,2000\n", 1998, 2001, 2)],
)
def test_items_are_not_counted_where_some_occur_in_no_edge(
    tmp_path: Path, text: str, absent: int, items: int, first: int
) -> None:
    (tmp_path / "n.csv").write_text(text)
    graph = {"family": "edges", "file": "n.csv"}
    keys = {"name": "x", "cells": [{"d_model": 16}], "graph": graph, "context": {"length": 2}}
    said = (
        rf"^study: graph\.file: {absent} of the items 0 to {items - 1} occur in no edge, the first "
        rf"of them {first}; give m: {items} if they exist, or number the items from 0 without gaps$"
    )
    with pytest.raises(StudyError, match=said):
        parse_study(keys, home=tmp_path)
    given = parse_study({**keys, "cells": [{"m": items, "d_model": 16}]}, home=tmp_path)
    assert [cell.m for cell in given.cells] == [items]


def study_of(home: Path, *files: str, m: int = 64) -> Study:
    """A study of a cell for each file."""
    graphs = [{"family": "edges", "file": file} for file in files]
    cells = [{"m": m, "d_model": 16, "graph": graph} for graph in graphs]
    return parse_study({"name": "x", "cells": cells}, "my.yaml", home=home)


def test_an_edge_list_is_looked_for_beside_its_study(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/my.csv").write_text("0,1\n0,2\n5,0\n")
    study = "name: x\ncells: [{m: [16, 32], d_model: 4, graph: {family: edges, file: my.csv}}]"
    (tmp_path / "deep/study.yaml").write_text(study)
    loaded = load_study(str(tmp_path / "deep/study.yaml"))
    assert [cell.name for cell in loaded.cells] == [
        "m=16,d_model=4,edges=3",
        "m=32,d_model=4,edges=3",
    ]
    for cell in loaded.cells:
        assert (cell.n_edges, cell.graph.degree) == (3, 2)
        assert assets.get(*cell.assets).tolist() == [[0, 1], [0, 2], [5, 0]]
        assert "my.csv" not in cell.problem_json
    (tmp_path / "elsewhere.yaml").write_text(loaded.to_yaml())
    again = load_study(str(tmp_path / "elsewhere.yaml"))
    assert again == loaded


def test_an_item_beyond_the_cells_is_refused_before_it_costs_memory(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("0,63\n")
    assert study_of(tmp_path, "e.csv").cells
    told = "it has an item 63, and m = 63 allows 0 to 62; items are numbered from 0; give m: 64 or"
    with pytest.raises(StudyError, match=rf"cells\[0\]\.graph\.file: {told} more$"):
        study_of(tmp_path, "e.csv", m=63)
    (tmp_path / "huge.txt").write_text("0 1\n2000000000 1\n")
    tracemalloc.start()
    with pytest.raises(StudyError, match="it has an item 2000000000, and m = 64 allows 0 to 63"):
        study_of(tmp_path, "huge.txt")
    assert tracemalloc.get_traced_memory()[1] < 10**8
    tracemalloc.stop()


def test_lists_with_equally_many_edges_share_a_study(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0 1\n1 2\n")
    (tmp_path / "b.txt").write_text("0 1\n1 3\n")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "a.txt").write_text("0 1\n1 4\n")
    two = study_of(tmp_path, "a.txt", "b.txt")
    names = [two.name_of(cell) for cell in two.cells]
    assert names == ["m=64,d_model=16,edges=2,file=a.txt", "m=64,d_model=16,edges=2,file=b.txt"]
    assert [cell_named(two, name) for name in names] == list(two.cells)
    path = tmp_path / "resolved.yaml"
    path.write_text(two.to_yaml())
    assert load_study(str(path)).cells == two.cells
    alike = study_of(tmp_path, "a.txt", "c/a.txt")
    shown = [cell.graph.model_dump()["digest"][:8] for cell in alike.cells]
    names = [alike.name_of(cell) for cell in alike.cells]
    assert names == [f"m=64,d_model=16,edges=2,digest={one}" for one in shown]
    with pytest.raises(StudyError, match="listed twice"):
        study_of(tmp_path, "a.txt", "a.txt")


@pytest.mark.parametrize("edge", ["{},0\n", "0,{}\n"])
def test_algorithm_5_needs_a_head_for_every_edge_of_an_item(tmp_path: Path, edge: str) -> None:
    (tmp_path / "star.csv").write_text("".join(map(edge.format, range(1, 6))))
    keys = {
        "name": "x",
        "model": {"construction": 5},
        "graph": {"family": "edges", "file": "star.csv"},
        "cells": [{"m": 16, "d_model": 8}],
    }
    told = "heads: 1 is not valid for algorithm 5, .* with degree 5 give at least 5"
    with pytest.raises(StudyError, match=told):
        parse_study({**keys, "search": {"heads": [1, 2, 4, 8]}}, home=tmp_path)
    assert parse_study({**keys, "search": {"heads": [5, 8]}}, home=tmp_path).cells
