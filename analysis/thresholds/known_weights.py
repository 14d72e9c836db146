"""What is proved impossible, what weights are known to pass, and so what limits a threshold.

A study's thresholds hold for its own training. Its store may hold better layers for the same graphs
and embeddings, constructed, trained longer or trained otherwise; and proofs that no weights of one
head are right on every pair (construction ``one-head``). What limits a threshold is

- ``budget``: weights are known that pass at a smaller D_K, and the smallest come from longer
  training by the same protocol; or D_K* still falls between the study's last two step limits;
- ``optimisation``: such weights are known, and the smallest come from elsewhere;
- ``proved``: one head passes at no width, and in no draw can one head be right on all pairs;
- ``unknown``: none of these.

Of the construction ``one-head`` one width stands for all, so only ``proved`` limits it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.records import integer
from rgr_dist.analysis.thresholds.best_heads import best_of
from rgr_dist.planning.budgets import AtLimit, limited_by
from rgr_dist.search.probe_verdict import passes
from rgr_dist.store.row import cell_columns
from rgr_dist.study.address import canonical_json
from rgr_dist.study.cell import PROBLEM, Cell
from rgr_dist.study.models import MODELS
from rgr_dist.study.study import Study

CONSTRUCTION = "construction"
NO_CELL = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What a config that holds no cell raises."""
SHAPE = ["graph", "degree", "embedding", "m", "d_model", "context_length", "positive_rate"]
"""Columns of a run that are the same in every cell of a problem."""
READ = ["cell_id", "h", "D_K", "seed", "score", "val_score", "model", "stop_reason"]
WHOLE = ("proved_draws", "decided_draws", "possible_D_K", "possible_h", "exact_D_K")
KNOWN = (*WHOLE[:4], "possible_source", "exact_D_K", "exact_source", "limited_by")

Row = Mapping[Any, Any]
Draws = list[bool | None]
"""For each draw, whether one head is proved impossible; None if that is not decided."""


class Origin(NamedTuple):
    """Where weights come from: problem, protocol without step limit, that limit, source in words.

    problem is ``Cell.problem_json``, plus the layer's file; protocol is the cell as canonical JSON.
    """

    problem: str
    protocol: str
    max_steps: int
    source: str

    @classmethod
    def of(cls, cell: Mapping[str, Any]) -> Origin:
        """The origin of weights of a cell, from the cell's JSON."""
        training = dict(cell["training"])
        steps = int(training.pop("max_steps"))
        training.pop("give_up_below", None)  # a run that passes is the same without it
        source = f"training at {steps:,} steps"
        if MODELS[cell["model"]].task == "construction":
            source = CONSTRUCTION
        elif training.get("start") == "constructed":
            source = "constructed start"
        problem = canonical_json({key: cell[key] for key in (*PROBLEM, "layer") if key in cell})
        return cls(problem, canonical_json({**cell, "training": training}), steps, source)

    def is_longer(self, other: Origin) -> bool:
        """Whether this is the other origin with a larger step limit."""
        return self.protocol == other.protocol and self.max_steps > other.max_steps


class Weights(NamedTuple):
    """A layer for each of a study's draws: whether these pass its test, and are known to be exact.

    They must pass on the study's seeds, and again on all others stored; exact: right on all pairs.
    """

    cell_id: str
    origin: Origin
    h: int
    D_K: int
    passes: bool
    exact: bool


@per_study
def thresholds_with_known(results: StudyResults) -> pd.DataFrame:
    """The thresholds of a study, together with what its store knows.

    Returns:
        ``StudyResults.thresholds`` with ``KNOWN``. For one head, ``proved_draws`` and
        ``decided_draws`` count the study's draws that are proved impossible at any width, and those
        decided either way. ``possible_D_K`` is the smallest D_K at which weights are known that
        pass the study's test, ``exact_D_K`` the smallest at which weights are known to be right on
        all pairs of every draw, each with its source; null if none are known. ``limited_by`` is
        null unless a threshold is found, no width up to the largest passes, or none can; of
        ``one-head`` null unless none can.
    """
    return _with_known(results, results.thresholds)


