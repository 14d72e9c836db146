"""Puts a small study through killed drivers, workers and nodes, a full disk and torn files.

    python benchmarks/faults.py [--kills 60] [--seed 0] [--format table|json]

The study is run once undisturbed. Then it is run again and again from an empty store, killed at
random moments and resumed until it is done: drivers by SIGKILL or SIGINT, workers by SIGKILL,
raylets and whole nodes of a cluster while others join. In every third study calls between Ray's
processes fail too. Parts of a store are torn, and a driver's disk is filled up. Each time a driver
has ended, the rows of the store are compared with those that it held before, read by pandas alone.

It prints what was done, and what came of it, and exits with status 1 if anything is not as it
should be. It kills only what it has started, finds processes in /proc (so Linux alone), and mounts
a small disk, which needs root and is left out without. 60 kills take half an hour to an hour on two
cores.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import typer
import yaml
from rich.console import Console

STUDY: dict[str, Any] = {
    "name": "faults",
    "cells": [{"m": [12, 16, 20], "d_model": [8, 16]}],
    "context": {"length": 8},
    "training": {
        "learning_rate": 0.01,
        "max_steps": 4000,
        "check_every": 100,
        "patience": 3,
        "validation_contexts": 50,
        "test_contexts": 200,
    },
    "search": {"heads": [1, 2, 4], "seeds": 5, "confirm_seeds": 5},
}
RGR = (sys.executable, "-P", "-c", "from rgr_dist.cli import main; main()")
MARK = "RGR_FAULTS"
"""Set to the campaign's folder in its environment, which every process that it starts inherits."""
CALLS_FAIL = json.dumps(
    {"*": {"num_failures": -1, "req_failure_prob": 1, "resp_failure_prob": 1,
           "in_flight_failure_prob": 1}}
)  # fmt: skip
"""Out of a hundred calls between Ray's processes, three fail: one in each way."""
DOCUMENTED = (0, 2, 3, 4, 130, -signal.SIGKILL, -signal.SIGINT)
"""Statuses with which a driver may end; the last two if a signal ends Python itself."""
RUNS_FOR, ENDS_WITHIN, IDLE, LOOK_AFTER = 900.0, 90.0, 60, 60.0
"""Seconds after which a driver hangs, or has not heeded a signal; drivers in a row that store
nothing; seconds after which no process may be left."""


@dataclass
class Ledger:
    """The rows of one store at each look: run → when it ended and its score, failed tries aside.

    Attributes:
        lost: runs that were there at one look and missing at a later one.
        twice: runs that were trained a second time.
    """

    store: Path
    rows: dict[str, tuple[str, str]] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    twice: set[str] = field(default_factory=set)

    def parts(self) -> list[Path]:
        """The files that hold the store's rows."""
        return sorted(self.store.glob("runs/*.parquet"))

    def read(self) -> dict[str, set[tuple[str, str]]]:
        """Every row just now, while a driver may be writing."""
        found: dict[str, set[tuple[str, str]]] = {}
        for part in self.parts():
            with suppress(OSError, ValueError):  # merged away, or damaged
                columns = ["run_id", "finished_at", "score", "stop_reason"]
                table = pd.read_parquet(part, columns=columns)
                for row in table[table["stop_reason"] != "failed"].itertuples():
                    value = (str(row.finished_at), repr(row.score))
                    found.setdefault(str(row.run_id), set()).add(value)
        return found

    def look(self) -> int:
        """Compare the store, which nothing writes now, with what it held; returns its run count."""
        now = self.read()
        for run, rows in now.items():
            if len(rows) > 1 or self.rows.get(run) not in (None, *rows):
                self.twice.add(run)
        self.lost |= self.rows.keys() - now.keys()
        self.rows = {run: min(rows) for run, rows in now.items()}
        return len(now)

    def tear(self, part: Path, keep: int) -> None:
        """Cut a part down to so many bytes; what only it held may be trained again."""
        part.write_bytes(part.read_bytes()[:keep])
        left = self.read()
        self.rows = {run: row for run, row in self.rows.items() if run in left}


