"""Tiles in memory: arrays, loads and stores, products with scalars from memory, transposes.

Arrays are flat, contiguous float32; indices are not checked. Row r of a tile corresponds to
``array[start + r * stride]``.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import types

from rgr_dist.engines.fused.simd import (
    VECTOR,
    WIDTH,
    Tile,
    broadcast,
    instruction,
    multiply_add,
    pack,
    padded,
    transposed,
    unpack,
)

FloatArray = npt.NDArray[np.float32]
LINES = 2 * WIDTH
"""Floats in two cache lines, which processors fetch together."""


def zeros(*shape: int) -> FloatArray:
    """Flat zeros that begin at a cache line, as rows of tiles should.

    Cache lines come in pairs, and no pair is shared with what another thread writes.
    """
    size = int(np.prod(shape))
    raw = np.zeros(padded(size, LINES) + LINES, dtype=np.float32)
    first = -raw.__array_interface__["data"][0] % (LINES * raw.itemsize) // raw.itemsize
    return raw[first : first + size]


class _Rows:
    """The addresses of a tile's rows in an array."""

    def __init__(
        self, context: Any, builder: Any, kind: Any, array: Any, start: Any, stride: Any
    ) -> None:
        self.builder, self.start, self.stride = builder, start, stride
        self.data = context.make_array(kind)(context, builder, array).data

    def scalar(self, row: int) -> Any:
        """The address of a row's first float."""
        offset = self.builder.mul(self.stride, ir.Constant(self.stride.type, row))
        return self.builder.gep(self.data, [self.builder.add(self.start, offset)])

    def vector(self, row: int) -> Any:
        """The address of a row's sixteen floats."""
        return self.builder.bitcast(self.scalar(row), VECTOR.as_pointer())


@instruction
def load(typing: Any, rows: Any, array: Any, start: Any, stride: Any) -> Any:
    """The tile whose row r is ``array[start + r * stride :][:16]``."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        addresses = _Rows(context, builder, sig.args[1], *args[1:])
        count = sig.return_type.rows
        return pack(builder, [builder.load(addresses.vector(r), align=4) for r in range(count)])

    return Tile(rows.literal_value)(rows, array, types.intp, types.intp), codegen


@instruction
def store(typing: Any, array: Any, start: Any, stride: Any, tile: Any) -> Any:
    """Write row r of a tile to ``array[start + r * stride :][:16]``."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        addresses = _Rows(context, builder, sig.args[0], *args[:3])
        for r, vector in enumerate(unpack(builder, sig.args[3], args[3], sig.args[3].rows)):
            builder.store(vector, addresses.vector(r), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, tile), codegen


@instruction
def outer_fma(typing: Any, tile: Any, array: Any, start: Any, stride: Any, row: Any) -> Any:
    """Tile + column x row; the column is ``array[start + r * stride]`` over the rows r."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        addresses = _Rows(context, builder, sig.args[1], *args[1:4])
        (factor,) = unpack(builder, sig.args[4], args[4], 1)
        sums = unpack(builder, sig.args[0], args[0], sig.args[0].rows)
        for r, so_far in enumerate(sums):
            scalar = broadcast(builder, builder.load(addresses.scalar(r)))
            sums[r] = multiply_add(builder, scalar, factor, so_far)
        return pack(builder, sums)

    return tile(tile, array, types.intp, types.intp, row), codegen


@instruction
def vec_mat(typing: Any, array: Any, start: Any, tile: Any) -> Any:
    """One row: the sum over r of ``array[start + r]`` times row r of a tile of sixteen rows."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        one = ir.Constant(args[1].type, 1)
        addresses = _Rows(context, builder, sig.args[0], args[0], args[1], one)
        sums: list[Any] = []  # four, so that none waits for the one before
        for r, row in enumerate(unpack(builder, sig.args[2], args[2], WIDTH)):
            scalar = broadcast(builder, builder.load(addresses.scalar(r)))
            if r < 4:
                sums.append(builder.fmul(scalar, row))
            else:
                sums[r % 4] = multiply_add(builder, scalar, row, sums[r % 4])
        pairs = builder.fadd(sums[0], sums[1]), builder.fadd(sums[2], sums[3])
        return pack(builder, [builder.fadd(*pairs)])

    return Tile(1)(array, types.intp, tile), codegen


@numba.njit(nogil=True)
def gather_rows(table: Any, width: int, nodes: Any, out: Any) -> None:
    """Copy row ``nodes[p]`` of a table of this (padded) width to row p of ``out``."""
    for p in range(nodes.size):
        for i in range(0, width, WIDTH):
            store(out, p * width + i, 0, load(1, table, nodes[p] * width + i, 0))


@numba.njit(nogil=True)
def transpose(a: Any, rows: int, columns: int, out: Any) -> None:
    """Transpose ``a`` [rows, columns] into ``out`` [columns, rows]; both are multiples of 16."""
    for i in range(0, rows, WIDTH):
        for j in range(0, columns, WIDTH):
            store(out, j * rows + i, rows, transposed(load(WIDTH, a, i * columns + j, columns)))
