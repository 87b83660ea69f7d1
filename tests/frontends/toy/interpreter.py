"""A front end in one file: a program is a list of Python functions of numpy arrays, which run one after the other.

It supplies a Graph, the calls of an iteration, and nothing else: when a dump begins, which iterations and operators it
holds, engines, files, statistics, overflow and reports are the same as for every other front end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from msdump.engine import opening
from msdump.graph.graph import Graph, Value
from msdump.graph.primitive import Primitive, PrimitiveDef
from msdump.graph.run import Calls, ObservedGraph, Observer, WatchedRun
from msdump.graph.types import TensorType
from msdump.process import sessions
from msdump.tensors.arrays import Array
from msdump.tensors.dtypes import dtype_from_numpy


@dataclass(frozen=True)
class Step:
    """One call: `result = function(*reads)`. With `in_place` the function overwrites and returns its first operand."""

    function: Callable[..., Array]
    reads: tuple[str, ...]
    result: str
    in_place: bool = False

    def run(self, values: dict[str, Array]) -> None:
        values[self.result] = np.asarray(self.function(*(values[name] for name in self.reads)))


class Program:
    """Steps with names for their values. Inputs are copied, so that a step may overwrite them."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self._seen: ObservedGraph | None = None

    def __call__(self, **inputs: Array) -> dict[str, Array]:
        """Every value of the program by name; dumped as the configuration of this process says."""
        session = opening.open_mindspore("CPU", 0)
        if session is None:
            return self.run_plain(inputs)
        with sessions.lock:
            self.observe(session.observers, inputs)
            return self.run(inputs, session.next_iteration())

    def run_plain(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        values = {name: array.copy() for name, array in inputs.items()}
        for step in self.steps:
            step.run(values)
        return values

    def observe(self, observers: Sequence[Observer], inputs: Mapping[str, Array]) -> None:
        """Show observers the graph, once. The shapes of results are those of a run without them."""
        if self._seen is None:
            self._seen = ObservedGraph(self._graph(self.run_plain(inputs), inputs), observers)

    def run(self, inputs: Mapping[str, Array], iteration: int) -> dict[str, Array]:
        """One iteration, watched by those observers that want it."""
        assert self._seen is not None
        watched: WatchedRun | None = self._seen.begin(iteration)
        if watched is None:
            return self.run_plain(inputs)
        calls = _StepCalls(self, self._seen, {name: array.copy() for name, array in inputs.items()})
        watched.run(calls)
        return calls.values

    def _graph(self, example: Mapping[str, Array], inputs: Mapping[str, Array]) -> Graph:
        graph = Graph()
        made: dict[str, Value] = {name: graph.add_input(name, _type(array)) for name, array in inputs.items()}
        for step in self.steps:
            written = {"mutates": (0,), "aliases": {0: 0}} if step.in_place else {}
            definition = PrimitiveDef(step.function.__name__, step.reads, (step.result,), **written)
            node = graph.add_foreign_node(
                Primitive(step.function.__name__, definition=definition),
                [made[name] for name in step.reads],
                [_type(example[step.result])],
                "Default",
            )
            made[step.result] = node.outputs[0]
        graph.outputs = [made[self.steps[-1].result]]
        graph.number()
        graph.lint()
        return graph


class _StepCalls(Calls):
    """One run of a program: what its values are before and after each step."""

    def __init__(self, program: Program, seen: ObservedGraph, values: dict[str, Array]) -> None:
        self.ops = seen.ops
        self.values = values
        self._program = program
        self._arrays = {value.id: values[value.name] for value in seen.graph.inputs}
        self._nodes = seen.graph.kernels

    def launch(self, number: int) -> None:
        step = self._program.steps[number]
        step.run(self.values)
        self._arrays[self._nodes[number].outputs[0].id] = self.values[step.result]

    def inputs(self, number: int) -> Sequence[Array]:
        return [self.array(value) for value in self._nodes[number].inputs]

    def outputs(self, number: int) -> Sequence[Array]:
        return [self.array(value) for value in self._nodes[number].outputs]

    def array(self, value: Value) -> Array:
        return self._arrays[value.id]

    def protect(self, number: int) -> Collection[int]:
        op = self.ops[number]
        assert op is not None
        return {op.inputs[slot].key.value_id for slot in op.mutates}


def _type(array: Array) -> TensorType:
    return TensorType(dtype_from_numpy(array.dtype).name, tuple(array.shape))
