"""The verbs that write to a store or check it: run, tune, verify."""

from __future__ import annotations

import shlex
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from rgr_dist.cli.listing import Format, print_listing, say, silent_output
from rgr_dist.cli.options import (
    EXIT_FAILED_RUNS,
    Address,
    Cpus,
    How,
    OneCell,
    Out,
    Set,
    StudyName,
    as_typed,
    opened,
    say_error,
)
from rgr_dist.faults import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from rgr_dist.analysis.load import StudyResults
    from rgr_dist.running.progress import Summary
    from rgr_dist.store.store import Store

LEAST_CELLS = 4
"""With fewer thresholds a fit says little."""
REPORT_AFTER = 60.0
"""Seconds after which the report of a running study is first written."""


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

        from rgr_dist.analysis.load import results_of
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
            results = results_of(resolved, summary.search)
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


def _tell(results: StudyResults, page: str, console: Console, summary: Summary, asked: str) -> None:
    """Say what was found, where its page is, and what to type next, which repeats what was asked.

    Ends with a status of its own if some runs failed.
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
    use = plural(summary.workers, "worker")
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


def tune(
    study: StudyName,
    out: Out = "results",
    cell: OneCell = None,
    trials: Annotated[int, typer.Option(min=1, help="Protocols to try, in all.")] = 40,
    cpus: Cpus = None,
    address: Address = "local",
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """Tune the training protocol by Optuna: learning rate, sharpness, initial scale.

    Run it again to continue.
    """
    from rgr_dist.running.cluster import Execution
    from rgr_dist.study.select import cells_named

    with opened(study, set_, out, may_be_new=True) as (resolved, store):
        cells = resolved.cells if cell is None else cells_named(resolved, cell)
    if any(one.record.finds != "D_K" or one.record.algorithm or one.record.room for one in cells):
        raise UserError(f"{study}: only the training of models of D_K is tuned")
    with silent_output():
        from rgr_dist.tuning.protocol import tune_protocol

        rows, facts = tune_protocol(
            resolved, store, cells, trials, Execution(cpus, address), say_error
        )
    if facts["training"]:
        keys = [f"training.{key}={value}" for key, value in facts["training"].items()]
        tuned = [*(set_ or ()), f"name={resolved.name}-tuned", *keys]
        facts["to_use_it"] = f"rgr run {as_typed(study, out, tuned)}"
    print_listing({"trials": rows}, how, facts=facts)
    if sum(row["state"] == "complete" for row in rows) < trials:
        say_error(f"some trials failed; rgr runs {as_typed(study, out, set_)} --failed says why")
        raise typer.Exit(EXIT_FAILED_RUNS)


def verify(out: Out = "results", how: How = Format.TABLE) -> None:
    """Parts that cannot be read, and rows of one run that disagree. The exit status is then 3."""
    from rgr_dist.store.store import Store
    from rgr_dist.store.verify import verify as problems_of

    store = Store(out)
    if not store.exists:
        raise UserError(f"--store {out}: there is no store; give the folder or URI of one")
    problems, facts = problems_of(store)
    columns = ["file", "run_id", "problem"]
    print_listing({"problems": problems}, how, facts=facts, columns=columns)
    if problems:
        raise typer.Exit(EXIT_FAILED_RUNS)
