"""Shapes of one run: what the symbols of a graph stand for, and the types of its tensors then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

from msdump.frontends.torch.arrays import dtype_name
from msdump.graph.types import TensorType

UNKNOWN = -1

# Symbol -> number.
Sizes = Mapping[Any, int]


def sizes_of(placeholders: Sequence[fx.Node], args: Sequence[Any]) -> dict[Any, int]:
    """What the symbols in the types of the placeholders stand for, given the arguments of a call.

    Edges: the length of a ragged axis is no number but a name, another one for each set of offsets: it stays open.
    """
    sizes: dict[Any, int] = {}
    for node, arg in zip(placeholders, args, strict=True):
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            if not _is_ragged(arg):
                _bind(sizes, value, int(arg))
        elif isinstance(value, torch.Tensor) and isinstance(arg, torch.Tensor) and arg.layout is torch.strided:
            for size, actual in zip(value.shape, arg.shape, strict=False):
                _bind(sizes, size, int(actual))
    return sizes


def has_symbols(placeholders: Sequence[fx.Node]) -> bool:
    """True when some argument of a graph has no fixed shape, or is a size."""
    return any(
        isinstance(value, torch.SymInt)
        or (isinstance(value, torch.Tensor) and not all(isinstance(size, int) for size in value.shape))
        for value in (node.meta.get("val") for node in placeholders)
    )


def type_of(tensor: Any, sizes: Sizes) -> TensorType:
    """Type of a tensor that can be read.   Edges: -1 for a size that only the data decide."""
    name = dtype_name(tensor.dtype)
    assert name is not None, tensor.dtype
    return TensorType(name, tuple(_size(size, sizes) for size in tensor.shape))


def _is_ragged(size: Any) -> bool:
    """Source: PyTorch, nested tensors of layout jagged."""
    return isinstance(size, torch.SymInt) and size.node.is_nested_int()


def _bind(sizes: dict[Any, int], size: Any, actual: int) -> None:
    if isinstance(size, torch.SymInt) and size.node.expr.is_symbol:
        sizes[size.node.expr] = actual


def _size(size: Any, sizes: Sizes) -> int:
    if isinstance(size, int):
        return size
    number = size.node.expr.xreplace(sizes)
    return int(number) if isinstance(number, int) or number.is_number else UNKNOWN
