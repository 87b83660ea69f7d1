"""Arrays as OrtValues and back, without copies but of packed dtypes; names of dtypes on both sides."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as ort_native

from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.packing import pack, packed_size, unpack

_T = onnx.TensorProto
# Some are younger than the oldest onnx that will do.
_NAME_BY_TYPE = {number: row.name for number, row in dtypes.BY_ONNX_NUMBER.items() if number in _T.DataType.values()}
_TYPE_BY_NAME = {name: number for number, name in _NAME_BY_TYPE.items()}
# numpy knows these only through ml_dtypes: the bits cross the border as integers of the same width.
_BORROWED: dict[str, np.dtype[Any]] = {
    "bfloat16": np.dtype(np.uint16),
    **{name: np.dtype(np.uint8) for name in _TYPE_BY_NAME if name.startswith("float8")},
}
# Several elements in a byte on onnxruntime's side, a byte for each in an array.
_PACKED = frozenset(name for name in _TYPE_BY_NAME if dtypes.dtype(name).bits < 8)


def dtype_name(elem_type: int) -> str | None:
    """Name of the dtype table for a TensorProto.DataType; None for strings and what no array can show."""
    return _NAME_BY_TYPE.get(elem_type)


def elem_type_of(dtype: str) -> int:
    """TensorProto.DataType of a name of the dtype table.   Raises: KeyError when ONNX has none."""
    return _TYPE_BY_NAME[dtype]


def type_text(elem_type: int) -> str:
    """For messages: "float32", or ONNX's own name where the table has none."""
    name = dtype_name(elem_type)
    return name if name is not None else str(_T.DataType.Name(elem_type)).lower()


def is_packed(dtype: str) -> bool:
    """True for a dtype whose OrtValues hold several elements in a byte."""
    return dtype in _PACKED


def value_of(array: Array, dtype: str) -> Any:
    """An OrtValue over the memory of `array`, which must be C-contiguous and outlive it; of a packed dtype a copy."""
    if dtype in _PACKED:
        return owned_value_of(array, dtype)
    borrowed = _BORROWED.get(dtype)
    return ort_native.OrtValue.ortvalue_from_numpy_with_onnx_type(
        array if borrowed is None else array.view(borrowed), _TYPE_BY_NAME[dtype]
    )


def owned_value_of(array: Array, dtype: str) -> Any:
    """An OrtValue with a copy of `array` in memory of its own."""
    device = onnxruntime.OrtDevice.make("cpu", 0)._get_c_device()
    value = ort_native.OrtValue.ortvalue_from_shape_and_onnx_type(array.shape, _TYPE_BY_NAME[dtype], device)
    if array.size:
        held = pack(array, dtype)
        ctypes.memmove(value.data_ptr(), held.ctypes.data, held.nbytes)
    return value


def raw_data_of(array: Array, dtype: str) -> bytes:
    """The bytes of a tensor as ONNX files have them."""
    return pack(array, dtype).tobytes()


class _ValueMemory:
    """Memory of an OrtValue as an `__array_interface__`; arrays made of it keep the OrtValue alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: Any, shape: tuple[int, ...], typestr: str) -> None:
        self.owner = owner
        # Read only: another operator may still read this very memory.
        self.__array_interface__ = {"data": (owner.data_ptr(), True), "shape": shape, "typestr": typestr, "version": 3}


_TYPESTR = {
    name: (_BORROWED[name] if name in _BORROWED else dtypes.dtype(name).numpy).newbyteorder("=").str
    for name in _TYPE_BY_NAME
    if name not in _PACKED
}


def array_of(value: Any) -> Array:
    """The elements of an OrtValue that holds a tensor: a read-only view that keeps it alive; of a packed dtype a copy.

    Raises: KeyError for strings.
    """
    name = _NAME_BY_TYPE[value.element_type()]
    shape = tuple(value.shape())
    if 0 in shape:
        return np.empty(shape, dtypes.dtype(name).numpy)
    if name in _PACKED:
        raw = np.asarray(_ValueMemory(value, (packed_size(name, math.prod(shape)),), "|u1"))
        elements = unpack(raw, name, shape)
        elements.flags.writeable = False
        return elements
    array: Array = np.asarray(_ValueMemory(value, shape, _TYPESTR[name]))
    return array.view(dtypes.dtype(name).numpy) if name in _BORROWED else array
