"""Puts one study through faults: what is done to it, and what must hold in spite of that."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from fault_campaign import ours
from fault_campaign.driver import RGR, Driver, Hung
from fault_campaign.ledger import Ledger
from fault_campaign.nodes import Nodes
from fault_campaign.record import Record
from fault_campaign.resources import memory_in_use, small_disk, write_until_full
from rgr_dist.cli.options import EXIT_BAD_INPUT, EXIT_FAILED_RUNS, EXIT_INTERRUPTED
from rgr_dist.faults import EXIT_BROKEN

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
    "search": {"heads": [1, 2, 4], "seeds": 5},
}
WORKERS = 2
LOOK_AFTER = 60.0
"""Seconds after which none of the campaign's processes may be left."""
RPC_FAULTS = json.dumps(
    {"*": {"num_failures": -1, "req_failure_prob": 1, "resp_failure_prob": 1,
           "in_flight_failure_prob": 1}}
)  # fmt: skip
"""Out of a hundred calls between Ray's processes, three fail: one in each way."""
CALLS_FAIL = {"RAY_testing_rpc_failure": RPC_FAULTS, "RGR_LEASE_SECONDS": "60"}
"""Environment of a driver whose calls fail. Ray can lose a worker then: a study that waits for it
goes on after a minute, before it counts as hung, and not after ten."""
INJECTED = "Inject RPC"
"""What Ray logs about such a call."""
SPARE_MEMORY = 1500
"""MiB above what is in use when a driver starts, beyond which Ray's memory monitor kills."""
CLUSTERS = 3
"""Clusters whose nodes are killed: each takes a third of the kills."""
KILLS_EVERY = 0.3
"""Mean seconds from a new row to the death of a node."""
DOCUMENTED = (0, EXIT_BAD_INPUT, EXIT_FAILED_RUNS, EXIT_BROKEN, EXIT_INTERRUPTED)
"""The statuses with which a driver may end, unless it is killed."""
NO_PROGRESS = 25
"""Drivers in a row that store nothing, after which a study counts as stuck."""


