"""The verbs that show what was found: thresholds, runs, fit, predict, report, explain."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rgr_dist.cli.listing import DECISION_COLUMNS, Format, print_listing, say
from rgr_dist.cli.options import (
    LARGEST,
    Heads,
    How,
    OneCell,
    Out,
    Set,
    StudyName,
    as_typed,
    no_runs,
    opened,
    say_error,
)
from rgr_dist.faults import UserError, shown

if TYPE_CHECKING:
    from rgr_dist.analysis.load import StudyResults
    from rgr_dist.store.store import Store
    from rgr_dist.study.cell import Cell

LAW_COLUMNS = (
    "m d_model D_K ratio predicted residual leverage leverage_paper exponent_without"
    " name response predictor cells n slope slope_low slope_high intercept r2 exponent exponent_low"
    " exponent_high formula parameters gap loo_error supported reason"
)
RUN_COLUMNS = "cell h d_k D_K d_qk d_vo D_V seed stop_reason score steps seconds error"


def thresholds(
    study: StudyName,
    out: Out = "results",
    cell: OneCell = None,
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """The threshold of every (cell, h), and the best of every cell.

    CSV has a row for every (cell, h), which includes the best of its cell.
    """
    from rgr_dist.cli.threshold_tables import print_thresholds
    from rgr_dist.study.select import cell_named

    with stored_results(study, set_, out) as (results, _):
        chosen = None if cell is None else cell_named(results.study, cell)
    sections = threshold_sections(results, chosen, as_one=how is Format.CSV)
    if how is not Format.TABLE:
        print_listing(sections, how)
    elif not results.runs.empty:
        print_thresholds(results.study, sections)


@contextmanager
def stored_results(
    study: str, overrides: Sequence[str] | None, out: str
) -> Iterator[tuple[StudyResults, Store]]:
    """A study's results and its store; on exit, says so if the store has no run of the study.

    Raises:
        UserError: there is no store.
    """
    from rgr_dist.analysis.load import open_results

    with opened(study, overrides, out) as (resolved, store):
        results = open_results(resolved, store)
        yield results, store
    if results.runs.empty:
        say_error(*no_runs(study, out, overrides))


def threshold_sections(
    results: StudyResults, cell: Cell | None = None, as_one: bool = False
) -> dict[str, list[dict[str, Any]]]:
    """The records of ``thresholds`` and ``best``, with cells of the same size side by side.

    For a study that compares layers, also what each layer costs, ``layers``, and their ``order``.

    Args:
        cell: the only cell to include; all if not given.
        as_one: give only ``thresholds``, each with the sizes of its cell's best.
    """
    from rgr_dist.analysis.layers.costs import compares_layers, costs_of, order_of
    from rgr_dist.analysis.rows import rows_of
    from rgr_dist.analysis.thresholds.listing import best_records, threshold_records

    study = results.study
    sections = {"thresholds": threshold_records(results), "best": best_records(results)}
    layers: dict[str, list[dict[str, Any]]] = {}
    if compares_layers(study) and cell is None and not as_one:
        layers = {"layers": rows_of(costs_of(results)), "order": rows_of(order_of(results))}
    if cell is not None:
        name = study.name_of(cell)
        sections = {key: [r for r in rows if r["cell"] == name] for key, rows in sections.items()}
    if as_one:
        names = {size: f"best_{size}" for size in study.search.sizes.keys}
        names |= {own: own for own in ("h_star", "h_low", "h_high")}
        best = {
            row["cell"]: {name: row[key] for key, name in names.items() if key in row}
            for row in sections.pop("best")
        }
        sections["thresholds"] = [row | best[row["cell"]] for row in sections["thresholds"]]
    if study.record.finds == "D_V":
        return sections
    if not study.has_alike_cells:
        for row in itertools.chain(*sections.values()):
            del row["cell"]  # its sizes identify it
        return sections
    sizes = {study.name_of(cell): cell.name for cell in study.cells}
    place = {size: i for i, size in enumerate(dict.fromkeys(sizes.values()))}
    beside = {
        name: sorted(rows, key=lambda row: place[sizes[row["cell"]]])
        for name, rows in sections.items()
    }
    return beside | layers


def runs(
    study: StudyName,
    out: Out = "results",
    cell: OneCell = None,
    heads: Heads = None,
    failed: Annotated[bool, typer.Option("--failed", help="Failed runs alone.")] = False,
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """The study's runs, one row each, with how they ended. As CSV or JSON: the export of a study.

    A probe may have run fewer than all seeds, where those were enough for its verdict or for a
    first look: a mean over them is biased.
    """
    import pandas as pd

    from rgr_dist.planning.listing import divergence, reason, run_keys, run_rows
    from rgr_dist.study.select import cell_named, heads_named

    with opened(study, set_, out) as (resolved, store):
        chosen = None if cell is None else cell_named(resolved, cell)
        rows, known = run_rows(resolved, store, chosen, heads_named(resolved, heads or ()))
    diverged = divergence(pd.DataFrame(rows)) if rows and failed else None
    if failed:
        rows = [row for row in rows if row["stop_reason"] == "failed"]
    if not known:
        say_error(*no_runs(study, out, set_))
    elif diverged:
        say_error(diverged)
    if known and failed and not rows and how is Format.TABLE:
        narrowed = chosen is not None or heads
        say(f"no run {'that was asked for' if narrowed else f'of {study}'} failed")
        return
    if how is Format.TABLE:  # only the last line of an error; JSON and CSV have it all
        rows = [row | {"error": row["error"] and reason(row["error"])} for row in rows]
    columns = ["study", "cell", *map(resolved.search.sizes.shown, run_keys(resolved))]
    print_listing({"runs": rows}, how, show=RUN_COLUMNS.split(), columns=columns)


def fit(study: StudyName, out: Out = "results", set_: Set = None, how: How = Format.TABLE) -> None:
    """Fit scaling laws to a study, with 95 % intervals, and say which of them its data support."""
    with stored_results(study, set_, out) as (results, _):
        pass
    of_facts = results.study.record.holds == "facts"
    told = _laws_of_facts(results, how is Format.TABLE) if of_facts else _laws(results)
    sections, shown, sentences = told
    if how is not Format.TABLE:
        print_listing(sections, how, facts={"found": " ".join(sentences)})
        return
    print_listing(shown, how, show=LAW_COLUMNS.split())
    for sentence in sentences:
        say(sentence)


Sections = dict[str, list[dict[str, Any]]]


def _laws(results: StudyResults) -> tuple[Sections, Sections, list[str]]:
    """The laws of D_K*: for a script, for a table, and in sentences."""
    from rgr_dist.analysis.laws import conclusions
    from rgr_dist.analysis.laws.fits import fits_of
    from rgr_dist.analysis.laws.scaling_laws import distinct

    fits = fits_of(results)
    candidates, wide = (
        [one for one in some if one.status != "too few cells"]
        for some in (fits.candidates, fits.candidates_wide)
    )
    sections = {
        "laws": [asdict(law) for law in fits.laws],
        "candidates": [asdict(one) for one in candidates],
        "candidates_wide": [asdict(one) for one in wide],
        "lack_of_fit": [asdict(test) for test in fits.lack_of_fit],
        "published": [asdict(test) for test in fits.published if test.p_value is not None],
        "cells": fits.cell_records(),
    }
    shown = {
        "laws": [asdict(law) for law in distinct(fits.laws)],
        "which law?": [
            one | {"parameters": conclusions.unknowns(one)} for one in sections["candidates"]
        ],
        "cells": sections["cells"],
    }
    shown = {name: rows for name, rows in shown.items() if rows}
    return sections, shown, conclusions.sentences(fits)


def _laws_of_facts(results: StudyResults, brief: bool) -> tuple[Sections, Sections, list[str]]:
    """The laws of D_V*: for a script, for a table of those that fit, and in sentences."""
    from rgr_dist.analysis.facts.tables import rows_of_facts
    from rgr_dist.analysis.laws.conclusions import growths, growths_in_brief
    from rgr_dist.analysis.laws.families import SIZES_OF_A_LAW, laws_of_facts

    rows, fitted = rows_of_facts(results), laws_of_facts(results)
    laws = [asdict(law) for law in fitted]
    keys = ("cell", "facts", "rank_high", "d_model", "h", "d_qk", "D_V", "D_V_fails", "status")
    cells = [{key: row[key] for key in keys} for row in rows]
    few = f"No law of D_V* yet: it takes {SIZES_OF_A_LAW} sizes with a threshold at one setting."
    said = (growths_in_brief if brief else growths)(fitted)
    shown = {"laws": fits} if (fits := [law for law in laws if law["exponent"] is not None]) else {}
    return {"laws": laws, "cells": cells}, shown, said or [few]


def predict(
    m: Annotated[int, typer.Option("--m", min=2, max=LARGEST, help="Items.")],
    d_model: Annotated[int, typer.Option("--d-model", min=1, max=LARGEST, help="Embedding width.")],
    edges: Annotated[int | None, typer.Option(min=1, help="Relations m'; m if not given.")] = None,
    study: Annotated[str, typer.Option(metavar="STUDY", help="Whose laws.")] = "base-grid",
    out: Out = "results",
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """D_K, h and d_k for sizes of your own, from a study's laws, with 95 % prediction intervals."""
    from rgr_dist.analysis.laws.fits import fits_of
    from rgr_dist.analysis.laws.predict import predict_sizes
    from rgr_dist.analysis.load import open_results

    if edges is not None and edges > m * m:
        raise UserError(f"--edges {edges}: valid are 1 to m² = {m * m:,}, the pairs of items")
    with opened(study, set_, out) as (resolved, store):
        results = open_results(resolved, store)
    if resolved.record.holds == "facts":
        typed = as_typed(study, out, set_)
        raise UserError(f"--study {study}: has laws of facts only; rgr fit {typed} prints them")
    prediction = predict_sizes(fits_of(results), m, d_model, edges)
    if prediction.reason is not None:
        tables = {name: store.read_study_table(name, "thresholds") for name in store.studies()}
        others = ", ".join(
            name
            for name, table in tables.items()
            if name != resolved.name
            and table is not None
            and table.loc[table["status"] == "found", "cell_id"].nunique() > 2
        )
        more = f"rgr run {as_typed(study, out, set_)} finds thresholds"
        raise UserError(
            f"{out} has no law of {study}: {prediction.reason}; "
            + (more if len(resolved.cells) > 2 else "give it three cells or more")
            + (f"; or --study takes another: stored are {others}" if others else "")
        )
    facts = {"warnings": prediction.warnings} if how is Format.JSON else None
    print_listing({"predictions": prediction.rows}, how, facts=facts)
    for warning in prediction.warnings:
        say_error(f"warning: {warning}")


