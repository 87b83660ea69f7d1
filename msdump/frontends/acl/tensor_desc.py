"""TensorDesc: what a description says of a tensor, and the calls on it: shape, dtype and format, then layout in memory,
ranges, constant data and memory type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from msdump.frontends.acl import codes, const
from msdump.frontends.acl.calls import (
    CallError,
    as_int,
    as_text,
    bad_argument,
    returns_code,
    returns_nothing,
    returns_plain,
    returns_value,
)
from msdump.frontends.acl.const import ACL_DT_UNDEFINED, ACL_FORMAT_UNDEFINED
from msdump.frontends.acl.process import process
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

UNKNOWN = -1


@dataclass(slots=True)
class TensorDesc:
    """A tensor without its data. `dtype` and `format` are ACL's numbers; an open size is -1.

    storage_*, origin_*   layout in memory, and before some operator changed it; None = not set
    ranges                (least, most) of each size; () = not set
    const                 bytes of a constant operand
    memory_type           number of aclMemType
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
    memory_type: int = 0

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


@returns_nothing("aclDestroyTensorDesc")
def destroy_tensor_desc(desc: int) -> None:
    """Destroy a description; an invalid handle is logged and ignored."""
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


def _dim(desc: int, index: int) -> int:
    shape, axis = find(desc).shape, as_int(index, "index")
    if not 0 <= axis < len(shape):
        raise bad_argument(f"index: expected a dimension of {len(shape)}, got {axis}")
    return shape[axis]


get_tensor_desc_dim = returns_plain("aclGetTensorDescDim", UNKNOWN)(_dim)
get_tensor_desc_dim_v2 = returns_value("aclGetTensorDescDimV2", UNKNOWN)(_dim)


@returns_plain("aclGetTensorDescName", "")
def get_tensor_desc_name(desc: int) -> str:
    return find(desc).name


@returns_nothing("aclSetTensorDescName")
def set_tensor_desc_name(desc: int, name: str) -> None:
    """Give it a name; a handle that is none is ignored but for the log."""
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


