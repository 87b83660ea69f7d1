"""What the code that is built of LLVM's vector instructions has in common.

Import this module only where `has_compiler()` is true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from llvmlite import ir

I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
HALF, FLOAT, DOUBLE = ir.HalfType(), ir.FloatType(), ir.DoubleType()
_BYTES = {"i8": 1, "i16": 2, "i32": 4, "half": 2, "float": 4}


class CallTypes(Protocol):
    """What is used of numba's signature of a call."""

    return_type: object


class Lowering(Protocol):
    """What is used of numba's context while it builds the code of a call."""

    def get_dummy_value(self) -> ir.Value: ...
    def make_tuple(self, builder: ir.IRBuilder, ty: object, values: Sequence[ir.Value]) -> ir.Value: ...


# Builds the code of one call of (arguments), and gives its result.
Emit: TypeAlias = "Callable[[Lowering, ir.IRBuilder, CallTypes, Sequence[ir.Value]], ir.Value]"


def splat(scalar: ir.Type, lanes: int, number: float) -> ir.Constant:
    """A vector of one constant."""
    return ir.Constant(ir.VectorType(scalar, lanes), [scalar(number)] * lanes)


def spread(builder: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """A vector of one number that is known when the code runs."""
    first = builder.insert_element(ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined), value, I32(0))
    return builder.shuffle_vector(first, first, indices([0] * lanes))


def indices(numbers: Sequence[int]) -> ir.Constant:
    """Which elements a shuffle takes."""
    return ir.Constant(ir.VectorType(I32, len(numbers)), [I32(number) for number in numbers])


def load(builder: ir.IRBuilder, address: ir.Value, scalar: ir.Type, lanes: int, align: int | None = None) -> ir.Value:
    """The vector at a pointer or an address; `align` in bytes, that of one element where nothing is said."""
    return builder.load(_pointer(builder, address, scalar, lanes), align=align or _BYTES.get(str(scalar), 8))


def store(builder: ir.IRBuilder, vector: ir.Value, address: ir.Value) -> None:
    """The reverse of `load`."""
    scalar = vector.type.element
    builder.store(vector, _pointer(builder, address, scalar, vector.type.count), align=_BYTES.get(str(scalar), 8))


def _pointer(builder: ir.IRBuilder, address: ir.Value, scalar: ir.Type, lanes: int) -> ir.Value:
    pointer = ir.VectorType(scalar, lanes).as_pointer()
    return builder.inttoptr(address, pointer) if address.type == I64 else builder.bitcast(address, pointer)


def transposed(builder: ir.IRBuilder, rows: Sequence[ir.Value]) -> list[ir.Value]:
    """Columns of a square: blocks beside the diagonal change places, those of half the size next.

    Large blocks first: those need no instruction where registers are as short as they are.
    """
    size = len(rows)
    columns, half = list(rows), size // 2
    while half:
        # Of the two rows together: which element goes to each position of the upper and of the lower one.
        upper = [element if not element & half else size + element - half for element in range(size)]
        lower = [element + half if not element & half else size + element for element in range(size)]
        for index in range(size):
            if not index & half:
                pair = columns[index], columns[index | half]
                columns[index] = builder.shuffle_vector(*pair, indices(upper))
                columns[index | half] = builder.shuffle_vector(*pair, indices(lower))
        half //= 2
    return columns
