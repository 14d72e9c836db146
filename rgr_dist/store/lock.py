"""A store's lock: one driver at a time writes the store, and identifies itself in ``drivers/``.

A driver writes its file, then lists the folder until it sees no other driver: then it holds the
lock, and says so in its file. It gives up if it sees a driver that holds the lock, or one that is
also waiting and whose file sorts before its own; it waits for those that sort after it to take the
lock or give up. So of drivers that come at once one stays: the first by name, or one that listed
the folder before the others came. Of any two drivers, the one that lists last sees the other's
file, so they never both hold the lock. This needs no conditional writes, only listings that show
everything written before, as those of local disks, NFS, S3, Google's and Azure's storage do.

A driver on this machine counts as gone once its process has ended; one elsewhere, once it has not
renewed its file for ``SILENT_AFTER`` seconds, by the storage's clock. A file that names no driver
is waited for until a living driver would have renewed it. Anything that is not a file is ignored.
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
"""Seconds between listings while waiting for drivers that came at the same time."""


@dataclass(frozen=True)
class Driver:
    """A driver that writes a store, as its file describes it.

    Attributes:
        does: the command.
        host: name of its machine.
        machine, process, born: identify its process, since process numbers are reused.
        since: when it came, in UTC.
        holds: whether it holds the lock, having seen no other driver.
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
        """This process as a driver."""
        since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return Driver(does, platform.node(), machine(), os.getpid(), born(os.getpid()), since)

    def to_json(self) -> str:
        """The text of its file."""
        return AS_JSON.dump_json(self, indent=2).decode() + "\n"

    def has_gone(self, silent_for: float) -> bool:
        """Whether its process has ended, or it is elsewhere and has been silent for too long.

        Args:
            silent_for: seconds since its file was written; far below 0 if a clock was wrong.
        """
        if self.machine == machine():
            return not is_running(self.process, self.born)
        return abs(silent_for) > (2 * RENEW_EVERY if self is UNKNOWN else SILENT_AFTER)


AS_JSON = TypeAdapter(Driver)
UNKNOWN = Driver("another rgr", "a machine that its file does not tell", "", 0, "", "unknown")
"""The driver that a damaged file stands for."""


def machine() -> str:
    """An identifier of this machine and container, which changes when it restarts."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{platform.node()} {uuid.getnode()}"


def born(process: int) -> str:
    """When a process started, in clock ticks since boot; empty if unknown, ``ended`` once dead."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "ended" if fields[0] == "Z" else fields[19]


def is_running(process: int, born_then: str) -> bool:
    """Whether the process runs on this machine and, if that is known, is the one started then."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's process
        pass
    found = born(process)
    return not (found and born_then) or found == born_then


class Lock:
    """The lock of a store, for one command of this process.

    Args:
        does: the command, named to any driver that comes meanwhile.
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
            self._write(holds=False)
            came = time.monotonic()
            # List twice: a listing may miss a file that is being rewritten.
            while others := self._living_others(came) or self._living_others(came):
                known = {name: driver for name, driver in others.items() if driver is not UNKNOWN}
                for name, driver in known.items():
                    if driver.holds or name < self._name:
                        raise self._taken_by(driver)
                if time.monotonic() - came > 3 * RENEW_EVERY:
                    raise self._taken_by(next(iter(known.values()), UNKNOWN))
                time.sleep(LOOK_EVERY)
            self._write(holds=True)
            self._renewing.start()
        except BaseException:
            self._remove(self._path)
            raise

    def check(self) -> None:
        """Make sure that this driver still holds the store.

        Raises:
            StoreError: it does not; the message says why.
        """
        if self._lost:
            raise StoreError(f"--store {self._storage.root}: {self._lost}; run it again")

    def release(self) -> None:
        """Give up the lock."""
        self._ended.set()
        self._renewing.join(RENEW_EVERY)
        self._remove(self._path)

    def _remove(self, path: str) -> None:
        """Remove a driver's file; if it stays, its ended process or its silence will tell."""
        with suppress(StoreError):
            self._storage.remove(path)

    def _write(self, holds: bool) -> None:
        self._storage.write_text(self._path, replace(self._driver, holds=holds).to_json())

    def _written(self) -> dict[str, datetime | None]:
        """When each driver's file was last written, by the file's name."""
        return {
            file.base_name: file.mtime
            for file in self._storage.files("drivers")
            if file.base_name.endswith(".json") and file.type == pafs.FileType.File
        }

    def _living_others(self, came: float) -> dict[str, Driver]:
        """The other living drivers, by file; removes the files of those that have gone.

        Args:
            came: when this driver wrote its file, on ``time.monotonic``'s clock.
        """
        written, living = self._written(), {}
        own_written = written.pop(self._name, None)
        for name, written_at in written.items():
            path, driver, silent_for = f"drivers/{name}", UNKNOWN, 0.0
            with suppress(StoreError, ValueError):  # it cannot be read, or is damaged
                text = self._storage.read_text(path)
                if text is None:
                    continue
                driver = AS_JSON.validate_json(text)
            if own_written and written_at:
                # Its age as ours was written, by the storage's clock, plus the time since, by ours.
                silent_for = (own_written - written_at).total_seconds() + time.monotonic() - came
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
            with suppress(StoreError):  # the next attempt may succeed
                if self._name in self._written():
                    self._write(holds=True)
                    continue
                self._lost = (
                    f"this command has lost the store, as {self._path} is gone: the store was "
                    "deleted or moved, or another driver took it over, since this one had been "
                    "silent for too long"
                )
                return
