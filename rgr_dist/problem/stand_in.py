"""A stand-in for GPT-2's token table, for machines that do not have its weights.

It is anisotropic in two ways that GPT-2's table is known for: its vectors share a mean, and
their variance about it differs between directions. It is not GPT-2's table, and studies, rows
and reports call it ``stand-in``. It has:

- vectors of norm near 4, about a mean of norm 2, so that the cosine of two of them is near
  2² / 4² = 0.25, the order reported for GPT-2 small;
- variances that fall like 1 / √rank about the mean: every direction is used, the first about
  √d_model / 2 times as much as the average one. The slope is a guess, not a measurement.

NULL's vector is drawn like any other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rgr_dist.problem.streams import Stream

NORM, MEAN_NORM = 4.0, 2.0
SLOPE = 0.5


def stand_in_table(m: int, d_model: int) -> npt.NDArray[np.float64]:
    """Vectors of m items, then of NULL, float64 [m + 1, d_model]; the same at every seed.

    A larger table begins with the items of a smaller one.
    """
    stream = Stream.of(f"stand-in table, d_model = {d_model}", "embedding", 0)
    values = stream.normals(m + 2, d_model)
    mean = values[0] * (MEAN_NORM / np.linalg.norm(values[0]))
    variances = np.arange(1, d_model + 1, dtype=np.float64) ** -SLOPE
    variances *= (NORM**2 - MEAN_NORM**2) / variances.sum()
    null, items = values[1], values[2:]
    table: npt.NDArray[np.float64] = mean + np.sqrt(variances) * np.vstack([items, null])
    return table