def checked_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Sizes of a script, -1 for open ones.   Raises: CallError 100000."""
    sizes = tuple(as_int(size, f"shape[{axis}]") for axis, size in enumerate(shape))
    if any(size < UNKNOWN for size in sizes):
        raise CallError(codes.INVALID_PARAM, f"shape: expected sizes, or -1 for open ones, got {sizes}")
    return sizes


_MEMORY_TYPES = (const.ACL_MEMTYPE_DEVICE, const.ACL_MEMTYPE_HOST, const.ACL_MEMTYPE_HOST_COMPILE_INDEPENDENT)
_HOST_FORMATS = (const.ACL_FORMAT_NCHW, const.ACL_FORMAT_NHWC, const.ACL_FORMAT_ND)
_NO_RANGE: list[int] = []


@returns_code("aclSetTensorStorageFormat")
def set_tensor_storage_format(tensor_desc: int, format: int) -> None:
    """Say how memory has the tensor. Only the formats of a host will do: NCHW, NHWC, ND.

    Returns: 200006 for another format, as no operator here brings the data into it.
    """
    held, number = find(tensor_desc), as_int(format, "format")
    if number not in _HOST_FORMATS:
        raise CallError(codes.FEATURE_UNSUPPORTED, f"format: expected NCHW (0), NHWC (1) or ND (2), got {number}")
    held.storage_format = number


@returns_code("aclSetTensorStorageShape")
def set_tensor_storage_shape(tensor_desc: int, dims: Sequence[int]) -> None:
    """Say which shape memory has. It must have as many elements as the tensor.   Returns: 200006 for other shapes."""
    held, shape = find(tensor_desc), checked_shape(dims)
    if held.element_count != TensorDesc(held.dtype, shape, held.format).element_count:
        raise CallError(
            codes.FEATURE_UNSUPPORTED,
            f"dims: expected a shape with the elements of {list(held.shape)}, got {list(shape)}. Memory is never "
            "padded here",
        )
    held.storage_shape = shape


@returns_code("aclSetTensorOriginFormat")
def set_tensor_origin_format(tensor_desc: int, format: int) -> None:
    find(tensor_desc).origin_format = as_int(format, "format")


@returns_code("aclSetTensorOriginShape")
def set_tensor_origin_shape(tensor_desc: int, dims: Sequence[int]) -> None:
    find(tensor_desc).origin_shape = checked_shape(dims)


@returns_code("aclSetTensorDynamicInput")
def set_tensor_dynamic_input(tensor_desc: int, dynamic_input_name: str) -> None:
    """Say which input of any number of tensors this one belongs to. Operators here take theirs by their order."""
    find(tensor_desc).dynamic_input = as_text(dynamic_input_name, "dynamic_input_name")


@returns_code("aclSetTensorShapeRange")
def set_tensor_shape_range(tensor_desc: int, dims_range: Sequence[Sequence[int]]) -> None:
    """Say the ends of each size: [[least, most], ...], most -1 for any."""
    held, ranges = find(tensor_desc), _pairs(dims_range, "dims_range")
    for least, most in ranges:
        if least < 0 or (most != UNKNOWN and most < least):
            raise bad_argument(f"dims_range: expected [least, most], got [{least}, {most}]")
    held.ranges = ranges


@returns_code("aclSetTensorValueRange")
def set_tensor_value_range(tensor_desc: int, value_range: Sequence[Sequence[int]]) -> None:
    """Say the ends of the values; kernels here need no such help."""
    find(tensor_desc).value_ranges = _pairs(value_range, "value_range")


@returns_code("aclSetTensorPlaceMent")
def set_tensor_place_ment(tensor_desc: int, mem_type: int) -> None:
    """Say whether memory of the device (0) or of the host (1, 2) has the tensor; operators read both."""
    held, number = find(tensor_desc), as_int(mem_type, "mem_type")
    if number not in _MEMORY_TYPES:
        raise bad_argument(f"mem_type: expected 0, 1 or 2, got {number}")
    held.memory_type = number


@returns_code("aclSetTensorConst")
def set_tensor_const(tensor_desc: int, data_buffer: int, length: int) -> None:
    """Say the data of a constant input: a copy of `length` bytes at an address.

    Operators read these data, not those of their buffer.
    """
    held, size = find(tensor_desc), as_int(length, "length")
    if size <= 0:
        raise bad_argument(f"length: expected more than 0 bytes, got {size}")
    held.const = process.memory.array(as_int(data_buffer, "data_buffer"), size, "data_buffer").copy()


@returns_value("aclGetTensorDescDimRange", _NO_RANGE)
def get_tensor_desc_dim_range(tensor_desc: int, index: int, dim_range_num: int) -> list[int]:
    """`ends, ret = acl.get_tensor_desc_dim_range(desc, index, 2)`: [least, most] of one size."""
    held, axis, count = find(tensor_desc), as_int(index, "index"), as_int(dim_range_num, "dim_range_num")
    ranges = held.ranges or tuple((1, UNKNOWN) if size < 0 else (size, size) for size in held.shape)
    if not 0 <= axis < len(ranges):
        raise bad_argument(f"index: expected a dimension of {len(ranges)}, got {axis}")
    if count != len(ranges[axis]):
        raise bad_argument(f"dim_range_num: expected 2, got {count}")
    return list(ranges[axis])


@returns_plain("aclGetTensorDescAddress", 0)
def get_tensor_desc_address(tensor_desc: int) -> int:
    """Address of the tensor, for descriptions that `create_and_get_op_desc` makes; 0 for all others."""
    find(tensor_desc)
    return 0


@returns_plain("aclGetTensorDescByIndex", 0)
def get_tensor_desc_by_index(tensor_desc: int, index: int) -> int:
    """The description itself for index 0: each handle stands for one description."""
    find(tensor_desc)
    if as_int(index, "index") != 0:
        raise bad_argument(f"index: expected 0, as the handle stands for one description, got {index}")
    return as_int(tensor_desc, "tensor_desc")


@returns_value("aclTransTensorDescFormat", 0)
def trans_tensor_desc_format(src_desc: int, dst_format: int) -> int:
    """`desc, ret = acl.trans_tensor_desc_format(src_desc, dst_format)`: a new description in another format."""
    held, number = find(src_desc), as_int(dst_format, "dst_format")
    order = _ORDERS.get((held.format, number))
    if order is None or len(held.shape) != 4:
        raise CallError(
            codes.FEATURE_UNSUPPORTED,
            f"dst_format: expected NCHW (0) or NHWC (1) for a description of four sizes in the other, got {number} for "
            f"format {held.format} and {len(held.shape)} sizes",
        )
    return process.handles.add(TensorDesc(held.dtype, tuple(held.shape[axis] for axis in order), number, held.name))


_ORDERS = {
    (const.ACL_FORMAT_NCHW, const.ACL_FORMAT_NHWC): (0, 2, 3, 1),
    (const.ACL_FORMAT_NHWC, const.ACL_FORMAT_NCHW): (0, 3, 1, 2),
    (const.ACL_FORMAT_NCHW, const.ACL_FORMAT_NCHW): (0, 1, 2, 3),
    (const.ACL_FORMAT_NHWC, const.ACL_FORMAT_NHWC): (0, 1, 2, 3),
}


def _pairs(values: Sequence[Sequence[int]], name: str) -> tuple[tuple[int, int], ...]:
    pairs = []
    for axis, ends in enumerate(values):
        numbers = tuple(as_int(value, f"{name}[{axis}]") for value in ends)
        if len(numbers) != 2:
            raise bad_argument(f"{name}[{axis}]: expected two numbers, got {len(numbers)}")
        pairs.append((numbers[0], numbers[1]))
    return tuple(pairs)
