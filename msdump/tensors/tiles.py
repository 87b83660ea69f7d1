"""Squares of elements that change rows for columns in vector registers.

Import this module only where `has_compiler()` is true.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from msdump.tensors.compiling import array_type, compiled
from msdump.tensors.vector_code import I64, load, store, transposed

if TYPE_CHECKING:
    from numba.core.types import IntegerLiteral, Type
    from numba.core.typing.context import BaseContext
    from numba.core.typing.templates import Signature

    from msdump.tensors.arrays import Array
    from msdump.tensors.vector_code import CallTypes, Emit, Lowering

SIDES = {1: 32, 2: 16, 4: 16, 8: 8}  # elements along a side of a tile, by their size in bytes
# A block is walked along its columns, which lie one behind the other in the source: they come sequentially, and lines
# that are half written are still in the cache when their other half comes.
_COLUMNS, _ROWS = 1024, 64

# Parts of numba without types.
_types: Any = types

# (source, target, offsets in the source, offsets in the target, columns, rows, source stride, target stride)
TileKernel: TypeAlias = "Callable[[int, int, Array, Array, int, int, int, int], None]"


@functools.cache
def tile_kernel(item_size: int) -> TileKernel:
    """Machine code that copies matrices of elements of 1, 2, 4 or 8 bytes; it runs without the GIL.

    Addresses, offsets and strides are in bytes. Element (row, column) of the matrix at an offset lies at row * source
    stride + column * item_size in the source and at column * target stride + row * item_size in the target. Rows and
    columns are at least as many as the side of a tile.
    """
    addresses, numbers = [_types.int64] * 2, [_types.int64] * 4
    return compiled(_compilable_copy(item_size), _types.void(*addresses, *[array_type("int64")] * 2, *numbers))


def _compilable_copy(item_size: int) -> Callable[..., None]:
    side = SIDES[item_size]

    def copy(
        source: int,
        target: int,
        of_source: Array,
        of_target: Array,
        columns: int,
        rows: int,
        source_stride: int,
        stride: int,
    ) -> None:
        for matrix in range(of_source.shape[0]):
            start, goal = source + of_source[matrix], target + of_target[matrix]
            for first_column in range(0, columns, _COLUMNS):
                for first_row in range(0, rows, _ROWS):
                    for row in range(first_row, min(rows, first_row + _ROWS), side):
                        for column in range(first_column, min(columns, first_column + _COLUMNS), side):
                            # The last tile of a row or column lies over the one before it: it writes the same.
                            at, across = min(row, rows - side), min(column, columns - side)
                            _move_tile(
                                start + at * source_stride + across * item_size,
                                goal + across * stride + at * item_size,
                                source_stride,
                                stride,
                                item_size,
                            )

    return copy


def _tile(
    typing_context: BaseContext,
    source: Type,
    target: Type,
    source_stride: Type,
    stride: Type,
    item_size: IntegerLiteral,
) -> tuple[Signature, Emit]:
    """One square, from an address to another."""
    form = functools.partial(_emit_tile, item_size.literal_value)
    return _types.void(*[_types.int64] * 4, item_size), form


# What compiled code calls.
_move_tile: Callable[..., None] = intrinsic(prefer_literal=True)(_tile)


def _emit_tile(
    item_size: int, context: Lowering, builder: ir.IRBuilder, signature: CallTypes, arguments: Sequence[ir.Value]
) -> ir.Value:
    source, target, source_stride, stride, _ = arguments
    scalar, side = ir.IntType(8 * item_size), SIDES[item_size]
    rows_at = [builder.add(source, builder.mul(source_stride, I64(row))) for row in range(side)]
    rows = [load(builder, address, scalar, side) for address in rows_at]
    for index, column in enumerate(transposed(builder, rows)):
        store(builder, column, builder.add(target, builder.mul(stride, I64(index))))
    return context.get_dummy_value()
