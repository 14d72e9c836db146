"""The verbs that plan and run a study: ``studies``, ``plan``, ``run``, ``status``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    no_runs,
    opened,
    say_error,
)

if TYPE_CHECKING:
    from analysis.load import StudyResults
    from analysis.report.written import Written
    from rgr_dist.store.store import Store


def studies(how: How = Format.TABLE) -> None:
    """The studies that ship: their question, where the paper has it, and what they cost."""
    from rgr_dist.study.shipped import about, shipped_studies

    rows = [
        {
            "study": found.name,
            "question": found.question,
            "paper": found.paper,
            "cells": found.cells,
            "on two cores": found.cost,
        }
        for found in map(about, shipped_studies())
    ]
    print_listing({"studies": rows}, how)


def plan(study: StudyName, out: Out = "results", set_: Set = None, how: How = Format.TABLE) -> None:
    """What a study would run: cells, first brackets, what is stored, estimates. Starts nothing."""
    from rgr_dist.planning.listing import plan_study

    with opened(study, set_, out) as (resolved, store):
        cells, facts = plan_study(resolved, store)
    print_listing({"cells": cells}, how, facts=in_words(facts) if how is Format.TABLE else facts)


def in_words(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The totals of a plan as a person says them."""
    import humanize

    from analysis.wording import plural, rough_time

    if not facts["runs_left"]:
        return {"stored": plural(facts["stored_runs"], "run"), "left": "nothing"}
    cores = facts["cores_here"] or 1
    about = "at least" if facts["at_least"] else "about"
    left = f"{about} {plural(facts['runs_left'], 'run')}"
    left += f", {humanize.intword(facts['steps_left'])} steps"
    time = rough_time(facts["core_seconds_left"] / cores)
    return {
        "stored": plural(facts["stored_runs"], "run"),
        "left": f"{left}, {humanize.naturalsize(facts['bytes_left'])} of disk",
        "time": f"{about} {time} on the {plural(cores, 'core')} here, by {facts['pace_from']}",
        "supposing": facts["supposing"],
    }


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
    from rich.console import Console

    from analysis.load import open_results
    from analysis.report.written import written_before
    from analysis.wording import duration, plural
    from rgr_dist.cli.live import LiveView
    from rgr_dist.cli.results import print_thresholds, threshold_sections
    from rgr_dist.engines.choose import check_engine
    from rgr_dist.planning.listing import failures
    from rgr_dist.planning.same_question import check_same_question
    from rgr_dist.running.sweep import run_study
    from rgr_dist.store.store import Store
    from rgr_dist.study.from_yaml import load_study

    resolved = load_study(study, set_ or ())
    check_engine(engine, [cell.model for cell in resolved.cells], gpus)
    store = Store(out)
    if set_:
        check_same_question(resolved, store)
    store.check_writable()
    console = Console()
    for part in store.set_damaged_aside():
        say_error(f"{part} was damaged: moved to damaged/ in {out}; its runs are trained again")
    with LiveView(console) as view:
        summary = run_study(resolved, store, view, cpus, address, engine, gpus)
    results = open_results(resolved, store)
    before = written_before(results, store)
    written = before or _publish(results, store)
    if resolved.cells[0].record.report == "thresholds":
        print()
        print_thresholds(resolved, threshold_sections(results), best_alone=True)
    console.print()
    console.print(written.headline, highlight=False, soft_wrap=True)
    trained = (
        f"{plural(summary.runs - summary.failed, 'run')} trained in {duration(summary.seconds)} "
        f"({plural(summary.workers, 'worker')}, {summary.utilisation:.0%} utilised)"
    )
    if not summary.runs:
        trained = "nothing was left to train"
    report = "report, unchanged" if before else "report"
    console.print(f"{trained}; {report}: {written.address}", highlight=False, soft_wrap=True)
    asked = shlex.join([study, *(word for one in set_ or () for word in ("--set", one))])
    asked += "" if out == "results" else f" --out {shlex.quote(out)}"
    first = resolved.cell_names[resolved.cells[0].cell_id]
    console.print(
        f"next: rgr fit {asked}, or rgr explain {asked} --cell {first}",
        highlight=False,
        soft_wrap=True,
    )
    if summary.failed:
        for line in failures(results.runs):
            say_error(line)
        say_error(
            f"{plural(summary.failed, 'run')} failed; run it again to retry them "
            f"(rgr runs {asked} --failed)"
        )
        raise typer.Exit(EXIT_FAILED_RUNS)


def _publish(results: StudyResults, store: Store) -> Written:
    from analysis.report.publish import publish  # with everything that is fitted and drawn
    from analysis.report.tables import Tables

    return publish(Tables(results), store)


def status(
    study: StudyName, out: Out = "results", set_: Set = None, how: How = Format.TABLE
) -> None:
    """How far a study is: brackets, runs done, failed and left."""
    from rgr_dist.planning.listing import study_status

    with opened(study, set_, out) as (resolved, store):
        brackets, facts = study_status(resolved, store)
    if not facts["runs_done"] + facts["runs_failed"]:
        say_error(no_runs(study, out))
    print_listing({"brackets": brackets}, how, facts=facts)
