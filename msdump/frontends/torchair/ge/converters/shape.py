"""Operators that give the same elements another shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msdump.frontends.torchair.ge.builder import Builder
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.registry import converter


@converter("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default")
def view(ge: Builder, x: GeTensor, size: Sequence[Any]) -> GeTensor:
    return ge.op("Reshape", {"x": x, "shape": ge.sizes(size)})


@converter("aten.permute.default")
def permute(ge: Builder, x: GeTensor, dims: Sequence[int]) -> GeTensor:
    rank = len(x.shape)
    return ge.op("Transpose", {"x": x, "perm": [dim % rank for dim in dims]})


@converter("aten.clone.default", "aten.detach.default")
def clone(ge: Builder, x: GeTensor, memory_format: Any = None) -> GeTensor:
    return ge.op("Identity", {"x": x})


@converter("aten.copy_.default")
def copy_(ge: Builder, ref: GeTensor, value: GeTensor, non_blocking: bool = False) -> GeTensor:
    return ge.op("Assign", {"ref": ref, "value": ge.cast(value, ref.dtype)})
