"""Small studies of every kind, finished by the real search on made-up scores, and what they say.

Each run's score follows from a width that is made up for its cell, so that rows are the same on
every machine: nothing is trained. Beside a page lie the records that commands print as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from rgr_dist.analysis.facts import tables as facts
from rgr_dist.analysis.laws import conclusions
from rgr_dist.analysis.laws.families import laws_of_facts
from rgr_dist.analysis.laws.fits import fits_of
from rgr_dist.analysis.laws.predict import predict_sizes
from rgr_dist.analysis.load import StudyResults, open_results
from rgr_dist.analysis.page.render import render
from rgr_dist.analysis.report.publish import comparison, report
from rgr_dist.analysis.report.sections import state
from rgr_dist.analysis.thresholds.listing import best_records, threshold_records
from rgr_dist.analysis.transitions.probes import probes_of
from rgr_dist.paper import capacity_scale
from rgr_dist.planning.portfolio import stored_search
from rgr_dist.store.store import Store
from rgr_dist.study.run import Run
from rgr_dist.study.study import Study
from rgr_dist.study.study_file import parse_study
from tests.analysis.made_up import Row, Score, ended, trained
from tests.store.made_up_runs import failed_row

Page = tuple[str, dict[str, bytes]]

HEADS = [1, 2, 4, 8]
TAUS = (0.5, 0.8, 0.95)


def luck(run: Run) -> float:
    """Of a seed, standard normal; the same at every width, so that scores grow with it."""
    return float(np.random.default_rng([run.seed, run.cell.m, run.cell.d_model, run.h]).normal())


def width_of(run: Run) -> float:
    """The D_K from which on the head count of a run is wide enough: least at some four heads."""
    cell = run.cell
    best_h = max(1.0, cell.n_edges / cell.d_model / 4)
    steps = 1 + 0.4 * math.sqrt(20_000 / cell.training.max_steps)
    scale = capacity_scale(cell.m, cell.d_model, cell.n_edges)
    return 0.9 * scale * steps * (1 + 0.06 * math.log2(run.h / best_h) ** 2)


def short_of(run: Run) -> float:
    """The share of relations that a run misses."""
    octaves = math.log2(run.D_K / width_of(run))
    return 10 ** (-2.2 - 3 * octaves + 0.3 * luck(run))


def relations(run: Run) -> Row:
    """F1 of a run of heads; one seed of one head diverges, and one of two never leaves zero."""
    if (run.h, run.seed, run.cell.m) == (1, 2, 128):
        return {"score": None, "val_score": None, "stop_reason": "diverged"}
    score = 1 - min(0.6, short_of(run))
    if (run.h, run.seed, run.cell.d_model) == (2, 3, 16):
        score = 0.02
    return ended(run.cell, score) | {"engine": "lanes" if run.h % 2 else "fused"}


def messages(run: Run) -> Row:
    """Mean squared error of a run of model value."""
    score = 1.3 * min(1.0, 60 * short_of(run))
    return relations(run) | {"score": score, "val_score": score, "stop_reason": "max_steps"}


def answers(run: Run) -> Row:
    """Accuracy of a transformer: heads help, and a seed of the most heads answers with NULL."""
    share = run.D_K / (run.D_K + 24) * (1 + 0.08 * math.log2(run.h))
    if (run.h, run.d_k, run.seed) == (1, 8, 2):
        return {"score": None, "val_score": None, "stop_reason": "diverged"}
    nulls = (run.h, run.seed) == (4, 1)
    score = 0.05 if nulls else round(min(1.0, share * (1 + 0.05 * luck(run))), 4)
    told = {"score": score, "val_score": score, "null_rate": 0.97 if nulls else 0.04}
    return told | {"stop_reason": "max_steps", "steps": run.cell.training.max_steps}


def triples(run: Run) -> Row:
    """Accuracies and ranks of a layer of facts: wide enough from a D_V on."""
    cell, d_vo = run.cell, run.d_vo
    assert cell.database is not None
    assert d_vo is not None
    enough = cell.m**0.8 / 6 * (1 + 1 / run.d_k)
    most = min(cell.database.keys, cell.database.values * cell.database.queries)
    reached = min(1.0, run.h * d_vo / enough * (1 + 0.02 * luck(run)))
    ranks = min(most, run.h * d_vo + 2)
    taus = [[tau, round(reached * (1.2 - tau), 4), max(1, round(ranks * tau))] for tau in TAUS]
    return {
        "score": reached,
        "val_score": reached,
        "d_vo": d_vo,
        "D_V": run.h * d_vo,
        "argmax_accuracy": min(1.0, 1.05 * reached),
        "softmax_accuracy": reached,
        "rank_logits": ranks,
        "rank_argmax": max(1, ranks - 1),
        "by_tau": json.dumps(taus),
        "stop_reason": "max_steps",
        "threshold_tau": None,
    }


def searched(study: Study, store: Store, score: Score, probes: int | None = None) -> StudyResults:
    """The study's results, after so many probes or all that its search asks for."""
    store.append(trained(study, store, score, probes))
    return open_results(study, store)


