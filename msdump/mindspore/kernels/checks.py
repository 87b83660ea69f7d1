"""What the shape rules of all families share: operand checks with one form of message, axes, broadcasting."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from msdump.errors import GraphError, OperandTypeError, OperandValueError
from msdump.graph.primitive import Attrs
from msdump.graph.types import TensorType
from msdump.tensors import dtypes

# Dtypes that arithmetic takes: whole bytes, no borrowed memory form.
FLOATS = frozenset(row.name for row in dtypes.TABLE if row.kind == dtypes.FLOAT and row.bits >= 16)
INTS = frozenset(row.name for row in dtypes.TABLE if row.kind in (dtypes.INT, dtypes.UINT) and row.bits >= 8)
NUMBERS = FLOATS | INTS
BOOLS = frozenset({"bool"})
INDICES = frozenset({"int32", "int64"})


def expect(condition: bool, expected: str, got: Any) -> None:
    """Raises: OperandValueError("expected {expected}, got {got}.") unless `condition`; graphs put the node before."""
    if not condition:
        raise OperandValueError(f"expected {expected}, got {got}.")


def expect_count(types: Sequence[TensorType], count: int) -> None:
    """Exactly `count` operands."""
    expect(len(types) == count, f"{count} operand{'' if count == 1 else 's'}", len(types))


def expect_dtype(type: TensorType, allowed: Collection[str], what: str) -> None:
    """`type.dtype` is one of `allowed`."""
    if type.dtype not in allowed:
        raise OperandTypeError(f"expected {what} of dtype {one_of(allowed)}, got {type}.")


def expect_same_dtype(types: Sequence[TensorType]) -> None:
    """All operands have the first one's dtype; kernels never promote."""
    for type in types[1:]:
        if type.dtype != types[0].dtype:
            listed = ", ".join(str(t) for t in types)
            raise OperandTypeError(f"expected operands of one dtype, got {listed}. Put a Cast before the operator.")


def expect_shape(type: TensorType, shape: Sequence[int], what: str) -> None:
    """`type.shape` is `shape`."""
    expect(type.shape == tuple(shape), f"{what} of shape {tuple(shape)}", type.shape)


def expect_scalar(type: TensorType, what: str) -> None:
    """Shape () or (1,), floating: a learning rate and its like."""
    expect(type.shape in ((), (1,)), f"{what} of shape () or (1,)", type.shape)
    expect_dtype(type, FLOATS, what)


def one_of(names: Collection[str]) -> str:
    """Names in the order of the dtype table, "a, b or c"."""
    listed = [row.name for row in dtypes.TABLE if row.name in names]
    return listed[0] if len(listed) == 1 else ", ".join(listed[:-1]) + " or " + listed[-1]


def attribute(attrs: Attrs, name: str) -> Any:
    """A required attribute."""
    if name not in attrs:
        raise GraphError(f"expected attribute {name}, got {sorted(attrs)}.")
    return attrs[name]


def dtype_attribute(attrs: Attrs, name: str = "dtype", default: str | None = None) -> str:
    """Name of the dtype table that an attribute holds.   Raises: GraphError for a name outside of it."""
    value = attrs.get(name, default) if default is not None else attribute(attrs, name)
    if not isinstance(value, str) or value not in dtypes.BY_NAME:
        raise OperandTypeError(f"expected {name} to be a dtype name, got {value!r}.")
    return value


def shape_attribute(attrs: Attrs, name: str = "shape") -> tuple[int, ...]:
    """Tuple of ints that an attribute holds; one int stands for one axis."""
    return int_tuple(attribute(attrs, name), name)


def int_tuple(value: Any, what: str) -> tuple[int, ...]:
    """`value` as a tuple of ints."""
    if isinstance(value, int):
        return (value,)
    if isinstance(value, Iterable):
        items = tuple(value)
        if all(isinstance(item, int) and not isinstance(item, bool) for item in items):
            return items
    raise OperandTypeError(f"expected {what} to be an int or a tuple of ints, got {value!r}.")


def normal_axis(axis: Any, ndim: int, what: str = "axis") -> int:
    """Axis counted from the front.   Raises: OperandValueError outside [-ndim, ndim)."""
    if not isinstance(axis, int) or not -ndim <= axis < ndim:
        raise OperandValueError(f"expected {what} in [{-ndim}, {ndim}), got {axis!r}.")
    return axis % ndim


def normal_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Sorted distinct axes; None and () mean all. A 0-d tensor takes the axes 0 and -1 as none."""
    if axis is None or axis == ():
        return tuple(range(ndim))
    items = int_tuple(axis, "axis")
    if ndim == 0 and all(item in (0, -1) for item in items):
        return ()
    axes = tuple(sorted(normal_axis(item, ndim) for item in items))
    expect(len(set(axes)) == len(axes), "every axis once", items)
    return axes


def broadcast_shapes(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Common shape of operands, aligned at the last axis.   Raises: OperandValueError naming the shapes."""
    ndim = max((len(shape) for shape in shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        for axis, size in enumerate(shape, ndim - len(shape)):
            if size == 1 or size == result[axis]:
                continue
            if result[axis] != 1:
                listed = " and ".join(str(s) for s in shapes)
                raise OperandValueError(f"expected shapes that broadcast, got {listed}.")
            result[axis] = size
    return tuple(result)
