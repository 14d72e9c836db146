"""The verbs that plan and run a study: ``plan``, ``run``, ``status``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import (
    EXIT_FAILED_RUNS,
    Address,
    Cpus,
    EngineName,
    How,
    Out,
    Set,
    StudyName,
    opened,
    say_error,
)
from rgr_dist.engines.choose import check_engine
from rgr_dist.store.store import Store
from rgr_dist.study.from_yaml import load_study


def plan(study: StudyName, out: Out = "results", set_: Set = None, how: How = Format.TABLE) -> None:
    """What a study would run: cells, first brackets, what is stored, estimates. Starts nothing."""
    from rgr_dist.planning.listing import plan_study

    with opened(study, set_, out) as (resolved, store):
        cells, facts = plan_study(resolved, store)
    print_listing({"cells": cells}, how, facts=facts)


def run(
    study: StudyName,
    out: Out = "results",
    cpus: Cpus = None,
    address: Address = "local",
    engine: EngineName = "auto",
    gpus: Annotated[float, typer.Option(min=0, help="Share of a GPU for each worker.")] = 0.0,
    set_: Set = None,
) -> None:
    """Run what is missing of a study, then write its report. Run it again to resume or extend."""
    from analysis.load import open_results
    from analysis.report.publish import headline, publish
    from analysis.wording import duration, plural
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
    results = open_results(resolved, store)
    page = publish(results, store)
    console.print()
    console.print(headline(results), highlight=False, soft_wrap=True)
    trained = (
        f"{summary.runs - summary.failed:,} runs trained in {duration(summary.seconds)} "
        f"({plural(summary.workers, 'worker')}, {summary.utilisation:.0%} utilised)"
    )
    if not summary.runs:
        trained = "nothing was left to train"
    console.print(f"{trained}; report: {page}", highlight=False, soft_wrap=True)
    if summary.failed:
        say_error(f"{summary.failed} runs failed; run it again to retry them (rgr status {study})")
        raise typer.Exit(EXIT_FAILED_RUNS)


def status(
    study: StudyName, out: Out = "results", set_: Set = None, how: How = Format.TABLE
) -> None:
    """How far a study is: brackets, runs done, failed and left."""
    from rgr_dist.planning.listing import study_status

    with opened(study, set_, out) as (resolved, store):
        brackets, facts = study_status(resolved, store)
    print_listing({"brackets": brackets}, how, facts=facts)