@per_study
def best_with_known(results: StudyResults) -> pd.DataFrame:
    """D_K* of every cell, together with what the store knows: ``best_of`` with ``KNOWN``.

    Weights of every head count compete; in a study of one head count, only weights of that count.
    """
    return _with_known(results, best_of(results))


def rests_on(results: StudyResults, cell: Cell) -> dict[str, str]:
    """In words, by name: the proof that one head cannot hold a cell's draws, and known weights.

    ``known_weights`` are told where they pass below the cell's own D_K*, or where it has none.
    """
    if results.study.record.finds != "D_K":
        return {}
    said = dict[str, str]()
    for own in (thresholds_with_known(results), best_with_known(results)):
        for row in own[own["cell_id"] == cell.cell_id].astype("object").to_dict("records"):
            D_K, possible = integer(row["D_K"]), integer(row["possible_D_K"])
            if "h" in row and integer(row["proved_draws"]):
                said["proved"] = (
                    f"in {row['proved_draws']} of {row['decided_draws']} draws no weights of one "
                    "head, however wide, are right on all pairs (Gordan's alternative, not in the "
                    "paper: docs/theory.md); rgr bounds --one-head proves it anew, and with --save "
                    "keeps its certificate"
                )
            elif "h_star" in row and possible and (D_K is None or possible < D_K):
                size = possible, integer(row["possible_h"]), row["possible_source"]
                made = [
                    MODELS[json.loads(one.origin.protocol)["model"]]
                    for one in known_weights(results)[0][_origin(cell).problem]
                    if (one.D_K, one.h, one.origin.source) == size and size[-1] == CONSTRUCTION
                ]
                by = f" {made[0].name} ({made[0].section})" if made else ""
                said["known_weights"] = f"pass at D_K = {possible}, h = {size[1]}: {size[2]}{by}"
    return said


def _with_known(results: StudyResults, table: pd.DataFrame) -> pd.DataFrame:
    cells = {cell.cell_id: cell for cell in results.study.cells}
    table = table[table["cell_id"].isin(list(cells))]
    stored = table["limited_by"] if "limited_by" in table else _by_limits(results.study, table)
    ended = table["status"].isin(["found", "censored"])
    table = table.assign(limited_by=stored.fillna("unknown").where(ended, None))
    if results.study.record.finds != "D_K":
        return table.reindex(columns=[*table, *KNOWN[:-1]])
    weights, draws = known_weights(results)
    heads, rows = results.study.search.heads, []
    for row in table.astype("object").to_dict("records"):
        cell, h = cells[row["cell_id"]], row.get("h", heads[0] if len(heads) == 1 else None)
        problem = _origin(cell).problem
        alike = [one for one in weights.get(problem, ()) if h in (None, one.h)]
        rows.append(_known(cell, row, alike, draws.get(problem) if h == 1 else None))
    known = pd.DataFrame(rows, table.index, KNOWN, "object").astype(dict.fromkeys(WHOLE, "Int64"))
    return table.drop(columns="limited_by").join(known)


def _by_limits(study: Study, best: pd.DataFrame) -> pd.Series[Any]:
    """Whether the budget limits each cell's best, judged by the study's step limits alone."""
    sizes = study.search.sizes
    widths, lows = (map(integer, best[name]) for name in (sizes.total, sizes.low))
    known = dict(zip(best["cell_id"], map(AtLimit.of, best["status"], widths, lows), strict=True))
    by = {
        cell_id: limited_by(own.total, [known[cell.cell_id] for cell in study.budgets[cell_id]])
        for cell_id, own in known.items()
    }
    return best["cell_id"].map(by).astype("object")


