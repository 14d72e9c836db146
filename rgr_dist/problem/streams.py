"""Counter-based randomness: every draw is a pure function of (problem, role, seed, counter).

The generator is Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy
as 1, 2, 3"). Any draw can be made without those before it, so every engine, head count
and key width sees the same numbers, in any order and on any number of threads.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from rgr_dist.problem.kernel_cache import cached_kernel

UInt32Array = npt.NDArray[np.uint32]
Float64Array = npt.NDArray[np.float64]

MULTIPLIER_0 = np.uint64(0xD2511F53)
MULTIPLIER_1 = np.uint64(0xCD9E8D57)
WEYL_0 = np.uint64(0x9E3779B9)
WEYL_1 = np.uint64(0xBB67AE85)
LOW_32 = np.uint64(0xFFFFFFFF)
SHIFT_32 = np.uint64(32)


@cached_kernel(inline="always")
def philox(key0: Any, key1: Any, c0: Any, c1: Any, c2: Any, c3: Any) -> Any:
    """One Philox4x32-10 block: four 32-bit words, each held in a uint64.

    Args:
        key0, key1: the two halves of the stream's key, uint64 below 2**32.
        c0, c1, c2, c3: the counter's words, uint64 below 2**32.
    """
    for _ in range(10):
        product0 = MULTIPLIER_0 * c0
        product1 = MULTIPLIER_1 * c2
        c0 = (product1 >> SHIFT_32) ^ c1 ^ key0
        c1 = product1 & LOW_32
        c2 = (product0 >> SHIFT_32) ^ c3 ^ key1
        c3 = product0 & LOW_32
        key0 = (key0 + WEYL_0) & LOW_32
        key1 = (key1 + WEYL_1) & LOW_32
    return c0, c1, c2, c3


@cached_kernel(inline="always")
def below(n: Any, word: Any) -> Any:
    """The uniform integer below n that a 32-bit word stands for; its bias is below n / 2**32."""
    return np.int64((np.uint64(word) * np.uint64(n)) >> SHIFT_32)


@cached_kernel()
def _fill_words(key0: Any, key1: Any, out: Any) -> None:
    for block in range((out.size + 3) // 4):
        index = np.uint64(block)
        words = philox(key0, key1, index & LOW_32, index >> SHIFT_32, np.uint64(0), np.uint64(0))
        for lane in range(4):
            if 4 * block + lane < out.size:
                out[4 * block + lane] = words[lane]


@dataclass(frozen=True)
class Stream:
    """A stream of 32-bit words, addressed by counter.

    Attributes:
        key0, key1: the halves of its 64-bit key.
    """

    key0: int
    key1: int

    @classmethod
    def of(cls, problem: str, role: str, seed: int, relation: int = 0) -> Stream:
        """The stream of a role (``graph``, ``train``, …) in a problem, for a seed.

        Relations from 1 on, which share the embedding of relation 0, have streams of their own.
        """
        text = f"{problem}|{role}|{seed}" + (f"|relation {relation}" if relation else "")
        key = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return cls(int.from_bytes(key[:4], "little"), int.from_bytes(key[4:], "little"))

    @property
    def key(self) -> npt.NDArray[np.uint64]:
        """The two key words, as compiled code takes them."""
        return np.array([self.key0, self.key1], dtype=np.uint64)

    def words(self, count: int) -> UInt32Array:
        """The first ``count`` words, each uniform on 0 … 2**32 - 1."""
        out = np.empty(count, dtype=np.uint32)
        _fill_words(np.uint64(self.key0), np.uint64(self.key1), out)
        return out

    def normals(self, *shape: int) -> Float64Array:
        """The first standard normal values, in this shape, each by inversion of one word."""
        uniform = (self.words(math.prod(shape)).astype(np.float64) + 0.5) / 2.0**32
        values: Float64Array = ndtri(uniform).reshape(shape)
        return values

    def permutation(self, n: int) -> npt.NDArray[np.int32]:
        """A uniform permutation of 0 … n - 1: the order of n random 64-bit words."""
        words = self.words(2 * n).astype(np.uint64)
        order = np.argsort((words[:n] << SHIFT_32) | words[n:], kind="stable")
        return order.astype(np.int32)
