"""Runs malformed inputs against the command line, and prints how each kind was answered.

    python -m tests.malformed [--count 10000] [--seed 0] [--processes 200]

What a good answer is, ``check`` says. All run in this process, and some once more in their own.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tests.malformed.check import check_all


def main(
    count: Annotated[int, typer.Option(min=0, help="Inputs to make.")] = 10_000,
    seed: Annotated[int, typer.Option(help="What they are drawn from.")] = 0,
    processes: Annotated[int, typer.Option(min=0, help="Of them, also in own processes.")] = 200,
) -> None:
    """Make the inputs, run each, and print what came of them."""
    tally, faults = check_all(count, seed, processes)
    for kind, (taken, refused, wrong) in tally.items():
        print(f"{kind}: {taken} read, {refused} refused, {wrong} answered wrongly")
    for fault in faults:
        print(fault)
    sys.exit(bool(faults))


if __name__ == "__main__":
    typer.run(main)
