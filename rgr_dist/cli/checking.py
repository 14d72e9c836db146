"""The verb that checks a store: ``verify``."""

from __future__ import annotations

import typer

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import EXIT_FAILED_RUNS, How, Out
from rgr_dist.faults import UserError


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
