"""What memory of a graph is safe for how long."""

from __future__ import annotations

import numpy as np

import msdump.kernels  # noqa: F401  (fills the registry)
from msdump.dump.watched import GraphMemory
from msdump.graph.compile import finish
from msdump.graph.graph import Graph, Parameter
from msdump.graph.primitive import Primitive
from msdump.graph.types import TensorType
from msdump.records import TensorKey


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