class Campaign:
    """Puts one study through faults, in a folder of its own.

    Attributes:
        done: how often each fault was done.
        wrong: what was not as it should be, in words.
    """

    def __init__(self, home: Path, seed: int, say: Callable[[str], None]) -> None:
        self.home, self.draw, self.say = home, random.Random(seed), say
        self.done: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.ledgers: list[Ledger] = []
        self.log, self.study = home / "drivers.log", home / "faults.yaml"
        self.study.write_text(yaml.safe_dump(STUDY))
        os.environ |= {MARK: str(home), "TMPDIR": str(home), "RAY_TMPDIR": str(home)}
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))

    def processes(self, *words: str) -> dict[int, str]:
        """Command lines of the campaign's living processes, but its own, that have one of words."""
        mark, found = f"{MARK}={self.home}".encode(), {}
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                    if line and int(process.name) != os.getpid():
                        found[int(process.name)] = line
        return {pid: line for pid, line in found.items() if any(w in line for w in words or ("",))}

    def undisturbed(self) -> bytes:
        """What the study finds if it is left alone."""
        ledger = Ledger(self.home / "undisturbed")
        if status := self.ended(self.driver(ledger)):
            raise SystemExit(f"status {status} undisturbed: {self.log.read_text()[-2000:]}")
        self.say(f"undisturbed: {ledger.look()} rows")
        self.thresholds = self.found(ledger)
        return self.thresholds

    def driver(self, ledger: Ledger, *options: str, failing: bool = False) -> subprocess.Popen[Any]:
        """A driver of the study, which has just been started, and hears interrupts."""
        self.done["drivers started"] += 1
        call = [*RGR, "run", str(self.study), "--store", str(ledger.store), "--cpus", "2", *options]
        more = {"RAY_testing_rpc_failure": CALLS_FAIL} if failing else {}
        with self.log.open("ab") as log:
            return subprocess.Popen(
                call,
                stdout=log,
                stderr=log,
                env=os.environ | more,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    def ended(self, driver: subprocess.Popen[Any], within: float = RUNS_FOR) -> int:
        """The exit status of a driver, which is killed if it does not end in time."""
        try:
            return driver.wait(within)
        except subprocess.TimeoutExpired:
            self.wrong.append(f"a driver did not end within {within:.0f} s")
            driver.kill()
            return driver.wait()

    def found(self, ledger: Ledger) -> bytes:
        """What ``rgr thresholds`` prints, to the byte."""
        asked = ["thresholds", str(self.study), "--store", str(ledger.store), "--format", "json"]
        return subprocess.run([*RGR, *asked], capture_output=True, check=True).stdout

    def through(
        self,
        harm: Callable[[subprocess.Popen[Any], Ledger], None],
        *options: str,
        store: Path | None = None,
    ) -> None:
        """Run the study from an empty store until it is done, however often that takes."""
        failing = len(self.ledgers) % 3 == 2
        ledger = Ledger(store or self.home / f"store-{len(self.ledgers)}")
        self.ledgers.append(ledger)
        status, idle = -1, 0
        while status != 0 and idle < IDLE:
            before = len(ledger.rows)
            driver = self.driver(ledger, *options, failing=failing)
            harm(driver, ledger)
            status = self.ended(driver)
            idle = 0 if ledger.look() > before else idle + 1
            if status not in DOCUMENTED:
                (*_, last) = self.log.read_text().splitlines()
                self.wrong.append(f"a driver ended with status {status}: {last[:300]}")
            if status != 0 and self.draw.random() < 0.1 and (parts := ledger.parts()):
                part = self.draw.choice(parts)
                ledger.tear(part, self.draw.randrange(part.stat().st_size))
                self.done["parts torn"] += 1
        if status == 0 and self.found(ledger) != self.thresholds:
            self.wrong.append(f"other thresholds in {ledger.store.name}")
        if status != 0:
            self.wrong.append(f"{idle} drivers in a row stored nothing")
        self.done["studies with failing calls" if failing else "other studies"] += 1
        self.say(f"{ledger.store.name}: {len(ledger.rows)} rows, {dict(self.done)}")

    def kill_driver(self, driver: subprocess.Popen[Any], ledger: Ledger) -> None:
        """Kill or interrupt a driver within its first seconds, or some time after."""
        with suppress(subprocess.TimeoutExpired):
            driver.wait(self.draw.uniform(0, self.draw.choice([6, 20])))
        if driver.poll() is None:
            number = self.draw.choice([signal.SIGKILL, signal.SIGINT])
            driver.send_signal(number)
            self.ended(driver, ENDS_WITHIN)
            self.done[f"drivers killed ({number.name})"] += 1

    def kill_workers(self, driver: subprocess.Popen[Any], ledger: Ledger, most: int = 3) -> None:
        """Kill a worker every few seconds; not one of Ray's own agents, without which it ends."""
        for _ in range(most):
            with suppress(subprocess.TimeoutExpired):
                driver.wait(4 + self.draw.expovariate(0.5))
            names = self.processes("ray::").items()
            busy = [pid for pid, name in names if "IDLE" not in name and "Agent" not in name]
            if driver.poll() is None and busy:
                with suppress(ProcessLookupError):
                    os.kill(self.draw.choice(busy), signal.SIGKILL)
                    self.done["workers killed"] += 1

    @contextmanager
    def cluster(self) -> Iterator[Any]:
        """A Ray cluster of a head without workers, and two nodes of one."""
        from ray.cluster_utils import Cluster

        options = {"include_dashboard": False, "object_store_memory": 100 * 2**20}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **options})
        try:
            for _ in range(2):
                cluster.add_node(num_cpus=1, **options)
            yield cluster
        finally:
            with suppress(Exception):  # Ray complains about nodes that were killed
                cluster.shutdown()

    def kill_nodes(self, cluster: Any, driver: subprocess.Popen[Any], ledger: Ledger) -> None:
        """Kill a node or its raylet alone, while another joins, three times."""
        for _ in range(3):
            with suppress(subprocess.TimeoutExpired):
                driver.wait(5 + self.draw.expovariate(0.5))
            if driver.poll() is not None:
                return
            node = self.draw.choice(list(cluster.worker_nodes))
            if self.draw.random() < 0.5:
                with suppress(ProcessLookupError):
                    os.kill(node.all_processes["raylet"][0].process.pid, signal.SIGKILL)
                self.done["raylets killed"] += 1
            else:
                self.done["nodes killed"] += 1
            cluster.remove_node(node, allow_graceful=False)
            cluster.add_node(num_cpus=1, include_dashboard=False, object_store_memory=100 * 2**20)

    def disk_full(self) -> None:
        """Fill the disk of a store while a driver writes it; then make room, and resume."""
        disk = self.home / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
        if subprocess.run(mount, capture_output=True).returncode:
            self.say("full disk: left out, since mounting one needs root")
            return

        def harm(driver: subprocess.Popen[Any], ledger: Ledger) -> None:
            if self.done["disks filled"]:
                return
            while driver.poll() is None and not ledger.parts():
                time.sleep(0.1)
            with (disk / "ballast").open("wb", buffering=0) as file, suppress(OSError):
                while file.write(b"\0" * 4096):
                    pass
            self.done["disks filled"] += 1
            self.ended(driver)
            (disk / "ballast").unlink()

        try:
            self.through(harm, store=disk / "store")
        finally:
            subprocess.run(["umount", str(disk)], check=True)

    def rows(self) -> list[dict[str, Any]]:
        """What was done, and what came of it beside what should have."""
        time.sleep(LOOK_AFTER)
        for what in self.wrong:
            self.say(f"wrong: {what}")
        outcome = {
            "rows lost": sum(len(ledger.lost) for ledger in self.ledgers),
            "stored runs trained again": sum(len(ledger.twice) for ledger in self.ledgers),
            "otherwise wrong": len(self.wrong),
            "processes left": len(self.processes()),
        }
        done = [{"what": what, "times": times, "should_be": None} for what, times in
                sorted(self.done.items())]  # fmt: skip
        return done + [{"what": w, "times": n, "should_be": 0} for w, n in outcome.items()]


