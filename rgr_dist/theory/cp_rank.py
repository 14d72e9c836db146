"""The numerical rank of a tensor: how few rank-one terms come within a tolerance of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from tensorly.decomposition import parafac

STARTS, ITERATIONS = 3, 300
"""Random starts of a fit, and iterations of alternating least squares in each."""
SETTLED = 1e-9
"""A fit ends once an iteration lowers its error by less than this."""
RIDGE = 1e-10
"""Added to the normal equations of each step, for a tensor of norm 1: with more terms than the
tensor needs, they would be singular."""


def cp_error(tensor: npt.NDArray[np.generic], rank: int, seed: int = 0) -> float:
    """The best error, over several starts, of fitting a sum of ``rank`` rank-one terms.

    Args:
        tensor: finite, not all zero.

    Returns:
        The Frobenius norm of the difference, divided by that of the tensor.
    """
    unit = tensor.astype(np.float64)
    unit /= np.abs(unit).max()  # done first, as the norm of tiny entries would be zero
    unit /= np.linalg.norm(unit)
    fits = (
        parafac(
            unit,
            rank,
            n_iter_max=ITERATIONS,
            init="random",
            tol=SETTLED,
            random_state=(STARTS * seed + start) % 2**32,
            l2_reg=RIDGE,
            return_errors=True,
        )
        for start in range(STARTS)
    )
    return min(float(errors[-1]) for _, errors in fits)


def cp_rank(
    tensor: npt.NDArray[np.generic], lower: int, upper: int, tolerance: float, seed: int = 0
) -> int:
    """The smallest rank whose fit comes within the tolerance, by bisection.

    It is an estimate, not a bound. It is too large if a fit ends too early (alternating least
    squares may stop at a bad point), and too small if tensors of lower rank come within any
    tolerance of this one; and bisection assumes that a larger rank fits better.

    Args:
        lower: the smallest rank to try.
        upper: a rank that is known to suffice.
        tolerance: largest error, as ``cp_error`` returns it.

    Raises:
        ValueError: the tensor has entries that are not finite, or only zeros.
    """
    if not np.isfinite(tensor.astype(np.float64)).all() or not tensor.any():
        raise ValueError("a tensor to decompose has finite entries, not all zero")
    low, high = lower, upper
    while low < high:
        middle = (low + high) // 2
        if cp_error(tensor, middle, seed) <= tolerance:
            high = middle
        else:
            low = middle + 1
    return low
