"""The verb that tunes a study's training protocol: ``tune``."""

from __future__ import annotations

import shlex
from contextlib import suppress
from typing import Annotated

import typer

from rgr_dist.cli.listing import Format, print_listing, silent_output
from rgr_dist.cli.options import (
    CELL,
    EXIT_FAILED_RUNS,
    LARGEST,
    Address,
    Cpus,
    EngineName,
    Heads,
    How,
    Out,
    Set,
    StudyName,
    as_typed,
    check_room,
    held,
    opened,
    say_error,
)
from rgr_dist.faults import UserError


def tune(
    study: StudyName,
    out: Out = "results",
    cell: Annotated[
        list[str] | None,
        typer.Option(metavar=CELL, help="Where to tune, such as 64,16; every cell by default."),
    ] = None,
    heads: Heads = None,
    D_K: Annotated[
        int | None,
        typer.Option(
            "--D_K", min=1, max=LARGEST, help="D_K to tune at; by default just below the threshold."
        ),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Protocols to try, in all.")] = 40,
    cpus: Cpus = None,
    address: Address = "local",
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of Optuna's sampler.")] = 0,
    engine: EngineName = "auto",
    set_: Set = None,
    how: How = Format.TABLE,
) -> None:
    """Tune one training protocol for all chosen cells: learning rate, sharpness, initial scale.

    Run it again to continue.
    """
    from rgr_dist.analysis.wording import plural
    from rgr_dist.engines.choose import check_engine
    from rgr_dist.planning.memory import run_memory
    from rgr_dist.planning.portfolio import stored_search
    from rgr_dist.running.execution import Execution
    from rgr_dist.study.errors import StudyError
    from rgr_dist.study.select import cells_named, heads_named
    from rgr_dist.study.study_file import load_study
    from rgr_dist.tuning.training_protocol import Tuning, flags, probes_to_tune

    with opened(study, set_, out, may_be_new=True) as (resolved, store):
        if resolved.record.holds == "facts":
            raise UserError(f"{study}: rgr tune is for studies of D_K, not of facts")
        check_engine(engine, [one.model for one in resolved.cells])
        named = [one for text in cell or () for one in cells_named(resolved, text)]
        cells = [one for one in resolved.cells if not cell or one in named]
        cells = [one for one in cells if one.record.algorithm is None]
        if not cells:
            raise UserError(f"{study}: rgr tune is for models that are trained, not constructions")
        listed = heads_named(resolved, heads or ())
        portfolio = stored_search(resolved, store).portfolio
    probes = probes_to_tune(portfolio, cells, listed, D_K)
    if D_K is not None and address == "local":
        needed = max(run_memory(one, D_K) for one in cells)
        check_room(needed, f"--D_K {D_K}: a run needs")
    tuning = Tuning(resolved, store, probes, trials, seed)
    with held(store, resolved.name, address), silent_output():
        from rgr_dist.tuning.driver import tune_protocol

        tuned = tune_protocol(tuning, say_error, Execution(cpus, address, engine))
    facts = {
        "training": tuned.training,
        "score": tuned.score,
        "present_score": tuned.present_score,
        "trials_loaded": tuned.loaded,
        "journal": tuned.journal,
    }
    if tuned.training is not None:
        to_tuned = shlex.join(["--set", f"name={resolved.name}-tuned", *flags(tuned.training)])
        with suppress(StudyError):  # cells that differed only in training are now the same
            load_study(study, [*(set_ or ()), *shlex.split(to_tuned)[1::2]])
            facts["to_use_it"] = f"rgr run {as_typed(study, out, set_)} {to_tuned}"
    print_listing({"trials": tuned.trials, "tuned": tuned.probes}, how, facts=facts)
    if tuned.score is not None and portfolio.test.reaches(tuned.score):
        say_error("the best protocol passes; a smaller --D_K would tell good protocols apart")
    if tuned.failed:
        say_error(f"{plural(tuned.failed, 'trial')} failed; the rows in {out} say why")
    if tuned.kills:
        say_error(f"workers were lost {plural(tuned.kills, 'time')}; no row records this")
    if tuned.failed or sum(trial["state"] != "failed" for trial in tuned.trials) < trials:
        raise typer.Exit(EXIT_FAILED_RUNS)
