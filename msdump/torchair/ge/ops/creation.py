"""Tensors made from a shape alone, and copies: the same values in other memory, in another dtype, under another name.

device   of a kernel: device of its result, if it has no input
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from msdump.torchair.ge.builder import Builder, dtype_of_number, ge_number, memory_format_of, placement_hints
from msdump.torchair.ge.graph import GeTensor, Operand, Scalar, Size
from msdump.torchair.ge.registry import converter, kernel


def fill(ge: Builder, dims: GeTensor, value: Operand) -> GeTensor:
    """Fill with the dtype and on the device of the node's result."""
    dtype = ge.result.dtype
    number = ge.number(value, dtype)
    if not number.is_host:
        number = ge.cast(number, dtype)
    filled = ge.op("Fill", {"dims": dims, "value": number}, hints=placement_hints(None, ge.result.device))
    return ge.cast(filled, dtype)


@kernel("Fill", host=("dims",))
def fill_kernel(dims: list[int], value: torch.Tensor | Scalar, *, device: str = "cpu") -> torch.Tensor:
    """value   a tensor of one element gives the dtype, a size INT64"""
    if not isinstance(value, torch.Tensor):
        return torch.full(dims, value, device=device)
    return torch.empty(dims, dtype=value.dtype, device=device).fill_(value)


@converter("aten.full.default")
def full(ge: Builder, size: Sequence[Size], fill_value: Operand, **_: object) -> GeTensor:
    return fill(ge, ge.sizes(size), fill_value)


@converter("aten.ones.default")
def ones(ge: Builder, size: Sequence[Size], **_: object) -> GeTensor:
    return fill(ge, ge.sizes(size), 1)


@converter("aten.zeros.default")
def zeros(ge: Builder, size: Sequence[Size], **_: object) -> GeTensor:
    return fill(ge, ge.sizes(size), 0)


@converter("aten.new_full.default")
def new_full(ge: Builder, x: GeTensor, size: Sequence[Size], fill_value: Operand, **_: object) -> GeTensor:
    return fill(ge, ge.sizes(size), fill_value)


@converter("aten.new_ones.default")
def new_ones(ge: Builder, x: GeTensor, size: Sequence[Size], **_: object) -> GeTensor:
    return fill(ge, ge.sizes(size), 1)


@converter("aten.new_zeros.default")
def new_zeros(ge: Builder, x: GeTensor, size: Sequence[Size], **_: object) -> GeTensor:
    return fill(ge, ge.sizes(size), 0)


@converter("aten.full_like.default")
def full_like(ge: Builder, x: GeTensor, fill_value: Operand, **_: object) -> GeTensor:
    dims = ge.op("Cast", {"x": ge.op("Shape", {"x": x})}, {"dst_type": ge_number(torch.int64)})
    return fill(ge, dims, fill_value)


@converter("aten.fill.Scalar", "aten.fill.Tensor")
def fill_(ge: Builder, x: GeTensor, value: Operand) -> GeTensor:
    return full_like(ge, x, value)


@converter("aten.ones_like.default")
def ones_like(ge: Builder, x: GeTensor, memory_format: torch.memory_format | None = None, **_: object) -> GeTensor:
    return _like(ge, "OnesLike", x, memory_format)


@kernel("OnesLike")
def ones_like_kernel(x: torch.Tensor, *, memory_format: str = "", device: str = "") -> torch.Tensor:
    return torch.ones_like(x, memory_format=memory_format_of(memory_format), device=device or x.device)


@converter("aten.zeros_like.default", "aten.zero.default")
def zeros_like(ge: Builder, x: GeTensor, memory_format: torch.memory_format | None = None, **_: object) -> GeTensor:
    return _like(ge, "ZerosLike", x, memory_format)


@kernel("ZerosLike")
def zeros_like_kernel(x: torch.Tensor, *, memory_format: str = "", device: str = "") -> torch.Tensor:
    return torch.zeros_like(x, memory_format=memory_format_of(memory_format), device=device or x.device)


def _like(ge: Builder, op_type: str, x: GeTensor, memory_format: torch.memory_format | None) -> GeTensor:
    device = None if x.fake.device == ge.result.device else ge.result.device
    return ge.cast(ge.op(op_type, {"x": x}, hints=placement_hints(memory_format, device)), ge.result.dtype)


@converter("aten.empty.memory_format", "aten.empty_strided.default", "aten.empty_permuted.default")
def empty(ge: Builder, size: Sequence[Size], *_: object, **__: object) -> GeTensor:
    return _empty(ge, ge.sizes(size))


@converter("aten.new_empty.default", "aten.new_empty_strided.default")
def new_empty(ge: Builder, x: GeTensor, size: Sequence[Size], *_: object, **__: object) -> GeTensor:
    return _empty(ge, ge.sizes(size))


@converter("aten.empty_like.default")
def empty_like(ge: Builder, x: GeTensor, **_: object) -> GeTensor:
    return _empty(ge, ge.op("Shape", {"x": x}))


def _empty(ge: Builder, shape: GeTensor) -> GeTensor:
    attrs = {"dtype": ge_number(ge.result.dtype), "init": False}
    return ge.op("Empty", {"shape": shape}, attrs, hints=placement_hints(None, ge.result.device))


@kernel("Empty", host=("shape",))
def empty_kernel(shape: list[int], *, dtype: int, init: bool, device: str = "cpu") -> torch.Tensor:
    return torch.empty(shape, dtype=dtype_of_number(dtype), device=device)


