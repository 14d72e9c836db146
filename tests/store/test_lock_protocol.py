"""Drivers that come at once, step by step in every order: one of them holds the store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import product

import pyarrow.fs as pafs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgr_dist.store import lock as lock_module
from rgr_dist.store.lock import Lock
from rgr_dist.store.storage import Storage, StoreError


class InTurns(Storage):
    """Files in memory; each step of a thread that uses them waits for its turn.

    A listing takes two steps, and shows only what was there, as it is, from the first to the
    second: what is written meanwhile it may miss, as that of a disk may.
    """

    def __init__(self, turn: Callable[[], None]) -> None:
        self.root, self._turn = "memory", turn
        self._files: dict[str, tuple[str, int]] = {}
        self._writes = 0

    def write_text(self, relative: str, text: str) -> None:
        """Store a file."""
        self._turn()
        self._writes += 1
        self._files[relative] = text, self._writes

    def read_text(self, relative: str) -> str | None:
        """A file."""
        self._turn()
        return self._files.get(relative, (None, 0))[0]

    def files(self, folder: str) -> list[pafs.FileInfo]:
        """The files that nobody wrote while they were listed."""
        self._turn()
        before = dict(self._files)
        self._turn()
        rewritten = {path for path, file in self._files.items() if before.get(path) != file}
        return [pafs.FileInfo(path, pafs.FileType.File) for path in {*before} - rewritten]

    def remove(self, relative: str) -> None:
        """Remove a file."""
        self._turn()
        self._files.pop(relative, None)


class Turns:
    """Lets threads take steps in a given order; in turn, once that is over."""

    def __init__(self, drivers: int) -> None:
        self._may_go = [threading.Semaphore(0) for _ in range(drivers)]
        self._waits = threading.Semaphore(0)
        self._me = threading.local()
        self._left = list(range(drivers))

    def wait(self, *_: float) -> None:
        """Wait for the turn of this thread; others than drivers do not wait."""
        if hasattr(self._me, "driver"):
            self._waits.release()
            self._may_go[self._me.driver].acquire()

    def run(self, drive: Callable[[], None], order: Sequence[int]) -> int:
        """Run the drivers; returns how many could not be refused."""
        held: list[int] = []

        def driver(number: int) -> None:
            self._me.driver = number
            self.wait()
            try:
                drive()
                held.append(number)
            except StoreError:
                pass
            self._left.remove(number)
            self._waits.release()

        threads = [threading.Thread(target=driver, args=(one,)) for one in list(self._left)]
        for thread in threads:
            thread.start()
            self._waits.acquire()
        step = 0
        while self._left:
            choice = order[step] if step < len(order) else step
            self._may_go[self._left[choice % len(self._left)]].release()
            self._waits.acquire()
            step += 1
        return len(held)


def holders(drivers: int, order: Sequence[int]) -> int:
    """How many of some drivers hold a store after steps in a given order."""
    turns = Turns(drivers)
    storage = InTurns(turns.wait)
    locks: list[Lock] = []

    def drive() -> None:
        lock = Lock(storage, "rgr run mine")
        lock.acquire()
        locks.append(lock)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lock_module.time, "sleep", turns.wait)
        try:
            return turns.run(drive, order)
        finally:
            for lock in locks:
                lock.release()


def test_of_two_drivers_one_holds_the_store_in_whatever_order_their_steps_come() -> None:
    assert {holders(2, order) for order in product(range(2), repeat=10)} == {1}


@settings(max_examples=150)
@given(st.integers(3, 6), st.lists(st.integers(0, 5), max_size=60))
def test_of_several_drivers_one_holds_the_store(drivers: int, order: list[int]) -> None:
    assert holders(drivers, order) == 1
