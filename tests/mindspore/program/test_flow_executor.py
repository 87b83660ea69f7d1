"""Programs with control flow, built by hand: what runs, how often, and what observers are told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from msdump.graph.graph import Graph, Value
from msdump.graph.primitive import Primitive
from msdump.graph.run import FinishedStep
from msdump.graph.types import TensorType
from msdump.mindspore.program.autodiff import gradients
from msdump.mindspore.program.compile import finish_program
from msdump.mindspore.program.flow_executor import FlowExecutor
from msdump.mindspore.program.regions import add_if, add_while, region_input
from msdump.tensors.records import KEEP, OpEvent

FLOAT, INT = TensorType("float32", ()), TensorType("int32", ())


class Watcher:
    """Notes which graphs ended, with the types of their operators."""

    needs_all_values = True

    def __init__(self) -> None:
        self.ended: list[tuple[str, ...]] = []

    def on_graph(self, graph: Graph) -> Sequence[int]:
        return [KEEP] * len(graph.kernels)

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        return True

    def before_op(self, event: OpEvent) -> None: ...

    def after_op(self, event: OpEvent) -> None: ...

    def on_iteration_end(self, step: FinishedStep) -> None:
        self.ended.append(tuple(node.op_type for node in step.graph.kernels))

    def on_error(self, event: OpEvent, error: BaseException) -> None: ...

    def close(self) -> None: ...


def _add(graph: Graph, op_type: str, *inputs: Value) -> Value:
    return graph.add_node(Primitive(op_type), inputs, "Default").outputs[0]


def powers() -> tuple[Graph, Value, Value]:
    """x ** (n + 1) as a loop, negative where that is less than 1; the program, x and its result."""
    graph = Graph()
    x, n = graph.add_input("x", FLOAT), graph.add_input("n", INT)
    zero = graph.add_constant(np.array(0, np.int32), "int32")
    one = graph.add_constant(np.array(1, np.int32), "int32")
    limit = graph.add_constant(np.array(1, np.float32), "float32")
    condition, body = graph.part(), graph.part()
    regions = []
    for region in (condition, body):
        regions.append([region_input(region, FLOAT), region_input(region, INT)])
    condition.outputs = [_add(condition, "Less", regions[0][1], n)]
    body.outputs = [_add(body, "Mul", regions[1][0], x), _add(body, "Add", regions[1][1], one)]
    power = add_while(graph, condition, body, [x, zero], -1, "Default", (), "forward").outputs[0]
    then, orelse = graph.part(), graph.part()
    then.outputs, orelse.outputs = [_add(then, "Neg", power)], [power]
    result = add_if(graph, _add(graph, "Less", power, limit), then, orelse, "Default", (), "forward").outputs[0]
    graph.outputs = [result]
    return graph, x, result


@given(st.floats(0.25, 2, width=16), st.integers(-1, 4))
def test_values_and_gradients_are_those_of_the_function(x: float, n: int) -> None:
    graph, source, result = powers()
    (gradient,) = gradients(graph, result, [source])
    assert gradient is not None
    graph.outputs = [result, gradient]
    executor = FlowExecutor(finish_program(graph))
    value, slope = executor.run([np.array(x, np.float32), np.array(n, np.int32)])
    exponent = max(n, 0) + 1
    sign = -1 if x**exponent < 1 else 1
    np.testing.assert_allclose(value, sign * x**exponent, rtol=1e-5)
    np.testing.assert_allclose(slope, sign * exponent * x ** (exponent - 1), rtol=1e-5)


def test_observers_see_each_run_of_each_piece_and_nothing_else() -> None:
    watcher = Watcher()
    executor = FlowExecutor(finish_program(powers()[0]), [watcher])
    executor.run([np.array(0.5, np.float32), np.array(2, np.int32)], 3)
    body = ("Mul", "Add")
    assert watcher.ended == [(), ("Less",), body, ("Less",), body, ("Less",), ("Less",), ("Neg",)]
    watcher.ended.clear()
    executor.run([np.array(2.0, np.float32), np.array(0, np.int32)], 4)
    assert watcher.ended == [(), ("Less",), ("Less",)]
    assert executor.run([np.array(2.0, np.float32), np.array(0, np.int32)], 5, is_observed=False) == [2.0]
    assert len(watcher.ended) == 3


def test_parts_of_a_program_are_numbered_as_mindspore_numbers_them() -> None:
    pieces = list(finish_program(powers()[0]).pieces())
    names = [[f"{node.op_type}-op{node.op_id}" for node in piece.graph.nodes] for piece in pieces]
    assert names == [[], ["Less-op0"], ["Mul-op1", "Add-op2"], ["Less-op3"], ["Neg-op4"]]
    assert [piece.graph.is_entry for piece in pieces] == [True, False, False, False, False]
    assert [value.name for value in pieces[0].graph.inputs] == ["x", "n"]