@converter("aten.arange.default")
def arange(ge: Builder, end: Operand, **_: object) -> GeTensor:
    return _range(ge, 0, end, 1)


@converter("aten.arange.start", "aten.arange.start_step")
def arange_start(ge: Builder, start: Operand, end: Operand, step: Operand = 1, **_: object) -> GeTensor:
    return _range(ge, start, end, step)


def _range(ge: Builder, start: Operand, limit: Operand, delta: Operand) -> GeTensor:
    """A Range in INT64 is cast; one of floats is reckoned in its own dtype, as it would round differently."""
    dtype = ge.result.dtype
    own = dtype if dtype.is_floating_point else torch.int64
    attrs = {} if own is torch.int64 else {"dtype": ge_number(own)}
    inputs = {"start": start, "limit": limit, "delta": delta}
    hints = placement_hints(None, ge.result.device)
    return ge.cast(ge.op("Range", inputs, attrs, hints=hints), dtype)


@kernel("Range", host=("start", "limit", "delta"))
def range_kernel(
    start: Scalar, limit: Scalar, delta: Scalar, *, dtype: int | None = None, device: str = "cpu"
) -> torch.Tensor:
    """dtype   None: INT64"""
    kind = torch.int64 if dtype is None else dtype_of_number(dtype)
    return torch.arange(start, limit, delta, dtype=kind, device=device)


@converter("aten.eye.default", "aten.eye.m")
def eye(ge: Builder, n: int, m: int | None = None, **_: object) -> GeTensor:
    attrs = {"num_rows": n, "num_columns": n if m is None else m, "dtype": ge_number(ge.result.dtype)}
    return ge.op("Eye", {}, attrs, hints=placement_hints(None, ge.result.device))


@kernel("Eye")
def eye_kernel(*, num_rows: int, num_columns: int, dtype: int, device: str = "cpu") -> torch.Tensor:
    return torch.eye(num_rows, num_columns, dtype=dtype_of_number(dtype), device=device)


@converter("aten.linspace.default")
def linspace(ge: Builder, start: Operand, end: Operand, steps: Size, **_: object) -> GeTensor:
    dtype = ge.result.dtype
    inputs = {"start": start, "stop": end, "num": steps}
    hints = placement_hints(None, ge.result.device)
    return ge.op("LinSpace", inputs, {"dtype": ge_number(dtype)}, output="output", hints=hints)


@kernel("LinSpace", host=("start", "stop", "num"))
def linspace_kernel(start: Scalar, stop: Scalar, num: int, *, dtype: int, device: str = "cpu") -> torch.Tensor:
    return torch.linspace(start, stop, num, dtype=dtype_of_number(dtype), device=device)


@converter("aten.scalar_tensor.default")
def scalar_tensor(ge: Builder, value: Operand, **_: object) -> GeTensor:
    return fill(ge, ge.sizes([]), value)


@converter("aten.clone.default", "aten.contiguous.default", "aten.lift_fresh_copy.default")
def clone(ge: Builder, x: GeTensor, memory_format: torch.memory_format | None = None) -> GeTensor:
    return ge.op("Identity", {"x": x}, hints=placement_hints(memory_format))


@kernel("Identity")
def identity_kernel(
    x: torch.Tensor, *, is_alias: bool = False, memory_format: str = "", device: str = ""
) -> torch.Tensor:
    """A copy; another tensor on the same memory where ATen has that."""
    if is_alias:
        return x.detach()
    if device:
        return x.to(device, copy=True)
    return torch.clone(x, memory_format=memory_format_of(memory_format))


@converter(
    "aten.detach.default",
    "aten.alias.default",
    "aten.lift_fresh.default",
    "aten.positive.default",
    "aten.resolve_conj.default",
    "aten.resolve_neg.default",
)
def detach(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("Identity", {"x": x}, hints={"is_alias": True})


@converter("aten.copy_.default")
def copy_(ge: Builder, ref: GeTensor, value: GeTensor, non_blocking: bool = False) -> GeTensor:
    return ge.op("Assign", {"ref": ref, "value": ge.cast(value, ref.dtype)})


@kernel("Assign", mutates="ref")
def assign_kernel(ref: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return ref.copy_(value)


@converter("aten.copy.default")
def copy(ge: Builder, x: GeTensor, src: GeTensor, non_blocking: bool = False) -> GeTensor:
    """src in the shape and dtype of x, in memory of its own."""
    cast = ge.cast(src, x.dtype)
    if cast.shape != x.shape:
        cast = ge.op("BroadcastTo", {"x": cast, "shape": ge.op("Shape", {"x": x})})
    return ge.op("Identity", {"x": cast}, hints=placement_hints(None, ge.result.device))


@converter("aten._to_copy.default", "prims.convert_element_type.default", "prims.device_put.default")
def to_copy(
    ge: Builder, x: GeTensor, *_: object, memory_format: torch.memory_format | None = None, **__: object
) -> GeTensor:
    """A Cast; an Identity where the dtype stays."""
    dtype, device = ge.result.dtype, ge.result.device
    cast = ge.cast(x, dtype)
    hints = placement_hints(memory_format, None if device == x.fake.device else device)
    if device != x.fake.device:
        hints["device"] = str(device)
    return cast if cast is not x and not hints else ge.op("Identity", {"x": cast}, hints=hints)


@kernel("TensorMove")
def tensor_move_kernel(x: torch.Tensor) -> torch.Tensor:
    return torch.clone(x)
