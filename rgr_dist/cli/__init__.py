"""The command line ``rgr``: arguments to calls."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console

from analysis.load import StudyResults
from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import (
    EXIT_BAD_INPUT,
    EXIT_FAILED_RUNS,
    EXIT_INTERRUPTED,
    How,
    Out,
    Set,
    StudyName,
    say_error,
    tell_damaged,
)
from rgr_dist.cli.search import explain, tune
from rgr_dist.engines import EngineError, check_engine
from rgr_dist.running.cluster import ClusterError
from rgr_dist.store.parts import StoreError
from rgr_dist.store.store import Store
from rgr_dist.study.errors import StudyError
from rgr_dist.study.yaml_file import load_study

app = typer.Typer(
    name="rgr",
    help="Measure how many relations an attention layer can hold.",
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def plan(
    study: StudyName,
    out: Out = "results",
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """What a study would run: cells, first brackets, what is stored, estimates. Starts nothing."""
    from rgr_dist.planning.listing import plan_study

    store = Store(out)
    cells, facts = plan_study(load_study(study, set_ or ()), store)
    tell_damaged(store)
    print_listing({"cells": cells}, how, facts=facts)


@app.command()
def run(
    study: StudyName,
    out: Out = "results",
    cpus: Annotated[
        int | None, typer.Option(min=1, help="Probes at once; all cores by default.")
    ] = None,
    address: Annotated[
        str, typer.Option(help="local, auto, or a Ray cluster's address such as ray://host:10001.")
    ] = "local",
    engine: Annotated[str, typer.Option(help="auto, or an engine's name.")] = "auto",
    gpus: Annotated[float, typer.Option(min=0, help="Share of a GPU for each probe.")] = 0.0,
    set_: Set = None,
) -> None:
    """Run what is missing of a study, then write its report. Run it again to resume or extend."""
    from analysis.provenance import duration
    from analysis.publish import publish
    from rgr_dist.cli.live import LiveView
    from rgr_dist.running.sweep import run_study

    resolved = load_study(study, set_ or ())
    check_engine(engine, [cell.model for cell in resolved.cells], gpus)
    store = Store(out)
    store.check_writable()
    console = Console()
    for part in store.set_damaged_aside():
        say_error(f"{part} was damaged: moved to damaged/ in {out}; its runs are trained again")
    with LiveView(console) as view:
        summary = run_study(resolved, store, view, cpus, address, engine, gpus)
    results = _open(study, set_, store)
    page = publish(results, store)
    _say_findings(console, results)
    trained = (
        f"{summary.runs - summary.failed:,} runs trained in {duration(summary.seconds)}, "
        f"of which {summary.slots} slots trained {summary.busy:.0%}"
    )
    if not summary.runs:
        trained = "nothing was left to train"
    console.print(f"{trained}; report: {page}", highlight=False, soft_wrap=True)
    if summary.failed:
        say_error(f"{summary.failed} runs failed; run it again to retry them (rgr status {study})")
        raise typer.Exit(EXIT_FAILED_RUNS)


@app.command()
def status(
    study: StudyName,
    out: Out = "results",
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """How far a study is: brackets, runs done, failed and left."""
    from rgr_dist.planning.listing import study_status

    store = Store(out)
    brackets, facts = study_status(load_study(study, set_ or ()), store)
    tell_damaged(store)
    print_listing({"brackets": brackets}, how, facts=facts)


@app.command()
def thresholds(
    study: StudyName,
    out: Out = "results",
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """The threshold of every (cell, h), and the best of every cell."""
    from analysis.publish import best_of
    from analysis.records import best_records, threshold_records

    results = _open(study, set_, Store(out))
    sections = {
        "thresholds": threshold_records(results.thresholds),
        "best": best_records(best_of(results)),
    }
    shown = (
        "m d_model degree h h_star h_low h_high d_k D_K D_K_low D_K_high status mean_score n_seeds"
        " limited_by"
    )
    print_listing(sections, how, show=shown.split())


@app.command()
def fit(
    study: StudyName,
    out: Out = "results",
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """The scaling laws fitted to a study, with 95 % intervals."""
    from analysis.laws import distinct
    from analysis.publish import laws_of

    results = _open(study, set_, Store(out))
    laws = laws_of(results)
    if how is Format.TABLE:
        laws = distinct(laws)
    shown = "response predictor cells n slope slope_low slope_high intercept r2 reason"
    print_listing({"laws": [law.to_json() for law in laws]}, how, show=shown.split())


@app.command()
def report(study: StudyName, out: Out = "results", set_: Set = None) -> None:
    """Write a study's report: one page with its figures and tables beside it."""
    from analysis.publish import publish

    store = Store(out)
    results = _open(study, set_, store)
    if results.runs.empty:
        raise StudyError(f"{out} holds no run of {study}; rgr run {study} trains them")
    store.check_writable()
    print(publish(results, store))


app.command()(explain)
app.command()(tune)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``rgr`` and leave the process with its exit status."""
    signal.signal(signal.SIGTERM, _interrupt)
    status = call(sys.argv[1:] if arguments is None else arguments)
    if status == EXIT_INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # pressed again, it would end Ray half-way
    sys.exit(status)


def call(arguments: Sequence[str]) -> int:
    """Run ``rgr`` with these arguments; returns the exit status.

    0 done; 2 bad input, told in one line; 3 finished, but some runs failed; 130 interrupted.
    """
    result: Any = None
    try:
        result = app(list(arguments) or ["--help"], standalone_mode=False)
        if result != EXIT_INTERRUPTED:  # typer's answer to an interrupt
            return result if isinstance(result, int) else 0
    except typer.TyperException as error:
        say_error(" ".join(_message(error).split()))
    except (StudyError, StoreError, EngineError, ClusterError) as error:
        say_error(" ".join(str(error).split()))
    except (KeyboardInterrupt, typer.Abort):
        result = EXIT_INTERRUPTED
    if result == EXIT_INTERRUPTED:
        say_error(f"interrupted; resume with: rgr {shlex.join(arguments)}")
        return EXIT_INTERRUPTED
    return EXIT_BAD_INPUT


def _open(study: str, overrides: Sequence[str] | None, store: Store) -> StudyResults:
    """A study's results, with a word on parts of the store that cannot be read."""
    from analysis.publish import open_results

    results, _ = open_results(load_study(study, overrides or ()), store)
    tell_damaged(store)
    return results


def _say_findings(console: Console, results: StudyResults) -> None:
    from analysis.publish import headline_of

    console.print()
    console.print(headline_of(results), highlight=False, soft_wrap=True)


def _message(error: typer.TyperException) -> str:
    """What was wrong with the arguments, with the nearest valid ones where typer knows them."""
    shown = getattr(error, "format_message", error.__str__)
    return str(shown()).replace("Value error, ", "")


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
