"""What the code that is built of LLVM's vector instructions has in common.

Import this module only where `has_compiler()` is true.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
HALF, FLOAT, DOUBLE = ir.HalfType(), ir.FloatType(), ir.DoubleType()
_BYTES = {"i8": 1, "i16": 2, "i32": 4, "half": 2, "float": 4}


def splat(scalar: Any, lanes: int, number: float) -> Any:
    """A vector of one constant."""
    return ir.Constant(ir.VectorType(scalar, lanes), [scalar(number)] * lanes)


def spread(builder: Any, value: Any, lanes: int) -> Any:
    """A vector of one number that is known when the code runs."""
    first = builder.insert_element(ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined), value, I32(0))
    return builder.shuffle_vector(first, first, indices([0] * lanes))


def indices(numbers: Sequence[int]) -> Any:
    """Which elements a shuffle takes."""
    return ir.Constant(ir.VectorType(I32, len(numbers)), [I32(number) for number in numbers])


def load(builder: Any, address: Any, scalar: Any, lanes: int, align: int | None = None) -> Any:
    """The vector at a pointer or an address; `align` in bytes, that of one element where nothing is said."""
    return builder.load(_pointer(builder, address, scalar, lanes), align=align or _BYTES.get(str(scalar), 8))


def store(builder: Any, vector: Any, address: Any) -> None:
    """The reverse of `load`."""
    scalar = vector.type.element
    builder.store(vector, _pointer(builder, address, scalar, vector.type.count), align=_BYTES.get(str(scalar), 8))


def _pointer(builder: Any, address: Any, scalar: Any, lanes: int) -> Any:
    pointer = ir.VectorType(scalar, lanes).as_pointer()
    return builder.inttoptr(address, pointer) if address.type == I64 else builder.bitcast(address, pointer)


def transposed(builder: Any, rows: Sequence[Any]) -> list[Any]:
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
