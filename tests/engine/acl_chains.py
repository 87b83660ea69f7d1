"""Small models of the primitives of MindSpore, run under a dump of an acl.json."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import msdump.mindspore.kernels  # noqa: F401  (fills the registry)
from msdump.engine.models import AclDump
from msdump.graph.graph import Graph
from msdump.graph.primitive import Primitive
from msdump.graph.types import TensorType
from msdump.mindspore.program.compile import finish
from msdump.mindspore.program.executor import Executor


def chain(
    *op_types: str, graph_id: int = 0, shape: tuple[int, ...] = (2, 3), name: str = "x", scope: str = "net"
) -> Graph:
    """An input, and one operator after the other."""
    graph = Graph(f"kernel_graph_{graph_id}", graph_id)
    value = graph.add_input(name, TensorType("float16", shape))
    for op_type in op_types:
        value = graph.add_node(Primitive(op_type), [value], scope).outputs[0]
    graph.outputs = [value]
    return finish(graph)


def run(
    graph: Graph, dump: AclDump, *values: float, names: Sequence[str] = ("net",), first: int = 0, model_id: int = 1
) -> None:
    executor = Executor(graph, dump.observe_model(model_id, names))
    shape = graph.inputs[0].type.shape
    with np.errstate(over="ignore"):
        for iteration, value in enumerate(values, first):
            executor.run([np.full(shape, value, np.float16)], iteration)
