"""Dispatch: the single entry point for all operators of the shim, into a graph or at once, and their common dtypes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from msdump import dtypes
from msdump.errors import DtypeError
from msdump.frontends.mindspore import eager
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.tracer import current_tracer
from msdump.graph.primitive import Primitive, definition_of

_dtype: ContextVar[str | None] = ContextVar("msdump_mindspore_precision", default=None)


def compute_dtype() -> str | None:
    """Dtype to which float operands are cast, None to leave them."""
    return _dtype.get()


@contextmanager
def computing_in(dtype: str) -> Iterator[None]:
    """While this is open, operators of this thread compute in `dtype`."""
    token = _dtype.set(dtype)
    try:
        yield
    finally:
        _dtype.reset(token)


Attrs = Mapping[str, Any]


def execute(op_type: str, inputs: Sequence[Tensor], attrs: Attrs | None = None) -> tuple[Tensor, ...]:
    """All outputs of one operator: a node of the active graph, or computed now.

    Raises: GraphError when operands do not fit; KernelNotFoundError with the nearest known operator.
    """
    primitive = Primitive(op_type, dict(attrs or {}))
    dtype = compute_dtype()
    if dtype is not None and op_type != "Cast" and not definition_of(op_type).mutates:
        inputs = [_lowered(tensor, dtype) for tensor in inputs]
    tracer = current_tracer()
    if tracer is not None:
        return tracer.add(primitive, inputs)
    return tuple(Tensor.of_array(array) for array in eager.run(primitive, [tensor.array for tensor in inputs]))


def call(op_type: str, *inputs: Tensor, **attrs: Any) -> Tensor:
    """First output of one operator."""
    return execute(op_type, inputs, attrs)[0]


def _lowered(tensor: Tensor, dtype: str) -> Tensor:
    name = tensor.type_.dtype
    if name == dtype or not dtypes.dtype(name).is_float:
        return tensor
    return call("Cast", tensor, dtype=dtype)


_ORDER = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
          "float16", "bfloat16", "float32", "float64", "complex64", "complex128")  # fmt: skip


def common_dtype(first: str, second: str) -> str:
    """Dtype of `first op second` for two tensors.

    Edges: uint8 with int8 is int16; float16 with bfloat16 is float32; int with float is the float dtype.
    """
    if first == second:
        return first
    if {first, second} == {"uint8", "int8"}:
        return "int16"
    if {first, second} == {"float16", "bfloat16"}:
        return "float32"
    for name in (first, second):
        if name not in _ORDER:
            raise DtypeError(f"dtype {name}: takes no part in arithmetic. Cast it first.")
    return max(first, second, key=_ORDER.index)


def scalar_dtype(tensor_dtype: str, scalar: bool | int | float) -> str:
    """Dtype of `tensor op scalar` for a Python scalar: the tensor's, unless its kind cannot hold the scalar."""
    kind = dtypes.dtype(tensor_dtype).kind
    if isinstance(scalar, bool):
        return tensor_dtype
    if isinstance(scalar, int):
        return "int32" if kind == dtypes.BOOL else tensor_dtype
    return tensor_dtype if kind in (dtypes.FLOAT, dtypes.COMPLEX) else "float32"


def cast(tensor: Tensor, dtype: str) -> Tensor:
    """`tensor` in `dtype`; costs no operator when it is already."""
    return tensor if tensor.type_.dtype == dtype else call("Cast", tensor, dtype=dtype)


def as_tensor(thing: Any, dtype: str | None = None) -> Tensor:
    """A tensor as it is; a number, list or array as a constant of `dtype`.   Raises: DtypeError for the rest."""
    if isinstance(thing, Tensor):
        return thing
    if isinstance(thing, bool | int | float | list | tuple | np.ndarray | np.generic):
        return Tensor(np.asarray(thing, dtypes.dtype(dtype).numpy)) if dtype else Tensor(thing)
    raise DtypeError(f"operand: expected a Tensor or a number, got {type(thing).__name__}.")


def promoted(first: Any, second: Any) -> tuple[Tensor, Tensor]:
    """Both operands in their common dtype."""
    if isinstance(first, np.generic):
        first = first.item()
    if isinstance(second, np.generic):
        second = second.item()
    if isinstance(first, Tensor) and isinstance(second, bool | int | float):
        dtype = scalar_dtype(first.type_.dtype, second)
        return cast(first, dtype), as_tensor(second, dtype)
    if isinstance(second, Tensor) and isinstance(first, bool | int | float):
        dtype = scalar_dtype(second.type_.dtype, first)
        return as_tensor(first, dtype), cast(second, dtype)
    one, other = as_tensor(first), as_tensor(second)
    dtype = common_dtype(one.type_.dtype, other.type_.dtype)
    return cast(one, dtype), cast(other, dtype)
