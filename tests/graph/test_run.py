"""The executor of compiled graphs keeps the contract of watched runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msdump.graph.graph import Graph
from msdump.graph.primitive import Primitive
from msdump.graph.run import Observer
from msdump.graph.types import TensorType
from msdump.mindspore.program.compile import finish
from msdump.mindspore.program.executor import Executor
from tests.contracts.run_contract import Play, RunContract


class TestExecutor(RunContract):
    def program(self, observers: Sequence[Observer]) -> Play:
        graph = Graph()
        x = graph.add_input("x", TensorType("float32", (2, 3)))
        first = graph.add_node(Primitive("Neg"), [x], "Default/first-Neg").outputs[0]
        flat = graph.add_node(Primitive("Reshape", {"shape": (6,)}), [first], "Default/flat-Reshape").outputs[0]
        second = graph.add_node(Primitive("Exp"), [flat], "Default/second-Exp").outputs[0]
        graph.outputs = [graph.add_node(Primitive("Mul"), [flat, second], "Default/third-Mul").outputs[0], first]
        executor = Executor(finish(graph), observers)
        iterations = iter(range(9))
        data = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
        return lambda: b"".join(array.tobytes() for array in executor.run([data], next(iterations)))

    def failing_program(self, observers: Sequence[Observer]) -> Play:
        graph = Graph()
        table = graph.add_input("table", TensorType("float32", (2,)))
        index = graph.add_input("index", TensorType("int32", (1,)))
        first = graph.add_node(Primitive("Neg"), [table], "Default/first-Neg").outputs[0]
        picked = graph.add_node(Primitive("Gather", {"axis": 0}), [first, index], "Default/pick-Gather").outputs[0]
        graph.outputs = [graph.add_node(Primitive("Neg"), [picked], "Default/last-Neg").outputs[0]]
        executor = Executor(finish(graph), observers)
        data = [np.zeros(2, np.float32), np.array([7], np.int32)]
        return lambda: executor.run(data)[0].tobytes()
