"""The memory that a run takes, by its sizes, and whether a machine has it.

Only arrays that grow with the cell are counted: embeddings, the graph, contexts, parameters with
their optimiser, and what the engines hold as they score. What every worker takes, however small its
run (Python and its libraries), is left out.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from rgr_dist.faults import UserError
from rgr_dist.planning.first_guesses import width_scale
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study

SINGLE, DOUBLE = 4, 8
"""Bytes of a number."""
SAMPLING = 2 * DOUBLE
"""Bytes for each entry of an embedding as it is drawn: its rows, and the same as unit vectors."""
CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""Files in which Linux says how much memory a container may take."""
D_FF = 16
"""Width of the transformer's hidden layer."""
AT_ONCE = 16
"""Examples of the transformer that are trained or scored at once."""


SURELY_HELD = 0.5
"""m' ln m / d_model² up to which one head holds every graph that was tried; from 0.99 on it is
proved to hold none of them."""


def check_memory(study: Study, cells: Iterable[Cell], available: float | None, where: str) -> None:
    """Make sure that one run of each cell fits in memory, at the width where it is first expected.

    Args:
        available: bytes; None if unknown, which passes.
        where: whose memory, in words.

    Raises:
        UserError: naming the first cell that does not fit, what it needs and what there is.
    """
    if available is None:
        return
    for cell in cells:
        needed = run_memory(cell, _first_width(cell, study))
        if needed > available:
            raise UserError(
                f"{study.name_of(cell)}: a run needs about {needed / 1e9:,.1f} GB of memory, and "
                f"{where} has {available / 1e9:,.1f} GB; give smaller sizes, or a larger machine"
            )


def run_memory(cell: Cell, D_K: float) -> float:
    """Peak bytes of one run of a cell whose layer has this total key width, or for facts, D_V."""
    if cell.record.task == "matching":
        return _matching(cell, D_K)
    if cell.database is not None:
        return _facts(cell, D_K)
    m, d = cell.m, cell.d_model
    graph = _graph(cell)
    if cell.record.algorithm == "one-head":
        return max(SAMPLING * m * d, _one_head(cell)) + graph
    if cell.record.task == "construction":
        factors = DOUBLE * m * (5 * d + 4 * D_K)  # embeddings, their SVD, queries and keys
        return max(SAMPLING * m * d, factors) + graph
    task = DOUBLE * m * d + SINGLE * m * d  # as drawn, and as the engine takes it
    if cell.record.loss == "messages":
        task += (DOUBLE + SINGLE) * m * d
    # As drawn, twice, and half of weights, gradient and moments: the rest takes the draws' place.
    layer = 2 * d * D_K * (2 * DOUBLE + 2 * SINGLE)
    contexts = cell.training.validation_contexts, cell.training.test_contexts
    scorers = sum(_scorer(cell, D_K, count) for count in contexts)
    return max(SAMPLING * m * d, task + layer + scorers) + graph


def machine_memory() -> float | None:
    """Bytes of memory of this machine, or of this container if it may have less."""
    limits: list[int] = []
    with suppress(OSError, ValueError, AttributeError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for limit in CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # not Linux, or "max": no limit
            limits.append(int(limit.read_text()))
    return min(limits, default=None)


def _first_width(cell: Cell, study: Study) -> float:
    """Total key width of the first probe, roughly; where every width is trained, the largest."""
    search = study.search
    if search.mode == "widest":
        return max(search.sizes.width(int(arm), cell.d_model) for arm in search.arms)
    if search.mode == "grid" and search.axis == "d_vo":
        heads = [int(arm) for arm in search.arms]
        return max(search.sizes.width(arm, wide) for arm in heads for wide in search.listed(arm))
    if search.mode == "grid":
        return max(search.widths)
    return max(1.0, min(width_scale(cell), search.max_D_K or math.inf))


def _graph(cell: Cell) -> float:
    """Bytes for drawing a graph: to sort random keys, and for a regular one a matrix of pairs."""
    pairs = cell.m**2 if cell.graph.family == "regular" else 0
    return pairs + 5 * DOUBLE * cell.m + 3 * SINGLE * cell.n_edges


def _scorer(cell: Cell, D_K: float, contexts: int) -> float:
    """Bytes that scoring over some contexts takes: all pairs, or queries and keys of all items."""
    m, length = cell.m, cell.context.length
    by_pairs = cell.record.scores_pairs and m**2 <= contexts * length**2
    table = m**2 + m * (cell.d_model + 2 * D_K) if by_pairs else m * 2 * D_K
    return SINGLE * (table + contexts * length)


def _matching(cell: Cell, D_K: float) -> float:
    """Bytes of the transformer's run: the table, the block's weights, moments and best weights."""
    d, answers = cell.d_model, cell.m + 1
    weights = 2 * d * d + 2 * d * D_K + 2 * D_FF * d
    steady = (DOUBLE + SINGLE) * answers * d + 5 * SINGLE * weights + SINGLE * AT_ONCE * answers
    return max(SAMPLING * answers * d, steady) + _graph(cell)


def _one_head(cell: Cell) -> float:
    """Bytes of looking for weights of one head, and of a proof where there may be none."""
    is_held = cell.n_edges * math.log(cell.m) <= SURELY_HELD * cell.d_model**2
    unknowns = cell.d_model**2 + 1
    proof = 0.0 if is_held else unknowns * (2.0 * unknowns + 1536)
    return DOUBLE * (8 * cell.m**2 + 70 * unknowns + proof)


def _facts(cell: Cell, D_V: float) -> float:
    """Bytes of a run of facts: triples, parameters with moments, logits and their gradient."""
    database = cell.database
    assert database is not None
    tokens = database.keys + database.queries + database.values
    weights = cell.d_model * (tokens + 4 * D_V)
    logits = 4 * DOUBLE * database.keys * database.queries * database.values
    return 5 * DOUBLE * weights + logits + 3 * SINGLE * cell.m
