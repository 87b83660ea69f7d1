"""What a description may say of a tensor beside its shape: layout in memory, ranges, constant data, place."""

from __future__ import annotations

from collections.abc import Sequence

from msdump.frontends.acl import codes, const
from msdump.frontends.acl.calls import (
    CallError,
    as_int,
    as_text,
    bad_argument,
    returns_code,
    returns_plain,
    returns_value,
)
from msdump.frontends.acl.dataset import DataBuffer
from msdump.frontends.acl.process import process
from msdump.frontends.acl.tensor_desc import UNKNOWN, TensorDesc, checked_shape, find

_PLACES = (const.ACL_MEMTYPE_DEVICE, const.ACL_MEMTYPE_HOST, const.ACL_MEMTYPE_HOST_COMPILE_INDEPENDENT)
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
    if number not in _PLACES:
        raise bad_argument(f"mem_type: expected 0, 1 or 2, got {number}")
    held.place = number


@returns_code("aclSetTensorConst")
def set_tensor_const(tensor_desc: int, data_buffer: int, length: int) -> None:
    """Say the data of a constant input: a copy of `length` bytes at an address.

    Operators read these data, whatever their buffer has.
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


def trans_tensor_desc_format(src_desc: int, dst_format: int) -> tuple[int, int]:
    """`desc, ret = acl.trans_tensor_desc_format(src_desc, dst_format)`: a new description in another format."""
    return _transposed(src_desc, dst_format)


@returns_value("aclTransTensorDescFormat", 0)
def _transposed(src_desc: int, dst_format: int) -> int:
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


def source_of(desc: TensorDesc, buffer: DataBuffer) -> DataBuffer:
    """Where an operator reads an input: its constant data, or the buffer."""
    if desc.const is None:
        return buffer
    address = process.memory.lend(desc.const, desc.const.ctypes.data, desc.const.nbytes, False)
    return DataBuffer(address, desc.const.nbytes)


def _pairs(values: Sequence[Sequence[int]], name: str) -> tuple[tuple[int, int], ...]:
    pairs = []
    for place, ends in enumerate(values):
        numbers = tuple(as_int(value, f"{name}[{place}]") for value in ends)
        if len(numbers) != 2:
            raise bad_argument(f"{name}[{place}]: expected two numbers, got {len(numbers)}")
        pairs.append((numbers[0], numbers[1]))
    return tuple(pairs)
