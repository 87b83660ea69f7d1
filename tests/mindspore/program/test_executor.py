"""The executor against the plainest possible interpreter, with and without memory reuse."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import ExecutionError
from msdump.graph.graph import Graph, Value
from msdump.graph.memory import plan_memory
from msdump.graph.primitive import Primitive
from msdump.graph.run import FinishedStep
from msdump.graph.types import TensorType
from msdump.mindspore.program.compile import finish
from msdump.mindspore.program.executor import Executor
from msdump.mindspore.program.graph_cases import GraphCase, graphs
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import AFTER, BEFORE, KEEP, OpEvent


def interpret(case: GraphCase) -> list[Array]:
    """Every result in memory of its own; parameters are copied first and changed only here."""
    graph = case.graph
    arrays: dict[int, Array] = {value.id: array for value, array in zip(graph.inputs, case.inputs, strict=True)}
    arrays.update({value.id: case.first_values[value.name].copy() for value in graph.parameters})
    arrays.update({value.id: value.constant for value in graph.constants if value.constant is not None})
    for node in graph.nodes:
        out = [np.empty(v.type.shape, dtypes.dtype(v.type.dtype).numpy) for v in node.outputs]
        for index, slot in node.definition.aliases.items():
            out[index] = arrays[node.inputs[slot].id]
        node.definition.kernels["numpy"]([arrays[v.id] for v in node.inputs], node.primitive.attrs, out)
        arrays.update({value.id: array for value, array in zip(node.outputs, out, strict=True)})
    return [arrays[value.id].copy() for value in graph.outputs]


class Watcher:
    """Collects what it is told, copying every array at once."""

    def __init__(self, needs_all_values: bool) -> None:
        self.needs_all_values = needs_all_values
        self.after: list[list[Array]] = []
        self.before: list[list[Array]] = []
        self.ended: list[FinishedStep] = []
        self.errors: list[BaseException] = []

    def on_graph(self, graph: Graph) -> Sequence[int]:
        return [BEFORE | AFTER] * len(graph.kernels)

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        return iteration == 0

    def before_op(self, event: OpEvent) -> None:
        self.before.append([array.copy() for array in event.inputs])

    def after_op(self, event: OpEvent) -> None:
        self.after.append([array.copy() for array in event.outputs])

    def on_iteration_end(self, step: FinishedStep) -> None:
        self.ended.append(step)

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        self.errors.append(error)

    def close(self) -> None: ...


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_run_equals_interpreter_with_and_without_reuse(case: GraphCase) -> None:
    with np.errstate(all="ignore"):
        expected = interpret(case)
        for observers in ((), (Watcher(needs_all_values=True),), (Watcher(needs_all_values=False),)):
            actual = Executor(case.graph, observers).run(case.inputs)
            case.restore()
            for one, other in zip(actual, expected, strict=True):
                np.testing.assert_array_equal(one, other)


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_observer_sees_each_operator_once_in_order(case: GraphCase) -> None:
    watcher = Watcher(needs_all_values=True)
    with np.errstate(all="ignore"):
        executor = Executor(case.graph, (watcher,))
        executor.run(case.inputs, iteration=0)
        executor.run(case.inputs, iteration=1)
    assert len(watcher.after) == len(watcher.before) == len(case.graph.kernels)
    assert len(watcher.ended) == 1
    assert [event.op.full_name for event in watcher.ended[0].events] == [n.full_name for n in case.graph.kernels]


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_equal_keys_are_equal_bytes(case: GraphCase) -> None:
    watcher = Watcher(needs_all_values=False)
    with np.errstate(all="ignore"):
        Executor(case.graph, (watcher,)).run(case.inputs)
    bytes_of: dict[object, bytes] = {}
    for op, before, after in zip(case.graph.op_infos(), watcher.before, watcher.after, strict=True):
        for info, array in [*zip(op.inputs, before, strict=True), *zip(op.outputs, after, strict=True)]:
            assert bytes_of.setdefault(info.key, array.tobytes()) == array.tobytes(), (op.full_name, info)


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_live_results_never_share_memory(case: GraphCase) -> None:
    plan = plan_memory(case.graph, is_reused=True)

    def owner(value: Value) -> Value:
        while value.id in plan.source:
            value = plan.source[value.id]
        return value

    span: dict[int, list[int]] = {}
    size: dict[int, int] = {}
    uses = [(step, value) for step, node in enumerate(case.graph.nodes) for value in (*node.inputs, *node.outputs)]
    uses += [(len(case.graph.nodes), value) for value in case.graph.outputs]
    for step, value in uses:
        own = owner(value)
        if own.id in plan.offset:
            span.setdefault(own.id, [step, step])[1] = step
            size[own.id] = own.type.size_bytes
    for one, (first, last) in span.items():
        for other, (other_first, other_last) in span.items():
            if one < other and first <= other_last and other_first <= last:
                one_end, other_end = plan.offset[one] + size[one], plan.offset[other] + size[other]
                assert one_end <= plan.offset[other] or other_end <= plan.offset[one]
    assert all(plan.offset[key] + size[key] <= plan.size_bytes for key in span)


@settings(max_examples=60, deadline=None)
@given(graphs(), st.data())
def test_what_an_observer_keeps_is_there_at_the_end(case: GraphCase, data: st.DataObject) -> None:
    """With memory that is used again: the last bytes that the program gives to each operand."""
    count = len(case.graph.kernels)
    kept = data.draw(st.sets(st.integers(0, count - 1), min_size=1)) if count else set()
    watcher = Watcher(needs_all_values=False)
    everything = watcher.on_graph

    def on_graph(graph: Graph) -> list[int]:
        return [mask | (KEEP if at in kept else 0) for at, mask in enumerate(everything(graph))]

    ends: dict[tuple[int, int], bytes] = {}

    def on_iteration_end(step: FinishedStep) -> None:
        for at in kept:
            event = step.events[at]
            for slot, array in enumerate((*event.inputs, *event.outputs)):
                ends[at, slot] = array.tobytes()

    watcher.on_graph, watcher.on_iteration_end = on_graph, on_iteration_end  # type: ignore[assignment,method-assign]
    with np.errstate(all="ignore"):
        Executor(case.graph, (watcher,)).run(case.inputs)
    infos = case.graph.op_infos()
    last = {info.key: info.key for op in infos for info in (*op.inputs, *op.outputs)}
    newest = {key.value_id: max(k.version for k in last if k.value_id == key.value_id) for key in last}
    for at in kept:
        seen = [*watcher.before[at], *watcher.after[at]]
        for slot, (info, array) in enumerate(zip((*infos[at].inputs, *infos[at].outputs), seen, strict=True)):
            if info.key.version == newest[info.key.value_id]:
                assert ends[at, slot] == array.tobytes(), (infos[at].full_name, slot)


def test_wrong_input_is_refused() -> None:
    graph = Graph()
    graph.outputs = [graph.add_input("x", TensorType("float32", (2,)))]
    executor = Executor(graph)
    with pytest.raises(ExecutionError, match=r"expected 1 inputs, got 0"):
        executor.run([])
    with pytest.raises(ExecutionError, match=r"expected input x as float32\[2\], got float64\[2\]"):
        executor.run([np.zeros(2)])


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions take notes from Python 3.11 on")
@pytest.mark.parametrize("needs_all_values", [None, True])
def test_error_of_a_kernel_names_its_operator(needs_all_values: bool | None) -> None:
    graph = Graph()
    table = graph.add_input("table", TensorType("float32", (2,)))
    index = graph.add_input("index", TensorType("int32", (1,)))
    first = graph.add_node(Primitive("Neg"), [table], "Default/first-Neg").outputs[0]
    picked = graph.add_node(Primitive("Gather", {"axis": 0}), [first, index], "Default/pick-Gather").outputs[0]
    graph.outputs = [graph.add_node(Primitive("Neg"), [picked], "Default/last-Neg").outputs[0]]
    watchers = () if needs_all_values is None else (Watcher(needs_all_values),)
    executor = Executor(finish(graph), watchers)
    with pytest.raises(ExecutionError) as caught:
        executor.run([np.zeros(2, np.float32), np.array([7], np.int32)])
    (note,) = caught.value.__notes__
    assert note.startswith("in Default/pick-Gather/Gather-op1")
    assert all(watcher.errors == [caught.value] for watcher in watchers)
