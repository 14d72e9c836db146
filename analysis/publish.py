"""From a study and its store to what people read: thresholds, laws, the report."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pandas as pd

from analysis import accuracy, wording
from analysis.laws import Law, fit_laws
from analysis.load import StudyResults
from analysis.report import write_report
from analysis.thresholds import best
from rgr_dist.planning.portfolio import stored_search
from rgr_dist.planning.tables import decision_rows, threshold_rows
from rgr_dist.store.schema import DECISIONS, THRESHOLDS
from rgr_dist.store.store import Store
from rgr_dist.study.study import Study
from search.portfolio import Portfolio


def open_results(study: Study, store: Store) -> tuple[StudyResults, Portfolio]:
    """The study's tables, rebuilt from its stored runs alone, and the search behind them."""
    search = stored_search(study, store)
    results = StudyResults(
        study=study,
        runs=search.runs,
        thresholds=_frame(threshold_rows(study, search.portfolio), THRESHOLDS.names),
        decisions=_frame(decision_rows(study, search.portfolio), DECISIONS.names),
    )
    return results, search.portfolio


def best_of(results: StudyResults) -> pd.DataFrame:
    """One row per cell: D_K* and h* with their intervals (App. A.2)."""
    return best(results.thresholds, results.runs, results.study)


def laws_of(results: StudyResults) -> list[Law]:
    """The scaling laws fitted to the study's cells."""
    return fit_laws(best_of(results))


def headline_of(results: StudyResults) -> str:
    """The finding of the study in a sentence or two."""
    if results.study.cells[0].model == "transformer":
        table = accuracy.splits(results.runs, results.study)
        return f"{accuracy.headline(table)} {accuracy.collapse_words(table)}"
    return wording.headline(laws_of(results), best_of(results))


def publish(results: StudyResults, store: Store) -> str:
    """Write the report and ``laws.json`` into the store; returns where the page is."""
    home = f"studies/{results.study.name}"
    text = json.dumps({"laws": [law.to_json() for law in laws_of(results)]}, indent=2)
    store.write_text(f"{home}/laws.json", text + "\n")
    if store.local_path is not None:
        page = write_report(results, store.local_path / home / "report")
        return str(page)
    with tempfile.TemporaryDirectory() as scratch:
        write_report(results, Path(scratch))
        return f"{store.upload(Path(scratch), f'{home}/report')}/index.html"


def _frame(rows: list[dict[str, object]], columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=columns)
