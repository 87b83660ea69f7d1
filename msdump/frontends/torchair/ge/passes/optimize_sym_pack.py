"""optimize_sym_pack: lists of sizes are not packed when they are known, twice, or the shape of a tensor as it is."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.ge.builder import const_op
from msdump.frontends.torchair.ge.graph import GeGraph, GeOp, GeTensor
from msdump.frontends.torchair.ge.passes.uses import remove_unread


def optimize_sym_pack(graph: GeGraph, config: CompilerConfig) -> None:
    """A Pack of sizes becomes a Const, an earlier Pack of the same sizes, or the Shape that they were taken from."""
    packs: dict[tuple[Any, ...], GeTensor] = {}
    done: list[GeOp] = []
    for op in list(graph.ops):
        if op.type != "Pack" or not op.outputs[0].is_host:
            continue
        # Numbers are the same whichever Const holds them.
        sizes = (_known(tensor) if _known(tensor) is not None else tensor for tensor in op.inputs.values())
        key = (*sizes, *op.attrs.items())
        new = packs.get(key) or _shape_of(op) or _constant_of(graph, op)
        if new is None:
            packs[key] = op.outputs[0]
        else:
            graph.replace_uses(op.outputs[0], new)
            done.append(op)
    remove_unread(graph, done)


def _shape_of(pack: GeOp) -> GeTensor | None:
    """The Shape whose elements are packed, all of them and in order."""
    shape: GeTensor | None = None
    for position, tensor in enumerate(pack.inputs.values()):
        if tensor is None or tensor.op.type != "Gather":
            return None
        source, index = (tensor.op.inputs.get(name) for name in ("x", "indices"))
        if source is None or index is None or source.op.type != "Shape" or index.value not in (position, [position]):
            return None
        if shape is not None and source is not shape:
            return None
        shape = source
    if shape is None or not isinstance(shape.value, list) or len(shape.value) != len(pack.inputs):
        return None
    return shape


def _constant_of(graph: GeGraph, pack: GeOp) -> GeTensor | None:
    """A Const in front of the Pack when all sizes are known."""
    sizes = [_known(tensor) for tensor in pack.inputs.values()]
    values = [size for size in sizes if size is not None]
    if len(values) != len(sizes):
        return None
    op = const_op(values, torch.int64, FakeTensorMode(), is_inline=True, node=pack.fx_node)
    graph.insert_after(pack, op)
    return op.outputs[0]


def _known(tensor: GeTensor | None) -> int | None:
    return tensor.value if tensor is not None and type(tensor.value) is int else None
