"""How many probes one driver hands out: Ray Tune's loop with probes that cost nothing.

    python benchmarks/scale.py [--probes 10000] [--slots 2] [--format table|json|csv]

A search over made-up cells is run as a study's is, by the same loop, searcher and scheduler, on
workers that answer at once: all the time that passes is overhead. After 1,000, 5,000 and all
probes, it prints the probes per second since the previous row, the driver's resident memory, and
the number of files and folders in the temporary folders of Tune and Ray.

The second table shows what follows for a cluster. A driver hands out one probe after another, so if
a probe takes ``probe_seconds``, it keeps ``most_workers`` busy: as many as it can hand probes to in
that time. The last two columns are the share of their time that ``workers`` train: ``by_model``,
the smaller of 1 and most_workers / workers; ``simulated``, from a queue of events, with the
driver's times as measured and probes of exponentially distributed length.
"""

from __future__ import annotations

import heapq
import os
import random
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from rgr_dist.cli.listing import Format, print_listing
from rgr_dist.cli.options import How
from rgr_dist.search.portfolio import Portfolio
from rgr_dist.search.probe_verdict import SeedTest
from rgr_dist.search.protocol import CellPlan, Probe

PROBES_PER_CELL = 12
"""About how many probes a made-up cell takes."""
PROBE_SECONDS = (1.0, 10.0, 100.0)
WORKERS = (10, 100, 1000, 10_000)
SIMULATED_ROUNDS = 20
"""Probes of each worker in a simulation."""


def made_up(cells: int) -> Portfolio:
    """A search over cells whose thresholds lie at random."""
    axes = {arm: range(1, 512 // arm) for arm in (1, 2, 4)}
    plans = [
        CellPlan(f"cell {n}", axes, guess_cost=64.0, keep_within=None, intervals=False)
        for n in range(cells)
    ]
    return Portfolio(plans, SeedTest(0.99, 2))


def passes(cell: str, arm: int, value: int) -> bool:
    """Whether a made-up probe passes."""
    return arm * value >= random.Random(cell).randrange(20, 200)


class Watch:
    """Notes when each probe ends and, at some of them, what the driver holds."""

    def __init__(self, marks: Sequence[int], temporary: Path) -> None:
        self.marks, self.temporary = sorted(marks), temporary
        self.at: list[float] = []
        self.rows: list[dict[str, Any]] = []

    def probe(self) -> None:
        """Note that a probe has ended."""
        self.at.append(time.perf_counter())
        if len(self.at) in self.marks:
            before = self.rows[-1]["probes"] if self.rows else 1
            seconds = self.at[-1] - self.at[before - 1]
            self.rows.append(
                {
                    "probes": len(self.at),
                    "probes_per_second": round((len(self.at) - before) / seconds, 1),
                    "driver_MiB": round(resident_mib(), 1),
                    "files": sum(1 for _ in self.temporary.rglob("*")),
                }
            )

    @property
    def gaps(self) -> list[float]:
        """Seconds between the ends of one probe and the next."""
        return [after - before for before, after in zip(self.at, self.at[1:], strict=False)]


def resident_mib() -> float:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def run(probes: int, slots: int, temporary: Path) -> Watch:
    """Carry out so many probes on a local Ray."""
    from ray.tune import Trainable

    from rgr_dist.running.cluster import connect
    from rgr_dist.search.tune.runner import WhileNeeded, run_trials
    from rgr_dist.search.tune.searcher import ProbeSearcher

    class NoCost(Trainable):
        """Answers at once."""

        def setup(self, config: dict[str, Any]) -> None:
            """Take a probe."""
            self.answer = config

        def reset_config(self, new_config: dict[str, Any]) -> bool:
            """Take another one."""
            self.answer = new_config
            return True

        def step(self) -> dict[str, Any]:
            """Answer with the score of each seed."""
            score = float(self.answer["passes"])
            return {"seeds": self.answer["seeds"], "score": score, "done": True}

    watch = Watch([mark for mark in (1000, 5000) if mark < probes] + [probes], temporary)
    portfolio = made_up(-(-probes // PROBES_PER_CELL) + slots)
    portfolio.slots = slots

    def config_of(probe: Probe) -> dict[str, Any]:
        passing = passes(probe.cell, probe.arm, probe.value)
        return {"seeds": list(probe.seeds), "passes": passing}

    def record(trial_id: str, probe: Probe, result: dict[str, Any]) -> None:
        for seed in result["seeds"]:
            portfolio.tell(probe.cell, probe.arm, probe.value, seed, result["score"])
        watch.probe()

    class UntilSoMany(WhileNeeded):
        """Ends all trials after so many probes."""

        def stop_all(self) -> bool:
            """Whether there were so many."""
            return len(watch.at) >= probes

    searcher = ProbeSearcher(portfolio, config_of, record, slots=lambda: slots)
    with connect("local", slots):
        run_trials(NoCost, searcher, {"cpu": 1}, stop=UntilSoMany(searcher))
    if searcher.fault is not None:
        raise searcher.fault
    return watch


def utilisation(workers: int, probe_seconds: float, driver_seconds: Sequence[float]) -> float:
    """Simulated share of the workers' time in which they train.

    A worker that has ended a probe waits for the next from the driver, which serves one at a time.
    """
    draw = random.Random(0)
    ends = [0.0] * workers  # a heap
    free_at, trained = 0.0, []
    for _ in range(workers * SIMULATED_ROUNDS):
        asked = heapq.heappop(ends)
        free_at = max(free_at, asked) + draw.choice(driver_seconds)
        end = free_at + draw.expovariate(1 / probe_seconds)
        trained.append((free_at, end))
        heapq.heappush(ends, end)
    since = trained[len(trained) // 2][0]  # all workers have started by then
    within = sum(max(0.0, min(end, free_at) - max(start, since)) for start, end in trained)
    return within / (workers * (free_at - since))


def cluster_rows(driver_seconds: Sequence[float]) -> list[dict[str, Any]]:
    """How busy a driver with these times keeps clusters of several sizes."""
    mean = sum(driver_seconds) / len(driver_seconds)
    return [
        {
            "probe_seconds": seconds,
            "most_workers": int(seconds / mean),
            "workers": workers,
            "by_model": round(min(1.0, seconds / mean / workers), 3),
            "simulated": round(utilisation(workers, seconds, driver_seconds), 3),
        }
        for seconds in PROBE_SECONDS
        for workers in WORKERS
    ]


def main(
    probes: Annotated[int, typer.Option(min=10, help="Probes to hand out.")] = 10_000,
    slots: Annotated[int, typer.Option(min=1, help="Workers.")] = 2,
    how: How = Format.TABLE,
) -> None:
    """Hand out probes that cost nothing; print what that took, and what it means for a cluster."""
    messages = Console(stderr=True)
    before = os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(prefix="scale-") as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder  # Ray's and Tune's folders are made there
        try:
            watch = run(probes, slots, Path(folder))
        finally:
            tempfile.tempdir = None
            with suppress(KeyError):
                del os.environ["TMPDIR"]
            if before is not None:
                os.environ["TMPDIR"] = before
    took = watch.at[-1] - watch.at[0]
    messages.print(f"{len(watch.at)} probes in {took:.1f} s")
    print_listing({"driver": watch.rows, "clusters": cluster_rows(watch.gaps)}, how)


if __name__ == "__main__":
    typer.run(main)
