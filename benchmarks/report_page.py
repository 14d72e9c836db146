"""Seconds, memory and bytes that it takes to write a study's report.

    rgr run base-grid && python benchmarks/report_page.py [STUDY] [--out results]

``rgr report`` runs in a new process each time, imports included: the time is what a user waits. The
best of several times counts, since other programs can only add to it. The limits are 5 s and 400 kB
for ``base-grid``, with nothing cut to make the page that small.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from rgr_dist.analysis.page.fit import CUT, LARGEST
from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How

LIMIT_SECONDS = 5.0


def main(
    study: Annotated[str, typer.Argument(help="A study that was run.")] = "base-grid",
    out: Annotated[str, typer.Option(help="The store, a folder.")] = "results",
    repeats: Annotated[int, typer.Option(min=1, help="How often to write it.")] = 5,
    how: How = Format.TABLE,
) -> None:
    """Write the report several times and print the least of what that took."""
    call = [sys.executable, "-P", "-c", "from rgr_dist.cli import main; main()"]
    taken = []
    for _ in range(repeats):
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [*call, "report", study, "--store", out], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        taken.append((time.perf_counter() - start, processor))
    page = Path(done.stdout.splitlines()[-1])
    seconds, processor = (min(column) for column in zip(*taken, strict=True))
    size, text = page.stat().st_size, page.read_text()
    is_whole = CUT not in text and 'download="tables.zip"' in text
    peak = after.ru_maxrss / 1024
    row = {
        "study": study,
        "seconds": seconds,
        "processor_seconds": processor,
        "peak_MiB": peak if sys.platform != "darwin" else peak / 1024,
        "page_bytes": size,
        "within_limits": seconds < LIMIT_SECONDS and size <= LARGEST and is_whole,
    }
    print_listing({"rows": [row]}, how)


if __name__ == "__main__":
    typer.run(main)
