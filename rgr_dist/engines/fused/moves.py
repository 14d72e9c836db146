"""How tiles meet memory: loads and stores, products with scalars from memory, transposes.

Arrays are flat, contiguous float32; indices are not checked. Row r of a tile belongs to
``array[start + r * stride]``.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types

from rgr_dist.engines.fused.tiles import (
    INTS,
    VECTOR,
    WIDTH,
    Tile,
    instruction,
    multiply_add,
    pack,
    spread,
    unpack,
)


class _Rows:
    """The places in an array that belong to the rows of a tile."""

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
        places = _Rows(context, builder, sig.args[1], *args[1:])
        count = sig.return_type.rows
        return pack(builder, [builder.load(places.vector(r), align=4) for r in range(count)])

    return Tile(rows.literal_value)(rows, array, types.intp, types.intp), codegen


@instruction
def store(typing: Any, array: Any, start: Any, stride: Any, tile: Any) -> Any:
    """Write row r of a tile to ``array[start + r * stride :][:16]``."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        places = _Rows(context, builder, sig.args[0], *args[:3])
        for r, vector in enumerate(unpack(builder, sig.args[3], args[3], sig.args[3].rows)):
            builder.store(vector, places.vector(r), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, tile), codegen


@instruction
def add_outer(typing: Any, tile: Any, array: Any, start: Any, stride: Any, row: Any) -> Any:
    """Tile + column x row, the column being ``array[start + r * stride]`` over the rows r."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        places = _Rows(context, builder, sig.args[1], *args[1:4])
        (factor,) = unpack(builder, sig.args[4], args[4], 1)
        sums = unpack(builder, sig.args[0], args[0], sig.args[0].rows)
        for r, total in enumerate(sums):
            scalar = spread(builder, builder.load(places.scalar(r)))
            sums[r] = multiply_add(builder, scalar, factor, total)
        return pack(builder, sums)

    return tile(tile, array, types.intp, types.intp, row), codegen


@instruction
def contract(typing: Any, array: Any, start: Any, tile: Any) -> Any:
    """One row: the sum over r of ``array[start + r]`` times row r of a tile of sixteen rows."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        one = ir.Constant(args[1].type, 1)
        places = _Rows(context, builder, sig.args[0], args[0], args[1], one)
        sums: list[Any] = []  # four, so that each need not wait for the one before
        for r, row in enumerate(unpack(builder, sig.args[2], args[2], WIDTH)):
            scalar = spread(builder, builder.load(places.scalar(r)))
            if r < 4:
                sums.append(builder.fmul(scalar, row))
            else:
                sums[r % 4] = multiply_add(builder, scalar, row, sums[r % 4])
        pairs = builder.fadd(sums[0], sums[1]), builder.fadd(sums[2], sums[3])
        return pack(builder, [builder.fadd(*pairs)])

    return Tile(1)(array, types.intp, tile), codegen


@instruction
def total(typing: Any, tile: Any) -> Any:
    """The sum of a tile of one row, as a scalar, in pairs."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        (vector,) = unpack(builder, sig.args[0], args[0], 1)
        for half in (8, 4, 2, 1):
            turned = ir.Constant(INTS, [(place + half) % WIDTH for place in range(WIDTH)])
            vector = builder.fadd(vector, builder.shuffle_vector(vector, vector, turned))
        return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

    return types.float32(tile), codegen


@instruction
def transposed(typing: Any, tile: Any) -> Any:
    """The transpose of a tile of sixteen rows: blocks of 8, 4, 2 and 1 change sides."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rows = unpack(builder, sig.args[0], args[0], WIDTH)
        for size in (8, 4, 2, 1):
            # Places in a pair of rows: those from WIDTH on are in the second.
            upper = [j + WIDTH - size if j & size else j for j in range(WIDTH)]
            lower = [j + WIDTH if j & size else j + size for j in range(WIDTH)]
            for i in range(WIDTH):
                if not i & size:
                    pair = rows[i], rows[i + size]
                    rows[i] = builder.shuffle_vector(*pair, ir.Constant(INTS, upper))
                    rows[i + size] = builder.shuffle_vector(*pair, ir.Constant(INTS, lower))
        return pack(builder, rows)

    return tile(tile), codegen
