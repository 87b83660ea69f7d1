"""A GeGraph as something that runs: calls of torch kernels, with memory freed after its last use."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from msdump.frontends.torch.program import FxProgram
from msdump.torchair.ge.graph import ASSIGN, CONST, DATA, NET_OUTPUT, AtenCall, GeGraph, GeOp, GeTensor
from msdump.torchair.ge.registry import host_inputs, kernel_for, kernel_of
from msdump.torchair.ge.whole_call import pick


class GeModule:
    """An FX graph whose calls are kernels of GE operators.

    nodes  GE operator -> the FX node that runs it; Consts that only sizes are read from have none, nor have operators
           whose sizes are known when the graph is compiled
    """

    def __init__(self, graph: GeGraph) -> None:
        self.graph: fx.Graph = fx.Graph()
        self.nodes: dict[GeOp, fx.Node] = {}
        self._values: dict[tuple[int, int], fx.Node] = {}
        self._calls: dict[fx.Node, fx.Node] = {}
        # Placeholders come first in a FxProgram, one per argument, also unread ones.
        for op in graph.arguments:
            self._values[id(op), 0] = self.nodes[op] = self.graph.placeholder(op.name)
        for op in graph.ops:
            is_known = bool(op.outputs) and all(map(_is_known, op.outputs))
            if op.type not in (DATA, CONST, NET_OUTPUT) and not is_known:
                self._add(op)
        for op, tensor in graph.write_backs:
            written = (self.nodes[op], self._output(tensor))
            self.graph.create_node("call_function", kernel_of(ASSIGN).function, written, name=f"{op.name}_write_back")
        self.graph.output([self._output(item) for item in graph.outputs])

    def value_node(self, tensor: GeTensor) -> fx.Node:
        """The FX node whose value is a tensor of the graph. Raises: KeyError for sizes that are known beforehand."""
        return self.nodes[tensor.op] if tensor.op.type == CONST else self._values[id(tensor.op), tensor.index]

    def _add(self, op: GeOp) -> None:
        if op.exact is not None:
            # A pass may have removed operators before it.
            self._add_exact(op, op.exact)
            return
        self._add_kernel(op)

    def _add_exact(self, op: GeOp, call: AtenCall) -> None:
        """The result of the ATen operator that it came from, which is called once for all its results."""
        # What the operator reads has to live until it runs, for observers.
        host = host_inputs(op)
        read = [self._argument(tensor, name in host) for name, tensor in op.inputs.items()]
        node = self.graph.create_node("call_function", pick, (self._result_of(call), call.indices, *read), name=op.name)
        self.nodes[op] = node
        self._add_outputs(op, node)

    def _result_of(self, call: AtenCall) -> fx.Node:
        if call.node not in self._calls:
            args, keywords = fx.node.map_aggregate((call.args, call.keywords), self._of_call)
            target: Any = call.node.target
            self._calls[call.node] = self.graph.create_node(
                "call_function", target, tuple(args), dict(keywords), name=f"{call.node.name}_aten"
            )
        return self._calls[call.node]

    def _of_call(self, item: object) -> Any:
        if isinstance(item, AtenCall):
            return self._result_of(item)
        if not isinstance(item, GeTensor) or _is_known(item):
            return item.value if isinstance(item, GeTensor) else item
        if item.op.type == CONST:
            return self._constant(item.op)
        if (id(item.op), item.index) not in self._values:
            # A pass has taken it out, as others no longer read it.
            self._add(item.op)
        return self._values[id(item.op), item.index]

    def _add_kernel(self, op: GeOp) -> None:
        host, kernel = host_inputs(op), kernel_for(op)
        given = {name: self._argument(tensor, name in host) for name, tensor in op.inputs.items()}
        opened = {name: given.pop(name) for name in op.inputs if name in op.open_attrs}
        keywords = {**op.attrs, **op.hints}
        function = functools.partial(kernel.function, **keywords) if keywords else kernel.function
        node = self.graph.create_node("call_function", function, tuple(given.values()), opened, name=op.name)
        self.nodes[op] = node
        self._add_outputs(op, node)

    def _add_outputs(self, op: GeOp, node: fx.Node) -> None:
        for tensor in op.outputs:
            item = node
            for element in tensor.path:
                item = self.graph.create_node(
                    "call_function", operator.getitem, (item, element), name=f"{item.name}_{element}"
                )
            self._values[id(op), tensor.index] = item

    def _argument(self, tensor: GeTensor | None, is_host: bool) -> Any:
        if tensor is None:
            return None
        if _is_known(tensor) or (is_host and tensor.op.type == CONST and tensor.value is not None):
            return tensor.value
        return self._constant(tensor.op) if tensor.op.type == CONST else self._values[id(tensor.op), tensor.index]

    def _constant(self, op: GeOp) -> fx.Node:
        if op not in self.nodes:
            name = f"const_{len(self.nodes)}"
            setattr(self, name, op.constant)
            self.nodes[op] = self.graph.create_node("get_attr", name, name=op.name)
        return self.nodes[op]

    def _output(self, item: object) -> Any:
        if not isinstance(item, GeTensor):
            return item
        if _is_known(item):
            return item.value
        if item.op.type != CONST:
            return self._values[id(item.op), item.index]
        # The caller may overwrite the result.
        return self.graph.call_function(torch.clone, (self._constant(item.op),))


def _is_known(tensor: GeTensor) -> bool:
    """True for sizes that are plain numbers: what computes them need not run."""
    if tensor.fake is not None or tensor.op.type == DATA:
        return False
    items = tensor.value if isinstance(tensor.value, list) else [tensor.value]
    return all(type(item) in (int, float, bool) for item in items)


def runnable(graph: GeGraph) -> Callable[[list[object]], object]:
    """The graph as AOT Autograd takes it: a function of one list of arguments, which it empties."""
    return FxProgram(GeModule(graph)).run
