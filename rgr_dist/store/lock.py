"""A store's lock: one driver writes it at a time, and says in ``drivers/`` who it is.

A driver writes its file, then lists the folder. If it sees nobody else it holds the lock; if it
sees somebody who lives it takes its file away again. Of two that come at once the later listing
sees the earlier file, so that never both hold it. That needs no conditional write, only that
a listing shows what was written before: true of local disks, NFS, S3, Google's and Azure's storage.

A holder on this machine is given up once its process has ended. One elsewhere is given up once it
has not renewed its file for ``SILENT_AFTER`` seconds, on the clock of the storage.
"""

from __future__ import annotations

import json
import os
import platform
import random
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rgr_dist.store.storage import Storage, StoreError

RENEW_EVERY = 10.0
"""Seconds between renewals of a holder's file."""
SILENT_AFTER = 60.0
"""Seconds without a renewal after which a holder on another machine counts as dead."""
TRIES = 20
"""Times to try while others come and go, none of them holding the lock."""


@dataclass(frozen=True)
class Driver:
    """Who writes a store, as its file says.

    Attributes:
        does: the command.
        host: name of its machine.
        machine, process, born: which process it is; numbers of processes are given anew.
        since: when it came, UTC.
        holds: whether it found nobody else.
    """

    does: str
    host: str
    machine: str
    process: int
    born: str
    since: str
    holds: bool = False

    @staticmethod
    def here(does: str) -> Driver:
        """This process."""
        since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return Driver(does, platform.node(), machine(), os.getpid(), born(os.getpid()), since)

    @staticmethod
    def of_json(text: str) -> Driver:
        """Whom a file names; somebody unknown and elsewhere where it cannot be read."""
        try:
            return Driver(**json.loads(text))
        except (ValueError, TypeError):
            return Driver("another rgr", "unknown", "", 0, "", "unknown", holds=True)

    def to_json(self) -> str:
        """The text of its file."""
        return json.dumps(asdict(self), indent=2) + "\n"

    def has_gone(self, silent_for: float) -> bool:
        """Whether its process has ended, or it is elsewhere and was silent for too long."""
        if self.machine == machine():
            return not is_running(self.process, self.born)
        return silent_for > SILENT_AFTER


def machine() -> str:
    """What tells this machine and container apart from others, until it is started anew."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{platform.node()} {uuid.getnode()}"


def born(process: int) -> str:
    """When a process started, in clock ticks since the machine did; empty where nothing tells."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "ended" if fields[0] == "Z" else fields[19]


def is_running(process: int, since: str) -> bool:
    """Whether a process of this machine runs that started then."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        pass
    found = born(process)
    return not (found and since) or found == since


class Lock:
    """The lock of a store, for one command of this process.

    Args:
        does: the command, for whoever comes meanwhile.
    """

    def __init__(self, storage: Storage, does: str) -> None:
        self._storage, self._driver = storage, Driver.here(does)
        self._name = f"{uuid.uuid4().hex[:12]}.json"
        self._is_lost = False
        self._ended = threading.Event()
        self._renewing = threading.Thread(target=self._renew, daemon=True)

    def acquire(self) -> None:
        """Take the lock, and renew it in the background until it is released.

        Raises:
            StoreError: another driver holds it; the message says who, since when, and what to do.
        """
        for _ in range(TRIES):
            try:
                self._say(holds=False)
                others = self._living_others()
                if not others:
                    self._say(holds=True)
                    self._renewing.start()
                    return
            except BaseException:
                self._storage.remove(self._path)
                raise
            self._storage.remove(self._path)
            holder = next((other for other in others if other.holds), None)
            if holder is not None:
                raise self._taken_by(holder)
            time.sleep(random.uniform(0.05, 0.5))  # two came at once: let one of them be first
        raise self._taken_by(others[0])

    def check(self) -> None:
        """Make sure that no other driver has taken over since.

        Raises:
            StoreError: one has, as this process was silent for too long.
        """
        if self._is_lost:
            raise StoreError(
                "another driver has taken the store over, since this one gave no sign of life for "
                f"{SILENT_AFTER:.0f} s: asleep, or cut off from the store; run it again"
            )

    def release(self) -> None:
        """Give the lock up."""
        self._ended.set()
        self._renewing.join(RENEW_EVERY)
        with suppress(StoreError):  # it will be known by its process, or by silence
            self._storage.remove(self._path)

    @property
    def _path(self) -> str:
        return f"drivers/{self._name}"

    def _say(self, holds: bool) -> None:
        self._storage.write_text(self._path, replace(self._driver, holds=holds).to_json())

    def _written(self) -> dict[str, datetime | None]:
        """When the file of each driver was last written, by its name."""
        files = self._storage.files("drivers")
        return {file.base_name: file.mtime for file in files if file.base_name.endswith(".json")}

    def _living_others(self) -> list[Driver]:
        """The other drivers that live; the files of those that have gone are removed."""
        written = self._written()
        now, living = written.get(self._name), []
        for name, at in written.items():
            path = f"drivers/{name}"
            text = None if name == self._name else self._storage.read_text(path)
            if text is None:
                continue
            driver = Driver.of_json(text)
            if driver.has_gone((now - at).total_seconds() if now and at else 0.0):
                self._storage.remove(path)
            else:
                living.append(driver)
        return living

    def _taken_by(self, other: Driver) -> StoreError:
        when = f"if that has died, the next run takes it over {SILENT_AFTER:.0f} s later"
        if other.machine == machine():
            when = "the next run takes it over once that process has ended"
        return StoreError(
            f"--out {self._storage.root}: {other.does} writes it (process {other.process} on "
            f"{other.host}, since {other.since}); wait for it, end it, or give another --out; "
            f"{when}"
        )

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_EVERY):
            with suppress(StoreError):  # the next time may do
                if self._name not in self._written():
                    self._is_lost = True
                    return
                self._say(holds=True)
