"""AdamW in the compiled engine: for a tile of parameters, and for the threshold tau.

Bias correction is computed ahead for a block of steps: with rate = learning rate / (1 - beta_1^t)
and root = 1 / sqrt(1 - beta_2^t) at step t, counted from 1, a parameter moves by
-rate m / (root sqrt(v) + epsilon).
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from rgr_dist.engines.fused.simd import WIDTH, fma, sqrt
from rgr_dist.engines.fused.simd_memory import load, store
from rgr_dist.engines.schedule import BETA_1, BETA_2, EPSILON


@numba.njit(nogil=True, inline="always")
def adamw(gradient: Any, first: Any, second: Any, rate: float, root: float) -> Any:
    """The moments of a tile after a step, and the step itself, which is to be subtracted.

    Args:
        gradient: a tile: vectors of ``WIDTH`` floats, one for each of its rows.
        first, second: the moments before the step, tiles too.
        rate, root: of the step, as the module says.
    """
    first = fma(gradient - first, np.float32(1 - BETA_1), first)
    second = fma(gradient * gradient, np.float32(1 - BETA_2), second * np.float32(BETA_2))
    step = first * np.float32(rate) / fma(sqrt(second), np.float32(root), np.float32(EPSILON))
    return first, second, step


@numba.njit(nogil=True, inline="always")
def update(
    theta: Any, first: Any, second: Any, gradient: Any, begin: int, end: int,
    rate: float, root: float, decay: float,
) -> None:  # fmt: skip
    """Take a step on parameters ``begin`` to ``end``, multiples of 16, of flat arrays.

    Args:
        rate, root: of the step, as the module says.
        decay: 1 - learning rate * weight decay.
    """
    for at in range(begin, end, WIDTH):
        g = load(1, gradient, at, 0)
        m, v, step = adamw(g, load(1, first, at, 0), load(1, second, at, 0), rate, root)
        store(first, at, 0, m)
        store(second, at, 0, v)
        store(theta, at, 0, load(1, theta, at, 0) * np.float32(decay) - step)


@numba.njit(nogil=True)
def update_tau(tau: Any, gradient: float, rate: float, root: float) -> None:
    """One step of the threshold alone: ``tau`` holds it and its two moments, [3]."""
    tau[1] += np.float32(1 - BETA_1) * (gradient - tau[1])
    tau[2] = np.float32(BETA_2) * tau[2] + np.float32(1 - BETA_2) * gradient * gradient
    tau[0] -= np.float32(rate) * tau[1] / (np.sqrt(tau[2]) * np.float32(root) + np.float32(EPSILON))
