"""Checks that a cell can be searched as its study asks."""

from __future__ import annotations

import numpy as np

from rgr_dist.study import assets
from rgr_dist.study.cell import Cell
from rgr_dist.study.errors import StudyError
from rgr_dist.study.families import Edges
from rgr_dist.study.search import Search


def check_search(cell: Cell, search: Search) -> None:
    """Make sure that a cell can be searched as asked.

    Raises:
        StudyError: the model does not take these head counts, or a run would not end at a check.
    """
    record, limit, every = cell.record, cell.training.max_steps, cell.training.check_every
    if record.task != "construction" and limit % every:
        raise StudyError(
            f"training.max_steps: {limit} is not a multiple of check_every, which is {every}; "
            "a run ends at a check"
        )
    if record.algorithm == "one-head" and 1 not in search.heads:
        raise StudyError("search.heads: construction one-head has one; give [1]")
    least = min(search.heads)
    if record.algorithm == "5" and (degree := _largest_degree(cell)) > least:
        raise StudyError(
            f"search.heads: {least} is not valid for algorithm 5, whose heads take one edge of an "
            f"item; with degree {degree} give at least {degree}"
        )
    uneven = any(cell.d_model % h for h in search.heads)
    if record.splits_values and uneven:
        raise StudyError(
            f"search.heads: {search.heads} is not valid for model {cell.model}, whose heads share "
            f"d_model for their values; list divisors of d_model = {cell.d_model} alone"
        )


def _largest_degree(cell: Cell) -> int:
    """The most edges that leave an item, or that enter one."""
    graph = cell.graph
    if not isinstance(graph, Edges):
        return graph.degree
    _, entering = np.unique(assets.get(graph.digest)[:, 1], return_counts=True)
    return max(graph.degree, int(entering.max()))
