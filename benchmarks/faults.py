"""Puts a small study through killed drivers, workers and nodes, a full disk and torn files.

    python benchmarks/faults.py [--drivers 120] [--others 60] [--seed 0] [--format table|json|csv]

The study is run once undisturbed. Then it is run again and again from an empty store, killed at
random moments and resumed until it is done. Drivers are interrupted or killed with kill -9.
Workers exit, crash, are killed or run out of memory after exponentially distributed lifetimes.
Raylets and whole nodes of a cluster are killed, and others join. In a third of all this, calls
between Ray's processes fail too: in their requests, in their responses, or in flight. A driver's
disk is filled up, and parts of a store are torn. Each time a driver has ended, the rows of the
store are compared with those that it held before.

The whole takes some 25 minutes on two cores. It kills only what it has started, and exits with
status 1 if anything is not as it should be. It runs only on Linux, as it finds processes in /proc.
The full disk is a small one that it mounts, which needs root; without root it is left out.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fault_campaign import ours
from fault_campaign.campaign import Campaign
from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How


def main(
    drivers: Annotated[int, typer.Option(min=0, help="Drivers to kill.")] = 120,
    others: Annotated[int, typer.Option(min=0, help="Workers, raylets and nodes to kill.")] = 60,
    seed: Annotated[int, typer.Option(help="Of the random moments.")] = 0,
    keep: Annotated[Path | None, typer.Option(help="Keep stores and logs in this folder.")] = None,
    how: How = Format.TABLE,
) -> None:
    """Run the campaign and print what was done, and what came of it."""
    messages, began = Console(stderr=True), time.monotonic()
    home = Path(tempfile.mkdtemp(prefix="faults-"))
    campaign = Campaign(home, seed, lambda text: messages.print(text, highlight=False))
    try:
        campaign.undisturbed()
        campaign.drivers_killed(drivers)
        campaign.workers_killed(-(-others // 3), "exit segfault kill")
        campaign.workers_killed(others // 6, "memory")
        campaign.nodes_killed(others - campaign.faults.count("worker"))
        if drivers:
            campaign.disk_full()
        done, counted = campaign.faults.table(), campaign.table()
    finally:
        ours.end(home)
        if keep is not None:
            shutil.copytree(home, keep, symlinks=True, dirs_exist_ok=True, ignore=_sockets)
        shutil.rmtree(home, ignore_errors=True)
    facts = {
        "studies": campaign.studies,
        "drivers_started": campaign.drivers,
        "failed_calls_between_rays_processes": sum(campaign.rpc_faults.values()),
        "runs_in_torn_parts": campaign.torn,
        "minutes": round((time.monotonic() - began) / 60, 1),
    }
    print_listing({"faults": done, "outcome": counted}, how, facts=facts)
    sys.stdout.flush()
    # At once: in a normal exit, Ray would complain about the nodes that were killed.
    os._exit(int(any(row["is"] != row["should_be"] for row in counted)))


def _sockets(folder: str, names: list[str]) -> list[str]:
    """The names that cannot be copied: sockets."""
    return [name for name in names if Path(folder, name).is_socket()]


if __name__ == "__main__":
    typer.run(main)
