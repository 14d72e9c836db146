"""Small studies of every kind, finished by the real search on made-up scores: nothing is trained.

Each run's score follows from a width that is made up for its cell, and is the same everywhere.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from rgr_dist.analysis.load import StudyResults, open_results
from rgr_dist.analysis.report import page_of
from rgr_dist.paper import capacity_scale
from rgr_dist.store.store import Store
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.analysis.made_up import Row, Score, ended, trained

SIZES = [{"m": [64, 128], "d_model": [16, 32]}, {"m": 256, "d_model": 32}]


def luck(run: Run) -> float:
    """Of a seed, standard normal; the same at every width, so that scores grow with it."""
    return float(np.random.default_rng([run.seed, run.cell.m, run.cell.d_model, run.h]).normal())


def short_of(run: Run) -> float:
    """The share of relations that a run misses: few if it has some four heads and trains long."""
    cell = run.cell
    off = math.log2(run.h / max(1.0, cell.n_edges / cell.d_model / 4))
    slow = 1 + 0.4 * math.sqrt(20_000 / cell.training.max_steps)
    scale = capacity_scale(cell.m, cell.d_model, cell.n_edges)
    if cell.training.embeddings == "trained":
        scale *= 0.2 * math.sqrt(cell.training.relations)
    octaves = math.log2(run.D_K / (0.9 * scale * slow * (1 + 0.06 * off**2)))
    return float(10 ** (-2.2 - 3 * octaves + 0.3 * luck(run)))


def relations(run: Run) -> Row:
    """F1 of a run; one seed of one head diverges."""
    if (run.h, run.seed, run.cell.m) == (1, 2, 128):
        return {"score": None, "val_score": None, "stop_reason": "diverged"}
    score = 1 - min(0.6, short_of(run))
    return ended(run.cell, score) | {"engine": "compiled" if run.h % 2 else "fused"}


def messages(run: Run) -> Row:
    """Mean squared error of a run of model value."""
    score = 1.3 * min(1.0, 60 * short_of(run))
    return relations(run) | {"score": score, "val_score": score, "stop_reason": "max_steps"}


def answers(run: Run) -> Row:
    """Accuracy of a transformer: heads help."""
    share = run.D_K / (run.D_K + 24) * (1 + 0.08 * math.log2(run.h))
    score = round(min(1.0, share * (1 + 0.05 * luck(run))), 4)
    told = {"score": score, "val_score": score, "null_rate": 0.04}
    return told | {"stop_reason": "max_steps", "steps": run.cell.training.max_steps}


def layered(run: Run) -> Row:
    """F1 of a layer, and what it costs: that of a file has one key for all heads."""
    width = run.h * run.d_k
    cached = width if run.cell.layer is None else run.d_k
    return relations(run) | {"cached": cached, "parameters": 2 * run.cell.d_model * width}


def finished(study: Study, score: Score, probes: int | None = None) -> StudyResults:
    """The study's results, after so many probes or all that its search asks for."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        store.append(trained(study, store, score, probes))
        return open_results(study, store)


def study_of(cells: list[dict[str, Any]], **parts: Any) -> Study:
    """A study of up to eight heads, unless its search says otherwise."""
    search = {"heads": [1, 2, 4, 8], "seeds": 3} | parts.pop("search", {})
    return parse_study({"name": "made-up", "cells": cells, "search": search, **parts})


def thresholds() -> StudyResults:
    return finished(study_of(SIZES, search={"seeds": 10}), relations)


def twelve() -> StudyResults:
    """Enough cells to tell laws apart."""
    cells = [{"m": [64, 128, 256, 512], "d_model": [16, 32, 64]}]
    return finished(study_of(cells), relations)


def half_done() -> StudyResults:
    return finished(study_of(SIZES), relations, probes=12)


def empty() -> StudyResults:
    return finished(study_of(SIZES), relations, probes=0)


def censored() -> StudyResults:
    return finished(study_of(SIZES[:1], search={"max_D_K": 8}), relations)


def one_cell() -> StudyResults:
    return finished(study_of([{"m": 64, "d_model": 16}]), relations)


def step_limits() -> StudyResults:
    limits = [5000, 20_000, 80_000]
    cells = [{"m": [64, 128], "d_model": 16}]
    return finished(study_of(cells, training={"max_steps": limits}), relations)


def grid() -> StudyResults:
    search = {"mode": "grid", "D_K": [8, 16, 24, 32, 48, 64]}
    cells = [{"m": 64, "d_model": [16, 32]}]
    return finished(study_of(cells, model="softmax", search=search), relations)


