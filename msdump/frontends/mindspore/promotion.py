"""Promotion: which dtype two operands of different dtypes meet in.   Source: MindSpore, implicit conversion."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump import dtypes
from msdump.errors import DtypeError
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.dispatch import call

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
    left, right = as_tensor(first), as_tensor(second)
    dtype = common_dtype(left.type_.dtype, right.type_.dtype)
    return cast(left, dtype), cast(right, dtype)
