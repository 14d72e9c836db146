"""Bisection by single seeds, whose answers may be wrong: beliefs about where the threshold lies.

A belief is a probability for each place of a threshold on an axis of n values: place i means that
the first i values fail and those after them pass, so place n means that none passes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ask = Callable[[int], bool]
"""Whether one more seed, at the value of a place, reaches the target."""

QUERIES = 40
"""Most seeds that a head count is given."""
SURE = 0.95
"""Belief in a single place at which asking stops."""
RIGHT = 0.75
"""Probability with which an answer is taken to be right, at whatever value."""
SLOPES = (3.0, 8.0, 20.0, 60.0)
"""Slopes of the logistic curves in ln d_k that the share of passing seeds may follow."""
LAPSE = 0.02
"""Share of answers that are wrong however far from the threshold."""


def probabilistic_bisection(n: int, ask: Ask) -> int:
    """Ask at the median of the belief; every answer is right with the same probability.

    Source: M. Horstein, "Sequential transmission using noiseless feedback", 1963; R. Waeber,
    P. I. Frazier, S. G. Henderson, "Bisection search with noisy responses", 2013.

    Returns:
        the median of the belief in the end.
    """
    belief = np.full(n + 1, 1 / (n + 1))
    for _ in range(QUERIES):
        at = int(np.abs(np.cumsum(belief)[:n] - 0.5).argmin())
        is_right = np.where((np.arange(n + 1) <= at) == ask(at), RIGHT, 1 - RIGHT)
        belief = belief * is_right / (belief @ is_right)
        if belief.max() >= SURE:
            break
    return _median(belief)


def expected_entropy(n: int, ask: Ask) -> int:
    """Ask where an answer is expected to leave the least entropy of place and slope.

    The share of passing seeds is taken to be logistic in ln d_k.

    Returns:
        the median of the belief in the end.
    """
    passing, entropies = _passing(n)
    belief = np.full(passing.shape[1], 1 / passing.shape[1])
    for _ in range(QUERIES):
        at = int((_entropy(passing @ belief) - entropies @ belief).argmax())
        likelihood = passing[at] if ask(at) else 1 - passing[at]
        belief = belief * likelihood / (belief @ likelihood)
        places = belief.reshape(n + 1, len(SLOPES)).sum(axis=1)
        if places.max() >= SURE:
            break
    return _median(places)


@lru_cache
def _passing(n: int) -> tuple[Floats, Floats]:
    """Probability that a seed passes at each value, by place and slope, and its entropy."""
    values, places = np.arange(1, n + 1), np.arange(n + 1) + 0.5
    distance = np.log(values)[:, None] - np.repeat(np.log(places), len(SLOPES))
    logit = np.clip(distance * np.tile(SLOPES, n + 1), -50, 50)
    share = LAPSE + (1 - 2 * LAPSE) / (1 + np.exp(-logit))
    return share, _entropy(share)


def _entropy(share: Floats) -> Floats:
    share = np.clip(share, 1e-12, 1 - 1e-12)
    entropy: Floats = -share * np.log(share) - (1 - share) * np.log(1 - share)
    return entropy


def _median(belief: Floats) -> int:
    return int(np.searchsorted(np.cumsum(belief), 0.5))
