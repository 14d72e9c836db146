"""Runs malformed inputs against the command line, and prints how many it refused as it should.

    python -m tests.malformed [--count 4000] [--seed 0] [--processes 20]

Refused means: exit status 2, nothing on standard output, one line of at most 500 printable
characters on standard error, no file written or changed, within 10 s. All run in this process, and
a sample of them once more in a process of its own.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tests.malformed.check import check_all


def main(
    count: Annotated[int, typer.Option(min=1, help="Inputs to make.")] = 4000,
    seed: Annotated[int, typer.Option(help="What they are drawn from.")] = 0,
    processes: Annotated[int, typer.Option(min=0, help="Of them, also in own processes.")] = 20,
) -> None:
    """Make the inputs, run each, and print what came of them."""
    tally, faults = check_all(count, seed, processes)
    for kind, (refused, made) in tally.items():
        print(f"{kind}: {refused} of {made} refused in one line with exit status 2")
    for fault in faults:
        print(fault)
    sys.exit(bool(faults))


if __name__ == "__main__":
    typer.run(main)
