"""Weights rounded to fewer bits, so that what a parameter holds is measured, not assumed."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import torch

Precision = Literal["float32", "float16", "bfloat16", "int8", "int4"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

BITS: dict[Precision, int] = {"float32": 32, "float16": 16, "bfloat16": 16, "int8": 8, "int4": 4}
"""Bits of a parameter; the one scale of an integer matrix is not counted."""


def rounded(W: npt.NDArray[np.floating], precision: Precision) -> npt.NDArray[np.float32]:
    """A matrix as a format can hold it, to nearest, in float32.

    Integers are symmetric with one scale for the matrix: its largest magnitude is 127 or 7 steps.
    """
    values = torch.from_numpy(np.ascontiguousarray(W, dtype=np.float32))
    if precision in ("int8", "int4"):
        steps = 2 ** (BITS[precision] - 1) - 1
        scale = values.abs().max() / steps
        result = torch.round(values / scale) * scale if scale > 0 else values
    else:
        result = values.to(getattr(torch, precision)).float()
    held: npt.NDArray[np.float32] = result.numpy()
    return held
