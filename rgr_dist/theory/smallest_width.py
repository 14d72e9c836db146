"""The smallest width at which a construction is exact in a share of its draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from rgr_dist.theory.construct import signatures_of
from rgr_dist.theory.draws import Constructor, Progress

LARGEST_D_K = 2**15
"""Widest head that is tried; for ``ours`` it is d_model."""
UNION_BOUNDS = 4
"""Widest head of Algorithm 2 that is tried, over the C ln m of ``union_bound_constant``: under
softmax no limit tells whether a width can do."""
LOOK_BELOW = 0.25
"""How far below the width found by bisection all widths are tried: this share of it, at least 8.
A sum of d_k signs is compared with d_k / 2, a sum of zeros and ones with (p + p²) d_k / 2: as d_k
grows, success rises and falls as that threshold is rounded to the next integer."""


def smallest_width(
    made: Constructor, h: int, draws: int, share: float, trying: Callable[[int], None] | None = None
) -> int | None:
    """The smallest d_k found that is exact in this share of the draws; None if none is found.

    Doubles d_k, bisects, and then tries the widths below, as far as ``LOOK_BELOW`` says, since
    success is not monotone in d_k. Tries no width if the limit d_k → ∞ of the template fails,
    though the noise of signatures may make a draw exact at some width. For ``ours`` it ends
    once heads as wide as d_model fail: by rank, wider ones add nothing.

    Args:
        trying: called with each width before it is tried.
    """
    if has_limit(made) and not _trials(made.limit, h, draws, share)(1):
        return None
    succeeds = _trials(made, h, draws, share, trying)
    low, high = 0, 1
    while not succeeds(high):
        if high == widest(made):
            return None
        low, high = high, min(2 * high, widest(made))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if succeeds(middle) else (middle, high)
    below = range(max(1, high - max(8, math.ceil(LOOK_BELOW * high))), high)
    return next((d_k for d_k in below if succeeds(d_k)), high)


def _trials(
    made: Constructor, h: int, draws: int, share: float, trying: Callable[[int], None] | None = None
) -> Callable[[int], bool]:
    """A test of whether a width is exact in a share of the draws; stops once that is decided.

    Draws that failed at the last width come first, since they are likely to fail again.
    """
    seeds, may_fail = list(range(draws)), draws - math.ceil(share * draws - 1e-9)

    @cache
    def succeeds(d_k: int) -> bool:
        if trying is not None:
            trying(d_k)
        failed: list[int] = []
        for seed in seeds:
            if not made.score(seed, h, d_k).exact:
                failed.append(seed)
            if len(failed) > may_fail:
                break
        seeds.sort(key=lambda seed: seed not in failed)
        return len(failed) <= may_fail

    return succeeds


def widest(made: Constructor) -> int:
    """Widest head that the search for a width tries."""
    if made.algorithm == "2":
        law = signatures_of(made.algorithm, made.options)
        wide = UNION_BOUNDS * law.union_bound_constant * math.log(made.cell.m)
        return math.ceil(min(LARGEST_D_K, wide))
    return made.cell.d_model if made.algorithm == "ours" else LARGEST_D_K


def has_limit(made: Constructor) -> bool:
    """Whether ``smallest_width`` asks the template's limit d_k → ∞ before it tries a width."""
    return made.algorithm in ("1", "4", "5")


def why_not_found(made: Constructor, h: int) -> str:
    """Why ``smallest_width`` returned None."""
    if made.algorithm == "ours":
        return f"heads as wide as d_model = {made.cell.d_model} are not exact often enough"
    if has_limit(made):
        return (
            f"the limit d_k → ∞ of {h} heads is not exact often enough, at its best tau; "
            "no width was tried"
        )
    return f"no width up to {widest(made)} is exact often enough"


def not_found(made: Constructor, h: int, draws: int, steps: Progress = iter) -> dict[str, Any]:
    """The row of a search that found no width: d_k and D_K are null.

    The rest describes the limit if it ``has_limit``, or else the widest heads.
    """
    one, width = (made.limit, 1) if has_limit(made) else (made, widest(made))
    row = one.measure(h, width, draws, steps)
    return {**row, "algorithm": made.algorithm, "d_k": None, "D_K": None}
