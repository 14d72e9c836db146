"""The verbs that list the shipped studies, plan a study and run one."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rgr_dist.cli.listing import Format, print_listing, say, silent_output
from rgr_dist.cli.options import (
    EXIT_FAILED_RUNS,
    Address,
    Cpus,
    How,
    Out,
    Set,
    StudyName,
    as_typed,
    opened,
    say_error,
)

if TYPE_CHECKING:
    from rich.console import Console

    from rgr_dist.analysis.load import StudyResults
    from rgr_dist.running.progress import Summary
    from rgr_dist.store.store import Store


LEAST_CELLS = 4
"""With fewer thresholds a fit says little."""
REPORT_AFTER = 60.0
"""Seconds after which the report of a running study is first written."""


def studies(how: How = Format.TABLE) -> None:
    """The studies that ship: what each asks, where the paper asks it, and what it costs."""
    from rgr_dist.study.shipped import about
    from rgr_dist.study.yaml_document import shipped_studies

    print_listing({"studies": [*map(about, shipped_studies())]}, how)


def plan(study: StudyName, out: Out = "results", set_: Set = None, how: How = Format.TABLE) -> None:
    """What a study would train: what is done, failed and left, steps, time. Starts nothing."""
    from rgr_dist.planning.listing import plan_study

    with opened(study, set_, out, may_be_new=True) as (resolved, store):
        cells, facts = plan_study(resolved, store)
    if how is Format.TABLE:
        read = {"read": "; ".join(resolved.read)} if resolved.read else {}
        facts = read | _in_words(facts, as_typed(study, out, set_))
    print_listing({"cells": cells}, how, facts=facts)


def _in_words(facts: Mapping[str, Any], asked: str) -> dict[str, Any]:
    """The totals of a plan in words.

    Args:
        asked: the study with its options, as they are typed.
    """
    import humanize

    from rgr_dist.analysis.wording import plural, rough_time

    done = plural(facts["runs_done"], "run")
    if failed := facts["runs_failed"]:
        done += f"; {failed:,} failed, and rgr run {asked} tries them again"
    if not facts["runs_left"]:
        return {"done": done, "left": "nothing"}
    time = rough_time(facts["core_seconds_left"] / facts["cores_here"])
    by = "stored runs" if facts["is_measured"] else "a rough guess, as no run of it is stored yet"
    return {
        "done": done,
        "left": f"about {plural(facts['runs_left'], 'run')}, "
        f"{humanize.intword(facts['steps_left'])} steps, if thresholds lie where the law expects "
        "them; several times more if they lie elsewhere",
        "time": f"about {time} of training on the {plural(facts['cores_here'], 'core')} here, by "
        f"{by}; starting and the report add 15 to 30 seconds",
    }


def run(
    study: StudyName,
    out: Out = "results",
    cpus: Cpus = None,
    address: Address = "local",
    gpus: Annotated[float, typer.Option(min=0, help="Share of a GPU for each worker.")] = 0.0,
    set_: Set = None,
) -> None:
    """Train what a study still lacks; keeps its report up to date. Again: resumes or extends."""
    from rgr_dist.running.cluster import Execution
    from rgr_dist.store.store import Store

    store = Store(out)
    resolved = store.study(study, set_ or ())
    execution = Execution(cpus, address, gpus=gpus)
    with store.held(resolved.name):
        from rich.console import Console

        from rgr_dist.analysis.load import open_results
        from rgr_dist.live import LiveView

        due = time.monotonic() + REPORT_AFTER

        def keep_report(words: str) -> None:
            """Write the report of a running study, in a fiftieth of the time."""
            nonlocal due
            if (began := time.monotonic()) > due:
                from rgr_dist.analysis.report import write_page

                write_page(resolved, store, words.replace("  ", ", "))
                due = time.monotonic() + 50 * (time.monotonic() - began)

        console = Console(file=sys.stdout)  # stays visible, while what others print is discarded
        with LiveView(console, keep_report) as view, silent_output():
            view.phase("planning")  # and importing Ray, which takes longer
            from rgr_dist.running.run_study import run_study

            kept = f"studies/{resolved.name}"
            is_same = store.read_text(f"{kept}/study.json") == resolved.model_dump_json(indent=2)
            summary = run_study(resolved, store, view, execution)
            results = open_results(resolved, store)
            page = store.address(f"{kept}/report/index.html")
            if summary.runs or not (is_same and _is_newest(store, f"{kept}/report", page)):
                view.phase("writing the report")
                from rgr_dist.analysis.report import publish  # all that fits and draws

                page = publish(results, store)
        _tell(results, page, console, summary, as_typed(study, out, set_))


def _is_newest(store: Store, folder: str, page: str) -> bool:
    """Whether a page was written after every run of the store."""
    times = {store.address(f"{folder}/{one.base_name}"): one.mtime for one in store.files(folder)}
    runs = [one.mtime for one in store.files("runs")]
    return page in times and all(one is not None and one <= times[page] for one in runs)


def _tell(
    results: StudyResults,
    page: str,
    console: Console,
    summary: Summary,
    asked: str,
) -> None:
    """Say what was found, where the report is, and what to type next.

    Args:
        page: the address of the report.
        asked: the study with its options, as they are typed.

    Raises:
        Exit: some runs failed.
    """
    from rgr_dist.analysis.tables import best
    from rgr_dist.analysis.wording import duration, plural
    from rgr_dist.cli.threshold_tables import print_thresholds
    from rgr_dist.planning.listing import divergence, failures

    study = results.study
    console.print()
    if summary.runs:
        from rgr_dist.analysis.report import headline  # which loads what fits

        say(headline(results))
    if study.record.finds == "D_K":
        print_thresholds(study, {"best": best(results)})
    use = f"{plural(summary.workers, 'worker')}, training {summary.utilisation:.0%} of the time"
    trained = plural(summary.runs - summary.failed, "run")
    trained += f" trained in {duration(summary.seconds)} ({use})"
    if not summary.runs:
        trained = "nothing was left to train"
    console.print(f"{trained}\nreport:", highlight=False, soft_wrap=True)
    console.print(page, highlight=False, soft_wrap=True)  # on its own line, to copy
    failed = summary.failed or summary.left_failed
    if not failed:
        first = shlex.quote(study.cell_names[study.cells[0].cell_id])
        found = best(results)["D_K"].notna().sum() if study.record.finds == "D_K" else 0
        verb = "fit" if found >= LEAST_CELLS else "thresholds"
        say(f"next: rgr {verb} {asked}, or rgr explain {asked} --cell {first}")
    if diverged := divergence(results.searched):
        say_error(diverged)
    if failed:
        when = "" if summary.failed else " before"
        for line in failures(results.runs):
            say_error(line.replace(" failed:", f" failed{when}:", 1))
        which = "it" if failed == 1 else "them"
        say_error("next:", f"rgr runs {asked} --failed lists {which}, rgr run {asked} tries again")
        raise typer.Exit(EXIT_FAILED_RUNS)
