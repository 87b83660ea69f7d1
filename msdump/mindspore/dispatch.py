"""Dispatch: the single entry point for all operators of the shim, into a graph or at once, and their common dtypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from msdump.errors import DtypeError, GraphError
from msdump.graph.primitive import Primitive, PrimitiveDef, definition_of
from msdump.mindspore import eager, outside
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.precision import FULL, Precision, current_precision
from msdump.mindspore.sources import user_line
from msdump.mindspore.tracer import Tracer, current_tracer
from msdump.tensors import dtypes

Attrs = Mapping[str, Any]


def execute(
    op_type: str, inputs: Sequence[Tensor], attrs: Attrs | None = None, definition: PrimitiveDef | None = None
) -> tuple[Tensor, ...]:
    """All outputs of one operator: a node of the active graph, or computed now.

    definition  of an operator of the script, which is not in the registry
    Raises: GraphError when operands do not fit; KernelNotFoundError with the nearest known operator.
    """
    primitive = Primitive(op_type, dict(attrs or {}), definition=definition)
    tracer, precision = current_tracer(), current_precision()
    if precision is not None and op_type != "Cast" and not (definition or definition_of(op_type)).mutates:
        outputs = _run(primitive, _precise(precision, op_type, inputs, tracer), tracer)
        if precision.restores and precision.lowers(op_type):
            return tuple(_in_dtype(tensor, FULL, tracer) for tensor in outputs)
        return outputs
    return _run(primitive, inputs, tracer)


def _run(primitive: Primitive, inputs: Sequence[Tensor], tracer: Tracer | None) -> tuple[Tensor, ...]:
    if tracer is not None:
        return tracer.add(primitive, inputs)
    outside.note(primitive.op_type)
    try:
        arrays = eager.run(primitive, [tensor.array for tensor in inputs])
    except GraphError as error:
        raise type(error)(f"{primitive.op_type} at {user_line()}: {error}") from error
    return tuple(map(Tensor.of_array, arrays))


def call(op_type: str, *inputs: Tensor, **attrs: Any) -> Tensor:
    """First output of one operator."""
    return execute(op_type, inputs, attrs)[0]


def _precise(precision: Precision, op_type: str, inputs: Sequence[Tensor], tracer: Tracer | None) -> Sequence[Tensor]:
    """Operands in the dtype that mixed precision chooses.

    Source: in a graph `to_float` casts a cell's arguments, weights and constants, so that casts in `construct` last;
    in PyNative it casts the operands of each operator.
    """
    dtype = precision.operand_dtype(op_type)
    if op_type in precision.promoted:
        floats = [tensor.type_.dtype for tensor in inputs if _is_float(tensor)]
        dtype = max(floats, key=_ORDER.index, default=None)
    if dtype is None:
        return inputs
    if precision.is_plain and tracer is not None and not tracer.is_recording:
        return _with_weights_in(dtype, inputs, tracer)
    return [_in_dtype(tensor, dtype, tracer) for tensor in inputs]


def _with_weights_in(dtype: str, inputs: Sequence[Tensor], tracer: Tracer) -> Sequence[Tensor]:
    """Operands with weights and constants rounded to `dtype`; those that had one dtype still have one."""
    lowered = [_in_dtype(tensor, dtype, tracer) if _is_read(tensor) else tensor for tensor in inputs]
    before, after = ({tensor.type_.dtype for tensor in group if _is_float(tensor)} for group in (inputs, lowered))
    if len(before) == 1 and len(after) > 1:
        widest = max(after, key=_ORDER.index)
        return [cast(tensor, widest) if _is_float(tensor) else tensor for tensor in lowered]
    return lowered


def _is_read(tensor: Tensor) -> bool:
    """Is it a weight or a constant of the cell, and not a Python number that took the dtype of another operand?"""
    return tensor.is_concrete and (tensor.ndim > 0 or isinstance(tensor, Parameter))


def _is_float(tensor: Tensor) -> bool:
    return dtypes.dtype(tensor.type_.dtype).is_float


def _in_dtype(tensor: Tensor, dtype: str, tracer: Tracer | None) -> Tensor:
    """A float tensor in another float dtype; one that was cast from there and has lost nothing goes back."""
    if tensor.type_.dtype == dtype or not _is_float(tensor):
        return tensor
    value = tracer.known_value(tensor) if tracer is not None else None
    if value is not None and value.node is not None and value.node.op_type == "Cast":
        source = value.node.inputs[0]
        if tracer is not None and source.type.dtype == dtype and tensor.type_.dtype == FULL:
            return tracer.tensor_of(source)
    return call("Cast", tensor, dtype=dtype)


_ORDER = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
          "float16", "bfloat16", "float32", "float64", "complex64", "complex128")  # fmt: skip


_UNCONVERTED = frozenset({"uint16", "uint32", "uint64"})


def common_dtype(first: str, second: str) -> str:
    """Dtype of `first op second` for two tensors.

    Edges: uint8 with int8 is int16; float16 with bfloat16 is float32; int with float is the float dtype.
    Raises: DtypeError for an unsigned dtype of more than a byte beside another dtype than bool, as in MindSpore, which
            converts none of them.
    """
    if first == second:
        return first
    if (first in _UNCONVERTED or second in _UNCONVERTED) and "bool" not in (first, second):
        raise DtypeError(f"dtypes: expected two that convert, got {first} and {second}. Cast one of them to the other.")
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
        return "int64" if kind == dtypes.BOOL else tensor_dtype
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
    line = user_line()
    where = f"operand at {line}" if line else "operand"
    raise DtypeError(f"{where}: expected a Tensor or a number, got {type(thing).__name__}.")


def _as_read(tensor: Tensor) -> Tensor:
    """A weight or constant as a cell with `to_float` reads it in a graph: cast before dtypes are compared."""
    precision, tracer = current_precision(), current_tracer()
    if precision is None or not precision.is_plain or tracer is None or tracer.is_recording or not tensor.is_concrete:
        return tensor
    return _in_dtype(tensor, precision.dtype, tracer)


def promoted(first: Any, second: Any) -> tuple[Tensor, Tensor]:
    """Both operands in their common dtype."""
    is_plain = isinstance(first, Tensor) and isinstance(second, Tensor) and current_precision() is None
    if is_plain and first.type_.dtype == second.type_.dtype:
        return first, second
    if isinstance(first, np.generic):
        first = first.item()
    if isinstance(second, np.generic):
        second = second.item()
    if isinstance(first, Tensor) and isinstance(second, bool | int | float):
        first = _as_read(first)
        dtype = scalar_dtype(first.type_.dtype, second)
        return cast(first, dtype), as_tensor(second, dtype)
    if isinstance(second, Tensor) and isinstance(first, bool | int | float):
        second = _as_read(second)
        dtype = scalar_dtype(second.type_.dtype, first)
        return as_tensor(first, dtype), cast(second, dtype)
    one, other = _as_read(as_tensor(first)), _as_read(as_tensor(second))
    dtype = common_dtype(one.type_.dtype, other.type_.dtype)
    return cast(one, dtype), cast(other, dtype)
