"""The verb that tunes a study's training protocol: ``tune``."""

from __future__ import annotations

from typing import Annotated

import typer

from rgr_dist.cli.listing import Format, print_listing, silent_output
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
