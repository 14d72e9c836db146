"""A store's lock: one driver writes it at a time, and says in ``drivers/`` who it is.

A driver writes its file, then lists the folder until it sees nobody else: then it holds the lock,
and says so in its file. It gives up once it sees one that holds the lock, or one that came too and
whose file sorts before its own; it waits for those that sort after it to hold the lock or give up.
So of drivers that come at once one stays: the first by name, or one that had seen nobody before. Of
any two the later listing sees the earlier file, so that never both hold it. That needs no
conditional write, only that a listing shows what was written before: true of local disks, NFS, S3,
Google's and Azure's storage.

A holder on this machine is given up once its process has ended. One elsewhere is given up once it
has not renewed its file for ``SILENT_AFTER`` seconds, on the clock of the storage. A file that says
of nobody is waited for until a living driver would have renewed it, and what is no file is ignored.
"""

from __future__ import annotations

import os
import platform
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import pyarrow.fs as pafs
from pydantic import Field, TypeAdapter

from rgr_dist.store.storage import Storage, StoreError

RENEW_EVERY = 10.0
"""Seconds between renewals of a holder's file."""
SILENT_AFTER = 60.0
"""Seconds without a renewal after which a holder on another machine counts as dead."""
LOOK_EVERY = 0.05
"""Seconds between looks at drivers that came at the same time."""


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
    process: Annotated[int, Field(ge=0, lt=2**31)]
    born: str
    since: str
    holds: bool = False

    @staticmethod
    def here(does: str) -> Driver:
        """This process."""
        since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return Driver(does, platform.node(), machine(), os.getpid(), born(os.getpid()), since)

    def to_json(self) -> str:
        """The text of its file."""
        return AS_JSON.dump_json(self, indent=2).decode() + "\n"

    def has_gone(self, silent_for: float) -> bool:
        """Whether its process has ended, or it is elsewhere and was silent for too long.

        Args:
            silent_for: seconds since its file was written; far below 0, where a clock was wrong.
        """
        if self.machine == machine():
            return not is_running(self.process, self.born)
        return abs(silent_for) > (2 * RENEW_EVERY if self is UNKNOWN else SILENT_AFTER)


AS_JSON = TypeAdapter(Driver)
UNKNOWN = Driver("another rgr", "a machine that its file does not tell", "", 0, "", "unknown")
"""Whom a damaged file names."""


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
        self._path = f"drivers/{self._name}"
        self._lost = ""
        self._ended = threading.Event()
        self._renewing = threading.Thread(target=self._renew, daemon=True)

    def acquire(self) -> None:
        """Take the lock, and renew it in the background until it is released.

        Raises:
            StoreError: another driver holds it; the message says who, since when, and what to do.
        """
        try:
            self._say(holds=False)
            came = time.monotonic()
            # Twice: a listing may miss a file that is written anew meanwhile.
            while others := self._living_others(came) or self._living_others(came):
                known = {name: driver for name, driver in others.items() if driver is not UNKNOWN}
                for name, driver in known.items():
                    if driver.holds or name < self._name:
                        raise self._taken_by(driver)
                if time.monotonic() - came > 3 * RENEW_EVERY:
                    raise self._taken_by(next(iter(known.values()), UNKNOWN))
                time.sleep(LOOK_EVERY)
            self._say(holds=True)
            self._renewing.start()
        except BaseException:
            self._remove(self._path)
            raise

    def check(self) -> None:
        """Make sure that this driver holds the store still.

        Raises:
            StoreError: it does not; the message says why.
        """
        if self._lost:
            raise StoreError(f"--store {self._storage.root}: {self._lost}; run it again")

    def release(self) -> None:
        """Give the lock up."""
        self._ended.set()
        self._renewing.join(RENEW_EVERY)
        self._remove(self._path)

    def _remove(self, path: str) -> None:
        """Remove a file of a driver; one that stays is known by its process, or by silence."""
        with suppress(StoreError):
            self._storage.remove(path)

    def _say(self, holds: bool) -> None:
        self._storage.write_text(self._path, replace(self._driver, holds=holds).to_json())

    def _written(self) -> dict[str, datetime | None]:
        """When the file of each driver was last written, by its name."""
        return {
            file.base_name: file.mtime
            for file in self._storage.files("drivers")
            if file.base_name.endswith(".json") and file.type == pafs.FileType.File
        }

    def _living_others(self, came: float) -> dict[str, Driver]:
        """The other drivers that live, by file; the files of those that have gone are removed.

        Args:
            came: when this one wrote its file, on ``time.monotonic``'s clock.
        """
        written, living = self._written(), {}
        began = written.pop(self._name, None)
        for name, at in written.items():
            path, driver, silent_for = f"drivers/{name}", UNKNOWN, 0.0
            with suppress(StoreError, ValueError):  # it cannot be read, or is damaged
                text = self._storage.read_text(path)
                if text is None:
                    continue
                driver = AS_JSON.validate_json(text)
            if began and at:
                silent_for = (began - at).total_seconds() + time.monotonic() - came
            if driver.has_gone(silent_for):
                self._remove(path)
            else:
                living[name] = driver
        return living

    def _taken_by(self, other: Driver) -> StoreError:
        when = f"if that has died, the next run takes it over {SILENT_AFTER:.0f} s later"
        if other.machine == machine():
            when = "the next run takes it over once that process has ended"
        return StoreError(
            f"--store {self._storage.root}: {other.does} writes it (process {other.process} on "
            f"{other.host}, since {other.since}); wait for it, end it, or give another --store; "
            f"{when}"
        )

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_EVERY):
            with suppress(StoreError):  # the next time may do
                if self._name in self._written():
                    self._say(holds=True)
                    continue
                self._lost = (
                    f"this command has lost the store, as {self._path} is gone: the store was "
                    "deleted or moved, or another driver took it over, since this one had been "
                    "silent for too long"
                )
                return
