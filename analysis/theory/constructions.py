"""What a store holds about weights constructed, not trained, for the graphs of a study."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rgr_dist.analysis.thresholds.known_weights import Origin
from rgr_dist.store.store import Store
from rgr_dist.study.address import canonical_json
from rgr_dist.study.models import MODELS
from rgr_dist.study.study import Study

ALGORITHM_1 = "algorithm-1"
OURS = "ours"
MADE = [record.name for record in MODELS.values() if record.task == "construction"]
COLUMNS = ("cell_id", "model", "m", "d_model", "h", "d_k", "stop_reason", "score", "config")
LIMIT = "orthogonal"
"""Signatures that give Algorithm 1's limit d_k → ∞."""


@dataclass(frozen=True)
class Width:
    """The smallest D_K that a search found exact in every draw, its heads, and how many draws."""

    D_K: int
    h: int
    draws: int


def construction_runs(store: Store) -> pd.DataFrame:
    """Every stored run of a construction, with ``COLUMNS``, the score being F1 on all pairs."""
    kinds = store.runs(columns=["cell_id", "model"])
    return store.runs(set(kinds.loc[kinds["model"].isin(MADE), "cell_id"]), COLUMNS)


def constructed_widths(store: Store, runs: pd.DataFrame) -> dict[str, Width]:
    """The smallest D_K of ``ours`` that is exact in every draw, by the problem of its cell.

    It comes from the tables of every study in the store that searched for it; if their numbers of
    draws differ, only those with the most draws count.

    Args:
        runs: those of ``construction_runs``, which show the problem of each cell.
    """
    problem_of = _problems(runs)
    found: dict[str, Width] = {}
    for name in store.studies():
        table = store.read_study_table(name, "thresholds")
        if table is None:
            continue
        is_exact = (table["status"] == "found") & (table["mean_score"] == 1)
        own = table[(table["model"] == OURS) & is_exact][
            ["cell_id", "D_K", "h", "n_seeds"]
        ].dropna()
        for cell_id, D_K, h, draws in own.itertuples(index=False):
            width, problem = Width(int(D_K), int(h), int(draws)), problem_of.get(cell_id)
            if problem is not None:
                known = found.setdefault(problem, width)
                found[problem] = min(known, width, key=lambda one: (-one.draws, one.D_K, one.h))
    return found


def rates_of_algorithm_1(study: Study, runs: pd.DataFrame) -> pd.DataFrame:
    """How often Algorithm 1 with its printed blocks of d_model recovers graphs, at every size.

    Args:
        runs: those of ``construction_runs``, of which only those with graphs, embeddings and
            contexts like the study's count, at any m and d_model.

    Returns:
        A row for each size, d_k and choice of signatures and tau: ``m, d_model, h, d_k,
        signatures, tau, draws, exact, success_low, success_high, mean_f1``, with a 95 %
        Clopper-Pearson interval of the share of exact draws. Orthogonal signatures give the limit
        d_k → ∞ if d_k is at least the block size, ceil(m / h).
    """
    kinds = {_kind(cell.problem_json) for cell in study.cells}
    kind_of = {cell_id: _kind(problem) for cell_id, problem in _problems(runs).items()}
    own = runs[
        (runs["model"] == ALGORITHM_1)
        & (runs["h"] == -(-runs["m"] // runs["d_model"]))
        & (runs["stop_reason"] != "failed")
        & runs["cell_id"].map(kind_of).isin(kinds)
    ]
    own = own.assign(exact=own["score"] == 1)
    table = own.groupby(["cell_id", "h", "d_k"], sort=False, as_index=False).agg(
        m=("m", "first"),
        d_model=("d_model", "first"),
        config=("config", "first"),
        draws=("score", "size"),
        exact=("exact", "sum"),
        mean_f1=("score", "mean"),
    )
    options = [json.loads(config)["cell"].get("construction", {}) for config in table["config"]]
    table = table.assign(
        signatures=[_law(option) for option in options],
        tau=[option.get("tau", "printed") for option in options],
    )
    if len(table):
        from statsmodels.stats.proportion import proportion_confint  # half a second

        low, high = proportion_confint(table["exact"], table["draws"], method="beta")
        table = table.assign(success_low=low, success_high=high)
    columns = ["m", "d_model", "h", "d_k", "signatures", "tau", "draws", "exact", "success_low",
               "success_high", "mean_f1"]  # fmt: skip
    table = table.reindex(columns=columns)
    return table.sort_values(["m", "d_model", "signatures", "d_k", "tau"], ignore_index=True)


def _law(option: dict[str, Any]) -> str:
    """The signatures in a run's stored options, with the p of Bernoulli ones: 1/4 unless given."""
    kind = option.get("signatures") or "rademacher"
    return f"bernoulli({option.get('p') or 0.25:g})" if kind == "bernoulli" else kind


def _problems(runs: pd.DataFrame) -> dict[str, str]:
    """The problem of each cell by its cell_id."""
    firsts = runs.drop_duplicates("cell_id")[["cell_id", "config"]]
    return {cell_id: Origin.of(json.loads(c)["cell"]).problem for cell_id, c in firsts.to_numpy()}


def _kind(problem: str) -> str:
    """A problem without its sizes."""
    keys = json.loads(problem)
    return canonical_json({key: keys[key] for key in keys if key not in ("m", "d_model")})
