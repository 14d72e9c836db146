"""One driver writes a store at a time: each puts a file into ``drivers/`` that says who it is.

A driver writes its file, then lists the folder. If it sees nobody else it holds the store; if it
sees somebody who lives it takes its file away again. Of two that come at once the later listing
sees the earlier file, so that never both hold it. That needs no lock and no conditional write, only
that a listing shows what was written before: true of local disks, NFS, S3, Google's and Azure's
storage.

A holder that died on this machine is known by its process. One elsewhere is given up once it has
not renewed its file for ``SILENT_AFTER`` seconds, on the clock of the storage.
"""

from __future__ import annotations

import json
import os
import platform
import random
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

import pyarrow as pa

from rgr_dist.store.owner import born, is_running, machine
from rgr_dist.store.parts import StoreError

RENEW_EVERY = 10.0
"""Seconds between renewals of a holder's file."""
SILENT_AFTER = 60.0
"""Seconds without a renewal after which a holder on another machine counts as dead."""
TRIES = 20
"""Times to try while others come and go, none of them holding the store."""


class Folder(Protocol):
    """Where the files of drivers are."""

    def write_driver(self, name: str, text: str) -> None:
        """Write a file, replacing one of that name."""

    def remove_driver(self, name: str) -> None:
        """Remove a file, if it is there."""

    def drivers(self) -> dict[str, datetime | None]:
        """The files' names, and when each was last written."""

    def read_driver(self, name: str) -> str | None:
        """A file's text; None if it is not there."""


@dataclass(frozen=True)
class Driver:
    """Who writes a store, as its file says.

    Attributes:
        does: the command.
        host: name of its machine.
        machine: what tells machines apart, and containers, whose processes have numbers of
            their own.
        process: its number.
        born: when that process started, in the machine's own count; another process that is
            given the number later has another.
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
        pid = os.getpid()
        return Driver(does, platform.node(), machine(), pid, born(pid), since)

    @property
    def has_died(self) -> bool:
        """Whether it is a process of this machine that has ended."""
        return self.machine == machine() and not is_running(self.process, self.born)


UNKNOWN = Driver("another rgr", "unknown", "", 0, "", "unknown", holds=True)
"""Whoever left a file that cannot be read."""


class Lease:
    """A store that this process holds: renewed in the background until it is released."""

    def __init__(self, folder: Folder, name: str, driver: Driver) -> None:
        self._folder, self._name, self._driver = folder, name, driver
        self._is_lost = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._thread.start()

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
        """Give the store up."""
        self._ended.set()
        self._thread.join(RENEW_EVERY)
        with suppress(OSError, pa.ArrowException):  # it will be known by its process, or by silence
            self._folder.remove_driver(self._name)

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_EVERY):
            with suppress(OSError, pa.ArrowException, StoreError):  # the next time may do
                if self._name not in self._folder.drivers():
                    self._is_lost = True
                    return
                self._folder.write_driver(self._name, _text(self._driver))


@contextmanager
def leased(folder: Folder, root: str, does: str) -> Iterator[Lease]:
    """Hold a store.

    Args:
        root: what a user calls it.
        does: the command, for whoever comes meanwhile.

    Raises:
        StoreError: another driver holds it; the message says who, since when, and what to do.
    """
    name, own = f"{uuid.uuid4().hex[:12]}.json", Driver.here(does)
    _acquire(folder, root, name, own)
    lease = Lease(folder, name, replace(own, holds=True))
    try:
        yield lease
    finally:
        lease.release()


def _acquire(folder: Folder, root: str, name: str, own: Driver) -> None:
    others: dict[str, Driver] = {}
    for _ in range(TRIES):
        folder.write_driver(name, _text(own))
        try:
            others = _living_others(folder, name)
            if not others:
                folder.write_driver(name, _text(replace(own, holds=True)))
                return
        except BaseException:
            folder.remove_driver(name)
            raise
        folder.remove_driver(name)
        if any(other.holds for other in others.values()):
            break
        time.sleep(random.uniform(0.05, 0.5))  # two came at once: let one of them be first
    who = next((one for one in others.values() if one.holds), next(iter(others.values())))
    gives_up = "the next run takes it over once that process has ended"
    if who.machine != machine():
        gives_up = f"if that has died, the next run takes it over {SILENT_AFTER:.0f} s later"
    raise StoreError(
        f"--out {root}: {who.does} writes it (process {who.process} on {who.host}, since "
        f"{who.since}); wait for it, end it, or give another --out; {gives_up}"
    )


def _living_others(folder: Folder, name: str) -> dict[str, Driver]:
    """The other drivers that live; the files of dead ones are removed."""
    written = folder.drivers()
    now, living = written.get(name), {}
    for other, at in written.items():
        text = None if other == name else folder.read_driver(other)
        if text is None:
            continue
        driver = _parsed(text)
        is_silent = bool(now and at and (now - at).total_seconds() > SILENT_AFTER)
        if driver.has_died or (driver.machine != machine() and is_silent):
            folder.remove_driver(other)
        else:
            living[other] = driver
    return living


def _text(driver: Driver) -> str:
    return json.dumps(asdict(driver), indent=2) + "\n"


def _parsed(text: str) -> Driver:
    try:
        return Driver(**json.loads(text))
    except (ValueError, TypeError):
        return UNKNOWN
