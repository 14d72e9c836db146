"""The cell of a verb that draws graphs and embeddings without a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rgr_dist.study.cell import Cell


def drawn_cell(
    verb: str,
    m: int,
    d_model: int,
    graph: str | None = None,
    degree: int | None = None,
    embedding: str = "gaussian",
    length: int | None = None,
) -> Cell:
    """The cell whose seeds are the draws, at the paper's protocol but for what is given.

    Args:
        graph: a file of edges; permutations are drawn without it.
        degree: draw r-regular graphs instead.
        length: items of a context, by default the paper's 16, or m.

    Raises:
        StudyError: there is no such cell, or the file cannot be read.
    """
    from rgr_dist.study.cell import Cell
    from rgr_dist.study.edge_list import load_edges
    from rgr_dist.study.errors import validated, within

    keys: dict[str, Any] = {
        "m": m,
        "d_model": d_model,
        "embedding": {"family": embedding},
        "context": {"length": length or min(16, m)},
    }
    if degree is not None:
        keys["graph"] = {"family": "regular", "degree": degree}
    if graph is not None:
        with within("--graph "):
            keys["graph"] = load_edges(graph)
    return validated(Cell, keys, f"{verb}: ")