def report(study: StudyName, out: Out = "results", set_: Set = None) -> None:
    """Write a study's report into the store; prints where its page is."""
    from rgr_dist.analysis.report.publish import publish

    with stored_results(study, set_, out) as (results, store):
        print(shown(publish(results, store)))


def explain(
    study: StudyName,
    cell: OneCell = None,
    out: Out = "results",
    heads: Heads = None,
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """Every decision behind a cell's thresholds, and the command that repeats it."""
    from rgr_dist.analysis.load import open_results
    from rgr_dist.analysis.thresholds.known_weights import rests_on
    from rgr_dist.planning.explain import command_to_repeat, explain_cell, explained
    from rgr_dist.planning.portfolio import stored_runs
    from rgr_dist.study.select import cell_named, heads_named

    with opened(study, set_, out) as (resolved, store):
        chosen = cell_named(resolved, cell)
        listed = heads_named(resolved, heads or ())
        sections, facts = explain_cell(resolved, chosen, store, listed)
        facts |= rests_on(open_results(resolved, store), chosen)
        facts["repeat"] = command_to_repeat(study, set_ or (), chosen, store)
    if not sections["decisions"] and stored_runs(resolved, store).empty:
        say_error(*no_runs(study, out, set_))
    if how is Format.TABLE:
        found, sections = explained(resolved, sections, facts)
        if found:
            say(found)
    print_listing(sections, how, show=DECISION_COLUMNS.split(), facts=facts)