def page_of(results: StudyResults) -> Page:
    """A study's page, and its records beside it."""
    page, files = report(results)
    return page, files | {"records.json": as_json(records(results))}


def records(results: StudyResults) -> Row:
    """What ``rgr thresholds``, ``rgr fit`` and ``rgr predict`` print of it as JSON."""
    listed = {"thresholds": threshold_records(results), "best": best_records(results)}
    if results.study.search.axis == "d_vo":
        laws = laws_of_facts(results)
        growth = {"laws": [asdict(law) for law in laws], "growth": conclusions.growths(laws)}
        return {**listed, **growth, "runs": facts.runs(results)[:9]}
    fitted = fits_of(results)
    sizes = [(64, 16, None), (512, 16, 700), (1024, 24, None)]
    return {
        **listed,
        "laws": [asdict(law) for law in fitted.laws],
        "candidates": [asdict(one) for one in fitted.candidates],
        "candidates_wide": [asdict(one) for one in fitted.candidates_wide],
        "lack_of_fit": [asdict(test) for test in fitted.lack_of_fit],
        "published": [asdict(test) for test in fitted.published],
        "cells": fitted.cell_records(),
        "found": conclusions.sentences(fitted),
        "curves": probes_of(results).to_dict("records")[:9],
        "predictions": [dataclasses.asdict(predict_sizes(fitted, *size)) for size in sizes],
    }


def as_json(value: Any) -> bytes:
    """Indented, a line for each number, a fraction of eight digits."""

    def rounded(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: rounded(each) for name, each in part.items()}
        if isinstance(part, list | tuple):
            return [rounded(each) for each in part]
        return float(f"{part:.8g}") if isinstance(part, float) else part

    return json.dumps(rounded(value), indent=1).encode()


def head_of(study: Study, store: Store) -> bytes:
    """The head of its page as it runs."""
    results = open_results(study, store)
    head = state.section(results, stored_search(study, store))
    return render("made-up", [head], {}).encode()


def study_of(cells: list[Mapping[str, Any]], **parts: Any) -> Study:
    """A study of up to eight heads, unless its search says otherwise."""
    search = {"heads": HEADS} | parts.pop("search", {})
    return parse_study({"name": "made-up", "cells": cells, "search": search, **parts})


SIZES = [{"m": [64, 128], "d_model": [16, 32]}, {"m": 256, "d_model": 32}]


def of_thresholds(folder: Path) -> Page:
    """Five cells of model max, with fresh seeds; one run failed and was run again."""
    study, store = study_of(SIZES), Store(folder)
    store.append([failed_row(h=4, d_k=6, cell=study.cells[0])])
    page, files = page_of(searched(study, store, relations))
    return page, files | {"state.html": head_of(study, store)}


def unfinished(folder: Path) -> Page:
    """The same while its search runs."""
    return page_of(searched(study_of(SIZES), Store(folder), relations, probes=75))


