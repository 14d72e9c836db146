"""SIMD: rows of sixteen float32 held in vector registers ("tiles"), as a numba type.

Compilers vectorise plain loops at their own discretion; the fused kernels do not rely on it. A
tile has a fixed number of rows, each in one register of 512 bits (or two of 256, depending on
the processor). Arithmetic is element by element; a scalar, or a tile of one row, is repeated
for every row. Fast-math is off, so NaN and infinity keep their meaning. ``simd_memory`` moves
tiles to and from memory.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

WIDTH = 16
"""Floats in a row of a tile."""
ROWS = 8 if get_host_cpu_features().get("avx512f") else 4
"""Rows of a tile of sums: as many as the registers hold. No result depends on it."""

LARGEST_LOGIT = 87.0
"""exp of this and of its negative are normal float32 numbers."""
LOG2_E = 1.44269504088896341
LN_2_HIGH, LN_2_LOW = 0.693359375, -2.12194440e-4
EXP_5, EXP_4, EXP_3 = 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3
EXP_2, EXP_1, EXP_0 = 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1

FLOAT = ir.FloatType()
VECTOR = ir.VectorType(FLOAT, WIDTH)
INTS = ir.VectorType(ir.IntType(32), WIDTH)


def padded(size: int, multiple: int) -> int:
    """The size rounded up to a multiple of ``multiple``."""
    return -(-size // multiple) * multiple


class Tile(types.Type):
    """The type of a tile of ``rows`` rows."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        super().__init__(name=f"Tile({rows})")


@register_model(Tile)
class _TileModel(models.PrimitiveModel):
    def __init__(self, manager: Any, tile: Tile) -> None:
        rows = ir.ArrayType(VECTOR, tile.rows)
        super().__init__(manager, tile, rows)  # type: ignore[no-untyped-call]


instruction: Callable[..., Callable[..., Any]] = intrinsic(prefer_literal=True)
"""Makes a function for compiled code from a signature and the code to emit."""


def broadcast(builder: Any, scalar: Any) -> Any:
    """A vector that holds a scalar sixteen times."""
    if scalar.type == ir.DoubleType():
        scalar = builder.fptrunc(scalar, FLOAT)
    empty = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(empty, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, empty, ir.Constant(INTS, None))


def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """The vector a * b + c, rounded once where the processor can."""
    return _call(builder, "fmuladd", a, b, c)


def pack(builder: Any, vectors: list[Any]) -> Any:
    """The tile with these rows."""
    tile = ir.Constant(ir.ArrayType(VECTOR, len(vectors)), ir.Undefined)
    for row, vector in enumerate(vectors):
        tile = builder.insert_value(tile, vector, row)
    return tile


def unpack(builder: Any, kind: types.Type, value: Any, rows: int) -> list[Any]:
    """The rows of a tile; a scalar, or a tile of one row, is repeated."""
    if not isinstance(kind, Tile):
        return [broadcast(builder, value)] * rows
    given = [builder.extract_value(value, row) for row in range(kind.rows)]
    return given if kind.rows == rows else given * rows


def _call(builder: Any, name: str, *args: Any) -> Any:
    kind = ir.FunctionType(VECTOR, [VECTOR] * len(args))
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{WIDTH}f32")
    return builder.call(function, args)


def _constant(value: float) -> Any:
    return ir.Constant(VECTOR, [value] * WIDTH)


def _elementwise_signature(*args: types.Type) -> Any:
    """The signature of an elementwise operation on these operands; None if none is a tile."""
    rows = {arg.rows for arg in args if isinstance(arg, Tile)}
    known = all(isinstance(arg, Tile | types.Float) for arg in args)
    if not rows or not known or len(rows | {1}) > 2:
        return None
    return signature(Tile(max(rows)), *args)


def _elementwise(emit: Callable[..., Any]) -> Callable[..., Any]:
    """Code for an elementwise operation, from the code for one row."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rows = sig.return_type.rows
        operands = [
            unpack(builder, kind, arg, rows) for kind, arg in zip(sig.args, args, strict=True)
        ]
        return pack(builder, [emit(builder, *row) for row in zip(*operands, strict=True)])

    return codegen


def _operator(symbol: Any, emit: Callable[..., Any]) -> None:
    """Teach numba a binary operator on tiles and scalars."""

    class Typing(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            return _elementwise_signature(*args)

    infer_global(symbol)(Typing)
    for left, right in ((Tile, Tile), (Tile, types.Float), (types.Float, Tile)):
        lower_builtin(symbol, left, right)(_elementwise(emit))


_operator(operator.add, lambda builder, a, b: builder.fadd(a, b))
_operator(operator.sub, lambda builder, a, b: builder.fsub(a, b))
_operator(operator.mul, lambda builder, a, b: builder.fmul(a, b))
_operator(operator.truediv, lambda builder, a, b: builder.fdiv(a, b))


@instruction
def keep_apart(typing: Any) -> Any:
    """Keeps the function that calls this from being copied into its callers, to compile faster."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), codegen


