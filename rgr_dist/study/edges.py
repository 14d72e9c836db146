"""Edges that a study names by a file, and triples: read by one fixed rule each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rgr_dist.study.tables import (
    LONGEST,
    WHOLE,
    Row,
    column_of,
    is_heading,
    numbered,
    read_rows,
    text_lines,
)

ENDS = ("source", "from", "src"), ("target", "to", "dst", "dest", "destination")
"""Words that a heading has for the two ends of an edge."""
FIRST = ("key", "subject", "head")
"""Words that a heading has for the first column of triples."""
TYPE = "type"
"""The column in which Gephi says whether an edge is directed."""
WANTED = "give two columns, or a heading with source and target"
DATA = re.compile(r"[\s,;]+\{(.*)\}\s*$")
"""What networkx writes behind an edge."""
WEIGHT = re.compile(r"[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?")
KIND = re.compile(r"(?i)#.*\bundirected\b|% (sym|bip)\b")
"""A comment of SNAP or KONECT that its edges go both ways, or join two kinds of items."""
GRAPHS = (".gml", ".graphml", ".net", ".paj", ".pajek")
"""Endings of files that networkx reads."""


class EdgeList(NamedTuple):
    """The edges of a file, int32 [m', 2], sorted, each once; the names of its items, numbers by
    size and others by alphabet; and what was read and what was not used, in words."""

    edges: npt.NDArray[np.int32]
    names: list[str]
    told: str


class Triples(NamedTuple):
    """The triples of a file, int32 [|D|, 3], key, query and value, sorted, where each column is
    numbered by itself; and what was read and what was not used, in words."""

    triples: npt.NDArray[np.int32]
    told: str


def read_edges(path: Path, heading: bool | None = None, undirected: bool = False) -> EdgeList:
    """The edges of a file: text with columns, Parquet, or what networkx reads.

    Args:
        heading: whether the first line is one; None to tell by the rule (``tables.is_heading``).
        undirected: whether every edge also goes the other way.

    Raises:
        ValueError, OSError: it is no list of edges, or could be two.
    """
    told: list[str] = []
    nodes, types = Row(), Row()
    if path.suffix.lower() in GRAPHS:
        graph = _graph(path)
        nodes = [str(node).strip() for node in graph]
        ends = [[str(edge[at]).strip() for edge in graph.edges()] for at in (0, 1)]
        undirected |= not graph.is_directed()
    elif path.suffix.lower() == ".parquet":
        table = _of_parquet(path)
        named = table.column_names
        ends = [_entries(table, at) for at in _places(named, True, told)]
        own = (table[at].to_pylist() for at, name in enumerate(named) if name.lower() == TYPE)
        types = [str(one) for one in next(own, [])]
    else:
        ends, types = _ends(path, heading, told)
    for end in ends:
        words = [one for one in end if not WHOLE.fullmatch(one)]
        odd = next((one for one in words if not re.search(r"\d", one)), None)
        if odd is not None and 2 * len(words) < len(end):
            raise ValueError(f"an entry is '{odd[:LONGEST]}' among numbers; give edges alone")
    names, (sources, targets, _) = numbered(*ends, nodes)
    edges = np.unique(np.array([sources, targets], dtype=np.int32).T, axis=0)
    if not len(edges):
        raise ValueError("holds no edges")
    if len(edges) < len(sources):
        told.append(f"{len(sources) - len(edges)} that occur again count once")
    if both := [at for at, one in enumerate(types) if one.lower() == "undirected"]:
        turned = np.array([targets, sources], dtype=np.int32).T[both]
        edges = np.unique(np.concatenate([edges, turned]), axis=0)
        told.append(f"{len(both)} of Type Undirected go in both directions")
    if undirected:
        edges = np.unique(np.concatenate([edges, edges[:, ::-1]]), axis=0)
        told.append("in both directions")
    return EdgeList(edges, names, "; ".join([f"{len(names)} items and {len(edges)} edges", *told]))


def _ends(path: Path, heading: bool | None, told: list[str]) -> tuple[list[Row], Row]:
    """The sources and targets of a file of text, the type of each edge, if there are types, and
    what of it is not used."""
    lines = text_lines(path)
    if any(found and found[1] for found in map(DATA.search, lines)):
        told.append("what is written in braces is not used")
    told += [f"it says '{x[:LONGEST]}'" for x in lines if KIND.match(x)][:1]
    rows, comment = read_rows([DATA.sub("", line) for line in lines])
    first, has_words = rows[0], _named(rows[0]) is not None
    has_weight = len(first) == 3 and all(WEIGHT.fullmatch(row[2]) for row in rows)
    if not has_words and first[0] != "" and len(first) != 2 + has_weight:
        raise ValueError(f"line 1 is '{', '.join(first)[:LONGEST]}'; {WANTED}")
    if heading is None:
        heading = has_words or first[0] == "" or is_heading(rows, (0, 1))
    rows, types = rows[heading:], Row()
    if heading:
        places = _places(first, all(WHOLE.fullmatch(row[0]) for row in rows), told)
        if TYPE in (kinds := [name.lower() for name in first]):
            types = [row[kinds.index(TYPE)] for row in rows]
    else:
        told += ["the third column, a weight, is not used"] if has_weight else []
        places = (_named(comment) if len(comment) == len(first) else None) or (0, 1)
    return [[row[at] for row in rows] for at in places], types


def _places(heading: Sequence[str], is_index: bool, told: list[str]) -> tuple[int, int]:
    """Which columns under a heading are source and target: by its words, or the only two.

    Args:
        is_index: whether a first column without a name may be an index.

    Raises:
        ValueError: there are more than two, or one has a word for the other end.
    """
    places = _named(heading)
    if places is None:
        start = int(heading[0] == "" and is_index)
        turned = [column_of(heading, words) for words in ENDS] in ([None, start], [start + 1, None])
        if len(heading) != start + 2 or turned:
            raise ValueError(f"its heading is '{', '.join(heading)[:LONGEST]}'; {WANTED}")
        places = (start, start + 1)
    known = (*(heading[at] for at in places), "", *(x for x in heading if x.lower() == TYPE))
    others = [name for name in heading if name not in known]
    told += [f"not used: {', '.join(others)[:LONGEST]}"] if others else []
    return places


def _named(heading: Sequence[str]) -> tuple[int, int] | None:
    """Which columns are source and target by their names; None if there are no names for both."""
    source, target = (column_of(heading, words) for words in ENDS)
    return None if source is None or target is None else (source, target)


def _of_parquet(path: Path) -> Any:
    """The table of a Parquet file, without pandas' index."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    return table.drop_columns([x for x in table.column_names if x.startswith("__index_level_")])


def _entries(table: Any, at: int) -> Row:
    """A column of whole numbers or text, as text."""
    column = table.column(at).to_pylist()
    wrong = next((entry for entry in column if type(entry) not in (int, str)), "")
    if wrong != "":
        name = table.column_names[at]
        raise ValueError(f"its column {name} has {wrong}; give whole numbers or text")
    return [str(entry).strip() for entry in column]


def _graph(path: Path) -> Any:
    """A graph that networkx reads."""
    try:
        import networkx as nx
    except ImportError:
        raise ValueError(
            f"{path.suffix} is read by networkx: pip install networkx, or give two columns"
        ) from None
    if path.suffix.lower() == ".graphml":
        if len(re.findall(r"<graph[\s>]", path.read_text("utf-8"))) > 1:
            raise ValueError("has several graphs; give one without others in it")
        return nx.read_graphml(path)
    if path.suffix.lower() != ".gml":
        lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
        text = "\n".join(line for line in lines if line and line[0] != "%")
        sections = [x for x in re.split(r"\n(?=\*)", text) if "\n" in x]  # others are empty
        heads = [section.split()[0].lower() for section in sections]
        if heads not in (["*vertices", "*arcs"], ["*vertices", "*edges"]):
            raise ValueError(f"has {', '.join(heads)}; give *Vertices, and one *Arcs or *Edges")
        graph = nx.parse_pajek("\n".join(sections))
        if len(graph) != int(sections[0].split()[1]):
            raise ValueError("has two vertices of one name")
        return graph
    try:
        return nx.read_gml(path)
    except nx.NetworkXError:  # without labels, or with one twice
        return nx.read_gml(path, label="id")


def read_triples(path: Path, heading: bool | None = None, first: bool = False) -> Triples:
    """The triples of a file of three columns: key, query and value, in this order.

    Args:
        heading: whether the first line is one; None to tell by the rule.
        first: whether the first of several values of a pair counts, and not the others.

    Raises:
        ValueError, OSError: it is no such list, or a pair has several values.
    """
    if path.suffix.lower() == ".parquet":
        table = _of_parquet(path)
        if table.num_columns != 3:
            raise ValueError(f"its columns are {', '.join(table.column_names)}; give three")
        columns, names = [_entries(table, at) for at in range(3)], table.column_names
    else:
        columns, names = _three(read_rows(text_lines(path))[0], heading)
    known = [numbered(column) for column in columns]
    listed = np.array([codes[0] for _, codes in known], dtype=np.int32).T
    if not len(listed):
        raise ValueError("holds no triples")
    distinct = listed[np.sort(np.unique(listed, axis=0, return_index=True)[1])]
    pairs, place, times = np.unique(distinct[:, :2], axis=0, return_index=True, return_counts=True)
    told = [f"{len(pairs)} triples"]
    told += ["key {}, query {}, value {}".format(*names)] if names else []
    if len(distinct) < len(listed):
        told.append(f"{len(listed) - len(distinct)} that occur again count once")
    triples, several = distinct[place], int((times > 1).sum())
    if several:
        key, query = (known[at][0][pairs[times.argmax()][at]] for at in (0, 1))
        if not first:
            raise ValueError(
                f"key '{key[:LONGEST]}' has {times.max()} values at query '{query[:LONGEST]}', "
                f"among {several} pairs with several; say several: first to take the first of them"
            )
        told.append(f"the first value of each of the {several} pairs that have several")
        triples[:, 2] = np.unique(triples[:, 2], return_inverse=True)[1]  # one may be gone
    return Triples(triples, "; ".join(told))


def _three(rows: list[Row], heading: bool | None) -> tuple[list[Row], Row]:
    """The columns of triples and their heading, if any, without an index that has no name."""
    first = rows[0]
    start = int(first[0] == "" and len(first) == 4)
    if len(first) != 3 + start:
        raise ValueError(
            f"line 1 is '{', '.join(first)[:LONGEST]}'; give three columns: key, query and value"
        )
    if heading is None:
        heading = bool(start) or column_of(first, FIRST) == 0 or is_heading(rows, (0, 1))
    names = first[start:] if heading else []
    return [[row[at] for row in rows[heading:]] for at in range(start, start + 3)], names
