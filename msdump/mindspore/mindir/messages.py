"""Values and tensors <-> the messages of a MINDIR file."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.errors import FormatError
from msdump.graph.types import TensorType
from msdump.mindspore.mindir.forms import Like
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

# Source: DataType of mind_ir.proto: ONNX's numbers up to that of bfloat16.
_DATA_TYPES = {
    row.name: row.onnx_number for row in dtypes.TABLE if row.onnx_number is not None and row.onnx_number <= 16
}
_OF_DATA_TYPE = {number: name for name, number in _DATA_TYPES.items()} | {17: "float64"}
# Source: AttributeType of mind_ir.proto.
_FLOAT, _INT64, _STRING, _BOOL, _DOUBLE, _TENSOR, _TENSORS, _TUPLE, _LIST = 1, 7, 8, 9, 11, 17, 19, 20, 21
_NONE = 25
_INTEGERS = (2, 3, 4, 5, 6, 7, 12, 13)


def write_type(message: Any, type: TensorType) -> None:
    """A tensor's dtype and shape, in a TensorProto."""
    message.data_type = _DATA_TYPES[type.dtype]
    message.dims.extend(type.shape)


def write_tensor(message: Any, array: Array, dtype: str) -> None:
    """A tensor with its data, in a TensorProto."""
    write_type(message, TensorType(dtype, tuple(array.shape)))
    message.raw_data = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def write_abstract(message: Any, types: Sequence[TensorType], is_tuple: bool) -> None:
    """What a node results in, in an AttributeProto."""
    if not is_tuple:
        message.type = _TENSORS
        write_type(message.tensors.add(), types[0])
        return
    message.type = _TUPLE
    for type in types:
        write_abstract(message.values.add(), [type], False)
    message.seq_info.is_dyn_len = False


def write_value(message: Any, value: Any, dtype: str = "float32", is_element: bool = False) -> None:
    """A number, text, tuple of them, or tensor, in an AttributeProto.

    dtype       of a number that the file holds as a tensor
    is_element  elements of a tuple lie in the lists of the message
    Raises: TypeError for anything else.
    """
    if isinstance(value, Like):
        value = np.array(value.number, dtypes.dtype(dtype).numpy)
    if isinstance(value, np.ndarray):
        message.type = _TENSORS
        write_tensor(message.tensors.add(), value, dtypes.dtype_from_numpy(value.dtype).name)
    elif isinstance(value, tuple | list):
        message.type = _TUPLE
        for item in value:
            write_value(message.values.add(), item, dtype, True)
    elif isinstance(value, str):
        message.type = _STRING
        _put(message, "strings" if is_element else "s", value.encode())
    elif isinstance(value, bool | int):
        message.type = _BOOL if isinstance(value, bool) else _INT64
        _put(message, "ints" if is_element else "i", int(value))
    elif isinstance(value, float):
        message.type = _FLOAT
        _put(message, "floats" if is_element else "f", value)
    else:
        raise TypeError(f"expected a number, text or tuple, got {type(value).__name__}")


def _put(message: Any, field: str, value: Any) -> None:
    if field in ("f", "i", "s"):
        setattr(message, field, value)
    else:
        getattr(message, field).append(value)


def read_value(message: Any, where: str) -> Any:
    """The value of an AttributeProto; a tensor as an array.   Raises: FormatError for a kind that is not known."""
    kind = message.type
    if kind in (_TUPLE, _LIST):
        return tuple(read_value(item, where) for item in message.values)
    if kind in (_TENSOR, _TENSORS):
        tensors = list(message.tensors) or [message.t]
        return read_tensor(tensors[0], where)[0]
    if kind == _STRING:
        text = message.s if message.HasField("s") else b"".join(message.strings[:1])
        try:
            return text.decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"{where}: expected UTF-8 text, got {text[:40]!r}.") from error
    if kind == _BOOL:
        return bool(_single(message, "i", "ints"))
    if kind in _INTEGERS:
        return int(_single(message, "i", "ints"))
    if kind == _FLOAT:
        # The nearest double of few digits: 1e-5 was written as a float32.
        return float(str(np.float32(_single(message, "f", "floats"))))
    if kind == _DOUBLE:
        return float(_single(message, "d", "doubles"))
    if kind in (0, _NONE, 23, 24, 36):
        return None
    raise FormatError(f"{where}: expected a number, text, tuple or tensor, got a value of kind {kind}.")


def _single(message: Any, one: str, several: str) -> Any:
    values = getattr(message, several)
    return values[0] if values and not message.HasField(one) else getattr(message, one)


def read_tensor(message: Any, where: str) -> tuple[Array, str]:
    """Array and dtype of a TensorProto.   Raises: FormatError for another dtype, or data that do not fit."""
    name = _OF_DATA_TYPE.get(message.data_type)
    if name is None:
        raise FormatError(f"{where}: expected a dtype of the table, got data_type {message.data_type}.")
    if message.HasField("external_data"):
        raise FormatError(f"{where}: its data lie in another file, {message.external_data.location}. Export it whole.")
    row, shape = dtypes.dtype(name), tuple(message.dims)
    if len(message.raw_data) != math.prod(shape) * row.itemsize or min(shape, default=0) < 0:
        raise FormatError(f"{where}: expected {math.prod(shape) * row.itemsize} bytes, got {len(message.raw_data)}.")
    numpy_type = np.dtype(row.numpy)
    array = np.frombuffer(message.raw_data, numpy_type.newbyteorder("<") if numpy_type.isnative else numpy_type)
    if sys.byteorder == "big":
        array = array.byteswap()
    return array.astype(numpy_type).reshape(shape), name


def read_type(message: Any, where: str) -> TensorType:
    """Dtype and shape of a TensorProto."""
    name = _OF_DATA_TYPE.get(message.data_type)
    if name is None:
        raise FormatError(f"{where}: expected a dtype of the table, got data_type {message.data_type}.")
    return TensorType(name, tuple(message.dims))
