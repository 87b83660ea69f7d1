"""Taps: copies of chosen tensors out of a graph whose operators a compiler fuses into kernels.

A tap is an operator that no compiler looks into. It stands behind the operator whose result it copies, in every
iteration; in one that is not dumped it copies nothing. So the kernels are the same in each iteration.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import fx

from msdump.frontends.torch.device import PinnedCopies
from msdump.frontends.torch.graph_from_fx import FxGraph
from msdump.frontends.torch.observed_program import read_tensor
from msdump.frontends.torch.operators import Path, is_collective, waited
from msdump.graph.graph import PARAMETER, SAVED, Value
from msdump.graph.run import Calls, ObservedGraph, Observer, WatchedRun
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

# A tensor of an FX graph: the node that makes it, and the path in its result.
Tap = tuple[fx.Node, Path]
# A compiler: a graph -> a function of a list of arguments, which it may empty.
Inner = Callable[[fx.GraphModule], Callable[[list[object]], Any]]

_owners = itertools.count()
# Number of a graph -> what takes its tensors; only while the graph runs in an iteration that is dumped.
_takers: dict[int, Callable[[int, torch.Tensor], None]] = {}

_library = torch.library.Library("msdump", "FRAGMENT")  # type: ignore[no-untyped-call]
# The result leads from each tap to the next, and out of the graph, so that no compiler drops or moves one of them.
_library.define(  # type: ignore[no-untyped-call]
    "tap(Tensor x, Tensor? before, int graph, int slot) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag, torch.Tag.flexible_layout),
)


def _tap(x: torch.Tensor, before: torch.Tensor | None, graph: int, slot: int) -> torch.Tensor:
    take = _takers.get(graph)
    if take is not None:
        take(slot, x)
    return torch.empty(0)


def _tap_shape(x: torch.Tensor, before: torch.Tensor | None, graph: int, slot: int) -> torch.Tensor:
    return torch.empty(0)


_library.impl("tap", _tap, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
torch.library.register_fake("msdump::tap", _tap_shape, lib=_library)


def taps_of(fx_graph: FxGraph, selected: Collection[fx.Node]) -> list[Tap]:
    """The tensors that chosen calls read and write, each once, in the order of the graph.

    Edges: parameters need no tap where the graph leaves them as they are; they are read from the arguments.
    """
    values = {value.id: site for site, value in fx_graph.values.items() if value.constant is None}
    overwritten = {
        fx_graph.roots[node.inputs[slot].id] for node in fx_graph.nodes.values() for slot in node.definition.mutates
    }
    chosen: dict[Tap, None] = {}
    for call in selected:
        node = fx_graph.nodes[call]
        for value in (*node.inputs, *node.outputs):
            is_argument = value.kind == PARAMETER and fx_graph.roots[value.id] not in overwritten
            if value.id in values and not is_argument:
                chosen[values[value.id]] = None
    position = {node: number for number, node in enumerate(fx_graph.by_name.values())}
    return sorted(chosen, key=lambda site: (position[site[0]], site[1]))


def with_taps(module: fx.GraphModule, taps: Sequence[Tap], owner: int) -> fx.GraphModule:
    """The graph with a tap behind each of these tensors, and one output more, which is empty."""
    slots: dict[fx.Node, list[tuple[int, Path]]] = {}
    for slot, (node, path) in enumerate(taps):
        slots.setdefault(node, []).append((slot, path))
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    waiting: list[fx.Node] = []
    before: fx.Node | None = None
    for node in module.graph.nodes:
        if node.op != "placeholder":
            # No operator may stand between the arguments of a graph.
            for source in waiting:
                before = _add_taps(graph, copies[source], slots.get(source, ()), before, owner)
            waiting.clear()
        if node.op == "output":
            outputs = fx.map_arg(node.args[0], copies.__getitem__)
            result = graph.output((*_sequence(outputs), *([] if before is None else [before])))
            result.meta = dict(node.meta)
        else:
            copies[node] = graph.node_copy(node, copies.__getitem__)
            waiting.append(node)
    tapped = fx.GraphModule(module, graph)
    tapped.meta.update(module.meta)
    return tapped


def _add_taps(
    graph: fx.Graph, node: fx.Node, slots: Sequence[tuple[int, Path]], before: fx.Node | None, owner: int
) -> fx.Node | None:
    for slot, path in slots:
        source = node
        for index in path:
            item = graph.call_function(operator.getitem, (source, index))
            item.meta["val"] = source.meta["val"][index]
            source = item
        before = graph.call_function(torch.ops.msdump.tap.default, (source, before, owner, slot))
        with source.meta["val"].fake_mode if hasattr(source.meta["val"], "fake_mode") else torch.no_grad():
            before.meta["val"] = torch.empty(0)
    return before


def _sequence(outputs: Any) -> tuple[Any, ...]:
    return tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)


class TappedProgram:
    """A graph that a compiler has compiled, with taps.

    selected  calls that are dumped
    taps    of the taps
    """

    def __init__(
        self,
        module: fx.GraphModule,
        selected: Collection[fx.Node],
        taps: Sequence[Tap],
        inner: Inner,
    ) -> None:
        self.placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        self.selected = selected
        self.taps = taps
        self.owner = next(_owners)
        self._compiled = inner(with_taps(module, taps, self.owner))
        self._has_taps = bool(taps)

    def run(self, args: list[object]) -> Any:
        """Run once; the taps copy what `_takers` says."""
        outputs = self._compiled(args)
        return outputs[:-1] if self._has_taps else outputs


class ObservedTaps:
    """A tapped graph that observers know, for one set of shapes.   Attributes: `seen`."""

    def __init__(self, program: TappedProgram, fx_graph: FxGraph, observers: Sequence[Observer]) -> None:
        self.seen = ObservedGraph(fx_graph.graph, observers)
        self._fx_graph = fx_graph
        self.operands = [(node.inputs, node.outputs) for node in fx_graph.graph.nodes]
        self._arguments = [fx_graph.value_of(node) for node in program.placeholders]
        self.use(program)

    def use(self, program: TappedProgram) -> None:
        """Run this one from now on: the same graph, with other taps."""
        fx_graph = self._fx_graph
        self._program = program
        self._values = [fx_graph.values.get(site) for site in program.taps]
        self._are_waited = [is_collective(call.target) for call, _ in program.taps]
        selected = {fx_graph.nodes[call].id for call in program.selected if call in fx_graph.nodes}
        self.ops = [
            op if node.id in selected else None for node, op in zip(fx_graph.graph.nodes, self.seen.ops, strict=True)
        ]

    def run(
        self,
        watched: WatchedRun,
        args: list[Any],
        copies: PinnedCopies | None,
        report: Callable[[str], None],
        *,
        measures_only: bool = False,
    ) -> Any:
        """As `ObservedFxProgram.run`. Observers hear of the operators when all of them have run."""
        arguments = {
            value.id: arg
            for value, arg in zip(self._arguments, args, strict=True)
            if value is not None and value.kind != SAVED
        }
        taken: dict[int, Array] = {}

        def take(slot: int, tensor: torch.Tensor) -> None:
            value = self._values[slot]
            if value is not None:
                if self._are_waited[slot]:
                    tensor = waited(tensor)
                # A compiler uses the memory again.
                own = tensor if copies is not None and copies.takes(tensor) else tensor.detach().clone()
                taken[value.id] = read_tensor(value, own, copies, report, measures_only and copies is not None)

        _takers[self._program.owner] = take
        try:
            outputs = self._program.run(args)
        except Exception:
            report("run of a compiled graph that raised, with all of its tensors")
            raise
        finally:
            del _takers[self._program.owner]
        if copies is not None:
            copies.mark().synchronize()
        calls = _TappedCalls(self, taken, arguments, report)
        watched.launch_all(calls)
        watched.finish(calls)
        return outputs


class _TappedCalls(Calls):
    """A run that is over: its operators, as the taps saw them."""

    is_before_told = False

    def __init__(
        self,
        seen: ObservedTaps,
        taken: Mapping[int, Array],
        arguments: Mapping[int, torch.Tensor],
        report: Callable[[str], None],
    ) -> None:
        self._operands = seen.operands
        self._taken = taken
        self._arguments = arguments
        self._report = report
        self.ops = seen.ops

    def launch(self, number: int) -> None: ...

    def inputs(self, number: int) -> Sequence[Array]:
        return [self._array(value) for value in self._operands[number][0]]

    def outputs(self, number: int) -> Sequence[Array]:
        return [self._array(value) for value in self._operands[number][1]]

    def array(self, value: Value) -> Array:
        return read_tensor(value, self._arguments[value.id], None, self._report)

    def _array(self, value: Value) -> Array:
        if value.id in self._taken:
            return self._taken[value.id]
        if value.constant is not None:
            return value.constant
        if value.id in self._arguments:
            return self.array(value)
        self._report("tensor that the compiled graph did not show")
        return np.empty((0,), dtypes.dtype(value.type.dtype).numpy)
