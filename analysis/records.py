"""Values of stored tables as plain Python, and the bits that a threshold implies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from rgr_dist.theory.bounds import Graphs, bits_per_parameter, graph_bits


def parse_certificate(text: object) -> dict[str, Any] | None:
    """The certificate in a threshold row, from JSON; None if the row has none.

    Raises:
        ValueError: the text is not JSON.
    """
    found: dict[str, Any] | None = json.loads(text) if isinstance(text, str) and text else None
    return found


def integer(value: Any) -> int | None:
    """The value of an integer column; None if missing."""
    return None if pd.isna(value) else int(value)


def real(value: Any) -> float | None:
    """The value of a real column; None if missing."""
    return None if pd.isna(value) else float(value)


def bits_of_graph(row: Mapping[Any, Any]) -> float:
    """Bits that single out the graph of a row's cell among those that its bound counts.

    log₂ m! for a permutation, else log₂ C(m(m-1), m'). For a regular graph this counts every graph
    with as many edges, which is an overcount.
    """
    m, edges = int(row["m"]), row["n_edges"]
    m_edges = m * int(row["degree"]) if pd.isna(edges) else int(edges)
    kind: Graphs = "permutations" if row["graph"] == "permutation" else "all"
    return graph_bits(m, m_edges, kind)


def graph_bits_per_parameter(row: Mapping[Any, Any]) -> float | None:
    """Bits of the graph in each of the 2 d_model D_K + 1 parameters, at the threshold of a row.

    None without a threshold. The threshold implies this number; it is not the b that a parameter
    can hold.
    """
    if pd.isna(row["D_K"]):
        return None
    return bits_per_parameter(bits_of_graph(row), int(row["d_model"]), int(row["D_K"]))


def with_bits(table: pd.DataFrame) -> pd.DataFrame:
    """A table of thresholds, or of cells, with ``bits_per_parameter`` as its last column."""
    bits = [graph_bits_per_parameter(row) for row in table.to_dict("records")]
    return table.assign(bits_per_parameter=pd.Series(bits, table.index, dtype="float64"))
