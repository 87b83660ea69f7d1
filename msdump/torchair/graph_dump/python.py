"""py files: a GE graph as the calls that would build it, below the FX nodes that they come from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

from msdump.torchair.ge.graph import CONST, DATA, NET_OUTPUT, GeGraph, GeOp, GeTensor
from msdump.torchair.graph_dump.definition import device_type, known_sizes, number_or_undefined

HEADER = """\
# -*- coding: utf-8 -*-
from torch import tensor
from torchair._ge_concrete_graph import ge_apis as ge
from torchair.ge._ge_graph import get_default_ge_graph

"""
# Nothing runs for a view until it is read.   Source: TorchAir, `enable_view_optimize`.
VIEWS = frozenset(
    f"aten.{name}"
    for name in (
        "view.default",
        "reshape.default",
        "_unsafe_view.default",
        "permute.default",
        "transpose.int",
        "t.default",
        "squeeze.default",
        "squeeze.dim",
        "squeeze.dims",
        "unsqueeze.default",
    )
)
_FIRST_OF_MANY = re.compile(r"(.*[^0-9])0")


def python_text(graph: GeGraph, is_view_lazy: bool = True) -> str:
    """Python source that compiles.

    is_view_lazy  the calls of a view stand where it is first read, not where the FX node stands
    Source: TorchAir, py files of graph_dump.
    """
    return _Source(graph, is_view_lazy).text()


class _Source:
    def __init__(self, graph: GeGraph, is_view_lazy: bool) -> None:
        self.graph = graph
        self.is_view_lazy = is_view_lazy
        self._lines: list[str] = []
        self._source_lines: set[str] = set()
        self._waiting: dict[GeOp, None] = {}

    def text(self) -> str:
        for op in self.graph.inputs:
            self._lines.append(_data_line(op))
        written: dict[fx.Node | None, list[GeOp]] = {}
        for op in self.graph.ops:
            if op.type not in (DATA, CONST, NET_OUTPUT):
                written.setdefault(op.fx_node, []).append(op)
        for node in _fx_nodes(self.graph):
            self._comment(node)
            for op in written.get(node, ()):
                self._add_operator(op, is_view=self.is_view_lazy and str(node.target) in VIEWS)
        for op in written.get(None, ()):
            self._add_operator(op, is_view=False)
        for op in self.graph.ops:
            if op.type == NET_OUTPUT:
                self._net_output(op)
        return HEADER + "".join(f"{line}\n" for line in self._lines)

    def _comment(self, node: fx.Node) -> None:
        if node.stack_trace is None:
            return
        source_line = node.stack_trace.split(" File ")[-1].replace("\n", "")
        if source_line not in self._source_lines:
            self._source_lines.add(source_line)
            self._lines += ["", f"# File {source_line}"]
        self._lines.append(f"## FX Code: {fx_code(node)}")

    def _add_operator(self, op: GeOp, is_view: bool) -> None:
        if is_view:
            self._waiting[op] = None
        else:
            self._write(op)

    def _write(self, op: GeOp) -> None:
        """The call, after those that were waiting for a reader."""
        self._waiting.pop(op, None)
        for producer in op.producers:
            if producer in self._waiting:
                self._write(producer)
        self._lines.append(_call_line(op))

    def _net_output(self, op: GeOp) -> None:
        for producer in op.producers:
            if producer in self._waiting:
                self._write(producer)
        returned = ", ".join(_argument(tensor) for tensor in op.inputs.values())
        before = ", ".join(_variable(control.outputs[0]) for control in op.controls if control.outputs)
        self._lines += ["", f"_ = ge.NetOutput([{returned}], dependencies=[{before}])"]


def fx_code(node: fx.Node) -> str:
    """`add: torch.float32[2, 3]cpu = torch.ops.aten.add.Tensor(x: torch.float32[2, 3]cpu, 1)`"""
    arguments = [_shown(argument) for argument in node.args]
    arguments += [f"{name}={_shown(argument)}" for name, argument in node.kwargs.items()]
    target: Any = node.target
    return f"{_typed(node)} = {node._pretty_print_target(target)}({', '.join(arguments)})"


def _fx_nodes(graph: GeGraph) -> Iterator[fx.Node]:
    """Calls of the FX graph, those included that no operator comes from."""
    for op in graph.ops:
        if op.fx_node is not None:
            yield from (node for node in op.fx_node.graph.nodes if node.op == "call_function")
            return


def _shown(argument: object) -> str:
    return _typed(argument) if isinstance(argument, fx.Node) else str(argument)


def _typed(node: fx.Node) -> str:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        sizes = ", ".join(map(str, value.shape))
        return f"{node.name}: {value.dtype}[{sizes}]{value.device}"
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return f'{node.name}: "Sym({value})"'
    return node.name


def _data_line(op: GeOp) -> str:
    (tensor,) = op.outputs
    return (
        f"{_variable(tensor)} = ge.Data(index={op.attrs['index']}, dtype={number_or_undefined(tensor.dtype)}, "
        f'shape={known_sizes(tensor)}, placement="{device_type(tensor)}", node_name="{op.name}")'
    )


def _call_line(op: GeOp) -> str:
    arguments = _arguments(op)
    arguments += [f"{name}={value!r}" for name, value in op.attrs.items() if not name.startswith("_")]
    if len(op.outputs) < 2:
        arguments.append(f'node_name="{op.name}"')
        target = _variable(op.outputs[0]) if op.outputs else "_"
    else:
        target = f"[{', '.join(map(_variable, op.outputs))}]"
    return f"{target} = ge.{op.type}({', '.join(arguments)})"


def _arguments(op: GeOp) -> list[str]:
    """Inputs in order; x0, x1, ... are one list."""
    names = [name for name in op.inputs if name not in op.open_attrs]
    arguments: list[str] = []
    while names:
        many = _FIRST_OF_MANY.fullmatch(names[0])
        count = 0
        while many and names[count : count + 1] == [f"{many[1]}{count}"]:
            count += 1
        if count:
            arguments.append(f"[{', '.join(_argument(op.inputs[name]) for name in names[:count])}]")
        else:
            arguments.append(_argument(op.inputs[names[0]]))
        del names[: count or 1]
    arguments += [f"{name}={_argument(op.inputs[name])}" for name in op.inputs if name in op.open_attrs]
    return arguments


def _argument(tensor: GeTensor | None) -> str:
    if tensor is None:
        return "None"
    if tensor.op.type != CONST:
        return _variable(tensor)
    value = repr(tensor.value if tensor.value is not None else tensor.op.constant)
    # A tensor's repr goes over several lines.
    value = re.sub(r"\s+", " ", value)
    if tensor.op.is_inline:
        return value
    return f"ge.Const({value}, dtype={number_or_undefined(tensor.dtype)})"


def _variable(tensor: GeTensor) -> str:
    """`{operator}_{output}`, with what Python allows in a name."""
    return re.sub(r"\W", "_", f"{tensor.op.name}_{tensor.index}")
