"""Metadata of a node's value at compile time: dtype, shape, strides."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.fx.node import map_arg
from torch.fx.passes.shape_prop import _extract_tensor_metadata

log = logging.getLogger("msdump")


def tensor_of(value: object) -> torch.Tensor | None:
    """The fake tensor of a node; None for anything that is no strided tensor."""
    if not isinstance(value, Node):
        return None
    fake = value.meta.get("val")
    return fake if isinstance(fake, torch.Tensor) and fake.layout is torch.strided else None


def is_same(first: object, second: object) -> bool:
    """Are two sizes equal whatever the symbols in them stand for? Adds no guard."""
    if isinstance(first, int) and isinstance(second, int):
        return first == second
    return bool(statically_known_true(first == second))


def are_same(first: Sequence[object], second: Sequence[object]) -> bool:
    """Are two lists of sizes equal whatever the symbols in them stand for?"""
    return len(first) == len(second) and all(map(is_same, first, second))


def have_same_form(first: torch.Tensor | None, second: torch.Tensor | None) -> bool:
    """Do two tensors agree in dtype, device, shape and strides, and in how their values are read?"""
    return (
        first is not None
        and second is not None
        and first.dtype == second.dtype
        and first.device == second.device
        and first.is_conj() == second.is_conj()
        and first.is_neg() == second.is_neg()
        and are_same(first.shape, second.shape)
        and are_same(first.stride(), second.stride())
    )


def are_static(tensor: torch.Tensor) -> bool:
    """Are all sizes and strides numbers?"""
    return all(isinstance(size, int) for size in (*tensor.shape, *tensor.stride(), tensor.storage_offset()))


def computed(target: Any, args: Any, kwargs: Any) -> Any:
    """Value that a call would have; None when it cannot be known."""
    fakes: list[torch.Tensor] = []

    def fake(node: Node) -> Any:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            fakes.append(value)
        return value

    fake_args, fake_kwargs = map_arg(args, fake), map_arg(kwargs, fake)
    mode = next((tensor.fake_mode for tensor in fakes if hasattr(tensor, "fake_mode")), None)
    if mode is None:
        return None
    try:
        with mode, torch.no_grad():
            return target(*fake_args, **fake_kwargs)
    except Exception as error:  # noqa: BLE001 - whatever an operator says to fakes: the call is then left as it is
        log.debug("%s: its value is not known when the graph is compiled, as %s", target, error)
        return None


def describe(node: Node, value: object, like: Node) -> None:
    """Give a new node the notes that FX keeps: its value, and the source lines of the node that it stands for."""
    node.meta = {
        name: like.meta[name] for name in ("stack_trace", "nn_module_stack", "seq_nr", "from_node") if name in like.meta
    }
    node.meta["val"] = value
    if isinstance(value, torch.Tensor):
        node.meta["tensor_meta"] = _extract_tensor_metadata(value)
