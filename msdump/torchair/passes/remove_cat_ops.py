"""Pass remove_cat_ops: inputs of a concatenation are computed in the memory of its output."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import GraphModule, Node

from msdump.torchair.passes.fake_values import are_static, computed, describe, tensor_of
from msdump.torchair.passes.fx_pass import PassContext
from msdump.torchair.passes.storages import promised

aten = torch.ops.aten


def remove_cat_ops(module: GraphModule, _: PassContext) -> bool:
    """Replace a `cat` by one buffer, into whose parts the operators before it write.

    Edges:  element-wise operators without another reader, of static shapes, whose parts are contiguous in the
            buffer: others would compute in another order, and in other bits. All of them or none. Not where an
            operator of the script only promises the shape.
    """
    is_changed = False
    promises = promised(module.graph)
    for node in list(module.graph.nodes):
        if node.op == "call_function" and node.target is aten.cat.default and node not in promises:
            is_changed |= _remove(module, node)
    return is_changed


def _remove(module: GraphModule, cat: Node) -> bool:
    producers = cat.args[0]
    value = tensor_of(cat)
    dimension = cat.args[1] if len(cat.args) > 1 else 0
    if value is None or not isinstance(producers, (list, tuple)) or len(set(producers)) != len(producers) or cat.kwargs:
        return False
    if len(producers) < 2 or not isinstance(dimension, int) or not are_static(value) or not value.is_contiguous():
        return False
    dimension %= value.dim()
    if math.prod(value.shape[:dimension]) != 1 or not all(_fits(node, cat, value) for node in producers):
        return False
    position = {node: number for number, node in enumerate(module.graph.nodes)}
    first = min(producers, key=lambda node: position[node])
    with module.graph.inserting_before(first):  # type: ignore[arg-type]
        kwargs: dict[str, Any] = {"dtype": value.dtype, "device": value.device}
        buffer = module.graph.call_function(aten.empty.memory_format, (list(value.shape),), kwargs)
        describe(buffer, value, cat)
    start = 0
    for producer in producers:
        assert isinstance(producer, Node)
        size = producer.meta["val"].shape[dimension]
        args = (buffer, dimension, start, start + size)
        with module.graph.inserting_before(producer):
            part = module.graph.call_function(aten.slice.Tensor, args)
            describe(part, computed(aten.slice.Tensor, args, {}), cat)
            out = _out_overload(producer.target)
            assert out is not None
            written = module.graph.call_function(out, producer.args, {**producer.kwargs, "out": part})
            describe(written, producer.meta["val"], producer)
        start += size
    cat.replace_all_uses_with(buffer)
    module.graph.erase_node(cat)
    for producer in producers:
        module.graph.erase_node(producer)  # type: ignore[arg-type]
    return True


def _fits(node: Any, cat: Node, whole: torch.Tensor) -> bool:
    value = tensor_of(node)
    return (
        value is not None
        and set(node.users) == {cat}
        and _out_overload(node.target) is not None
        and are_static(value)
        and value.is_contiguous()
        and value.numel() > 0
        and value.dim() == whole.dim()
        and (value.dtype, value.device) == (whole.dtype, whole.device)
    )


def _out_overload(target: object) -> Any:
    """The variant of an element-wise operator that writes into a tensor it is given."""
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return None
    if torch.Tag.pointwise not in target.tags or torch.Tag.nondeterministic_seeded in target.tags:
        return None
    schema = target._schema
    if schema.is_mutable or len(schema.returns) != 1:
        return None
    names = [argument.name for argument in schema.arguments]
    packet = target.overloadpacket
    for overload in packet.overloads():
        candidate = getattr(packet, overload)._schema.arguments
        outs = [argument.name for argument in candidate if argument.is_out]
        # A variant of the same arguments; `out` last.
        if outs == ["out"] and [a.name for a in candidate if not a.is_out] == names:
            types = [str(a.type) for a in candidate if not a.is_out]
            if types == [str(a.type) for a in schema.arguments]:
                return getattr(packet, overload)
    return None
