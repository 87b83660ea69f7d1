"""What scripts make tensors of: numbers, nested lists, arrays -> one array in MindSpore's default dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.errors import DtypeError
from msdump.mindspore.common.dtype import dtype_name
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array


def as_shape(shape: Any) -> tuple[int, ...]:
    """A shape given as an int, as sizes, or as one tuple of sizes."""
    if isinstance(shape, int | np.integer):
        return (int(shape),)
    if len(shape) == 1 and isinstance(shape[0], tuple | list):
        shape = shape[0]
    return tuple(int(size) for size in shape)


def array_from(data: Any, dtype: Any) -> Array:
    """A new array of numbers, nested lists, arrays or concrete tensors; `dtype` None keeps what the data has.

    Raises: TypeError for what is no data, DtypeError for a dtype that it does not go into.
    """
    if isinstance(data, np.ndarray | np.generic):
        array = np.array(data, order="C")
    elif isinstance(data, bool | int | float | complex | list | tuple):
        array = _from_python(data, is_exact=dtype is not None)
    else:
        raise TypeError(
            f"For Tensor, the input_data is {data!r} that contain unsupported element: expected a number, list, "
            f"tuple, numpy array or Tensor, got {type(data).__name__}."
        )
    if array.dtype.kind in "OUS":
        raise TypeError("Tensor: expected numbers, got strings, objects or rows of different lengths.")
    if dtype is None:
        dtypes.dtype_from_numpy(array.dtype)
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    target = dtypes.dtype(dtype_name(dtype)).numpy
    try:
        return array.astype(target)
    except (TypeError, ValueError) as error:
        raise DtypeError(f"Tensor: {array.dtype} does not go into {dtype}.") from error


def _from_python(data: Any, is_exact: bool) -> Array:
    """Source: MindSpore's default dtypes, float32 and int64. `is_exact`: floats stay float64 for now."""
    try:
        array = np.array(_plain(data))
    except ValueError as error:
        raise TypeError(f"Tensor: expected rows of one length, got {data!r}.") from error
    return array.astype(np.float32) if array.dtype == np.float64 and not is_exact else array


def _plain(data: Any) -> Any:
    if isinstance(data, list | tuple):
        return [_plain(item) for item in data]
    asnumpy = getattr(data, "asnumpy", None)
    return data if asnumpy is None else asnumpy()
