"""The verb that checks a store: ``verify``."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import fields
from typing import Annotated, Any

import typer

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import EXIT_FAILED_RUNS, How, Out, say_error
from rgr_dist.faults import UserError, typed


def verify(
    out: Out = "results",
    repair: Annotated[
        bool, typer.Option("--repair", help="Set aside in damaged/ what fails the check.")
    ] = False,
    how: How = Format.TABLE,
) -> None:
    """Check every file of a store: checksums, columns, keys, addresses.

    The exit status is 3 if a check fails and --repair is not given.
    """
    from rgr_dist.analysis.wording import plural
    from rgr_dist.store import verify_and_repair as check
    from rgr_dist.store.store import Store

    store, trained = Store(out), 0
    with store.held(f"rgr verify --store {store.root} --repair") if repair else nullcontext():
        found = check.verify(store)
        if repair:
            trained = check.repair(store, found, _trained_again)
    if not (found.parts or found.problems or store.studies() or store.files("damaged")):
        raise UserError(f"--store {out}: there is no store; give the folder or URI of one")
    rows = [vars(problem) for problem in found.problems]
    facts = {
        "parts": found.parts,
        "rows": found.rows,
        "parts_without_checksum": found.without_checksum,
        "repeated_rows": found.repeated,
        "repaired": repair,
    }
    columns = [one.name for one in fields(check.Problem)]
    print_listing({"problems": rows}, how, facts=facts, columns=columns)
    if not rows:
        return
    files = len({row["file"] for row in rows})
    if repair:
        kept = f"; {plural(trained, 'run')} trained again, and the results that agree are kept"
        say_error(
            f"{plural(files, 'file')} moved to damaged/ in {out}{kept if trained else ''}; rgr run "
            "trains or writes again what else was in them"
        )
        return
    sound = sum(rows.num_rows for rows in found.sound.values())
    kept = f", and {plural(sound, 'sound row')} from them kept" if sound else ""
    say_error(
        f"{plural(files, 'file')} would be set aside{kept}:",
        f"rgr verify --store {typed(out)} --repair",
    )
    raise typer.Exit(EXIT_FAILED_RUNS)


def _trained_again(row: Mapping[str, Any]) -> dict[str, Any] | None:
    from rgr_dist.running.worker import trained_again

    say_error(f"training run {row['run_id']} again, which has several results")
    return trained_again(row)
