"""Does the machine give every core just now? A small loop of arithmetic on each says so.

On a shared machine two cores are at times worth one. No program gets more out of them then, so
what is asked of several cores is measured while this loop, which shares nothing, gets them all.
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
"""Where all cores are there, each reaches this share of one core's pace."""


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
        """Whether all threads have, at this moment, the pace of one alone."""
        pin(self.threads)
        return self._timed(1) >= WHOLE * self._timed(self.threads)

    def _timed(self, threads: int) -> float:
        started = time.perf_counter()
        list(self.pool.map(_spin, self.values[:threads], [self.turns] * threads))
        return time.perf_counter() - started
