"""TensorDesc: shape, dtype and format of a tensor, and the calls on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from msdump import dtypes
from msdump.arrays import Array
from msdump.frontends.acl import codes
from msdump.frontends.acl.calls import (
    CallError,
    as_int,
    as_text,
    bad_argument,
    returns_code,
    returns_plain,
    returns_value,
)
from msdump.frontends.acl.const import ACL_DT_UNDEFINED, ACL_FORMAT_UNDEFINED
from msdump.frontends.acl.process import process

UNKNOWN = -1


@dataclass(slots=True)
class TensorDesc:
    """A tensor without its data. `dtype` and `format` are ACL's numbers; an open size is -1.

    storage_*, origin_*   layout in memory, and before some operator changed it; None = not set
    ranges                (least, most) of each size; () = not set
    const                 bytes of a constant operand
    place                 number of aclMemType
    """

    dtype: int
    shape: tuple[int, ...]
    format: int
    name: str = ""
    storage_format: int | None = None
    storage_shape: tuple[int, ...] | None = None
    origin_format: int | None = None
    origin_shape: tuple[int, ...] | None = None
    ranges: tuple[tuple[int, int], ...] = ()
    value_ranges: tuple[tuple[int, int], ...] = ()
    dynamic_input: str = ""
    const: Array | None = None
    place: int = 0

    @property
    def element_count(self) -> int:
        """0 when a size is open."""
        return 0 if any(size < 0 for size in self.shape) else math.prod(self.shape)

    @property
    def size(self) -> int:
        """Bytes; 0 when a size or the dtype is open."""
        return 0 if any(size < 0 for size in self.shape) else size_bytes(self.dtype, self.shape)


def dtype_number(name: str) -> int:
    """ACL's number of a dtype of the table; -1 where it has none."""
    row = dtypes.BY_NAME.get(name)
    return ACL_DT_UNDEFINED if row is None or row.ge_number is None else row.ge_number


def size_bytes(dtype: int, shape: Sequence[int]) -> int:
    """Bytes of a tensor.   Edges: packed dtypes end in a whole byte; an unknown dtype has 0."""
    row = dtypes.BY_GE_NUMBER.get(dtype)
    if row is None or row.numpy_type is None:
        return 0
    return math.ceil(math.prod(shape) * row.bits / 8)


@returns_plain("aclCreateTensorDesc", 0)
def create_tensor_desc(data_type: int, shape: Sequence[int], format: int) -> int:
    """Make a description: `desc = acl.create_tensor_desc(data_type, shape, format)`; 0 when it cannot be."""
    sizes = checked_shape(shape)
    number = as_int(data_type, "data_type")
    if number != ACL_DT_UNDEFINED and number not in dtypes.BY_GE_NUMBER:
        raise CallError(codes.UNSUPPORTED_DATA_TYPE, f"data_type: expected a number of aclDataType, got {number}")
    return process.handles.add(TensorDesc(number, sizes, as_int(format, "format")))


def destroy_tensor_desc(desc: int) -> None:
    """Forget a description; a handle that is none is ignored but for the log."""
    _destroy(desc)


@returns_code("aclDestroyTensorDesc")
def _destroy(desc: int) -> None:
    process.handles.remove(as_int(desc, "desc"), TensorDesc, "desc")


@returns_plain("aclGetTensorDescType", ACL_DT_UNDEFINED)
def get_tensor_desc_type(desc: int) -> int:
    return find(desc).dtype


@returns_plain("aclGetTensorDescFormat", ACL_FORMAT_UNDEFINED)
def get_tensor_desc_format(desc: int) -> int:
    return find(desc).format


@returns_plain("aclGetTensorDescSize", 0)
def get_tensor_desc_size(desc: int) -> int:
    """Bytes of the tensor; 0 when a size is open."""
    return find(desc).size


@returns_plain("aclGetTensorDescElementCount", 0)
def get_tensor_desc_element_count(desc: int) -> int:
    return find(desc).element_count


@returns_plain("aclGetTensorDescNumDims", 0)
def get_tensor_desc_num_dims(desc: int) -> int:
    return len(find(desc).shape)


@returns_plain("aclGetTensorDescDim", UNKNOWN)
def get_tensor_desc_dim(desc: int, index: int) -> int:
    return _dim(desc, index)


@returns_value("aclGetTensorDescDimV2", UNKNOWN)
def get_tensor_desc_dim_v2(desc: int, index: int) -> int:
    return _dim(desc, index)


@returns_plain("aclGetTensorDescName", "")
def get_tensor_desc_name(desc: int) -> str:
    return find(desc).name


def set_tensor_desc_name(desc: int, name: str) -> None:
    """Give it a name; a handle that is none is ignored but for the log."""
    _set_name(desc, name)


@returns_code("aclSetTensorDescName")
def _set_name(desc: int, name: str) -> None:
    find(desc).name = as_text(name, "name")


@returns_code("aclSetTensorShape")
def set_tensor_shape(desc: int, shape: Sequence[int]) -> None:
    find(desc).shape = checked_shape(shape)


@returns_code("aclSetTensorFormat")
def set_tensor_format(desc: int, format: int) -> None:
    find(desc).format = as_int(format, "format")


@returns_plain("aclDataTypeSize", 0)
def data_type_size(data_type: int) -> int:
    """Bytes of one element; 0 for a dtype that has none."""
    return size_bytes(as_int(data_type, "data_type"), (1,))


def find(desc: int, name: str = "tensor_desc") -> TensorDesc:
    """The description behind a handle.   Raises: CallError."""
    return process.handles.find(as_int(desc, name), TensorDesc, name)


def _dim(desc: int, index: int) -> int:
    shape, at = find(desc).shape, as_int(index, "index")
    if not 0 <= at < len(shape):
        raise bad_argument(f"index: expected a dimension of {len(shape)}, got {at}")
    return shape[at]


def checked_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Sizes of a script, -1 for open ones.   Raises: CallError 100000."""
    sizes = tuple(as_int(size, f"shape[{at}]") for at, size in enumerate(shape))
    if any(size < UNKNOWN for size in sizes):
        raise CallError(codes.INVALID_PARAM, f"shape: expected sizes, or -1 for open ones, got {sizes}")
    return sizes