def main(
    kills: Annotated[int, typer.Option(min=1, help="of drivers; a third as many of others")] = 60,
    seed: Annotated[int, typer.Option(help="of the random moments")] = 0,
    how: Annotated[Literal["table", "json"], typer.Option("--format")] = "table",
) -> None:
    """Run the campaign and print what was done, and what came of it."""
    home, messages = Path(tempfile.mkdtemp(prefix="f-")), Console(stderr=True)
    campaign = Campaign(home, seed, lambda text: messages.print(text, highlight=False))
    done = campaign.done
    try:
        campaign.undisturbed()
        while done["drivers killed (SIGKILL)"] + done["drivers killed (SIGINT)"] < kills:
            campaign.through(campaign.kill_driver)
        while done["workers killed"] < kills // 3:
            campaign.through(campaign.kill_workers)
        with campaign.cluster() as cluster:
            while done["nodes killed"] + done["raylets killed"] < kills // 3:
                campaign.through(
                    lambda driver, ledger: campaign.kill_nodes(cluster, driver, ledger),
                    "--address",
                    str(cluster.address),
                )
        campaign.disk_full()
        rows = campaign.rows()
    finally:
        for process in campaign.processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        shutil.rmtree(home, ignore_errors=True)
    table = pd.DataFrame(rows)
    print(json.dumps({"rows": rows}, indent=2) if how == "json" else table.to_string(index=False))
    sys.stdout.flush()
    # At once: in a normal exit, Ray would complain about the nodes that were killed.
    os._exit(int(any(row["should_be"] not in (None, row["times"]) for row in rows)))


if __name__ == "__main__":
    typer.run(main)
