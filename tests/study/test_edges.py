"""Lists of edges and of triples in the forms that people have them: read right, or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rgr_dist.study import assets
from rgr_dist.study.edges import read_edges, read_triples
from rgr_dist.study.errors import StudyError
from rgr_dist.study.study_file import parse_study

EDGES = [(i, (3 * i + k) % 20) for i in range(20) for k in (1, 5)]
NAMES = [f"{chr(97 + i)}{'xyz'[i % 3]} {i % 7}é" for i in range(20)]
PLAIN = [name.replace(" ", "_") for name in NAMES]


def lines(pairs: list[tuple[object, ...]], sign: str = " ") -> str:
    return "".join(f"{sign.join(map(str, pair))}\n" for pair in pairs)


def named(names: list[str], sign: str) -> str:
    return lines([(names[a], names[b]) for a, b in EDGES], sign)


QUOTED = [f'"{name}, a ""b"""' for name in NAMES]
HASHES = [f"#{name}" if i % 2 else name for i, name in enumerate(PLAIN)]
LONG = [str(1082040961123450000 + 3 * i) for i in range(20)]

FORMS = {
    "networkx.edgelist": lines([(a, b, "{}") for a, b in EDGES]),
    "networkx_data.edgelist": lines([(a, b, f"{{'weight': {a}, 'x': 2}}") for a, b in EDGES]),
    "networkx.csv": lines([(a, b, "{}") for a, b in EDGES], ","),
    "konect.txt": "% asym unweighted\n%\n" + lines([(a + 1, b + 1) for a, b in EDGES]),
    "snap.txt": "# Nodes: 20 Edges: 40\n# FromNodeId\tToNodeId\n"
    + lines([(7 + 3 * a, 7 + 3 * b) for a, b in EDGES], "\t"),
    "saved_turned.txt": "# target source\n" + lines([(b, a) for a, b in EDGES]),
    "excel.csv": "\ufeffSource,Target\r\n" + named(QUOTED, ",").replace("\n", "\r\n"),
    "names.edgelist": named(PLAIN, "  "),
    "tabs.txt": named(NAMES, "\t"),
    "semicolons.csv": "Source;Target\n" + named(NAMES, ";"),
    "spaced.txt": named(NAMES, ", ").replace(" ", "_").replace(",_", ", "),
    "weights.csv": "source,target,weight\n" + lines([(a, b, 0.5) for a, b in EDGES], ","),
    "columns.csv": "id,to_id,since,from_id\n"
    + lines([(9 * i, b, 1990 + i, a) for i, (a, b) in enumerate(EDGES)], ","),
    "weights.txt": lines([(a, b, 1 + a % 3) for a, b in EDGES]),
    "german.csv": lines([(a, b, "0,5") for a, b in EDGES], ";"),
    "long.csv": "source,target\n" + named(LONG, ","),
    "turned.csv": "to,from\n" + lines([(b, a) for a, b in EDGES], ","),
    "other_words.csv": "citing,cited\n" + lines([(a, b) for a, b in EDGES], ","),
    "pandas.csv": ",source,target\n" + lines([(i, *pair) for i, pair in enumerate(EDGES)], ","),
    "pandas_bare.csv": ",0,1\n" + lines([(i, *pair) for i, pair in enumerate(EDGES)], ","),
    "r.txt": '"from" "to"\n' + lines([(f'"{i}"', *pair) for i, pair in enumerate(EDGES)]),
    "r_words.txt": '"citing" "cited"\n'
    + lines([(f'"{i}"', *pair) for i, pair in enumerate(EDGES)]),
    "saved_turned.csv": "# target,source\n" + lines([(b, a) for a, b in EDGES], ","),
    "comment.txt": "# to those from these\n" + lines([*EDGES]),
    "quoted.txt": lines([(f'"{a},"', f'"{b},"') for a, b in EDGES]),
    "hashes.txt": named(HASHES, " "),
    "mac.csv": "source,target\r" + named(PLAIN, ",").replace("\n", "\r"),
    "again.txt": lines([*EDGES, EDGES[3]]),
    "padded.txt": lines([(f"{a:03}", f"{b:03}") for a, b in EDGES]),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_a_graph_is_read_as_that_graph(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FORMS[name], newline="")
    found = read_edges(tmp_path / name)
    assert (len(found.names), len(found.edges)) == (20, 40)
    assert found.edges.dtype == np.int32
    assert ("; 1 that occur again" in found.told) == (name == "again.txt")
    graph = nx.DiGraph([(found.names[a], found.names[b]) for a, b in found.edges])
    assert nx.is_isomorphic(graph, nx.DiGraph(EDGES))
    in_order = "padded" in name or all(one.isdigit() for one in found.names)
    if in_order:
        np.testing.assert_array_equal(found.edges, sorted(EDGES))
    else:
        assert found.names == sorted(found.names)


def to_parquet(path: Path) -> None:
    table = pd.DataFrame({"target": [b for _, b in EDGES], "weight": 0.5})
    table["source"] = [a for a, _ in EDGES]
    table.to_parquet(path)


WRITERS: dict[str, Callable[[Path], None]] = {
    "weights.parquet": to_parquet,
    "two.parquet": lambda path: pd.DataFrame(EDGES, columns=["a", "b"]).to_parquet(path),
    "turned.parquet": lambda path: pd.DataFrame(EDGES, columns=["a", "b"])[::-1].to_parquet(path),
    "index.parquet": lambda path: pd.DataFrame(
        EDGES, columns=["a", "b"], index=[*range(1, 80, 2)]
    ).to_parquet(path),
    "graph.gml": lambda path: nx.write_gml(nx.DiGraph(EDGES), path),
    "graph.graphml": lambda path: nx.write_graphml(nx.DiGraph(EDGES), path),
    "graph.net": lambda path: nx.write_pajek(nx.DiGraph(EDGES), path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_other_formats_hold_the_same_graph(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    found = read_edges(tmp_path / name)
    np.testing.assert_array_equal(found.edges, sorted(EDGES))


def test_nodes_of_gml_without_labels_have_their_numbers(tmp_path: Path) -> None:
    nodes, edges = "".join(f"node [ id {i} ]\n" for i in range(3)), "edge [ source 2 target 0 ]\n"
    (tmp_path / "g.gml").write_text(f"graph [\ndirected 1\n{nodes}{edges}]\n")
    found = read_edges(tmp_path / "g.gml")
    assert (found.names, found.edges.tolist()) == (["0", "1", "2"], [[2, 0]])


def test_a_graph_without_directions_has_both_and_keeps_its_lone_nodes(tmp_path: Path) -> None:
    graph = nx.Graph([("a", "b"), ("b", "c")])
    graph.add_node("lone")
    nx.write_graphml(graph, tmp_path / "g.graphml")
    found = read_edges(tmp_path / "g.graphml")
    assert found.names == ["a", "b", "c", "lone"]
    assert found.edges.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    (tmp_path / "e.csv").write_text("source,target\na,b\nb,c\nc,b\n")
    assert read_edges(tmp_path / "e.csv", undirected=True).edges.tolist() == found.edges.tolist()
    nx.write_graphml(nx.DiGraph([("a", "b"), ("c", "b")]), tmp_path / "d.graphml")
    both = read_edges(tmp_path / "d.graphml", undirected=True)
    assert both.edges.tolist() == found.edges.tolist()
    nx.write_pajek(graph, tmp_path / "g.net")
    assert read_edges(tmp_path / "g.net").edges.tolist() == found.edges.tolist()


REFUSED = {
    "capitals.csv": ("country,capital\nFrance,Paris\nItaly,Rome\n", "heading: true"),
    "four.txt": ("1 2 3 4\n2 3 4 5\n", "source"),
    "relations.txt": ("a likes b\nb likes c\n", "two columns"),
    "kinds.txt": ("a b likes\nb c 3\nc a 4\n", "two columns"),
    "arrows.txt": ("0 -> 4\n4 -> 7\n", "->"),
    "arrow.txt": ("a ->\nb ->\nc ->\n", "->"),
    "lists.txt": ("[0, 1]\n[1, 0]\n", r"\["),
    "counts.txt": ("5 3\n0 1\n1 2\n2 0\n", "heading: true"),
    "counts_1.txt": ("4 3\n1 2\n2 3\n3 4\n", "heading: true"),
    "matrix.mtx": ("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n", "row 1"),
    "adjacency.txt": ("0 1 2\n1 3\n", "row 1"),
    "lines.jsonl": ('{"source": "a", "target": "b"}\n{"source": "b", "target": "a"}\n', "expected"),
    "bracketed.txt": ("[a] [b]\n[b] [a]\n", r"\["),
    "pairs.txt": ("(0, 1)\n(1, 0)\n(0, 1)\n", "columns"),
    "missing.csv": ("source,target\na,\nb,a\n", "missing"),
    "twice.txt": ("1 1.0\n1.0 2\n2 1\n", "'1' and '1.0'"),
    "one_end.csv": ("target,user\n1,2\n2,3\n", "source"),
    "other_end.csv": ("user,source\n1,2\n2,3\n", "source"),
    "index_end.csv": (",user,source\n0,1,2\n1,2,3\n", "source"),
    "which.csv": ("source_id,source_name,target\n1,a,2\n2,b,1\n", "which column"),
    "wordless.csv": ("id,x,y\n0,1,2\n1,2,3\n", "source"),
    "quote.csv": ('source,target\na,"b\nc,d\n', "unexpected end"),
    "empty.txt": ("# nothing\n", "no rows"),
    "short.txt": ("a b\nb\n", "row 1"),
    "words.txt": ("1 2\n2 3\n3 1\n4 all\n5 sum\n", "all"),
    "total.txt": ("1 2\n2 3\n3 1\ntotal 3\n", "total"),
    "nodes.gml": ("graph [ directed 1 node [ id 0 ] node [ id 1 ] ]\n", "no edges"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_could_be_read_in_two_ways_is_refused_with_what_to_say(
    name: str, tmp_path: Path
) -> None:
    text, said = REFUSED[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(Exception, match=said):
        read_edges(tmp_path / name)


def test_a_heading_is_as_the_study_says(tmp_path: Path) -> None:
    path = tmp_path / "capitals.csv"
    path.write_text("country,capital\nFrance,Paris\nItaly,Rome\n")
    assert read_edges(path, heading=True).names == ["France", "Italy", "Paris", "Rome"]
    assert len(read_edges(path, heading=False).edges) == 3
    path.write_text("source,target\nFrance,Paris\nParis,France\n")
    assert len(read_edges(path, heading=False).names) == 4


def test_a_column_without_a_name_is_an_index_only_if_it_has_numbers(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text(",citing,cited\n0,a,b\n1,b,c\n")
    assert read_edges(path).names == ["a", "b", "c"]
    path.write_text(",citing,cited\nx,1,2\ny,2,1\n")
    with pytest.raises(ValueError, match="citing"):
        read_edges(path)
    path.write_text("id,key,query,value\n0,a,b,c\n1,b,b,a\n")
    with pytest.raises(ValueError, match="three columns"):
        read_triples(path)


def test_a_column_whose_name_is_the_word_alone_is_that_end(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("source_name,Source,target\nx,1,2\ny,2,1\n")
    assert read_edges(path).names == ["1", "2"]
    path.write_text("source,Source,target\nx,1,2\ny,2,1\n")
    with pytest.raises(ValueError, match="which column"):
        read_edges(path)


def test_an_empty_entry_of_a_column_that_is_not_used_is_no_matter(tmp_path: Path) -> None:
    (tmp_path / "e.tsv").write_text("source\ttarget\tnote\nXa\tXb\tx\nXb\tXa\t\n")
    found = read_edges(tmp_path / "e.tsv")
    assert (found.names, len(found.edges)) == (["Xa", "Xb"], 2)


def test_two_long_numbers_that_a_float_takes_for_one_are_two_names(tmp_path: Path) -> None:
    path = tmp_path / "e.txt"
    for zeros, clear in ((13, False), (14, True)):
        path.write_text(f"x 1\n1 1.{'0' * zeros}\n1.{'0' * zeros} x\n")
        if clear:
            assert len(read_edges(path).names) == 3
        else:
            with pytest.raises(ValueError, match="one number"):
                read_edges(path)


def test_all_that_is_not_used_of_a_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "e.txt"
    path.write_text("# Undirected graph\n1 2 0.5 {'a': 1}\n2 1 0.5 {}\n1 3 0.5 {}\n")
    told = read_edges(path).told
    assert [part in told for part in ("Undirected", "braces", "weight")] == [True] * 3
    path.write_text("1 2 {}\n2 1 {}\n1 3 {}\n")
    told = read_edges(path).told
    assert [part in told for part in ("Undirected", "braces", "weight")] == [False] * 3
    path.write_text(",source,target\n0,1,2\n1,2,3\n")
    assert read_edges(path).told == "3 items and 2 edges"


@pytest.mark.parametrize("sign", ["->", "--", "-", ">"])
def test_a_sign_between_two_items_is_no_item(sign: str, tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text(f"a {sign}\nb {sign}\na {sign}\n")
    with pytest.raises(ValueError, match=f"'{sign}'"):
        read_edges(tmp_path / "e.txt")
    (tmp_path / "e.txt").write_text(f"a {sign}b\nb {sign}a\na {sign}b\n")
    assert len(read_edges(tmp_path / "e.txt").names) == 4


def test_edges_of_the_type_undirected_go_both_ways_beside_directed_ones(tmp_path: Path) -> None:
    rows = ["Source,Target,Type,Weight", "a,b,Directed,1", "b,c,Undirected,1", "c,a,Directed,1"]
    rows += ["b,a,Undirected,1"]
    (tmp_path / "gephi.csv").write_text("\n".join(rows))
    pd.read_csv(tmp_path / "gephi.csv").to_parquet(tmp_path / "gephi.parquet")
    for name in ("gephi.csv", "gephi.parquet"):
        found = read_edges(tmp_path / name)
        assert found.edges.tolist() == [[0, 1], [1, 0], [1, 2], [2, 0], [2, 1]]
        assert found.edges.dtype == np.int32
        assert "not used: Weight" in found.told


VERTICES = "*Vertices 3\n1 a\n2 b\n3 c\n"
NODES = '<node id="a"/><node id="b"/><edge source="a" target="b"/>'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("both.net", f"{VERTICES}*Arcs\n1 2\n*Edges\n2 3\n"),
        ("relations.net", f'{VERTICES}*Arcs :1 "likes"\n1 2\n*Arcs :2 "hates"\n2 3\n'),
        ("lists.net", f"{VERTICES}*Arcslist\n1 2 3\n"),
        ("twice.net", VERTICES.replace("c", "a") + "*Arcs\n1 2\n2 3\n"),
        ("two.graphml", f"<graphml><graph>{NODES}</graph><graph>{NODES}</graph></graphml>"),
    ],
)
def test_what_networkx_would_read_in_part_is_refused(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=r"^has "):
        read_edges(tmp_path / name)


def test_comments_and_empty_sections_of_pajek_count_for_nothing(tmp_path: Path) -> None:
    text = f"*Network x\n{VERTICES}*Arcs :1\n% inner\n1 2\n\n2 3\n*Edges\n"
    (tmp_path / "arcs.net").write_text(text)
    assert read_edges(tmp_path / "arcs.net").edges.tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize("comment", ["# Undirected graph: x", "% sym unweighted"])
def test_a_comment_that_edges_go_both_ways_is_told(comment: str, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(f"{comment}\n2 3\n3 1\n")
    found = read_edges(tmp_path / "x.txt")
    assert len(found.edges) == 2
    assert comment in found.told
    (tmp_path / "x.txt").write_text(f"{comment}\n{comment}\n2 3\n3 1\n")
    assert read_edges(tmp_path / "x.txt").told == found.told


def test_as_many_words_as_numbers_are_names(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("1 2\n2 1\n2 allX\n1 someX\n")
    assert read_edges(tmp_path / "x.txt").names == ["1", "2", "allX", "someX"]


def test_two_edges_that_turn_each_other_are_no_heading(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("a b\nb a\n")
    assert read_edges(tmp_path / "x.txt").edges.tolist() == [[0, 1], [1, 0]]


def test_a_heading_of_triples_is_told_by_keys_and_queries_or_by_the_study(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,q,new\nb,q,v\nb,r,v\na,r,v\na,r,v\n")
    found = read_triples(path)
    assert (len(found.triples), found.triples.dtype) == (4, np.int32)
    assert ["key" in found.told, "1 that occur again" in found.told] == [False, True]
    path.write_text("new,q,v\nb,q,v\nb,r,v\n")
    with pytest.raises(ValueError, match="heading: true"):
        read_triples(path)
    assert len(read_triples(path, heading=False).triples) == 3
    found = read_triples(path, heading=True)
    assert len(found.triples) == 2
    assert ["2 triples" in found.told, "key new, query q, value v" in found.told] == [True, True]


def test_a_study_takes_the_first_of_two_values_only_if_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,q,v\na,q,w\nb,q,u\nc,q,w\n")
    database: dict[str, Any] = {"family": "file", "file": "t.csv"}
    study = {"name": "x", "model": "facts", "cells": [{"d_model": 4}], "database": database}
    study["search"] = {"mode": "grid", "heads": [1], "D_K": [4]}
    database["heading"] = False
    with pytest.raises(StudyError, match="2 values"):
        parse_study(study, homes=[tmp_path])
    database["several"] = "first"
    read = parse_study(study, homes=[tmp_path])
    assert "3 triples" in read.read[0]
    database["heading"] = True
    read = parse_study(study, homes=[tmp_path])
    assert "key a, query q, value v" in read.read[0]


def test_what_each_column_of_triples_is_taken_for_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("subject,object,predicate\na,b,r\nc,b,r\na,d,s\n")
    assert "query object" in read_triples(tmp_path / "x.csv").told


@pytest.mark.parametrize(("again", "differ"), [(0, 0), (1, 1)])
def test_edges_that_occur_again_are_told_and_others_not(
    again: int, differ: int, tmp_path: Path
) -> None:
    for name, rows, read in (
        ("e.csv", ["source,target", "a,b", "b,a"], read_edges),
        ("t.csv", ["key,query,value", "a,b,c", "b,b,c"], read_triples),
    ):
        (tmp_path / name).write_text("\n".join([*rows, *rows[-1:] * again]))
        assert read(tmp_path / name).told.count("again") == differ


@pytest.mark.parametrize("name", ["latin.csv", "wide.csv", "gone.csv", "folder.csv", "g.gml"])
def test_a_file_that_cannot_be_read_is_told_in_one_line_with_its_path(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    if name == "latin.csv":
        path.write_bytes("source,target\né,b\n".encode("latin-1"))
    elif name == "wide.csv":
        path.write_bytes("source,target\na,b\n".encode("utf-16-le"))
    elif name == "folder.csv":
        path.mkdir()
    elif name == "g.gml":
        path.write_text("no graph")
    study = {"name": "x", "graph": {"family": "edges", "file": name}, "cells": [{"d_model": 4}]}
    with pytest.raises(StudyError) as error:
        parse_study(study, homes=[tmp_path])
    assert "graph.file: " in str(error.value)
    assert name in str(error.value)


@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_any_graph_survives_being_written_by_pandas(
    tmp_path: Path, graph: set[tuple[int, int]], data: st.DataObject
) -> None:
    """Names with separators, quotes, blanks and hashes, in any order of lines."""
    alphabet = st.characters(
        codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="[](){}"
    )
    words = st.text(alphabet, min_size=1, max_size=4).map(lambda word: f"n{word}")
    names = data.draw(st.lists(words, min_size=10, max_size=10, unique=True))
    pairs = data.draw(st.permutations([(names[a], names[b]) for a, b in sorted(graph)]))
    table = pd.DataFrame(pairs, columns=["source", "target"])
    path = tmp_path / data.draw(st.sampled_from(["a.csv", "a.parquet", "a.tsv"]))
    if path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        sign = "," if path.suffix == ".csv" else "\t"
        table.to_csv(path, index=data.draw(st.booleans()), sep=sign)
    found = read_edges(path)
    assert {(found.names[a], found.names[b]) for a, b in found.edges} == set(pairs)


def test_a_study_says_whether_a_file_has_a_heading_and_directions(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("x,y\na,b\na,c\nd,b\ne,b\n")
    graph: dict[str, Any] = {"family": "edges", "file": "e.csv"}
    study = {"name": "x", "graph": graph, "cells": [{"d_model": 4}], "context": {"length": 2}}
    with pytest.raises(StudyError, match="heading: true"):
        parse_study(study, homes=[tmp_path])
    for keys, found in (
        ({"heading": False}, (7, 5, 2)),
        ({"heading": True}, (5, 4, 2)),
        ({"heading": False, "undirected": True}, (7, 10, 3)),
    ):
        (cell,) = parse_study({**study, "graph": {**graph, **keys}}, homes=[tmp_path]).cells
        assert (cell.m, cell.n_edges, cell.graph.degree) == found


def test_items_are_counted_and_the_plan_says_what_was_read(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("source,target,w\na,b,1\nb,c,2\nb,c,3\n" + "c,a,1\n")
    study = {
        "name": "x",
        "graph": {"family": "edges", "file": "e.csv"},
        "cells": [{"d_model": 4}, {"m": 5, "d_model": 4}],
        "context": {"length": 2},
    }
    read = parse_study(study, homes=[tmp_path])
    assert [(cell.m, cell.n_edges) for cell in read.cells] == [(3, 3), (5, 3)]
    assert "again" in read.read[0]
    assert "w" in read.read[0]
    np.testing.assert_array_equal(assets.get(read.cells[0].assets[0]), [[0, 1], [1, 2], [2, 0]])
    study["cells"] = [{"m": 2, "d_model": 4}]
    with pytest.raises(StudyError, match="m: 2 "):
        parse_study(study, homes=[tmp_path])


FACTS = [(f"/m/{k}", f"/r {q}", f"/m/{(5 * k + 3 * q) % 12}") for k in range(12) for q in range(3)]
TRIPLES = {
    "train.txt": lines(FACTS, "\t"),
    "spo.csv": "subject,predicate,object\n" + lines(FACTS, ","),
    "ours.csv": "key,query,value\n" + lines(FACTS, ","),
    "ids.txt": lines([(int(k[3:]), int(q[3:]), int(v[3:])) for k, q, v in FACTS]),
    "pandas.csv": ",head,relation,tail\n" + lines([(i, *x) for i, x in enumerate(FACTS)], ","),
    "again.txt": lines([*FACTS, FACTS[0]], "\t"),
}


@pytest.mark.parametrize("name", TRIPLES)
def test_triples_are_key_query_and_value_in_this_order(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(TRIPLES[name])
    found = read_triples(tmp_path / name).triples
    ends = [sorted({one[at] for one in FACTS}) for at in range(3)]
    if name == "ids.txt":
        ends = [sorted(names, key=lambda name: int(name[3:])) for names in ends]
    right = sorted([ends[at].index(one) for at, one in enumerate(fact)] for fact in FACTS)
    assert found.tolist() == right


def test_a_pair_with_several_values_is_refused_or_its_first_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    more = [*FACTS, ("/m/1", "/r 2", "/m/77"), ("/m/1", "/r 2", "/m/78")]
    path.write_text("key,query,value\n" + lines(more, ","))
    with pytest.raises(ValueError, match=r"'/m/1' has 3 values at query '/r 2'.*several: first"):
        read_triples(path)
    path.with_name("once.csv").write_text("key,query,value\n" + lines(FACTS, ","))
    once = read_triples(path.with_name("once.csv")).triples
    np.testing.assert_array_equal(read_triples(path, first=True).triples, once)
    table = pd.read_csv(path.with_name("once.csv"))
    table.to_parquet(path.with_suffix(".parquet"))
    np.testing.assert_array_equal(read_triples(path.with_suffix(".parquet")).triples, once)


@pytest.mark.parametrize(
    ("table", "read", "said"),
    [
        ({"source": [0.5, 1], "target": [1, 2]}, read_edges, "source has 0.5"),
        ({"source": [b"a", b"b"], "target": [1, 2]}, read_edges, "source has "),
        ({"key": [0, 1], "value": [1, 2]}, read_triples, "key, value"),
        ({"key": [0, 1], "query": [1, None], "value": [1, 2]}, read_triples, "query"),
    ],
)
def test_columns_that_are_no_ends_are_refused_by_name(
    table: dict[str, Any], read: Callable[[Path], Any], said: str, tmp_path: Path
) -> None:
    pd.DataFrame(table).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=said):
        read(tmp_path / "x.parquet")


TRIPLES_REFUSED = {
    "heading.csv": ("person,job,city\nann,cook,Rome\nbob,cook,Oslo\n", "heading: true"),
    "two.csv": ("a,b\nb,c\n", "three columns"),
    "missing.csv": ("key,query,value\na,,c\nb,b,d\n", "missing"),
    "none.csv": ("key,query,value\n", "triples|rows"),
}


@pytest.mark.parametrize("name", TRIPLES_REFUSED)
def test_what_is_no_list_of_triples_is_refused(name: str, tmp_path: Path) -> None:
    text, said = TRIPLES_REFUSED[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=said):
        read_triples(tmp_path / name)
