"""A kernel that raises leaves its operands on disk, and its exception untouched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import msdump.mindspore.kernels  # noqa: F401  (fills the registry)
from msdump.config.ranges import parse_ranges
from msdump.dumpers.exception import ExceptionDumper
from msdump.dumpers.tally import Tally
from msdump.graph.graph import Graph, Parameter
from msdump.graph.primitive import REGISTRY, Attrs, Primitive, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.program.compile import finish
from msdump.mindspore.program.executor import Executor
from msdump.tensors.arrays import Array
from tests.dumpers.memory_writer import MemoryWriter
from tests.plans import plain_plan


class BoomError(Exception):
    pass


@pytest.fixture(autouse=True)
def boom_primitive() -> Iterator[None]:
    """Adds one to its operand in place and raises half-way when it meets a negative number."""
    def_primitive("Boom", ("ref", "value"), mutates=(0,), aliases={0: 0})

    @def_infer("Boom")
    def infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
        return (types[0],)

    @def_kernel("Boom")
    def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
        inputs[0][0] += 1
        if inputs[1].min() < 0:
            raise BoomError("negative")
        inputs[0][1:] += 1

    yield
    del REGISTRY["Boom"]


def boom_graph(parameter: Parameter) -> Graph:
    graph = Graph()
    value = graph.add_input("x", TensorType("float32", (3,)))
    doubled = graph.add_node(Primitive("Add"), [value, value], "Default").outputs[0]
    boom = graph.add_node(Primitive("Boom"), [graph.add_parameter(parameter), doubled], "Default/net-Net")
    graph.outputs = [boom.outputs[0]]
    return finish(graph)


def test_what_the_kernel_read_and_wrote_is_dumped_and_the_exception_goes_on() -> None:
    writer, tally = MemoryWriter(), Tally()
    dumper = ExceptionDumper(plain_plan(op_debug_mode=4, iterations=parse_ranges("0")), [writer], tally)
    executor = Executor(boom_graph(Parameter("w", np.zeros(3, np.float32), "float32")), (dumper,))
    executor.run([np.ones(3, np.float32)], 0)
    assert writer.records == []
    with pytest.raises(BoomError) as raised:
        executor.run([-np.ones(3, np.float32)], 7)
    assert type(raised.value) is BoomError and raised.value.args == ("negative",)
    assert raised.value.__cause__ is None and raised.value.__context__ is None
    dumper.close()
    found = {(record.io, record.slot): record.data.tolist() for record in writer.records}
    assert found == {("input", 0): [1, 1, 1], ("input", 1): [-2, -2, -2], ("output", 0): [2, 1, 1]}
    assert {(record.op_type, record.iteration) for record in writer.records} == {("Boom", 7)}
    assert (tally.tensors_written, tally.iterations_dumped, tally.error) == (3, 1, "")
    assert writer.is_closed


def test_a_disk_that_refuses_does_not_hide_the_exception() -> None:
    tally = Tally()
    dumper = ExceptionDumper(plain_plan(op_debug_mode=4), [MemoryWriter(fails_at=0)], tally)
    executor = Executor(boom_graph(Parameter("w", np.zeros(3, np.float32), "float32")), (dumper,))
    with pytest.raises(BoomError):
        executor.run([-np.ones(3, np.float32)], 0)
    assert tally.lost == 3 and "full disk" in tally.error
