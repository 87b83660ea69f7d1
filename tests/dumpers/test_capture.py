"""What is captured of an operator: time stamps, choices of the plan, records."""

from __future__ import annotations

import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import msdump.mindspore.kernels  # noqa: F401  (fills the registry)
from msdump.dumpers.capture import Clock, GraphMemory, parameter_record
from msdump.graph.graph import Graph, Parameter
from msdump.graph.primitive import Primitive
from msdump.graph.types import TensorType
from msdump.mindspore.program.compile import finish
from msdump.tensors.records import OUTPUT, TensorKey


def test_a_stamp_is_the_time_in_microseconds() -> None:
    before = time.time_ns() // 1000
    stamp = Clock().next_us()
    assert before <= stamp <= time.time_ns() // 1000


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 4)), min_size=1))
def test_stamps_rise_and_are_never_ahead_without_need(calls: list[tuple[int, int]]) -> None:
    moments = iter(calls)
    clock = Clock(lambda: next(moments)[0])
    last = 0
    for moment, count in calls:
        # One is asked for alone.
        stamps = [clock.next_us()] if count == 1 else list(clock.stamps(count))
        assert len(stamps) == count
        for stamp in stamps:
            assert stamp == max(moment, last + 1)
            last = stamp


def test_a_parameter_is_an_output_of_no_task() -> None:
    """Its file is named `Parameter.NAME.0.0.TIME.output.0...`: no operator has made it, on no stream."""
    data, key = np.ones(2, np.float32), TensorKey(3, 1)
    record = parameter_record("fc.weight", "float32", data, key, 7, 2, 1700)
    assert (record.op_type, record.op_name, record.io, record.slot) == ("Parameter", "fc.weight", OUTPUT, 0)
    assert (record.task_id, record.stream_id, record.timestamp_us) == (0, 0, 1700)
    assert (record.iteration, record.graph_id, record.key) == (7, 2, key)
    assert record.is_parameter and record.data is data and record.dtype == "float32"


def test_memory_that_an_operator_overwrites_is_safe_for_nobody() -> None:
    graph, kind = Graph(), TensorType("float32", (2,))
    x, y = graph.add_input("x", kind), graph.add_input("y", kind)
    first, second = (
        graph.add_parameter(Parameter(name, np.ones(2, np.float32), "float32")) for name in ("first", "second")
    )
    one = graph.add_constant(np.ones(2, np.float32), "float32")
    total = graph.add_node(Primitive("Add"), (x, y), "Default").outputs[0]
    total = graph.add_node(Primitive("Add"), (total, one), "Default").outputs[0]
    graph.outputs = [graph.add_node(Primitive("AssignAdd"), (first, total), "Default").outputs[0]]
    graph.held |= {x.id, first.id, second.id}
    graph.borrowed |= {y.id, first.id}
    finish(graph)
    memory = GraphMemory(graph, graph.op_infos())
    keys = {value.id: TensorKey(value.id, 0) for value in (x, y, first, second, one, total)}
    assert {name for name, key in keys.items() if memory.is_held(key)} == {x.id, second.id}
    assert {name for name, key in keys.items() if memory.is_borrowed(key)} == {y.id}
    assert {name for name, key in keys.items() if memory.is_constant(key)} == {one.id}
    assert not (memory.is_held(None) or memory.is_borrowed(None) or memory.is_constant(None))
    assert memory.lends
    graph.borrowed -= {y.id}
    assert not GraphMemory(graph, graph.op_infos()).lends
