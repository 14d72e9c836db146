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
    UnclearError,
    column_of,
    is_heading,
    numbered,
    read_rows,
    word_of,
)

ENDS = ("source", "from", "src"), ("target", "to", "dst", "dest", "destination")
"""Words that a heading has for the two ends of an edge."""
PLACES = ("key", "subject", "head"), ("query", "predicate", "relation"), ("value", "object", "tail")
"""Words that a heading has for the three columns of triples."""
WANTED = "give two columns, or a heading with source and target"
WEIGHT = re.compile(r"[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?|\{.*\}")
GRAPHS = (".gml", ".graphml", ".net", ".paj", ".pajek")
"""Endings of files that networkx reads."""


class EdgeList(NamedTuple):
    """The edges of a file.

    Attributes:
        edges: int32 [m', 2], source and target, sorted, each once.
        names: of the items, in order: numbers by size, names by alphabet.
        told: what was read and what was not used, in words.
    """

    edges: npt.NDArray[np.int32]
    names: list[str]
    told: str


class Triples(NamedTuple):
    """The triples of a file.

    Attributes:
        triples: int32 [|D|, 3], key, query and value, sorted; each column is numbered by itself.
        told: what was read and what was not used, in words.
    """

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
    nodes: list[str] = []
    if path.suffix.lower() in GRAPHS:
        ends, nodes, both = _graph(path)
        undirected |= both
    elif path.suffix.lower() == ".parquet":
        ends = _of_parquet(path, told)
    else:
        ends, more = read_rows(path, lambda rows, said: _ends(rows, said, heading))
        told += more
    for end in ends:
        words = [one for one in end if not WHOLE.fullmatch(one)]
        odd = next((one for one in words if not re.search(r"\d", one)), None)
        if odd is not None and 2 * len(words) < len(end):
            raise ValueError(f"an entry is '{odd[:LONGEST]}' among numbers; give edges alone")
    names, number = numbered(*ends, nodes)
    pairs = np.array([[number[one] for one in end] for end in ends], dtype=np.int32).T
    edges = np.unique(pairs.reshape(-1, 2), axis=0)
    if not len(edges):
        raise ValueError("holds no edges")
    if len(edges) < len(pairs):
        told.append(f"{len(pairs) - len(edges)} that occur again count once")
    if undirected:
        edges = np.unique(np.concatenate([edges, edges[:, ::-1]]), axis=0)
        told.append("in both directions")
    said = f"{len(names)} items and {len(edges)} edges"
    return EdgeList(edges, names, "; ".join([said, *told]))


def _ends(rows: list[Row], comment: Row, heading: bool | None) -> tuple[list[Row], list[str]]:
    """The sources and targets of rows of text, and what of them is not used."""
    first, rest = rows[0], rows[1:]
    is_short = bool(rest) and len(first) < len(rest[0])
    first = ["", *first] if is_short else first
    places, has_index = _named_ends(first), first[0] == ""
    if is_short and (places is None or heading is False):
        raise ValueError(f"line 1 is '{', '.join(first)[2:LONGEST]}'; {WANTED}")
    if places is None and not has_index:
        _weights(rest or rows)  # refuses other columns first
    if heading is None:
        heading = places is not None or has_index or is_heading(first, rest, (0, 1))
    if not heading:
        places = _named_ends(comment) if len(comment) == len(first) else None
        unused = [] if places else _weights(rows)
        return _columns(rows, places or (0, 1)), unused
    if places is None:
        start = int(has_index)
        is_index = all(WHOLE.fullmatch(row[0]) for row in rest)
        if len(first) != start + 2 or (has_index and not is_index):
            raise ValueError(f"its heading is '{', '.join(first)[:LONGEST]}'; {WANTED}")
        places = (start, start + 1)
        turned = word_of(first[start]) in ENDS[1] or word_of(first[start + 1]) in ENDS[0]
        if turned:
            raise ValueError(f"its heading, '{', '.join(first)}', names one end alone; {WANTED}")
    others = [name for at, name in enumerate(first) if at not in places and name]
    return _columns(rest, places), [f"not used: {', '.join(others)[:LONGEST]}"] if others else []


def _columns(rows: Sequence[Row], places: Sequence[int]) -> list[Row]:
    return [[row[at] for row in rows] for at in places]


def _named_ends(heading: Sequence[str]) -> tuple[int, int] | None:
    """Which columns are source and target by their names; None if there are no names for both."""
    source, target = (column_of(heading, words) for words in ENDS)
    return None if source is None or target is None else (source, target)


def _weights(rows: Sequence[Row]) -> list[str]:
    """Says that a third column without a name is not used.

    Raises:
        ValueError: there are more, or it may be an end of the edges.
    """
    columns = list(zip(*rows, strict=True))
    if len(columns) == 2:
        return []
    if len(columns) > 3:
        raise ValueError(f"line 1 is '{', '.join(rows[0])[:LONGEST]}'; {WANTED}")
    wrong = next((row for row in rows if not WEIGHT.fullmatch(row[2])), None)
    if wrong is not None:
        raise ValueError(f"a line is '{', '.join(wrong)[:LONGEST]}'; {WANTED}")
    if set(columns[2]) == {"{}"}:
        return []
    kinds = [all(map(WHOLE.fullmatch, column)) for column in columns]
    is_once = len(set(columns[0])) == len(rows) > 1  # an index, or the item of a list of neighbours
    if kinds[0] != kinds[1] or (is_once and kinds[2] and len(set(columns[2])) > 1):
        raise UnclearError(
            f"line 1 is '{', '.join(rows[0])[:LONGEST]}', of which the third may be a weight or an "
            "end; write a heading with source and target above it"
        )
    return ["the third column, a weight, is not used"]


