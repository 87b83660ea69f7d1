"""Pass apply_pattern_passes: groups of operators that one operator computes, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch.fx import GraphModule, Node

from msdump.torchair.passes.fake_values import are_same, computed, describe, have_same_form, tensor_of
from msdump.torchair.passes.fx_pass import PassContext
from msdump.torchair.passes.simplify import eliminate_dead_code

aten = torch.ops.aten
# A call that stands for a node: operator, arguments, keyword arguments.
Call = tuple[Any, tuple[Any, ...], dict[str, Any]]

# Casts that lose nothing, so that a cast behind them sees the original value.
_WIDER: dict[torch.dtype, tuple[torch.dtype, ...]] = {
    torch.bfloat16: (torch.float32, torch.float64),
    torch.float16: (torch.float32, torch.float64),
    torch.float32: (torch.float64,),
}


def apply_pattern_passes(module: GraphModule, context: PassContext) -> bool:
    """Apply the fusions until none fits any more.

        x + (-y)                           -> x - y
        cat([cat([a, b]), c])              -> cat([a, b, c])
        where(mask, constant, x)           -> masked_fill(x, mask, constant)
        permute(permute(x))                -> permute(x)
        cast(cast to a wider dtype of x)   -> cast(x)

    Edges:  only where the one operator gives the same dtype, shape and strides, and the inner one has no other reader
            that would compute it again.
    Source: TorchAir fuses for operators of an NPU, which this machine has not; these are the fusions whose results
            ATen itself computes to the last bit.
    """
    is_changed = False
    for node in list(module.graph.nodes):
        rule = _RULES.get(node.target) if node.op == "call_function" else None
        call = rule(node) if rule is not None else None
        while call is not None:
            fused = _replace(module, node, call)
            if fused is None:
                break
            node, is_changed = fused, True
            rule = _RULES.get(node.target)
            call = rule(node) if rule is not None else None
    if is_changed:
        eliminate_dead_code(module, context)
    return is_changed


def _replace(module: GraphModule, node: Node, call: Call) -> Node | None:
    target, args, kwargs = call
    value = computed(target, args, kwargs)
    if not isinstance(value, torch.Tensor) or not have_same_form(value, tensor_of(node)):
        return None
    with module.graph.inserting_before(node):
        fused = module.graph.call_function(target, args, kwargs)
    describe(fused, value, node)
    node.replace_all_uses_with(fused)
    module.graph.erase_node(node)
    # It gives what that node gave, so a dump of it is found by the name that the unchanged graph has for it.
    fused.name = node.name
    return fused


def _is_call(value: object, target: object) -> bool:
    return isinstance(value, Node) and value.op == "call_function" and value.target is target


def _subtract(node: Node) -> Call | None:
    if node.kwargs or len(node.args) != 2:
        return None
    first, second = node.args
    if not _is_call(second, aten.neg.default):
        first, second = second, first
    if not _is_call(second, aten.neg.default) or not isinstance(first, Node):
        return None
    assert isinstance(second, Node)
    if len(second.users) != 1 or first is second:
        return None
    negated = second.args[0]
    # A smaller dtype would be negated before it is widened.
    dtypes = {getattr(tensor_of(value), "dtype", None) for value in (first, negated, node)}
    return (aten.sub.Tensor, (first, negated), {}) if len(dtypes) == 1 else None


def _concatenate(node: Node) -> Call | None:
    value = tensor_of(node)
    tensors = node.args[0]
    if value is None or node.kwargs or not isinstance(tensors, (list, tuple)):
        return None
    flat: list[object] = []
    for tensor in tensors:
        inner = tensor_of(tensor)
        is_inner = (
            isinstance(tensor, Node)
            and _is_call(tensor, aten.cat.default)
            and len(tensor.users) == 1
            and not tensor.kwargs
            and inner is not None
            and inner.dtype == value.dtype
            and _dimension(tensor) == _dimension(node)
            and list(tensors).count(tensor) == 1
        )
        flat += cast("list[Any]", cast("Node", tensor).args[0]) if is_inner else [tensor]
    return (aten.cat.default, (flat, *node.args[1:]), {}) if len(flat) > len(tensors) else None


def _dimension(cat: Node) -> int:
    value = tensor_of(cat)
    dimension = cat.args[1] if len(cat.args) > 1 else 0
    assert value is not None and isinstance(dimension, int)
    return dimension % max(value.dim(), 1)


def _fill_masked(node: Node) -> Call | None:
    if len(node.args) != 3 or node.kwargs:
        return None
    mask, constant, unmasked_node = node.args
    value, unmasked = tensor_of(node), tensor_of(unmasked_node)
    number = _number(constant)
    if number is None or value is None or unmasked is None or not isinstance(mask, Node):
        return None
    mask_value, filled = tensor_of(mask), tensor_of(constant)
    if mask_value is None or mask_value.dtype != torch.bool or filled is None or filled.dtype != value.dtype:
        return None
    if unmasked.dtype != value.dtype or not are_same(unmasked.shape, value.shape) or filled.numel() != 1:
        return None
    return aten.masked_fill.Scalar, (unmasked_node, mask, number), {}


def _number(node: object) -> int | float | None:
    """The number that a 0-d constant of the graph holds."""
    if not isinstance(node, Node) or node.op != "call_function":
        return None
    if node.target is aten.scalar_tensor.default:
        number = node.args[0]
    elif node.target is aten.full.default and not node.args[0]:
        number = node.args[1]
    else:
        return None
    return number if isinstance(number, (int, float)) and not isinstance(number, bool) else None


def _permute(node: Node) -> Call | None:
    inner = node.args[0]
    if not isinstance(inner, Node) or not _is_call(inner, aten.permute.default):
        return None
    first, second = inner.args[1], node.args[1]
    if not isinstance(first, (list, tuple)) or not isinstance(second, (list, tuple)):
        return None
    return aten.permute.default, (inner.args[0], [first[axis] for axis in second]), {}  # type: ignore[index]


def _cast(node: Node) -> Call | None:
    inner = node.args[0]
    if not isinstance(inner, Node) or not _is_call(inner, aten._to_copy.default):
        return None
    original, wide, value = tensor_of(inner.args[0]), tensor_of(inner), tensor_of(node)
    if original is None or wide is None or value is None or set(node.kwargs) | set(inner.kwargs) != {"dtype"}:
        return None
    # Back to where it came from it is a copy, which keeps even the payload of a NaN.
    is_exact = wide.dtype in _WIDER.get(original.dtype, ()) and value.dtype in _WIDER
    return (aten._to_copy.default, (inner.args[0],), dict(node.kwargs)) if is_exact else None


_RULES: dict[object, Callable[[Node], Call | None]] = {
    aten.add.Tensor: _subtract,
    aten.cat.default: _concatenate,
    aten.where.self: _fill_masked,
    aten.permute.default: _permute,
    aten._to_copy.default: _cast,
}