def of_step_limits(folder: Path) -> Page:
    """Two cells at four step limits each."""
    limits = [5000, 20_000, 80_000, 320_000]
    cells = [{"m": [64, 128], "d_model": 16}]
    search = {"keep_heads": [1], "seeds": 3, "max_D_K": 160}
    study = study_of(cells, training={"max_steps": limits}, search=search)
    return page_of(searched(study, Store(folder), relations))


def of_a_grid(folder: Path) -> Page:
    """Softmax heads at listed widths."""
    search = {"mode": "grid", "D_K": [8, 16, 24, 32, 48, 64], "seeds": 3}
    study = study_of([{"m": 64, "d_model": [16, 32]}], model="softmax", search=search)
    return page_of(searched(study, Store(folder), relations))


def of_dense_graphs(folder: Path) -> Page:
    """Regular graphs, and model max, whose cells differ in their degree."""
    graph = {"family": "regular", "degree": [1, 2, 4, 8]}
    study = study_of([{"m": 64, "d_model": 32}], graph=graph, search={"seeds": 3})
    return page_of(searched(study, Store(folder), relations))


def of_messages(folder: Path) -> Page:
    """Model value, whose score is an error."""
    search = {"seeds": 3, "keep_within": None}
    study = study_of([{"m": 64, "d_model": [16, 32]}], model="value", search=search)
    return page_of(searched(study, Store(folder), messages))


def transformers(folder: Path, widths: list[int]) -> StudyResults:
    """A transformer's grid of these total widths."""
    search = {"mode": "grid", "D_K": widths, "heads": [1, 2, 4], "seeds": 3}
    cells = [{"m": 64, "d_model": [16, 32]}]
    study = study_of(cells, model="transformer", context={"length": 8}, search=search)
    return searched(study, Store(folder), answers)


def of_a_transformer(folder: Path) -> Page:
    """Accuracy of splits among heads, and the head of its page as it runs."""
    results = transformers(folder, [8, 16, 32])
    page, files = report(results)
    return page, files | {"state.html": head_of(results.study, Store(folder))}


def facts_study() -> Study:
    """Databases of two families, in two settings; the largest is too wide at one of them."""
    partial = {"family": "partial", "keys": [4, 8, 16, 32], "queries": 4, "values": 8, "share": 0.5}
    low_rank = {"family": "low-rank", "keys": 8, "queries": 4, "values": 8, "rank": 4}
    cells = [{"database": one, "d_model": 16} for one in (partial, low_rank)]
    search = {"axis": "d_vo", "per": {"d_qk": [1, 4]}, "seeds": 2, "max_d_vo": 9}
    return parse_study({"name": "made-up", "model": "facts", "cells": cells, "search": search})


def of_facts(folder: Path) -> Page:
    """Facts: thresholds by setting, ranks, laws."""
    return page_of(searched(facts_study(), Store(folder), triples))


def side_by_side(folder: Path) -> Page:
    """Two studies of shared cells."""
    one = searched(study_of(SIZES[:1], search={"seeds": 3}), Store(folder / "a"), relations)
    parts = {"context": {"length": 8}, "search": {"seeds": 5, "heads": [1, 4]}}
    other = searched(study_of([{"m": 64, "d_model": [16, 64]}, {"m": 128, "d_model": 16}], **parts),
                     Store(folder / "b"), relations)  # fmt: skip
    return comparison(one, other, ("one", "other"))


def transformers_side_by_side(folder: Path) -> Page:
    """Two grids of a transformer."""
    pair = (transformers(folder / "a", [8, 16]), transformers(folder / "b", [16, 32]))
    return comparison(*pair, ("one", "other"))


PAGES: dict[str, Callable[[Path], Page]] = {
    "thresholds": of_thresholds,
    "unfinished": unfinished,
    "step-limits": of_step_limits,
    "grid": of_a_grid,
    "dense": of_dense_graphs,
    "messages": of_messages,
    "transformer": of_a_transformer,
    "facts": of_facts,
    "side-by-side": side_by_side,
    "transformers-side-by-side": transformers_side_by_side,
}