class Campaign:
    """Puts one study through faults, in a folder of its own.

    Attributes:
        faults: what was done.
        wrong: what was not as it should be, in words.
        drivers: how many drivers were started.
        rpc_faults: how many failed calls each of Ray's logs reports.
        lost, twice, backwards, torn: as in ``Ledger``, over all stores.
    """

    def __init__(self, home: Path, seed: int, say: Callable[[str], None]) -> None:
        self.home, self.seed, self.say = home, seed, say
        self.draw = random.Random(seed)
        self.temporary = home / "tmp"
        self.temporary.mkdir()
        self.study = home / "faults.yaml"
        self.study.write_text(yaml.safe_dump(STUDY))
        self.faults = Record(home / "faults.jsonl")
        self.wrong: list[str] = []
        self.drivers = self.studies = 0
        self.rpc_faults: dict[Path, int] = {}
        self.lost = self.twice = self.backwards = self.torn = 0
        os.environ |= {
            ours.MARK: str(home),
            "TMPDIR": str(self.temporary),
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        self._turns: Counter[str] = Counter()
        self.thresholds = b""
        self.first_row = 0.0

    def undisturbed(self) -> None:
        """Run the study once, to learn what it finds and how long the first row takes."""
        ledger = Ledger(self.home / "undisturbed")
        driver = self._driver(ledger)
        driver.wait_until(lambda: ledger.stored() > 0)
        self.first_row = time.monotonic() - driver.started
        if driver.wait():
            raise SystemExit(f"the study fails undisturbed: {self._log.read_text()[-2000:]}")
        self.thresholds = self._thresholds(ledger)
        self.say(f"undisturbed: first row after {self.first_row:.1f} s, {ledger.look()} rows")

    def drivers_killed(self, times: int) -> None:
        """Kill drivers until so many have died, in studies that are each run until done."""
        target = self.faults.count("driver") + times

        def disturb(driver: Driver, ledger: Ledger, failing: bool) -> None:
            if self.faults.count("driver") >= target or not self._moment(driver, ledger):
                return
            number = self.draw.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGINT])
            status = driver.kill(number)
            if status in (-signal.SIGKILL, EXIT_INTERRUPTED):  # it had not just ended by itself
                self.faults.note("driver", number.name, failing, pid=driver.process.pid)

        while self.faults.count("driver") < target:
            self._through(disturb, tear=True)

    def workers_killed(self, times: int, hows: str) -> None:
        """Let workers die until so many have."""
        target = self.faults.count("worker") + times
        while (before := self.faults.count("worker")) < target:
            self._through(None, self._deaths(hows, target))
            if self.faults.count("worker") == before:
                self.wrong.append(f"no worker died in a study in which they should: {hows}")
                break

    def nodes_killed(self, times: int) -> None:
        """Kill raylets and nodes of clusters in turn until so many have died; others join.

        There are three clusters; in the last, calls between processes fail.
        """
        first = self.faults.count("raylet", "node")
        before = set(self.temporary.glob("ray/session_2*"))
        for cluster in range(CLUSTERS):
            target = first + times * (cluster + 1) // CLUSTERS
            failing = cluster == CLUSTERS - 1
            nodes = Nodes(WORKERS, {"RAY_testing_rpc_failure": RPC_FAULTS} if failing else {})
            disturb = partial(self._kill_nodes, nodes, target)
            try:
                while (killed := self.faults.count("raylet", "node")) < target:
                    self._through(disturb, address=nodes.address, failing=failing)
                    if self.faults.count("raylet", "node") == killed:
                        self.wrong.append("no node was killed in a study in which one should be")
                        break
            finally:
                self._count_rpc_faults()
                nodes.end()
        for session in set(self.temporary.glob("ray/session_2*")) - before:
            shutil.rmtree(session, ignore_errors=True)  # the clusters were the campaign's own

    def _kill_nodes(
        self, nodes: Nodes, target: int, driver: Driver, ledger: Ledger, failing: bool
    ) -> None:
        while (killed := self.faults.count("raylet", "node")) < target:
            more, wait = ledger.stored() + 1, self.draw.expovariate(1 / KILLS_EVERY)
            if not driver.wait_until(lambda least=more: ledger.stored() >= least):
                return
            end = time.monotonic() + wait
            if not driver.wait_until(lambda then=end: time.monotonic() >= then):
                return
            what = "node" if killed % 2 else "raylet"
            pid = nodes.replace_one(self.draw, whole=what == "node")
            self.faults.note(what, "SIGKILL", failing, pid=pid)

    def disk_full(self) -> None:
        """Fill the disk of a store while a driver writes it; then make room, and resume."""
        with small_disk(self.home / "disk") as disk:
            if disk is None:
                self.say("full disk: left out, since mounting one needs root")
                return
            ballast = disk / "ballast"

            def disturb(driver: Driver, ledger: Ledger, failing: bool) -> None:
                if ballast.exists() or not driver.wait_until(lambda: ledger.stored() > 0):
                    return
                write_until_full(ballast)
                self.faults.note("disk", "full", failing)
                status = driver.wait()
                if status != EXIT_BAD_INPUT:
                    self.wrong.append(f"a full disk: exit status {status}")
                ballast.write_bytes(b"")

            self._through(disturb, store=disk / "store")

    def table(self) -> list[dict[str, Any]]:
        """What was counted, what the count is, and what it should be."""
        time.sleep(LOOK_AFTER)
        processes = ours.processes(self.home)
        counted = {
            "rows lost": self.lost,
            "stored runs trained again": self.twice,
            "looks that found fewer rows than before": self.backwards,
            "otherwise wrong": len(self.wrong),
            f"processes left after {LOOK_AFTER:.0f} s": len(processes),
        }
        for what in (*self.wrong, *processes.values()):
            self.say(f"wrong: {what}")
        return [{"counted": what, "is": count, "should_be": 0} for what, count in counted.items()]

    def _through(
        self,
        disturb: Callable[[Driver, Ledger, bool], None] | None,
        environment: Callable[[], dict[str, str]] | None = None,
        address: str = "local",
        failing: bool | None = None,
        store: Path | None = None,
        tear: bool = False,
    ) -> None:
        """Run the study from an empty store until it is done, however often that takes.

        Args:
            disturb: harms a driver that runs; is told whether Ray's calls fail.
            environment: gives what the driver has in addition in its environment.
            failing: whether Ray's calls fail; every third time if not given.
            tear: whether to tear a part now and then.
        """
        self.studies += 1
        ledger = Ledger(store or self.home / f"store-{self.studies}")
        status, idle = -1, 0
        while status != 0:
            fail = self._is_third("drivers") if failing is None else failing
            driver = self._driver(
                ledger,
                (environment() if environment else {}) | (CALLS_FAIL if fail else {}),
                address,
                retry=status == EXIT_FAILED_RUNS,
            )
            before = len(ledger.rows)
            try:
                if disturb is not None:
                    disturb(driver, ledger, fail)
                status = driver.wait()
            except Hung as hung:
                self.wrong.append(str(hung))
                status = -1
            idle = 0 if ledger.look() > before else idle + 1
            self._count_rpc_faults()
            if idle > NO_PROGRESS:
                self.wrong.append(f"{idle} drivers in a row stored nothing: {self._tail()}")
                break
            if status not in (0, EXIT_FAILED_RUNS, EXIT_INTERRUPTED, -signal.SIGKILL):
                self.say(f"a driver ended with status {status}: {self._tail()}")
            # A signal in a driver's last moments kills it as any Python; a shell says 130.
            if status not in (*DOCUMENTED, -signal.SIGKILL, -signal.SIGINT):
                self.wrong.append(f"a driver ended with status {status}")
            may_tear = tear and status != 0  # a finished store is compared as it is
            if may_tear and self.draw.random() < 0.1 and (parts := ledger.parts()):
                part = self.draw.choice(parts)
                ledger.tear(part, self.draw.randrange(part.stat().st_size))
                self.faults.note("part", "torn", fail)
        if status == 0 and self._thresholds(ledger) != self.thresholds:
            self.wrong.append(f"other thresholds in {ledger.store.name}")
        for what in ledger.again:
            self.say(f"trained again in {ledger.store.name}: {what}")
        self.lost += len(ledger.lost)
        self.twice += len(ledger.twice)
        self.backwards += ledger.backwards
        self.torn += ledger.torn
        self.say(f"study {self.studies}: done with {self.drivers} drivers, {len(ledger.rows)} rows")

    def _driver(
        self,
        ledger: Ledger,
        environment: dict[str, str] | None = None,
        address: str = "local",
        retry: bool = False,
    ) -> Driver:
        self.drivers += 1
        arguments = ["run", str(self.study), "--store", str(ledger.store), "--address", address]
        arguments += ["--cpus", str(WORKERS)] + (["--retry-failed"] if retry else [])
        return Driver(arguments, self._log, environment)

    def _moment(self, driver: Driver, ledger: Ledger) -> bool:
        """Wait for a random moment of a driver's life; False if it ends before.

        Half of the moments come before or near the first row, the rest after some further rows.
        """
        if self.draw.random() < 0.5:
            end = driver.started + self.draw.uniform(0, 1.2 * self.first_row)
        else:
            before, more = len(ledger.rows), self.draw.randrange(1, 60)
            if not driver.wait_until(lambda: ledger.stored() >= before + more):
                return False
            end = time.monotonic() + self.draw.uniform(0, 0.3)
        return driver.wait_until(lambda: time.monotonic() >= end, every=0.01)

    def _deaths(self, hows: str, most: int) -> Callable[[], dict[str, str]]:
        """The environment in which workers die."""
        inside = Path(__file__).parent / "in_workers"

        def environment() -> dict[str, str]:
            path = [str(inside), *filter(None, [os.environ.get("PYTHONPATH")])]
            deaths = {
                "PYTHONPATH": os.pathsep.join(path),
                "RGR_DEATHS": hows,
                "RGR_DEATHS_AFTER": "1.0",
                "RGR_DEATHS_MOST": str(most),
                "RGR_DEATHS_SEED": str(self.seed),
                "RGR_DEATHS_TO": str(self.faults.path),
                "RGR_DEATHS_MEBIBYTES": str(2 * SPARE_MEMORY),
            }
            if "memory" in hows:
                deaths |= {
                    "RAY_memory_usage_threshold": f"{memory_in_use(SPARE_MEMORY):.4f}",
                    "RAY_memory_monitor_refresh_ms": "100",
                }
            return deaths

        return environment

    def _is_third(self, what: str) -> bool:
        """Whether Ray's calls should fail this time, as they do every third time."""
        self._turns[what] += 1
        return self._turns[what] % 3 == 0

    def _count_rpc_faults(self) -> None:
        for log in self.temporary.glob("**/ray/session_2*/logs/*"):
            if log.is_file() and log.suffix in (".log", ".out", ".err"):
                self.rpc_faults[log] = log.read_text(errors="replace").count(INJECTED)

    def _thresholds(self, ledger: Ledger) -> bytes:
        """What ``rgr thresholds`` prints, to the byte."""
        asked = ["thresholds", str(self.study), "--store", str(ledger.store), "--format", "json"]
        return subprocess.run([*RGR, *asked], capture_output=True, check=True).stdout

    @property
    def _log(self) -> Path:
        return self.home / "output.log"

    def _tail(self) -> str:
        return self._log.read_text(errors="replace").strip().rpartition("\n")[2][:300]
