"""What is proved impossible, what weights are known to pass, and so what limits a threshold.

A study's thresholds are of its own training. Its store may know better: layers that a construction
made, or that were trained longer or otherwise, for the same graphs and embeddings; and proofs that
no weights of one head are right on every pair (construction ``one-head``). What limits a threshold
is

- ``budget``: weights that pass are known at a smaller D_K, the smallest of them by a longer run of
  the same protocol;
- ``optimisation``: they are known, and the smallest are others;
- ``proved``: one head passes at no width, and in every draw none can be right on all pairs;
- ``unknown``: none of these.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rgr_dist.analysis.load import StudyResults, per_study
from rgr_dist.analysis.records import integer
from rgr_dist.analysis.thresholds.best import best_of
from rgr_dist.search.probe_verdict import passes
from rgr_dist.store.row import cell_columns
from rgr_dist.study.cell import PROBLEM, Cell, canonical_json
from rgr_dist.study.models import MODELS

ONE_HEAD = "one-head"
UNROUNDED = "float32"
"""The precision of weights as they were trained."""
SHAPE = ["graph", "degree", "embedding", "m", "d_model", "context_length", "positive_rate"]
"""Columns of a run that are the same in every cell of a problem."""
READ = ("cell_id", "h", "D_K", "run_id", "seed", "score", "val_score")
KNOWN = ("proved_draws", "decided_draws", "possible_D_K", "possible_h", "possible_source",
         "exact_D_K", "exact_source", "limited_by")  # fmt: skip
WHOLE = ("proved_draws", "decided_draws", "possible_D_K", "possible_h", "exact_D_K")

Row = Mapping[Any, Any]


@dataclass(frozen=True)
class Protocol:
    """What made weights.

    Attributes:
        problem: ``Cell.problem_json`` of what they were made for.
        path: canonical JSON of the cell without its step limit.
        max_steps: that limit.
        is_made: whether they are not trained.
        source: where they come from, in words.
    """

    problem: str
    path: str
    max_steps: int
    is_made: bool
    source: str

    @classmethod
    def of(cls, cell: Mapping[str, Any]) -> Protocol:
        """The protocol of a cell, as JSON has it."""
        steps = int(cell["training"]["max_steps"])
        training = {key: cell["training"][key] for key in cell["training"] if key != "max_steps"}
        problem = canonical_json({key: cell[key] for key in PROBLEM if key in cell})
        source = f"training at {steps:,} steps"
        if is_made := MODELS[cell["model"]].task == "construction":
            source = "construction"
        elif training.get("start") == "constructed":
            source = "constructed start"
        return cls(problem, canonical_json({**cell, "training": training}), steps, is_made, source)

    def is_longer(self, other: Protocol) -> bool:
        """Whether it is the other one with a larger step limit."""
        return self.path == other.path and self.max_steps > other.max_steps


@dataclass(frozen=True)
class Weights:
    """A layer for each draw of a problem.

    Attributes:
        passes: whether they pass the study's test, on its seeds and on all others that are stored.
        exact: whether they are known to be right on all pairs of each of the study's draws.
    """

    cell_id: str
    protocol: Protocol
    h: int
    D_K: int
    passes: bool
    exact: bool


@per_study
def thresholds_with_known(results: StudyResults) -> pd.DataFrame:
    """The thresholds of a study beside what its store knows.

    Returns:
        ``StudyResults.thresholds`` with ``KNOWN``. Of one head ``proved_draws`` and
        ``decided_draws`` count those of the study's draws that are proved impossible at any width,
        and those that are decided. ``possible_D_K`` is the smallest for which weights are known
        that pass the study's test, ``exact_D_K`` the smallest for which they are known to be right
        on all pairs of every draw, each with its source; null where none are. ``limited_by`` is
        null unless a threshold is found, no width up to the largest passes, or none can.
    """
    return _with_known(results, results.thresholds)


@per_study
def best_with_known(results: StudyResults) -> pd.DataFrame:
    """D_K* of every cell beside what the store knows: ``best`` with ``KNOWN``.

    Weights of every head count compete, but in a study of one head count only those.
    """
    return _with_known(results, best_of(results))


def _with_known(results: StudyResults, table: pd.DataFrame) -> pd.DataFrame:
    cells = {cell.cell_id: cell for cell in results.study.cells}
    table = table[table["cell_id"].isin(list(cells))]
    stored = table.get("limited_by", pd.Series(None, table.index, "object"))
    ended = table["status"].isin(["found", "censored"])
    table = table.assign(limited_by=stored.fillna("unknown").where(ended, None))
    if results.study.record.finds != "D_K":
        return table
    weights, draws = known_weights(results), _one_head(results)
    heads = results.study.search.heads
    rows = []
    for row in table.astype("object").to_dict("records"):
        cell, h = cells[row["cell_id"]], row.get("h", heads[0] if len(heads) == 1 else None)
        alike = [one for one in weights.get(cell.problem_json, ()) if h in (None, one.h)]
        rows.append(_known(cell, row, alike, draws.get(cell.problem_json) if h == 1 else None))
    known = pd.DataFrame(rows, table.index, KNOWN, "object").astype(dict.fromkeys(WHOLE, "Int64"))
    return table.drop(columns="limited_by").join(known)


def _known(
    cell: Cell, row: Row, weights: Sequence[Weights], draws: Sequence[bool | None] | None
) -> Row:
    """``KNOWN`` of one threshold, or of the best of one cell.

    Args:
        draws: of one head, as ``_one_head`` has them.
    """
    protocol, D_K, limit = _protocol(cell), integer(row["D_K"]), row["limited_by"]

    def rank(one: Weights) -> tuple[int, bool, bool]:
        return one.D_K, one.cell_id != cell.cell_id, not one.protocol.is_longer(protocol)

    usable = [one for one in weights if one.cell_id != cell.cell_id or one.D_K == D_K]
    possible = min((one for one in usable if one.passes), key=rank, default=None)
    exact = min((one for one in usable if one.exact), key=rank, default=None)
    if D_K is not None and (possible is None or possible.D_K >= D_K):  # its own, which passed
        own = int(row["h"] if "h" in row else row["h_star"])
        possible = Weights(cell.cell_id, protocol, own, D_K, True, False)
    elif possible is not None and limit is not None:
        limit = "budget" if possible.protocol.is_longer(protocol) else "optimisation"
    elif possible is None and draws is not None and all(draws):
        limit = "proved"
    return {
        "proved_draws": None if draws is None else draws.count(True),
        "decided_draws": None if draws is None else len(draws) - draws.count(None),
        "possible_D_K": possible and possible.D_K,
        "possible_h": possible and possible.h,
        "possible_source": possible and possible.protocol.source,
        "exact_D_K": exact and exact.D_K,
        "exact_source": exact and exact.protocol.source,
        "limited_by": limit,
    }


@per_study
def known_weights(results: StudyResults) -> dict[str, list[Weights]]:
    """Weights that the store has of a study's problems, by ``Cell.problem_json``.

    Of constructions, of the study's model in any protocol, and of the study itself.
    """
    search, record, (runs, protocols) = results.study.search, results.study.record, _runs(results)
    exact = _exact_runs(results)
    probes: dict[tuple[str, int, int], list[tuple[int, float, bool]]] = {}
    for cell_id, h, D_K, run_id, seed, score, on_contexts in zip(
        *(runs[name] for name in READ), strict=True
    ):
        is_made = protocols[cell_id].is_made
        judged = on_contexts if is_made and record.algorithm is None else score
        scored = seed, judged, score == 1 if is_made else run_id in exact
        probes.setdefault((cell_id, h, D_K), []).append(scored)
    found: dict[str, list[Weights]] = {}
    for (cell_id, h, D_K), runs_of in probes.items():
        first = [one for one in runs_of if one[0] < search.seeds]
        if len(first) == search.seeds:
            rest = [one for one in runs_of if one[0] >= search.seeds]
            passing = all(
                passes([score for _, score, _ in some], search.target, record.minimised)
                for some in (first, rest)
                if some
            )
            one = Weights(cell_id, protocols[cell_id], h, D_K, passing, all(e for *_, e in first))
            found.setdefault(one.protocol.problem, []).append(one)
    return found


@per_study
def _runs(results: StudyResults) -> tuple[pd.DataFrame, dict[str, Protocol]]:
    """Stored runs on a study's problems, with ``READ``, and the protocol of each cell.

    A run that diverged has the worst score.
    """
    study, store, record = results.study, results.store, results.study.record
    protocols = {cell.cell_id: _protocol(cell) for cell in study.cells}
    runs = results.runs
    if store is not None:
        alike = [
            one.name
            for one in MODELS.values()
            if (one.heads, one.loss) == (record.heads, record.loss)
        ]
        shapes = pd.DataFrame(map(cell_columns, study.cells))[SHAPE].drop_duplicates()
        others = store.runs(columns=[*READ, *SHAPE, "model", "stop_reason"])
        others = others[others["model"].isin(alike) & ~others["cell_id"].isin(list(protocols))]
        others = others.merge(shapes)
        configs = store.runs(set(others["cell_id"]), ["cell_id", "config"])
        problems = {one.problem for one in protocols.values()}
        for cell_id, config in configs.drop_duplicates("cell_id").itertuples(index=False):
            protocol = Protocol.of(json.loads(config)["cell"])
            if protocol.problem in problems:
                protocols[cell_id] = protocol
        runs = pd.concat([runs, others])
    runs = runs[(runs["stop_reason"] != "failed") & runs["cell_id"].isin(list(protocols))]
    worst = math.inf if record.minimised else 0.0
    return runs.fillna({"score": worst, "val_score": worst}), protocols


def _exact_runs(results: StudyResults) -> set[str]:
    """Trained runs that ``rgr all-pairs`` found right on all pairs."""
    exact: set[str] = set()
    if (store := results.store) is None:
        return exact
    for name in store.studies():
        table = store.read_study_table(name, "all_pairs")
        if table is not None:
            is_exact = (table["precision"] == UNROUNDED) & (table["failed_pairs"] == 0)
            exact |= set(table.loc[is_exact, "run_id"])
    return exact


@per_study
def _one_head(results: StudyResults) -> dict[str, list[bool | None]]:
    """Of each problem whether one head is proved impossible: of each draw, None if undecided."""
    runs, protocols = _runs(results)
    runs = runs[(runs["model"] == ONE_HEAD) & (runs["seed"] < results.study.search.seeds)]
    draws: dict[str, list[bool | None]] = {}
    names = ("cell_id", "seed", "score", "stop_reason")
    for cell_id, seed, score, reason in zip(*(runs[name] for name in names), strict=True):
        known = draws.setdefault(protocols[cell_id].problem, [None] * results.study.search.seeds)
        known[seed] = score < 1 if score == 1 or reason == "converged" else None
    return draws


def _protocol(cell: Cell) -> Protocol:
    return Protocol.of(cell.model_dump(mode="json"))
