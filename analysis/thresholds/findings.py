"""The findings of a study of thresholds, in sentences; every number comes from its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from rgr_dist.analysis.wording import plural
from rgr_dist.study.study import Study


def target_words(study: Study) -> str:
    """What passes: ``a mean test score of 0.99``."""
    if study.cells[0].minimised:
        return f"a mean test error (MSE) of at most {study.search.target:g}"
    return f"a mean test score of {study.search.target}"


ONE_SEED = "With one seed nothing says how far another would move a threshold."


def score_words(study: Study) -> str:
    """What a run's score is."""
    if study.cells[0].minimised:
        return "A run's error is that of the messages that it retrieves in test contexts."
    return "A run's score is the micro-F1 of the relations that it finds in test contexts."


GRAPHS = {
    "permutation": "a random permutation of them (m′ = m relations)",
    "regular": "a random regular graph of degree r on them (m′ = r m relations)",
    "edges": "a graph on them, given as a list of m′ edges",
}


def asked(study: Study, cells: Sequence[Mapping[str, Any]]) -> str:
    """What the study asks, for a reader who has only the page.

    Args:
        cells: rows of ``thresholds.rows.cells_of``, by size.
    """
    first = study.cells[0]
    family = first.graph.family
    graph = (
        GRAPHS.get(family, family)
        if len({c.graph.family for c in study.cells}) == 1
        else "a graph of m′ relations"
    )
    limits = sorted({cell.training.max_steps for cell in study.cells})
    if study.has_budgets:
        sizes = sorted({(cell.m, cell.d_model) for cell in study.cells})
        where = f"(m, d_model) = {sizes[0]}"
        where += f" to {sizes[-1]}" if len(sizes) > 1 else ""
        which = (
            f"For {where}, m items in d_model dimensions, at step limits from {limits[0]:,} to "
            f"{limits[-1]:,},"
        )
    elif len(cells) == 1:
        which = f"At {cells[0]['full']}, m items in d_model dimensions,"
    else:
        ends = f"from {cells[0]['full']} to {cells[-1]['short']}"
        which = f"For {len(cells)} cells of m items in d_model dimensions, {ends},"
    return (
        f"{which} we asked for the smallest total key width D_K = h · d_k at which "
        f"{first.record.layer or first.model} holds {graph}: {target_words(study)} over "
        f"{plural(study.search.seeds, 'seed')}, with the best number of heads h."
    )


def unfinished(cells: Sequence[Mapping[str, Any]]) -> str:
    """That some cells are still searched, so that their thresholds may change; else nothing.

    Args:
        cells: rows of ``thresholds.rows.cells_of``.
    """
    n = sum(row["status"] == "open" for row in cells)
    if not n:
        return ""
    are = "is" if n == 1 else "are"
    return (
        f"The study is not finished: {n} of {plural(len(cells), 'cell')} {are} open, and what this "
        "page says of them may change."
    )


def limits(thresholds: pd.DataFrame) -> str:
    """How many thresholds are known to be limited by training, and how many by capacity."""
    capacity, budget = (
        int((thresholds["limited_by"] == by).sum()) for by in ("capacity", "budget")
    )
    return (
        f"Of {plural(capacity + budget, 'threshold')}, {budget} would be lower with a larger "
        f"training budget: D_K still falls at larger step limits. The other {capacity} are the "
        "same at the two largest."
    )
