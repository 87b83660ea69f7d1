"""DumpedGeGraph: an observed GE graph, and its `Graph`."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from msdump.frontends.torch.convert import Sizes, array_of, has_symbols, sizes_of, type_of, why_unreadable
from msdump.frontends.torch.device import copies_for
from msdump.frontends.torch.graph_from_fx import FxGraph, settle
from msdump.frontends.torch.observed_program import ObservedFxProgram
from msdump.frontends.torch.program import FxProgram
from msdump.graph.graph import Graph, Value
from msdump.graph.primitive import Primitive, PrimitiveDef
from msdump.graph.run import Observer
from msdump.torchair.ge.graph import CONST, DATA, NET_OUTPUT, GeGraph, GeOp, GeTensor
from msdump.torchair.ge.program import GeModule
from msdump.torchair.ge.registry import kernel_for

# Observers know graphs by their number: one for each set of sizes.
_watched_ids = itertools.count()


class DumpedGeGraph:
    """Called as AOT Autograd calls a graph: with a list of arguments, which it empties.

    Calls are iterations, counted from 0. Every set of sizes is another graph for observers. Any thread may call it;
    runs that are watched wait for each other.
    report   called with the reason why tensors cannot be shown, and their number
    """

    def __init__(
        self, graph: GeGraph, observers: Sequence[Observer], report: Callable[[Mapping[str, int]], None]
    ) -> None:
        self._graph = graph
        self._module = GeModule(graph)
        self._program = FxProgram(self._module)
        self._observers = tuple(observers)
        self._report = report
        self._iterations = itertools.count()
        self._placeholders = [op.fx_node for op in graph.arguments if op.fx_node is not None]
        self._has_symbols = has_symbols(self._placeholders)
        self._programs: dict[frozenset[tuple[object, int]], ObservedFxProgram] = {}
        self._lock = threading.RLock()

    def __call__(self, args: list[object]) -> Any:
        iteration = next(self._iterations)
        with self._lock:
            observed = self._observed(args)
            watched = observed.seen.begin(iteration)
            if watched is not None:
                return observed.run(watched, args, copies_for(args), lambda reason: self._report({reason: 1}))
        return self._program.run(args)

    def _observed(self, args: list[object]) -> ObservedFxProgram:
        sizes = sizes_of(self._placeholders, args) if self._has_symbols else {}
        signature = frozenset(sizes.items())
        if signature not in self._programs:
            fx_graph = graph_from_ge(self._graph, self._module, sizes, next(_watched_ids))
            self._report(fx_graph.skipped)
            if any(isinstance(arg, torch.Tensor) and arg.is_cuda for arg in args):
                # What observers get of a device are copies already.
                fx_graph.graph.held, fx_graph.graph.borrowed = set(fx_graph.roots), set()
            self._programs[signature] = ObservedFxProgram(self._program, fx_graph, self._observers)
        return self._programs[signature]


# Why sizes and texts have no file: they are Python values while a graph runs.
_SIZE = "size of an open shape"
_TEXT = "text"


def graph_from_ge(graph: GeGraph, module: GeModule, sizes: Sizes, graph_id: int) -> FxGraph:
    """The Graph of a GE graph, numbered and checked, with what leads back to the FX graph that runs it.

    Data are its inputs and Consts its constants; every other operator that reads or makes a tensor is a node, under
    its GE name. The name of the FX node that it comes from is its original name.
    """
    fx_graph = FxGraph(Graph(graph.name, graph_id))
    maker = _Maker(fx_graph, module, sizes)
    for op in graph.ops:
        if op.type == DATA:
            maker.add_data(op)
        elif op.type == CONST:
            maker.add_constant(op)
        elif op.type != NET_OUTPUT and op in module.nodes:
            maker.add_node(op)
    open_roots = {fx_graph.roots[value.id] for value in fx_graph.graph.inputs}
    for output in graph.outputs:
        value = maker.values.get(output) if isinstance(output, GeTensor) else None
        if value is not None:
            fx_graph.graph.outputs.append(value)
            open_roots.add(fx_graph.roots[value.id])
    for data, _ in graph.write_backs:
        written = maker.values.get(data.outputs[0])
        if written is not None:
            fx_graph.opaque.add(fx_graph.roots[written.id])
    settle(fx_graph, open_roots)
    return fx_graph


class _Maker:
    """Makes the values and nodes of one graph.

    values   the value of each tensor that can be shown
    """

    def __init__(self, fx_graph: FxGraph, module: GeModule, sizes: Sizes) -> None:
        self.fx_graph = fx_graph
        self.values: dict[GeTensor, Value] = {}
        self._module = module
        self._sizes = sizes
        self._root_by_storage: dict[int, int] = {}

    def add_data(self, op: GeOp) -> None:
        tensor = op.outputs[0]
        if self._is_shown(tensor):
            value = self.fx_graph.graph.add_input(op.name, type_of(tensor.fake, self._sizes))
            self._note(tensor, value, self._module.nodes[op], ())

    def add_constant(self, op: GeOp) -> None:
        # What only sizes are read from is no tensor while the graph runs.
        if op.constant is None or op not in self._module.nodes:
            return
        tensor = op.outputs[0]
        if self._is_shown(tensor):
            array = array_of(op.constant.cpu())
            value = self.fx_graph.graph.add_constant(array, type_of(tensor.fake, self._sizes).dtype, op.name)
            self._note(tensor, value, self._module.nodes[op], ())

    def add_node(self, op: GeOp) -> None:
        node = self._module.nodes[op]
        read = [(name, tensor) for name, tensor in op.inputs.items() if tensor is not None and tensor in self.values]
        shown = [tensor for tensor in op.outputs if self._is_shown(tensor)]
        if not read and not shown:
            return
        graph = self.fx_graph.graph
        made = graph.add_foreign_node(
            _primitive_of(op, [name for name, _ in read]),
            [self.values[tensor] for _, tensor in read],
            [type_of(tensor.fake, self._sizes) for tensor in shown],
            "",
            name=op.name,
        )
        self.fx_graph.nodes[node] = made
        arguments = [self._module.value_node(tensor) for _, tensor in read]
        self.fx_graph.operands[node] = [
            (argument, self.values[tensor]) for argument, (_, tensor) in zip(arguments, read, strict=True)
        ]
        for tensor, value in zip(shown, made.outputs, strict=True):
            value.name = op.name
            self._note(tensor, value, node, tensor.path)
            if op.call is not None and not op.call.tells_aliases:
                self.fx_graph.opaque.add(self.fx_graph.roots[value.id])

    def _is_shown(self, tensor: GeTensor) -> bool:
        reason = _TEXT if tensor.is_text else _SIZE if tensor.is_host else why_unreadable(tensor.fake)
        if reason:
            self.fx_graph.skipped.add(reason, f"{tensor.op.name}, output {tensor.index}")
        return not reason

    def _note(self, tensor: GeTensor, value: Value, node: fx.Node, path: tuple[int, ...]) -> None:
        self.values[tensor] = value
        value.original = tensor.original
        self.fx_graph.values[node, path] = value
        # Fake tensors share their memory just as the real ones will.
        storage = tensor.fake.untyped_storage()._cdata
        self.fx_graph.roots[value.id] = self._root_by_storage.setdefault(storage, value.id)


def _primitive_of(op: GeOp, names: list[str]) -> Primitive:
    mutated = kernel_for(op).mutates
    slots = tuple(slot for slot, name in enumerate(names) if name == mutated)
    definition = PrimitiveDef(
        op.type,
        input_names=tuple(names),
        mutates=slots,
        aliases={0: slots[0]} if slots else {},
        has_side_effect=bool(slots),
    )
    return Primitive(op.type, dict(op.attrs), definition=definition)
