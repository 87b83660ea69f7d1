"""Executor: runs a compiled graph, one launch per node, and tells observers. Without observers it only runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import length_hint

import numpy as np

from msdump.errors import ExecutionError
from msdump.graph.graph import Graph, Node, Value
from msdump.graph.memory import Memory
from msdump.graph.primitive import Attrs, Kernel
from msdump.graph.run import Calls, ObservedGraph, Observer
from msdump.tensors.arrays import Array
from msdump.tensors.records import OpInfo


@dataclass(frozen=True, slots=True)
class _Launch:
    """One kernel bound to its memory. `op` is None for nodes that are not kernels but must copy something."""

    node: Node
    kernel: Kernel
    inputs: tuple[Array, ...]
    attrs: Attrs
    outputs: tuple[Array, ...]
    op: OpInfo | None


class Executor:
    """One compiled graph with its memory. Not thread safe: one run at a time.

    observers   who watches; when one of them needs all values, memory is not reused
    """

    def __init__(self, graph: Graph, observers: Sequence[Observer] = ()) -> None:
        self.graph = graph
        self._seen = ObservedGraph(graph, observers)
        is_reused = not self._seen.needs_all_values
        self.memory = Memory(graph, is_reused, self._kept() if is_reused else ())
        self.launches = self._bind()
        self._calls = [(launch.kernel, launch.inputs, launch.attrs, launch.outputs) for launch in self.launches]
        self._watched_calls = _WatchedCalls(self.launches, self.memory)
        self._inputs = [self.memory.array(value) for value in graph.inputs]
        self._outputs = [self.memory.array(value) for value in graph.outputs]

    def _kept(self) -> list[Value]:
        """Operands that an observer looks at when the iteration ends."""
        kept = [node for node, op in zip(self.graph.kernels, self._seen.ops, strict=True) if self._seen.is_kept(op)]
        return [value for node in kept for value in (*node.inputs, *node.outputs)]

    def _bind(self) -> list[_Launch]:
        launches: list[_Launch] = []
        ops = iter(self._seen.ops)
        for node in self.graph.nodes:
            op = next(ops) if node.definition.is_kernel else None
            is_view = bool(node.outputs) and all(
                value.index in node.definition.views and self.memory.is_shown(value) for value in node.outputs
            )
            if op is None and is_view:
                continue
            inputs = tuple(self.memory.array(value) for value in node.inputs)
            outputs = tuple(self.memory.array(value) for value in node.outputs)
            attrs = node.primitive.attrs
            kernel = _show if is_view else node.definition.bound_kernel(node.where, inputs, attrs, outputs)
            launches.append(_Launch(node, kernel, inputs, attrs, outputs, op))
        return launches

    def run(self, arrays: Sequence[Array], iteration: int = 0, is_observed: bool = True) -> list[Array]:
        """Run once; the observers see nothing of it when `is_observed` is false.

        Shapes:  array i has exactly the type of graph input i; outputs are fresh copies.
        Raises:  ExecutionError for a wrong number, shape or dtype of inputs; what a kernel raises, unchanged but
                 for a note that names the operator and its source line (Python 3.11 and later).
        """
        self._load(arrays)
        run = self._seen.begin(iteration) if is_observed else None
        if run is None:
            self._run_plain()
        else:
            run.run(self._watched_calls)
        return [array.copy() for array in self._outputs]

    def _load(self, arrays: Sequence[Array]) -> None:
        expected = self.graph.inputs
        if len(arrays) != len(expected):
            raise ExecutionError(f"graph {self.graph.name}: expected {len(expected)} inputs, got {len(arrays)}.")
        for value, buffer, array in zip(expected, self._inputs, arrays, strict=True):
            if array.shape != buffer.shape or array.dtype != buffer.dtype:
                raise ExecutionError(
                    f"graph {self.graph.name}: expected input {value.name} as {value.type}, "
                    f"got {array.dtype}{list(array.shape)}."
                )
            np.copyto(buffer, array)

    def _run_plain(self) -> None:
        calls = iter(self._calls)
        try:
            for kernel, inputs, attrs, outputs in calls:
                kernel(inputs, attrs, outputs)
        except Exception as error:
            # What is left in the iterator says who raised, without a counter on the way.
            _annotate(error, self.launches[len(self._calls) - length_hint(calls) - 1])
            raise


class _WatchedCalls(Calls):
    """The launches of an executor, all of whose memory stays where it is."""

    def __init__(self, launches: Sequence[_Launch], memory: Memory) -> None:
        self.ops = [launch.op for launch in launches]
        self.launches = launches
        self._memory = memory

    def launch(self, number: int) -> None:
        launch = self.launches[number]
        launch.kernel(launch.inputs, launch.attrs, launch.outputs)

    def explain(self, number: int, error: Exception) -> Exception:
        _annotate(error, self.launches[number])
        return error

    def inputs(self, number: int) -> Sequence[Array]:
        return self.launches[number].inputs

    def outputs(self, number: int) -> Sequence[Array]:
        return self.launches[number].outputs

    def failed_outputs(self, number: int) -> Sequence[Array]:
        return self.launches[number].outputs

    def array(self, value: Value) -> Array:
        return self._memory.array(value)


def _show(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Launch of an operator whose output already lies in its input's memory."""


def _annotate(error: Exception, launch: _Launch) -> None:
    if hasattr(error, "add_note"):
        error.add_note(f"in {launch.node.full_name}: {launch.node.where}")
