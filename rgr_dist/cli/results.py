"""The verbs that tell what a study found: ``thresholds``, ``fit``, ``report``, ``explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import CELL, Heads, How, Out, Set, StudyName, opened
from rgr_dist.study.errors import StudyError

THRESHOLD_COLUMNS = (
    "cell m d_model degree h h_star h_low h_high d_k D_K D_K_low D_K_high status mean_score n_seeds"
    " bits_per_parameter limited_by"
)
LAW_COLUMNS = "response predictor cells n slope slope_low slope_high intercept r2 reason"
DECISION_COLUMNS = (
    "step h d_k D_K longer why verdict ran spared stored_before evidence"
    " status D_K_low D_K_high because limited_by"
)


def thresholds(
    study: StudyName, out: Out = "results", set_: Set = None, how: How = Format.TABLE
) -> None:
    """The threshold of every (cell, h), and the best of every cell."""
    from analysis.load import open_results
    from analysis.records import best_records, threshold_records
    from analysis.thresholds import best_of

    with opened(study, set_, out) as (resolved, store):
        results = open_results(resolved, store)
    best = best_of(results)
    sections = {"thresholds": threshold_records(results.thresholds), "best": best_records(best)}
    if resolved.has_alike_cells:  # their sizes do not tell them apart
        for name, table in ("thresholds", results.thresholds), ("best", best):
            names = table["cell_id"].map(resolved.cell_names)
            sections[name] = [
                {"cell": cell, **row} for cell, row in zip(names, sections[name], strict=True)
            ]
    print_listing(sections, how, show=THRESHOLD_COLUMNS.split())


def fit(study: StudyName, out: Out = "results", set_: Set = None, how: How = Format.TABLE) -> None:
    """The scaling laws fitted to a study, with 95 % intervals."""
    from analysis.laws import distinct, laws_of
    from analysis.load import open_results

    with opened(study, set_, out) as (resolved, store):
        results = open_results(resolved, store)
    laws = laws_of(results)
    if how is Format.TABLE:
        laws = distinct(laws)
    print_listing({"laws": [law.to_json() for law in laws]}, how, show=LAW_COLUMNS.split())


def report(study: StudyName, out: Out = "results", set_: Set = None) -> None:
    """Write a study's report: one page with its figures and tables beside it."""
    from analysis.load import open_results
    from analysis.report.publish import publish

    with opened(study, set_, out) as (resolved, store):
        results = open_results(resolved, store)
        if results.runs.empty:
            raise StudyError(f"{out} holds no run of {study}; rgr run {study} trains them")
        store.check_writable()
        print(publish(results, store))


def explain(
    study: StudyName,
    cell: Annotated[str, typer.Option(metavar=CELL, help="Which cell.")],
    out: Out = "results",
    heads: Heads = None,
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """Every decision behind a cell's thresholds, and the command that repeats it."""
    from rgr_dist.planning.explain import command_to_repeat, explain_cell
    from rgr_dist.study.select import cell_named, heads_named

    with opened(study, set_, out) as (resolved, store):
        chosen = cell_named(resolved, cell)
        listed = heads_named(resolved, heads or ())
        sections, facts = explain_cell(resolved, chosen, store, listed)
        facts["repeat"] = command_to_repeat(study, set_ or (), chosen, store)
    print_listing(sections, how, show=DECISION_COLUMNS.split(), facts=facts)
