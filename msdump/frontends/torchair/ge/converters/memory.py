"""Copies, and what is none: the same values in other memory, in another dtype, under another name."""

from __future__ import annotations

from typing import Any

from msdump.frontends.torchair.ge import placement
from msdump.frontends.torchair.ge.builder import Builder
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.registry import converter


@converter("aten.clone.default", "aten.contiguous.default", "aten.lift_fresh_copy.default")
def clone(ge: Builder, x: GeTensor, memory_format: Any = None) -> GeTensor:
    return ge.op("Identity", {"x": x}, hints=placement.hints(memory_format))


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


@converter("aten.copy.default")
def copy(ge: Builder, x: GeTensor, src: GeTensor, non_blocking: bool = False) -> GeTensor:
    """src in the shape and dtype of x, in memory of its own."""
    cast = ge.cast(src, x.dtype)
    if cast.shape != x.shape:
        cast = ge.op("BroadcastTo", {"x": cast, "shape": ge.op("Shape", {"x": x})})
    return ge.op("Identity", {"x": cast}, hints=placement.hints(None, ge.result.device))


@converter("aten._to_copy.default", "prims.convert_element_type.default", "prims.device_put.default")
def to_copy(ge: Builder, x: GeTensor, *_: Any, memory_format: Any = None, **__: Any) -> GeTensor:
    """A Cast; an Identity where the dtype stays."""
    dtype, device = ge.result.dtype, ge.result.device
    cast = ge.cast(x, dtype)
    found = placement.hints(memory_format, None if device == x.fake.device else device)
    if device != x.fake.device:
        found["device"] = str(device)
    return cast if cast is not x and not found else ge.op("Identity", {"x": cast}, hints=found)
