"""Passes that take nodes out of a graph.

optimize_noop_ops    operators that return what they got
optimize_sym_input   sizes that came as inputs are read from the tensors that have them
eliminate_dead_code  calls whose result is not read
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node

from msdump.torchair.passes.fake_values import describe, have_same_form, is_same, tensor_of
from msdump.torchair.passes.fx_pass import PassContext
from msdump.torchair.passes.storages import PURE_NAMESPACES, Storages

aten = torch.ops.aten


def optimize_noop_ops(module: GraphModule, _: PassContext) -> bool:
    """Take out views that change nothing, and copies, casts, pads, repeats and arithmetic that change no bit.

    Edges:  an input is never returned in place of its copy, nor one tensor twice in place of two; `x + 0` stays,
            because it makes 0.0 of -0.0.
    """
    storages = Storages(module.graph)
    before = len(storages.position)
    for node in list(module.graph.nodes):
        source = _source(node, storages)
        if source is not None:
            node.replace_all_uses_with(source)
            storages.replace(node, source)
            module.graph.erase_node(node)
    return len(module.graph.nodes) != before


def _source(node: Node, storages: Storages) -> Node | None:
    """The node that this one equals, if it may stand for it."""
    target: Any = node.target
    if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
        return None
    if is_view(target):
        source = node.args[0] if node.args else None
        first, second = tensor_of(source), tensor_of(node)
        if not isinstance(source, Node) or not have_same_form(first, second):
            return None
        assert first is not None and second is not None
        # Two outputs must stay two tensors, and AOTAutograd tells a returned input from a view of it.
        if storages.is_returned(node) and (source.op != "call_function" or storages.is_returned(source)):
            return None
        return source if is_same(first.storage_offset(), second.storage_offset()) else None
    rule = _COPIES.get(target)
    source = rule(node) if rule is not None else None
    if not isinstance(source, Node) or not have_same_form(tensor_of(source), tensor_of(node)):
        return None
    if storages.is_written(source) or storages.is_written(node):
        return None
    is_kept = storages.is_input(source) or storages.is_output(source)
    return None if is_kept and storages.is_output(node) else source


def is_view(target: Any) -> bool:
    """Does the operator return a tensor of its first argument's memory, and nothing else?"""
    schema = target._schema
    if len(schema.returns) != 1 or not schema.arguments or str(schema.returns[0].type) != "Tensor":
        return False
    info = schema.returns[0].alias_info
    return info is not None and not info.is_write and schema.arguments[0].alias_info is not None


def _argument(node: Node, number: int, default: object = None) -> Any:
    return node.args[number] if len(node.args) > number else default


def _first(node: Node) -> Any:
    return _argument(node, 0)


def _unpadded(node: Node) -> Any:
    return _first(node) if all(is_same(size, 0) for size in _argument(node, 1, [1])) else None


def _unrepeated(node: Node) -> Any:
    return _first(node) if all(is_same(count, 1) for count in _argument(node, 1, [0])) else None


def _only(node: Node) -> Any:
    tensors = _first(node)
    return tensors[0] if isinstance(tensors, (list, tuple)) and len(tensors) == 1 else None


def _copied(node: Node) -> Any:
    return _argument(node, 1)


def _integer(node: Node) -> Any:
    tensor = tensor_of(node)
    return _first(node) if tensor is not None and not (tensor.is_floating_point() or tensor.is_complex()) else None


def _by_number(number: int) -> Callable[[Node], Any]:
    def source(node: Node) -> Any:
        operand = _argument(node, 1)
        is_neutral = type(operand) in (int, float) and operand == number
        return _first(node) if is_neutral and not node.kwargs else None

    return source


# Operators that may be a plain copy, and what they are then a copy of.
_COPIES: dict[Any, Callable[[Node], Any]] = {
    aten.clone.default: _first,
    aten._to_copy.default: _first,
    aten.constant_pad_nd.default: _unpadded,
    aten.repeat.default: _unrepeated,
    aten.cat.default: _only,
    aten.copy.default: _copied,
    # A slice of the form of the whole is the whole.
    aten.slice_scatter.default: _copied,
    aten.ceil.default: _integer,
    aten.floor.default: _integer,
    aten.round.default: _integer,
    aten.trunc.default: _integer,
    torch.ops.prims.convert_element_type.default: _first,
    aten.mul.Tensor: _by_number(1),
    aten.div.Tensor: _by_number(1),
    aten.sub.Tensor: _by_number(0),
    aten.pow.Tensor_Scalar: _by_number(1),
}


def optimize_sym_input(module: GraphModule, _: PassContext) -> bool:
    """Replace each symbolic input that is a dimension of a tensor input by `aten.sym_size` of that tensor.

    The input itself stays, unused: the caller goes on passing it.
    """
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    if not inputs:
        return False
    is_changed = False
    for node in inputs:
        symbol = _symbol(node.meta.get("val"))
        size_source = None if symbol is None or not node.users else _dimension(inputs, symbol)
        if size_source is None:
            continue
        tensor, dimension = size_source
        with module.graph.inserting_after(inputs[-1]):
            size = module.graph.call_function(torch.ops.aten.sym_size.int, (tensor, dimension))
        describe(size, node.meta["val"], node)
        node.replace_all_uses_with(size)
        is_changed = True
    return is_changed


def _symbol(value: object) -> Any:
    """The sympy symbol of a size that is nothing but one symbol."""
    expression = value.node.expr if isinstance(value, torch.SymInt) else None
    return expression if getattr(expression, "is_symbol", False) else None


def _dimension(inputs: list[Node], symbol: object) -> tuple[Node, int] | None:
    for node in inputs:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            for dimension, size in enumerate(value.shape):
                if _symbol(size) == symbol:
                    return node, dimension
    return None


_PURE_MODULES = ("_operator", "math", "builtins")


def eliminate_dead_code(module: GraphModule, _: PassContext) -> bool:
    """Take out calls without users, last ones first.

    Edges: what writes, draws random numbers, checks, talks to other processes, or is not PyTorch's own stays.
    """
    is_changed = False
    for node in reversed(list(module.graph.nodes)):
        if not node.users and is_pure(node):
            module.graph.erase_node(node)
            is_changed = True
    return is_changed


def is_pure(node: Node) -> bool:
    """Does nothing but its result come of it?"""
    if node.op == "get_attr":
        return True
    if node.op != "call_function":
        return False
    target: Any = node.target
    if target is operator.getitem:
        return True
    if not isinstance(target, torch._ops.OpOverload):
        return getattr(target, "__module__", None) in _PURE_MODULES
    schema = target._schema
    return (
        target.namespace in PURE_NAMESPACES
        and not schema.is_mutable
        and bool(schema.returns)
        and torch.Tag.nondeterministic_seeded not in target.tags
        and not schema.name.startswith(("aten::_assert", "aten::sym_constrain"))
    )