@instruction
def splat(typing: Any, rows: Any, value: Any) -> Any:
    """A tile of ``rows`` rows, filled with one value."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return pack(builder, [broadcast(builder, args[1])] * sig.return_type.rows)

    return Tile(rows.literal_value)(rows, types.unliteral(value)), codegen


@instruction
def fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """The tile a * b + c, rounded once where the processor can."""
    return _elementwise_signature(a, b, c), _elementwise(multiply_add)


@instruction
def sqrt(typing: Any, a: Any) -> Any:
    """The square root."""
    return _elementwise_signature(a), _elementwise(lambda builder, v: _call(builder, "sqrt", v))


@instruction
def nearest(typing: Any, a: Any) -> Any:
    """The nearest integer, as a float."""

    def emit(builder: Any, v: Any) -> Any:
        return _call(builder, "nearbyint", v)

    return _elementwise_signature(a), _elementwise(emit)


@instruction
def power_of_two(typing: Any, exponent: Any) -> Any:
    """2 ** exponent for whole exponents from -126 to 127, by setting the bits."""

    def emit(builder: Any, v: Any) -> Any:
        # Adding 1.5 * 2**23 leaves the whole number in the low bits; unlike a conversion to
        # integers it is defined for NaN.
        bits = builder.bitcast(builder.fadd(v, _constant(12582912.0)), INTS)
        biased = builder.add(bits, ir.Constant(INTS, [127] * WIDTH))
        return builder.bitcast(builder.shl(biased, ir.Constant(INTS, [23] * WIDTH)), VECTOR)

    return _elementwise_signature(exponent), _elementwise(emit)


def _where(condition: Callable[..., Any]) -> Callable[..., Any]:
    """Code for ``then`` where the condition holds, else ``otherwise``."""

    def emit(builder: Any, a: Any, b: Any, then: Any, otherwise: Any) -> Any:
        return builder.select(condition(builder, a, b), then, otherwise)

    return _elementwise(emit)


@instruction
def where_equal(typing: Any, a: Any, b: Any, then: Any, otherwise: Any) -> Any:
    """``then`` where a == b, else ``otherwise``."""
    is_equal = _where(lambda builder, a, b: builder.fcmp_ordered("==", a, b))
    return _elementwise_signature(a, b, then, otherwise), is_equal


@instruction
def where_above(typing: Any, a: Any, b: Any, then: Any, otherwise: Any) -> Any:
    """``then`` where a > b, else ``otherwise``."""
    is_above = _where(lambda builder, a, b: builder.fcmp_ordered(">", a, b))
    return _elementwise_signature(a, b, then, otherwise), is_above


@instruction
def where_above_or_nan(typing: Any, a: Any, b: Any, then: Any, otherwise: Any) -> Any:
    """``then`` where a > b or a is NaN, else ``otherwise``."""

    def condition(builder: Any, a: Any, b: Any) -> Any:
        is_nan = builder.fcmp_unordered("uno", a, a)
        return builder.or_(builder.fcmp_ordered(">", a, b), is_nan)

    return _elementwise_signature(a, b, then, otherwise), _where(condition)


def _fold(combine: Callable[..., Any]) -> Callable[..., Any]:
    """Code that reduces a tile of one row to one number, combining halves until one is left."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        (vector,) = unpack(builder, sig.args[0], args[0], 1)
        for half in (8, 4, 2, 1):
            turned = ir.Constant(INTS, [(i + half) % WIDTH for i in range(WIDTH)])
            other = builder.shuffle_vector(vector, vector, turned)
            vector = combine(builder, vector, other)
        return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

    return codegen


@instruction
def horizontal_sum(typing: Any, tile: Any) -> Any:
    """The sum of a tile of one row, as a scalar, in pairs."""
    return types.float32(tile), _fold(lambda builder, a, b: builder.fadd(a, b))


@instruction
def horizontal_max(typing: Any, tile: Any) -> Any:
    """The largest number of a tile of one row, as a scalar; a NaN may be skipped."""

    def larger(builder: Any, a: Any, b: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", b, a), b, a)

    return types.float32(tile), _fold(larger)


@instruction
def sum_of_rows(typing: Any, tile: Any) -> Any:
    """The sum of a tile's rows, in pairs, as a tile of one row."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rows = unpack(builder, sig.args[0], args[0], sig.args[0].rows)
        while len(rows) > 1:
            rows = [builder.fadd(*pair) for pair in zip(rows[::2], rows[1::2], strict=True)]
        return pack(builder, rows)

    return Tile(1)(tile), codegen


@instruction
def transposed(typing: Any, tile: Any) -> Any:
    """The transpose of a tile of sixteen rows, by swapping blocks of 8, 4, 2 and 1."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rows = unpack(builder, sig.args[0], args[0], WIDTH)
        for size in (8, 4, 2, 1):
            # Positions in a pair of rows: those from WIDTH on are in the second.
            upper = [j + WIDTH - size if j & size else j for j in range(WIDTH)]
            lower = [j + WIDTH if j & size else j + size for j in range(WIDTH)]
            for i in range(WIDTH):
                if not i & size:
                    pair = rows[i], rows[i + size]
                    rows[i] = builder.shuffle_vector(*pair, ir.Constant(INTS, upper))
                    rows[i + size] = builder.shuffle_vector(*pair, ir.Constant(INTS, lower))
        return pack(builder, rows)

    return tile(tile), codegen


@numba.njit(nogil=True, inline="always")
def exponential(z: Any) -> Any:
    """exp of a tile of one row, its logits clamped to ``LARGEST_LOGIT`` on either side."""
    low, high = np.float32(-LARGEST_LOGIT), np.float32(LARGEST_LOGIT)
    z = where_above(low, z, low, z)
    z = where_above(z, high, high, z)
    # z = n ln 2 + f (expf of the Cephes library)
    n = nearest(z * np.float32(LOG2_E))
    f = fma(n, np.float32(-LN_2_LOW), fma(n, np.float32(-LN_2_HIGH), z))
    y = fma(splat(1, EXP_5), f, np.float32(EXP_4))
    y = fma(y, f, np.float32(EXP_3))
    y = fma(y, f, np.float32(EXP_2))
    y = fma(y, f, np.float32(EXP_1))
    y = fma(y, f, np.float32(EXP_0))
    return fma(y, f * f, f + np.float32(1.0)) * power_of_two(n)
