"""Tells whether the machine gives us every core right now, by a small loop of arithmetic on each.

On a shared machine two cores are at times worth one, and then no program gets more out of them. So
speed on several cores is measured only while this loop, whose threads share nothing, gets them all.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
from numpy.typing import NDArray

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
WHOLE = 0.97
"""Share of a lone core's pace that every core reaches if all of them are available."""


def pin(threads: int) -> None:
    """Keep this thread, and those that it starts from now on, to so many cores."""
    if CORES:
        os.sched_setaffinity(0, CORES[:threads])


@numba.njit(nogil=True)
def _spin(values: NDArray[np.float32], turns: int) -> None:
    for _ in range(turns):
        for index in range(values.size):
            values[index] = values[index] * np.float32(0.999) + np.float32(0.001)


class Cores:
    """The pace of a small loop on one thread, and on all of them at once.

    Args:
        threads: how many cores are asked for.
        seconds: how long the loop takes.
    """

    def __init__(self, threads: int, seconds: float = 0.01) -> None:
        self.threads = threads
        # Far apart in memory, or the threads would wait for each other's cache lines.
        self.values = list(np.zeros((threads, 8192), dtype=np.float32)[:, 4096:4352])
        pin(threads)
        self.pool = ThreadPoolExecutor(threads)
        self.turns = 10_000
        self._timed(threads)
        self.turns = round(self.turns * seconds / min(self._timed(1) for _ in range(5)))

    def are_whole(self) -> bool:
        """Whether all threads, running together at this moment, keep the pace of one alone."""
        pin(self.threads)
        return self._timed(1) >= WHOLE * self._timed(self.threads)

    def _timed(self, threads: int) -> float:
        started = time.perf_counter()
        list(self.pool.map(_spin, self.values[:threads], [self.turns] * threads))
        return time.perf_counter() - started
