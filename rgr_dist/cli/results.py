"""The verbs that show what was found: thresholds, runs, fit, report, figures, explain."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rgr_dist.cli.listing import Format, plain, print_listing, say
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
    from rgr_dist.analysis.figures.style import Figure
    from rgr_dist.analysis.load import StudyResults
    from rgr_dist.store.store import Store

DECISION_COLUMNS = "step h d_k D_K why verdict ran spared evidence"
DECISION_COLUMNS += " status D_K_low D_K_high because confirmed"
RUN_COLUMNS = "cell h d_k D_K seed stop_reason score steps seconds error"


def thresholds(
    study: StudyName,
    out: Out = "results",
    cell: OneCell = None,
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """The threshold of every (cell, h), and the best of every cell; CSV has thresholds alone."""
    from rgr_dist.analysis.layers import compares_layers, costs
    from rgr_dist.analysis.tables import BEST, THRESHOLD, best, listed
    from rgr_dist.analysis.tables import thresholds as thresholds_of
    from rgr_dist.cli.threshold_tables import print_thresholds
    from rgr_dist.study.select import cell_named

    with stored_results(study, set_, out) as (results, _):
        resolved = results.study
        chosen = None if cell is None else cell_named(resolved, cell)
    tables = {"thresholds": thresholds_of(results), "best": best(results)}
    if chosen is not None:
        tables = {name: own[own["cell_id"] == chosen.cell_id] for name, own in tables.items()}
    layers = {"layers": costs(results)} if compares_layers(resolved) and chosen is None else {}
    if how is Format.TABLE:
        if not results.runs.empty:
            print_thresholds(resolved, tables)
            print_listing(layers, how)
        return
    columns = {"thresholds": THRESHOLD, "best": BEST}
    shown = {name: listed(tables[name], own, resolved) for name, own in columns.items()}
    print_listing({"thresholds": shown["thresholds"]} if how is Format.CSV else shown | layers, how)


@contextmanager
def stored_results(
    study: str, overrides: Sequence[str] | None, out: str
) -> Iterator[tuple[StudyResults, Store]]:
    """A study's results and its store; on exit, says so if the store has no run of the study."""
    from rgr_dist.analysis.load import open_results

    with opened(study, overrides, out) as (resolved, store):
        results = open_results(resolved, store)
        yield results, store
    if results.runs.empty:
        say_error(*no_runs(study, out, overrides))


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
    columns = ["study", "cell", *run_keys(resolved)]
    print_listing({"runs": rows}, how, show=RUN_COLUMNS.split(), columns=columns)


def fit(
    study: StudyName,
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="m=…,d_model=…", help="Predict these sizes; edges= where m' is not m."
        ),
    ] = None,
    out: Out = "results",
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """The scaling laws with 95 % intervals, and what they predict for other sizes."""
    import pandas as pd

    from rgr_dist.analysis.findings import noise_sentence, which_law
    from rgr_dist.analysis.growth import laws, predictions

    sizes = [sizes_of(text) for text in at or ()]
    with stored_results(study, set_, out) as (results, _):
        if results.study.record.finds != "D_K":
            raise UserError(f"{study} finds no D_K*: rgr report {as_typed(study, out, set_)}")
    sections = {"laws": laws(results)}
    if sizes:
        sections["predictions"] = predictions(results, pd.DataFrame(sizes))
    if how is not Format.TABLE:
        print_listing(sections, how)
        return
    rows = [row | {"unknowns": _unknowns(row)} for row in plain(sections["laws"])]
    print_listing({"laws": rows} | {n: t for n, t in sections.items() if n != "laws"}, how, LAW)
    if not rows:
        say("no law yet: it takes three cells with a threshold")
    for sentence in filter(None, (noise_sentence(results), which_law(results))):
        say(sentence)


LAW = (
    *("m", "d_model", "n_edges", "D_K", "D_K_low", "D_K_high", "h", "d_k", "inside", "formula"),
    *("protocol", "max_steps", "n_cells", "unknowns", "scatter", "noise", "aicc", "loo"),
)
"""The columns of laws and predictions that a table shows."""


