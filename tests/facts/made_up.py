"""Runs of facts of any shape."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from rgr_dist.facts.cell import Database, FactsCell
from rgr_dist.study.run import Run

FUNCTION = {"family": "function", "keys": 5, "queries": 3, "values": 7}
FAMILIES: dict[str, dict[str, Any]] = {
    "function": {},
    "partial": {"share": 0.3},
    "low-rank": {"rank": 5},
    "predicates": {"per_query": 2},
}


def database(family: str, keys: int = 12, queries: int = 4, values: int = 9, **own: Any) -> Any:
    """A database of a family."""
    given = {"family": family, "keys": keys, "queries": queries, "values": values}
    return TypeAdapter(Database).validate_python({**given, **FAMILIES[family], **own})


def cell_of(d_model: int = 6, **own: Any) -> FactsCell:
    """A cell, whose triples are counted."""
    asked = TypeAdapter(Database).validate_python(own.pop("database", FUNCTION))
    keys = {"model": "facts", "database": asked, "m": asked.n_asked, "d_model": d_model}
    return FactsCell.model_validate({**keys, **own})


def run_of(h: int = 2, d_qk: int = 3, d_vo: int = 2, seed: int = 1, **own: Any) -> Run:
    """A run, with its widths as the paper calls them."""
    facts = {**own.pop("facts", {}), "d_qk": d_qk}
    return Run(cell=cell_of(facts=facts, **own), h=h, d_k=d_vo, seed=seed)