def dense() -> StudyResults:
    graph = {"family": "regular", "degree": [1, 2, 4, 8]}
    return finished(study_of([{"m": 128, "d_model": 32}], graph=graph), relations)


def made_or_trained(run: Run) -> Row:
    """F1 of a run; of a construction, on all pairs."""
    row = relations(run)
    if run.cell.record.task == "construction" and row["score"] is not None:
        row["score"] = float(row["score"] > 0.99) or row["score"]
    return row


def equal_edges() -> StudyResults:
    cells = [
        {"m": m, "d_model": 32, "graph": {"degree": [1, 2, 4, 8][: 11 - m.bit_length()]}}
        for m in (64, 128, 256, 512)
    ]  # those of the shipped study
    parts: dict[str, Any] = {
        "model": ["max", {"construction": "ours"}],
        "graph": {"family": "regular"},
        "training": {"max_steps": [5000, 20_000]},
    }
    return finished(study_of(cells, **parts), made_or_trained)


def of_messages() -> StudyResults:
    return finished(study_of([{"m": 64, "d_model": [16, 32]}], model="value"), messages)


def transformer() -> StudyResults:
    search = {"mode": "grid", "D_K": [8, 16, 32], "heads": [1, 2, 4]}
    cells = [{"m": 64, "d_model": [16, 32]}]
    parts = {"model": "transformer", "context": {"length": 8}, "search": search}
    return finished(study_of(cells, **parts), answers)


def layers() -> StudyResults:
    cells = [{"m": [64, 128], "d_model": 16, "training": {"max_steps": [5000, 20_000]}}]
    return finished(study_of(cells, model=["max", {"zoo": "multi_query"}]), layered)


def rows() -> StudyResults:
    """Two kinds of rows at two step limits; of the larger size nothing passes."""
    embedding = [{}, {"family": "binary"}]
    limits, search = {"max_steps": [5000, 20_000]}, {"max_D_K": 48}
    cells = [{"m": [64, 128], "d_model": 16}]
    study = study_of(cells, embedding=embedding, training=limits, search=search)
    return finished(study, relations)


def kinds() -> StudyResults:
    """Two kinds of rows within one step limit."""
    embedding = [{"family": "binary"}, {}]
    return finished(study_of([{"m": [64, 128], "d_model": 16}], embedding=embedding), relations)


def decided(run: Run) -> Row:
    """Few items are held by what is constructed, and by what is trained long."""
    few = run.cell.m * run.cell.training.max_steps <= 16_000 * run.h
    if run.cell.record.task == "construction":
        is_held = run.cell.m < 24 * run.h
        reason = "converged" if is_held or run.h == 1 else "max_steps"
        return ended(run.cell, 1.0 if is_held else 0.9) | {"stop_reason": reason}
    return ended(run.cell, 1.0 if few else 0.5)


def phases() -> StudyResults:
    study = study_of(
        [{"m": [16, 32, 64], "d_model": 8}],
        model=["max", {"construction": "one-head"}, {"construction": "ours"}],
        training={"max_steps": [1000, 4000]},
        search={"mode": "grid", "D_K": [64], "heads": [1, 2, 8]},
    )
    return finished(study, decided)


def one_head() -> StudyResults:
    cells = [{"m": [16, 32], "d_model": 8}]
    search = {"heads": [1]}
    return finished(study_of(cells, model={"construction": "one-head"}, search=search), decided)


def shared() -> StudyResults:
    """Frozen embeddings, trained ones, and some that relations share."""
    sizes = {"m": [64, 128], "d_model": 16}
    kinds: list[dict[str, Any]] = [
        {"embeddings": ["frozen", "trained"]},
        {"embeddings": "trained", "relations": [4, 16]},
    ]
    return finished(study_of([{**sizes, "training": keys} for keys in kinds]), relations)


KINDS: dict[str, Callable[[], StudyResults]] = {
    "thresholds": thresholds,
    "twelve": twelve,
    "half done": half_done,
    "empty": empty,
    "censored": censored,
    "one cell": one_cell,
    "step limits": step_limits,
    "grid": grid,
    "dense": dense,
    "equal edges": equal_edges,
    "messages": of_messages,
    "transformer": transformer,
    "layers": layers,
    "rows": rows,
    "kinds": kinds,
    "phases": phases,
    "one head": one_head,
    "shared": shared,
}


@cache
def made(kind: str) -> StudyResults:
    """The results of a kind, made once."""
    return KINDS[kind]()


@cache
def page_of_kind(kind: str) -> str:
    """The page of a kind, rendered once; its best.csv lies beside it."""
    return page_of(made(kind), ["best.csv"])
