"""Where each cell's search starts: a law fitted to solved cells, else the paper's constants.

The expectations of a study's cells are fixed when the study is first run, and kept beside its
tables: resuming or replaying it takes the same path. Cells added later learn from those that
are solved by then.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from rgr_dist.paper import DENSE_LAW, LAWS, capacity_scale, compression
from rgr_dist.search.confidence_interval import t_quantile
from rgr_dist.store.prior import Expectation, parse_prior
from rgr_dist.store.storage import StoreError
from rgr_dist.store.store import Store
from rgr_dist.study.cell import Cell
from rgr_dist.study.study import Study

PAPER_SPREAD = 1.5
"""How far the paper's constants may well be off, as a factor."""
FACTS_SHARE, FACTS_SPREAD = 0.25, 2.0
"""For facts there is no published law: the search starts at this share of d_model."""
LEAST_SOLVED = 3
"""With fewer solved cells than this, the paper's constants are the better guide."""
LEAST_RANGE = 2.0
"""Smallest factor between the largest and the smallest x for which a power law is fitted."""
LEAST_SPREAD, LARGEST_SPREAD = 1.15, 2.0
"""Bounds on how far the first steps go: less would creep, more would leap over a doubling."""


def width_scale(cell: Cell) -> float:
    """Roughly what to expect of a cell's searched total width: D_K, or D_V of facts."""
    if cell.database is not None:
        return max(1.0, FACTS_SHARE * cell.d_model)
    return capacity_scale(cell.m, cell.d_model, cell.n_edges)


def papers_expectation(cell: Cell) -> Expectation:
    """What the paper's fits say of a cell; for facts, which have none, a guess of ours."""
    if cell.database is not None:
        return Expectation(width_scale(cell), 8.0, FACTS_SPREAD, "a share of d_model")
    law = LAWS["D_K"] if cell.graph.degree == 1 else DENSE_LAW
    heads = LAWS["h"]
    sizes = (cell.m, cell.d_model, cell.n_edges)
    return Expectation(
        D_K=law.slope * capacity_scale(*sizes),
        h=max(1.0, heads.slope * compression(*sizes) + heads.intercept),
        spread=PAPER_SPREAD,
        source="the paper's constants",
    )


def expectations(study: Study, store: Store) -> dict[str, Expectation]:
    """What to expect of each cell of a study, by cell_id: as recorded, else fitted now.

    The store is told if the expectations of cells that have been searched are lost.
    """
    store.lost_starts.discard(_path(study))
    recorded = _recorded(study, store)
    unknown = [cell for cell in study.cells if cell.cell_id not in recorded]
    if not unknown:
        return recorded
    if study.name in store.no_folders():
        raise StoreError(f"--store {store.root}: studies/{study.name} is no folder; move it away")
    tables = {name: store.read_study_table(name, "thresholds") for name in store.studies()}
    own = tables.get(study.name)
    if own is not None and own["cell_id"].isin([cell.cell_id for cell in unknown]).any():
        store.lost_starts.add(_path(study))
    solved = _solved([table for table in tables.values() if table is not None])
    return recorded | {cell.cell_id: _fitted(cell, solved) for cell in unknown}


def record(study: Study, store: Store, expected: dict[str, Expectation]) -> None:
    """Store the study as resolved and all expectations, also those of cells since taken out.

    Raises:
        StoreError: they could not be stored.
    """
    store.write_study(study)
    merged = _recorded(study, store) | expected
    content = {cell_id: asdict(value) for cell_id, value in merged.items()}
    store.write_text(_path(study), json.dumps(content, indent=2, sort_keys=True) + "\n")
    store.lost_starts.discard(_path(study))


def _path(study: Study) -> str:
    return f"studies/{study.name}/prior.json"


def _recorded(study: Study, store: Store) -> dict[str, Expectation]:
    try:
        text = store.read_text(_path(study))
        return {} if text is None else parse_prior(text)
    except ValueError:
        raise StoreError(
            f"--store {store.root}: {_path(study)} is damaged; remove it, and the first probes "
            "start from the law as it is fitted now"
        ) from None


def _solved(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The best threshold of every cell in the tables of any study."""
    if not tables:
        return pd.DataFrame(columns=["cell_id", "model", "graph"])
    found = pd.concat(tables).query("status == 'found'").sort_values(["D_K", "h"])
    found = found.dropna(subset=["D_K", "h", "m", "d_model"])
    return found.drop_duplicates("cell_id").sort_values("cell_id")


def _fitted(cell: Cell, solved: pd.DataFrame) -> Expectation:
    """What a law fitted to solved cells of the same model and graph family says of a cell."""
    own = solved[(solved["model"] == cell.model_name) & (solved["graph"] == cell.graph.family)]
    own = own[own["cell_id"] != cell.cell_id]
    fallback = papers_expectation(cell)
    if len(own) < LEAST_SOLVED or cell.database is not None:
        return fallback
    edges = own["n_edges"].fillna(own["m"] * own["degree"])
    loads = (edges / own["d_model"]).tolist()
    widths = [x * math.log2(m) for x, m in zip(loads, own["m"], strict=True)]
    ratio, spread = fit_ratio(widths, own["D_K"].tolist())
    power = fit_power(loads, own["h"].tolist())
    sizes = (cell.m, cell.d_model, cell.n_edges)
    D_K, heads = ratio * capacity_scale(*sizes), fallback.h
    if power is not None:
        log_heads = power[1] + power[0] * math.log(compression(*sizes))
        heads = math.exp(max(0.0, min(log_heads, math.log(D_K))))  # each is at least 1 wide
    return Expectation(D_K, heads, spread, f"{len(own)} solved cells")


def fit_ratio(scales: Sequence[float], found: Sequence[float]) -> tuple[float, float]:
    """The geometric mean of found / scale, and the factor to the end of its prediction interval.

    Args:
        scales: what the law takes each threshold to be proportional to; at least two.
        found: the thresholds.

    Returns:
        The ratio, and the spread of one more observation at 95 %, within its bounds.
    """
    logs = [math.log(y / x) for x, y in zip(scales, found, strict=True)]
    n = len(logs)
    mean = math.fsum(logs) / n
    variance = math.fsum((value - mean) ** 2 for value in logs) / (n - 1)
    half = t_quantile(n - 1) * math.sqrt(variance * (1 + 1 / n))
    return math.exp(mean), min(max(math.exp(min(half, 1.0)), LEAST_SPREAD), LARGEST_SPREAD)


def fit_power(x: Sequence[float], y: Sequence[float]) -> tuple[float, float] | None:
    """Exponent and log factor of y = factor * x ** exponent, by least squares on the logarithms.

    Returns:
        None where fewer than three points, or too narrow a range of x, leave the exponent open.
    """
    if len(x) < 3 or max(x) < LEAST_RANGE * min(x):
        return None
    log_x, log_y = (np.array([math.log(value) for value in axis]) for axis in (x, y))
    (square, product), _ = np.cov(log_x, log_y, bias=True)
    slope = float(product / square)
    return slope, float(log_y.mean()) - slope * float(log_x.mean())