def _of_parquet(path: Path, told: list[str]) -> list[Row]:
    """The sources and targets of a Parquet file."""
    table = parquet(path)
    places = _named_ends(table.column_names)
    if places is None:
        if table.num_columns != 2:
            raise ValueError(f"its columns are {', '.join(table.column_names)[:LONGEST]}; {WANTED}")
        places = (0, 1)
    others = [name for at, name in enumerate(table.column_names) if at not in places]
    told += [f"not used: {', '.join(others)[:LONGEST]}"] if others else []
    return [entries(table, table.column_names[at]) for at in places]


def parquet(path: Path) -> Any:
    """The table of a Parquet file, without the index that pandas adds."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    return table.drop_columns([x for x in table.column_names if x.startswith("__index_level_")])


def entries(table: Any, name: str) -> list[str]:
    """A column of whole numbers or text, as text."""
    import pyarrow as pa

    column = table[name]
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or pa.types.is_integer(kind)):
        raise ValueError(f"its column {name} is of type {kind}; give whole numbers or text")
    if column.null_count:
        raise ValueError(f"an entry of its column {name} is missing")
    return [str(one).strip() for one in column.to_pylist()]


def _graph(path: Path) -> tuple[list[Row], list[str], bool]:
    """The ends of the edges of a graph that networkx reads, its nodes, and whether it has no
    directions."""
    try:
        import networkx as nx
    except ImportError:
        raise ValueError(
            f"{path.suffix} is read by networkx: pip install networkx, or give two columns"
        ) from None
    if path.suffix.lower() == ".gml":
        try:
            graph = nx.read_gml(path)
        except nx.NetworkXError:  # without labels, or with one twice
            graph = nx.read_gml(path, label="id")
    elif path.suffix.lower() == ".graphml":
        graph = nx.read_graphml(path)
    else:
        graph = nx.read_pajek(path)
    pairs = [(str(one).strip(), str(other).strip()) for one, other in graph.edges()]
    nodes = [str(node).strip() for node in graph]
    if len(set(nodes)) < len(nodes):
        raise ValueError("two of its nodes have the same name")
    return [[pair[at] for pair in pairs] for at in (0, 1)], nodes, not graph.is_directed()


def read_triples(path: Path, heading: bool | None = None, first: bool = False) -> Triples:
    """The triples of a file of three columns: key, query and value, in this order.

    Args:
        heading: whether the first line is one; None to tell by the rule.
        first: whether the first of several values of a pair counts, and not the others.

    Raises:
        ValueError, OSError: it is no such list, or a pair has several values.
    """
    if path.suffix.lower() == ".parquet":
        table = parquet(path)
        if table.num_columns != 3:
            raise ValueError(f"its columns are {', '.join(table.column_names)}; give three")
        _check_order(table.column_names)
        columns = [entries(table, name) for name in table.column_names]
    else:
        columns = read_rows(path, lambda rows, said: _three(rows, heading))
    known = [numbered(column) for column in columns]
    codes = [
        [number[one] for one in column] for column, (_, number) in zip(columns, known, strict=True)
    ]
    listed = np.array(codes, dtype=np.int32).T.reshape(-1, 3)
    _, at = np.unique(listed, axis=0, return_index=True)
    distinct = listed[np.sort(at)]
    pairs, place, times = np.unique(distinct[:, :2], axis=0, return_index=True, return_counts=True)
    if not len(pairs):
        raise ValueError("holds no triples")
    told = [f"{len(pairs)} triples"]
    if len(distinct) < len(listed):
        told.append(f"{len(listed) - len(distinct)} that occur again count once")
    if times.max() > 1:
        several = int((times > 1).sum())
        key, query = (known[i][0][pairs[times.argmax()][i]] for i in (0, 1))
        if not first:
            raise ValueError(
                f"key '{key[:LONGEST]}' has {times.max()} values at query '{query[:LONGEST]}', and "
                f"{several} pair{'s have' if several > 1 else ' has'} several; say several: first "
                "to take the first of them"
            )
        told.append(f"the first value of each of the {several} pairs that have several")
    triples = distinct[place]
    if first and times.max() > 1:  # a value may be gone, with its number
        triples[:, 2] = np.unique(triples[:, 2], return_inverse=True)[1]
    if triples[:, 2].max() == 0:
        raise ValueError("all triples have the same value")
    return Triples(triples, "; ".join(told))


def _three(rows: list[Row], heading: bool | None) -> list[Row]:
    """The columns of triples, without a heading and without an index that has no name."""
    first, rest = rows[0], rows[1:]
    first = ["", *first] if rest and len(first) < len(rest[0]) else first
    start = int(first[0] == "" and len(first) == 4)
    if len(first) != 3 + start:
        raise ValueError(
            f"line 1 is '{', '.join(first)[:LONGEST]}'; give three columns: key, query and value"
        )
    names = first[start:]
    if heading is None:
        heading = bool(start) or word_of(names[0]) in PLACES[0] or is_heading(first, rest, (0, 1))
    if not heading:
        return _columns(rows, (0, 1, 2))
    _check_order(names)
    return _columns(rest, range(start, start + 3))


def _check_order(names: Sequence[str]) -> None:
    """Make sure that no column of triples is headed as another one.

    Raises:
        ValueError: one is.
    """
    for at, name in enumerate(names):
        meant = next((i for i, words in enumerate(PLACES) if word_of(name) in words), at)
        if meant != at:
            raise ValueError(
                f"its columns are {', '.join(names)[:LONGEST]}; the order is key, query, value"
            )
