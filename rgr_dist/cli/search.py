"""The verbs ``rgr explain`` and ``rgr tune``: arguments to calls."""

from __future__ import annotations

from typing import Annotated

import typer

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import (
    EXIT_FAILED_RUNS,
    How,
    Out,
    Set,
    StudyName,
    say_error,
    tell_damaged,
)
from rgr_dist.engines import check_engine
from rgr_dist.store.store import Store
from rgr_dist.study.yaml_file import load_study

Heads = Annotated[list[int] | None, typer.Option("--heads", min=1, help="Head counts.")]
CELL = "m=64,d_model=16"


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

    resolved = load_study(study, set_ or ())
    chosen = cell_named(resolved, cell)
    listed = heads_named(resolved, heads or ())
    store = Store(out)
    sections, facts = explain_cell(resolved, chosen, store, listed)
    tell_damaged(store)
    facts["repeat"] = command_to_repeat(study, set_ or (), chosen, store)
    shown = "step h d_k D_K longer why verdict ran spared stored_before evidence"
    shown += " status D_K_low D_K_high because limited_by"
    print_listing(sections, how, show=shown.split(), facts=facts)


def tune(
    study: StudyName,
    out: Out = "results",
    cell: Annotated[
        str | None, typer.Option(metavar=CELL, help="Where to tune; every cell by default.")
    ] = None,
    heads: Heads = None,
    D_K: Annotated[
        int | None, typer.Option("--D_K", min=1, help="By default just below the threshold.")
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Protocols to try, in all.")] = 40,
    cpus: Annotated[
        int | None, typer.Option(min=1, help="Trials at once; all cores by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of Optuna's sampler.")] = 0,
    engine: Annotated[str, typer.Option(help="auto, or an engine's name.")] = "auto",
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """Tune learning rate, sharpness and initial scale with Optuna. Run it again to go on."""
    from rgr_dist.planning.expectations import expectations
    from rgr_dist.planning.portfolio import open_portfolio, stored_runs
    from rgr_dist.study.select import cells_named, heads_named
    from rgr_dist.tuning.driver import tune_protocol
    from rgr_dist.tuning.protocol import place_rows, places_to_tune

    resolved = load_study(study, set_ or ())
    check_engine(engine, [one.model for one in resolved.cells])
    cells = resolved.cells if cell is None else cells_named(resolved, cell)
    listed = heads_named(resolved, heads or ())
    store = Store(out)
    portfolio = open_portfolio(
        resolved, stored_runs(resolved, store), expectations(resolved, store)
    )
    tell_damaged(store)
    places = places_to_tune(portfolio, cells, listed, D_K)
    tuned = tune_protocol(resolved, store, places, trials, seed, say_error, cpus, engine)
    facts = {
        "training": tuned.training,
        "score": tuned.score,
        "present_score": tuned.present_score,
        "trials_loaded": tuned.loaded,
        "journal": str(tuned.journal),
    }
    print_listing({"trials": tuned.trials, "tuned": place_rows(places)}, how, facts=facts)
    if tuned.score is not None and portfolio.test.reaches(tuned.score):
        say_error("the best one passes there: a smaller --D_K tells good protocols apart")
    if tuned.failed:
        say_error(f"{tuned.failed} trials failed; their rows in {out} say why")
        raise typer.Exit(EXIT_FAILED_RUNS)