def _known(cell: Cell, row: Row, weights: Sequence[Weights], draws: Draws | None) -> dict[str, Any]:
    """``KNOWN`` of one threshold, or of the best of one cell."""
    origin, D_K, limit = _origin(cell), integer(row["D_K"]), row["limited_by"]
    least = integer(row["D_K_low"]) if D_K is None else D_K

    def rank(one: Weights) -> tuple[int, bool, bool]:
        return one.D_K, one.cell_id != cell.cell_id, not one.origin.is_longer(origin)

    usable = [one for one in weights if one.cell_id != cell.cell_id or one.D_K == D_K]
    possible = min((one for one in usable if one.passes), key=rank, default=None)
    exact = min((one for one in usable if one.exact), key=rank, default=None)
    if D_K is not None and (possible is None or possible.D_K >= D_K):  # its own, which passed
        own = int(row["h"] if "h" in row else row["h_star"])
        possible = Weights(cell.cell_id, origin, own, D_K, passes=True, exact=False)
    elif possible and limit is not None and (least is None or least > possible.D_K):
        limit = "budget" if possible.origin.is_longer(origin) else "optimisation"
    elif possible is None and draws is not None and all(draws):
        limit = "proved"
    if cell.record.algorithm == "one-head" and limit != "proved":  # of one width: all are the same
        limit = None
    return {
        "proved_draws": draws and draws.count(True),
        "decided_draws": draws and len(draws) - draws.count(None),
        "possible_D_K": possible and possible.D_K,
        "possible_h": possible and possible.h,
        "possible_source": possible and possible.origin.source,
        "exact_D_K": exact and exact.D_K,
        "exact_source": exact and exact.origin.source,
        "limited_by": limit,
    }


@per_study
def known_weights(results: StudyResults) -> tuple[dict[str, list[Weights]], dict[str, Draws]]:
    """What the store holds for a study's problems, by ``Origin.problem``.

    Returns:
        Weights from constructions, and from the study's model under any protocol, including its
        own; and the ``Draws`` of one head.
    """
    search, record, (runs, origins) = results.study.search, results.study.record, _runs(results)
    draws = dict[str, Draws]()
    probes: dict[tuple[str, int, int], list[tuple[bool, float, bool]]] = {}
    for cell_id, h, D_K, seed, score, on_contexts, model, reason in zip(
        *(runs[name] for name in READ), strict=True
    ):
        origin, is_first = origins[cell_id], seed < search.seeds
        is_made = origin.source == CONSTRUCTION
        judged = on_contexts if is_made and record.algorithm is None else score
        is_exact = is_made and score == 1
        probes.setdefault((cell_id, h, D_K), []).append((is_first, judged, is_exact))
        if model == "one-head" and is_first:
            known = draws.setdefault(origin.problem, [None] * search.seeds)
            known[seed] = not is_exact if is_exact or reason == "converged" else None
    found: dict[str, list[Weights]] = {}
    for (cell_id, h, D_K), own in probes.items():
        first, rest = ([one for one in own if one[0] is which] for which in (True, False))
        if len(first) == search.seeds:
            passing = all(
                passes([score for _, score, _ in some], search.target, record.minimised)
                for some in (first, rest)
            )
            one = Weights(cell_id, origins[cell_id], h, D_K, passing, all(one[2] for one in first))
            found.setdefault(one.origin.problem, []).append(one)
    return found, draws


def _runs(results: StudyResults) -> tuple[pd.DataFrame, dict[str, Origin]]:
    """Stored runs on a study's problems, with ``READ``, and the origin of each cell.

    A run that diverged has the worst score.
    """
    study, store, record = results.study, results.store, results.study.record
    origins = {cell.cell_id: _origin(cell) for cell in study.cells}
    problems, runs = {one.problem for one in origins.values()}, results.runs
    if store is not None:
        kind = record.heads, record.loss
        alike = [one.name for one in MODELS.values() if (one.heads, one.loss) == kind]
        shapes = pd.DataFrame(map(cell_columns, study.cells))[SHAPE].drop_duplicates()
        others = store.runs(columns=[*READ, *SHAPE]).merge(shapes)
        others = others[others["model"].isin(alike) & ~others["cell_id"].isin(list(origins))]
        configs = store.runs(set(others["cell_id"]), ["cell_id", "config"])
        for cell_id, config in configs.drop_duplicates("cell_id").itertuples(index=False):
            with suppress(*NO_CELL):  # rgr verify names it
                origin = Origin.of(json.loads(config)["cell"])
                if origin.problem in problems:
                    origins[cell_id] = origin
        runs = pd.concat([runs, others])
    runs = runs[(runs["stop_reason"] != "failed") & runs["cell_id"].isin(list(origins))]
    worst = math.inf if record.minimised else 0.0
    return runs.fillna({"score": worst, "val_score": worst}), origins


def _origin(cell: Cell) -> Origin:
    return Origin.of(cell.model_dump(mode="json"))