def _unknowns(law: dict[str, Any]) -> str:
    """``c = 0.441 [0.403–0.483], k = 0.092 [0.053–0.150]``."""
    from rgr_dist.analysis.wording import with_limits

    return ", ".join(
        f"{name} = {with_limits(value, law['low'][name], law['high'][name])}"
        for name, value in law["parameters"].items()
    )


def sizes_of(text: str) -> dict[str, int]:
    """``m``, ``d_model`` and ``n_edges`` from ``m=300,d_model=48,edges=600``."""
    pairs = dict(part.partition("=")[::2] for part in text.split(","))
    wanted = f"--at {text}: give m=…,d_model=…, and edges=… where there are not m"
    are_whole = all(value.isdecimal() for value in pairs.values())
    if not (are_whole and {"m", "d_model"} <= pairs.keys() <= {"m", "d_model", "edges"}):
        raise UserError(f"{wanted}, as whole numbers")
    m, d_model, edges = (int(pairs.get(key, pairs["m"])) for key in ("m", "d_model", "edges"))
    if m < 2 or d_model < 1 or max(m, d_model) > LARGEST or not 1 <= edges <= m * m:
        raise UserError(f"{wanted}: m from 2, d_model from 1, both to {LARGEST:,}; 1 to m² edges")
    return {"m": m, "d_model": d_model, "n_edges": edges}


def report(study: StudyName, out: Out = "results", set_: Set = None) -> None:
    """Write a study's report into the store; prints where its page is."""
    from rgr_dist.analysis.report import publish

    with stored_results(study, set_, out) as (results, store):
        print(shown(publish(results, store)))


def figures(
    study: StudyName,
    figure: Annotated[
        list[str] | None, typer.Option(help="One of the report's figures; all by default.")
    ] = None,
    kind: Annotated[
        Literal["pdf", "svg", "png"], typer.Option("--format", help="What to draw.")
    ] = "pdf",
    width: Annotated[
        float | None,
        typer.Option(
            min=1, max=50, help="Inches; by default one column of a paper (3.3), or two (6.9)."
        ),
    ] = None,
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write.")] = Path(),
    out: Out = "results",
    set_: Set = None,
) -> None:
    """Draw the figures of a study's report as files, with fonts embedded; prints their names."""
    from rgr_dist.analysis.report import figures_named

    with stored_results(study, set_, out) as (results, _):
        drawn = figures_named(results, figure or ())
    for path in write_files(drawn, results.study.name, to, kind, width):
        print(shown(str(path)))


def write_files(
    drawn: Sequence[Figure], stem: str, to: Path, kind: str = "pdf", width: float | None = None
) -> list[Path]:
    """Write figures into a folder as ``STEM-NAME.KIND``; returns the files."""
    os.environ.pop("MPLBACKEND", None)  # files need no window, nor one that is there
    from rgr_dist.analysis.figures.style import as_file

    to.mkdir(parents=True, exist_ok=True)
    paths = [to / f"{stem}-{figure.name}.{kind}" for figure in drawn]
    for path, figure in zip(paths, drawn, strict=True):
        path.write_bytes(as_file(figure, kind, width))
    return paths


def explain(
    study: StudyName,
    cell: OneCell = None,
    out: Out = "results",
    heads: Heads = None,
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """Every decision behind a cell's thresholds."""
    from rgr_dist.planning.explain import explain_cell
    from rgr_dist.planning.search_of import stored_runs
    from rgr_dist.study.select import cell_named, heads_named

    with opened(study, set_, out) as (resolved, store):
        chosen = cell_named(resolved, cell)
        listed = heads_named(resolved, heads or ())
        sections, facts = explain_cell(resolved, chosen, store, listed)
    if not sections["decisions"] and stored_runs(resolved, store).empty:
        say_error(*no_runs(study, out, set_))
    if how is Format.TABLE and (found := facts.pop("found", None)):
        say(found)
    print_listing(sections, how, show=DECISION_COLUMNS.split(), facts=facts)
