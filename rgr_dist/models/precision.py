"""Weights rounded to fewer bits, so that what a parameter holds is measured, not assumed."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import torch

Precision = Literal[
    "float32", "float16", "bfloat16", "int8", "int7", "int6", "int5", "int4", "int3"
]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

BITS: dict[Precision, int] = {
    name: 16 if name == "bfloat16" else int(name.lstrip("floatin")) for name in PRECISIONS
}
"""Bits of a parameter; the one scale of an integer matrix is not counted."""


def rounded(W: npt.NDArray[np.floating], precision: Precision) -> npt.NDArray[np.float32]:
    """A matrix as a format can hold it, to nearest, in float32.

    Integers are symmetric with one scale for the matrix: its largest magnitude is
    2^(bits - 1) - 1 steps: 127 of int8, 7 of int4.
    """
    values = torch.from_numpy(np.ascontiguousarray(W, dtype=np.float32))
    if precision.startswith("int"):
        steps = 2 ** (BITS[precision] - 1) - 1
        scale = values.abs().max() / steps
        result = torch.round(values / scale) * scale if scale > 0 else values
    else:
        result = values.to(getattr(torch, precision)).float()
    held: npt.NDArray[np.float32] = result.numpy()
    return held
