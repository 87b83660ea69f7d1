"""Tensors made from nothing but a shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from msdump.frontends.torchair.ge import placement
from msdump.frontends.torchair.ge.builder import Builder
from msdump.frontends.torchair.ge.dtypes import ge_number
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.registry import converter


def fill(ge: Builder, dims: GeTensor, value: Any) -> GeTensor:
    """Fill with the dtype and on the device of the node's result."""
    dtype = ge.result.dtype
    number = ge.number(value, dtype)
    if not number.is_host:
        number = ge.cast(number, dtype)
    filled = ge.op("Fill", {"dims": dims, "value": number}, hints=placement.hints(None, ge.result.device))
    return ge.cast(filled, dtype)


@converter("aten.full.default")
def full(ge: Builder, size: Sequence[Any], fill_value: Any, **_: Any) -> GeTensor:
    return fill(ge, ge.sizes(size), fill_value)


@converter("aten.ones.default")
def ones(ge: Builder, size: Sequence[Any], **_: Any) -> GeTensor:
    return fill(ge, ge.sizes(size), 1)


@converter("aten.zeros.default")
def zeros(ge: Builder, size: Sequence[Any], **_: Any) -> GeTensor:
    return fill(ge, ge.sizes(size), 0)


@converter("aten.new_full.default")
def new_full(ge: Builder, x: GeTensor, size: Sequence[Any], fill_value: Any, **_: Any) -> GeTensor:
    return fill(ge, ge.sizes(size), fill_value)


@converter("aten.new_ones.default")
def new_ones(ge: Builder, x: GeTensor, size: Sequence[Any], **_: Any) -> GeTensor:
    return fill(ge, ge.sizes(size), 1)


@converter("aten.new_zeros.default")
def new_zeros(ge: Builder, x: GeTensor, size: Sequence[Any], **_: Any) -> GeTensor:
    return fill(ge, ge.sizes(size), 0)


@converter("aten.full_like.default")
def full_like(ge: Builder, x: GeTensor, fill_value: Any, **_: Any) -> GeTensor:
    dims = ge.op("Cast", {"x": ge.op("Shape", {"x": x})}, {"dst_type": ge_number(torch.int64)})
    return fill(ge, dims, fill_value)


@converter("aten.fill.Scalar", "aten.fill.Tensor")
def fill_(ge: Builder, x: GeTensor, value: Any) -> GeTensor:
    return full_like(ge, x, value)


@converter("aten.ones_like.default")
def ones_like(ge: Builder, x: GeTensor, memory_format: Any = None, **_: Any) -> GeTensor:
    return _like(ge, "OnesLike", x, memory_format)


@converter("aten.zeros_like.default", "aten.zero.default")
def zeros_like(ge: Builder, x: GeTensor, memory_format: Any = None, **_: Any) -> GeTensor:
    return _like(ge, "ZerosLike", x, memory_format)


def _like(ge: Builder, op_type: str, x: GeTensor, memory_format: Any) -> GeTensor:
    device = None if x.fake.device == ge.result.device else ge.result.device
    return ge.cast(ge.op(op_type, {"x": x}, hints=placement.hints(memory_format, device)), ge.result.dtype)


@converter("aten.empty.memory_format", "aten.empty_strided.default", "aten.empty_permuted.default")
def empty(ge: Builder, size: Sequence[Any], *_: Any, **__: Any) -> GeTensor:
    return _empty(ge, ge.sizes(size))


@converter("aten.new_empty.default", "aten.new_empty_strided.default")
def new_empty(ge: Builder, x: GeTensor, size: Sequence[Any], *_: Any, **__: Any) -> GeTensor:
    return _empty(ge, ge.sizes(size))


@converter("aten.empty_like.default")
def empty_like(ge: Builder, x: GeTensor, **_: Any) -> GeTensor:
    return _empty(ge, ge.op("Shape", {"x": x}))


def _empty(ge: Builder, shape: GeTensor) -> GeTensor:
    attrs = {"dtype": ge_number(ge.result.dtype), "init": False}
    return ge.op("Empty", {"shape": shape}, attrs, hints=placement.hints(None, ge.result.device))


@converter("aten.arange.default")
def arange(ge: Builder, end: Any, **_: Any) -> GeTensor:
    return _range(ge, 0, end, 1)


@converter("aten.arange.start")
def arange_start(ge: Builder, start: Any, end: Any, **_: Any) -> GeTensor:
    return _range(ge, start, end, 1)


@converter("aten.arange.start_step")
def arange_start_step(ge: Builder, start: Any, end: Any, step: Any = 1, **_: Any) -> GeTensor:
    return _range(ge, start, end, step)


def _range(ge: Builder, start: Any, limit: Any, delta: Any) -> GeTensor:
    """A Range in INT64 is cast; one of floats is reckoned in its own dtype, as it would round differently."""
    dtype = ge.result.dtype
    own = dtype if dtype.is_floating_point else torch.int64
    attrs = {} if own is torch.int64 else {"dtype": ge_number(own)}
    inputs = {"start": start, "limit": limit, "delta": delta}
    hints = placement.hints(None, ge.result.device)
    return ge.cast(ge.op("Range", inputs, attrs, hints=hints), dtype)


@converter("aten.eye.default", "aten.eye.m")
def eye(ge: Builder, n: int, m: int | None = None, **_: Any) -> GeTensor:
    attrs = {"num_rows": n, "num_columns": n if m is None else m, "dtype": ge_number(ge.result.dtype)}
    return ge.op("Eye", {}, attrs, hints=placement.hints(None, ge.result.device))


@converter("aten.linspace.default")
def linspace(ge: Builder, start: Any, end: Any, steps: Any, **_: Any) -> GeTensor:
    dtype = ge.result.dtype
    inputs = {"start": start, "stop": end, "num": steps}
    hints = placement.hints(None, ge.result.device)
    return ge.op("LinSpace", inputs, {"dtype": ge_number(dtype)}, output="output", hints=hints)


@converter("aten.scalar_tensor.default")
def scalar_tensor(ge: Builder, value: Any, **_: Any) -> GeTensor:
    return fill(ge, ge.sizes([]), value)
