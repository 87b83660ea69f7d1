"""Overflow detection names exactly the operators that a direct look at the tensors names."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.config.ranges import parse_ranges
from msdump.dumpers.overflow import AI_CORE_MODE, ATOMIC_MODE, ATOMIC_OP_TYPES, BOTH_MODE, OverflowDumper
from msdump.dumpers.tally import Tally
from msdump.formats.opdebug import Opdebug, parse_opdebug_content
from msdump.graph.graph import Graph, Parameter
from msdump.graph.primitive import REGISTRY, Attrs, Primitive, def_infer, def_kernel, def_primitive
from msdump.graph.run import FinishedStep
from msdump.graph.types import TensorType
from msdump.mindspore.program.compile import finish
from msdump.mindspore.program.executor import Executor
from msdump.mindspore.program.graph_cases import GraphCase, graphs
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import AFTER, BEFORE, OpEvent
from tests.dumpers.memory_writer import MemoryWriter
from tests.plans import plain_plan

Seen = tuple[OpEvent, list[Array], list[Array]]


class Witness:
    """Copies what every operator read and left."""

    needs_all_values = False

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self._read: list[Array] = []

    def on_graph(self, graph: Graph) -> Sequence[int]:
        return [BEFORE | AFTER] * len(graph.kernels)

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        return True

    def before_op(self, event: OpEvent) -> None:
        self._read = [array.copy() for array in event.inputs]

    def after_op(self, event: OpEvent) -> None:
        self.seen.append((event, self._read, [array.copy() for array in event.outputs]))

    def on_iteration_end(self, step: FinishedStep) -> None: ...

    def on_error(self, event: OpEvent, error: BaseException) -> None: ...

    def close(self) -> None: ...


def is_broken(array: Array) -> bool:
    return array.dtype.kind not in "biu" and not np.isfinite(array.astype(np.float64)).all()


def overflows(seen: Sequence[Seen], mode: int) -> list[Seen]:
    """Those that the definition names."""
    found = []
    for event, read, left in seen:
        is_atomic = event.op.op_type in ATOMIC_OP_TYPES
        if mode != BOTH_MODE and is_atomic != (mode == ATOMIC_MODE):
            continue
        if any(map(is_broken, left)) and not any(map(is_broken, read)):
            found.append((event, read, left))
    return found


def open_dumper(**changes: Any) -> tuple[OverflowDumper, MemoryWriter, MemoryWriter, Tally]:
    tensors, debug, tally = MemoryWriter(), MemoryWriter(), Tally()
    plan = plain_plan(**{"op_debug_mode": BOTH_MODE, **changes})
    return OverflowDumper(plan, [tensors], debug, tally), tensors, debug, tally


def add_reductions(case: GraphCase) -> None:
    """Every graph ends in operators that mode 2 watches."""
    graph = case.graph
    large = [value for value in graph.inputs if value.type.ndim == 2]
    total = graph.add_node(Primitive("ReduceSum", {"axis": (), "keep_dims": False}), [large[0]], "Default/sum-Sum")
    both = graph.add_node(Primitive("AddN"), [large[0], large[-1]], "Default/add-Add")
    graph.outputs = [*graph.outputs, total.outputs[0], both.outputs[0]]
    finish(graph)


@settings(max_examples=60, deadline=None)
@given(
    graphs(dtype="float16"),
    st.sampled_from([AI_CORE_MODE, ATOMIC_MODE, BOTH_MODE]),
    st.sampled_from([1, 200, 30000, np.inf]),
)
def test_named_operators_are_those_of_a_direct_look(case: GraphCase, mode: int, factor: float) -> None:
    add_reductions(case)
    dumper, tensors, debug, tally = open_dumper(op_debug_mode=mode)
    witness = Witness()
    with np.errstate(all="ignore"):
        inputs = [(array.astype(np.float32) * factor).astype(np.float16) for array in case.inputs]
        executor = Executor(case.graph, (witness, dumper))
        for iteration in range(2):
            executor.run(inputs, iteration)
    dumper.close()
    expected = overflows(witness.seen, mode)
    assert [(o.iteration, o.full_name) for o in dumper.found] == [(e.iteration, e.op.full_name) for e, _, _ in expected]
    assert not tally.error
    for batch, (event, read, left) in zip(tensors.batches, expected, strict=True):
        assert [(record.io, record.slot) for record in batch] == [
            *(("input", slot) for slot in range(len(read))),
            *(("output", slot) for slot in range(len(left))),
        ]
        for record, array in zip(batch, [*read, *left], strict=True):
            assert record.op_name == event.op.full_name and record.task_id == event.op.task_id
            assert record.data.tobytes() == array.tobytes()
    assert len(debug.batches) == len(expected)
    for [record], (event, _, _) in zip(debug.batches, expected, strict=True):
        content = parse_opdebug_content(record.data.tobytes(), "record")
        assert isinstance(content, Opdebug)
        is_atomic = event.op.op_type in ATOMIC_OP_TYPES
        hit, silent = (content.dha, content.ai_core) if is_atomic else (content.ai_core, content.dha)
        assert (hit.task_id, hit.stream_id, hit.model_id) == (event.op.task_id, event.op.stream_id, event.op.graph_id)
        assert hit.status and not silent.status and not content.l2.status


@settings(max_examples=20, deadline=None)
@given(graphs(dtype="float16"), st.sampled_from([1, 30000]))
def test_watching_never_changes_results(case: GraphCase, factor: float) -> None:
    with np.errstate(all="ignore"):
        inputs = [(array.astype(np.float32) * factor).astype(np.float16) for array in case.inputs]
        plain = Executor(case.graph).run(inputs)
        case.restore()
        dumper, *_ = open_dumper()
        watched = Executor(case.graph, (dumper,)).run(inputs)
    assert [array.tobytes() for array in watched] == [array.tobytes() for array in plain]


def square_graph(*types: TensorType) -> Graph:
    graph = Graph()
    values = [graph.add_input(f"x{number}", type) for number, type in enumerate(types)]
    graph.outputs = [graph.add_node(Primitive("Square"), [value], "Default").outputs[0] for value in values]
    return finish(graph)


def test_overflow_number_ends_the_watch(caplog: pytest.LogCaptureFixture) -> None:
    half = TensorType("float16", (2,))
    graph = square_graph(half, half, half)
    dumper, tensors, debug, tally = open_dumper(overflow_number=2)
    executor = Executor(graph, (dumper,))
    large = np.array([1, 300], np.float16)
    with np.errstate(all="ignore"), caplog.at_level(logging.WARNING, "msdump"):
        for iteration in range(3):
            executor.run([large, large, large], iteration)
    assert [found.iteration for found in dumper.found] == [0, 0]
    assert len(tensors.batches) == len(debug.batches) == len(caplog.records) == 2
    assert (tally.iterations_run, tally.iterations_dumped, tally.tensors_written) == (3, 1, 4)


def test_only_iterations_of_the_plan_are_watched() -> None:
    graph = square_graph(TensorType("float16", (2,)))
    dumper, tensors, debug, _ = open_dumper(iterations=parse_ranges("1|3"))
    executor = Executor(graph, (dumper,))
    with np.errstate(all="ignore"):
        for iteration in range(5):
            executor.run([np.array([1, 300], np.float16)], iteration)
    assert [found.iteration for found in dumper.found] == [1, 3]
    assert tensors.ended == debug.ended == [(0, 1), (0, 3)]


def test_files_come_after_each_other_in_time_and_the_debug_task_has_ids_of_its_own() -> None:
    graph = square_graph(TensorType("float16", (2,)), TensorType("float16", (2,)))
    dumper, tensors, debug, _ = open_dumper()
    with np.errstate(all="ignore"):
        Executor(graph, (dumper,)).run([np.array([1, 300], np.float16)] * 2, 0)
    pairs = zip(tensors.batches, debug.batches, strict=True)
    stamps = [record.timestamp_us for batches in pairs for batch in batches for record in batch]
    assert stamps == sorted(set(stamps))
    assert {(record.task_id, record.stream_id) for record in debug.records} == {(2, 1)}


def test_an_operator_that_overwrites_its_operand_twice_named_is_judged_by_what_it_read() -> None:
    parameter = Parameter("w", np.array([40000, 1], np.float16), "float16")
    graph = Graph()
    value = graph.add_parameter(parameter)
    graph.outputs = [graph.add_node(Primitive("AssignAdd"), [value, value], "Default").outputs[0]]
    dumper, tensors, _, _ = open_dumper()
    with np.errstate(all="ignore"):
        executor = Executor(finish(graph), (dumper,))
        executor.run([], 0)
        executor.run([], 1)  # now the operand holds Inf itself
    assert [found.iteration for found in dumper.found] == [0]
    arrays = [record.data.tolist() for record in tensors.records]
    assert arrays == [[40000, 1], [40000, 1], [np.inf, 2]]


@pytest.fixture
def narrow_primitive() -> Iterator[None]:
    """A cast to any float, also to those that no operator of this package makes."""
    def_primitive("Narrow", ("x",))

    @def_infer("Narrow")
    def infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
        return (TensorType(attrs["to"], types[0].shape),)

    @def_kernel("Narrow")
    def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
        out[0][...] = inputs[0].astype(out[0].dtype)

    yield
    del REGISTRY["Narrow"]


@pytest.mark.usefixtures("narrow_primitive")
@pytest.mark.parametrize(("name", "value"), [("float8_e4m3fn", 448.0), ("float8_e5m2", 1e9), ("bfloat16", 3.4e38)])
def test_saturation_counts_where_the_dtype_saturates(name: str, value: float) -> None:
    graph = Graph()
    x = graph.add_input("x", TensorType("float32", (2,)))
    graph.outputs = [graph.add_node(Primitive("Narrow", {"to": name}), [x], "Default").outputs[0]]
    finish(graph)
    dumper, tensors, _, _ = open_dumper()
    executor = Executor(graph, (dumper,))
    with np.errstate(all="ignore"):
        executor.run([np.array([1.0, 2.0], np.float32)], 0)
        assert dumper.found == []
        executor.run([np.array([1.0, value], np.float32)], 1)
        expected = np.array([1.0, value], np.float32).astype(dtypes.dtype(name).numpy)
    assert [found.iteration for found in dumper.found] == [1]
    assert tensors.records[-1].data.tobytes() == expected.tobytes()


def test_a_failure_to_write_stops_the_dump_and_not_the_training(caplog: pytest.LogCaptureFixture) -> None:
    half = TensorType("float16", (2,))
    graph = square_graph(half, half, half)
    tensors, debug, tally = MemoryWriter(fails_at=1), MemoryWriter(), Tally()
    dumper = OverflowDumper(plain_plan(op_debug_mode=BOTH_MODE), [tensors], debug, tally)
    executor = Executor(graph, (dumper,))
    with np.errstate(all="ignore"), caplog.at_level(logging.ERROR, "msdump"):
        for iteration in range(2):
            outputs = executor.run([np.array([1, 300], np.float16)] * 3, iteration)
            assert np.isinf(outputs[2][1])
    dumper.close()
    assert len(caplog.records) == 1
    assert (tally.lost, tally.tensors_written) == (2, 2)
    assert "full disk" in tally.error


def test_tensors_that_are_written_are_not_lost_with_their_debug_file() -> None:
    half = TensorType("float16", (2,))
    tensors, debug, tally = MemoryWriter(), MemoryWriter(fails_at=0), Tally()
    dumper = OverflowDumper(plain_plan(op_debug_mode=BOTH_MODE), [tensors], debug, tally)
    with np.errstate(all="ignore"):
        Executor(square_graph(half), (dumper,)).run([np.array([1, 300], np.float16)], 0)
    assert "full disk" in tally.error
    assert (tally.lost, tally.tensors_written) == (0, 2) == (0, len(tensors.records))


def test_the_declared_types_that_exist_are_watched_by_mode_2_alone() -> None:
    assert {"ReduceSum", "ReduceMean", "AddN", "BiasAddGrad", "Conv2DBackpropFilter"} <= ATOMIC_OP_TYPES & set(REGISTRY)


def overflows_of_attention(mask: Sequence[Sequence[bool]], value: float = -np.inf) -> list[str]:
    graph = Graph()
    scores = graph.add_input("scores", TensorType("float32", (2, 2)))
    masks = graph.add_input("mask", TensorType("bool", (2, 2)))
    fill = graph.add_constant(np.array(value, np.float32), "float32")
    masked = graph.add_node(Primitive("MaskedFill"), [scores, masks, fill], "Default").outputs[0]
    shifted = graph.add_node(Primitive("Add"), [masked, scores], "Default").outputs[0]
    graph.outputs = [graph.add_node(Primitive("Softmax", {"axis": (-1,)}), [shifted], "Default").outputs[0]]
    dumper, _, _, _ = open_dumper()
    with np.errstate(all="ignore"):
        Executor(finish(graph), (dumper,)).run([np.ones((2, 2), np.float32), np.array(mask)], 0)
    return [found.full_name.rsplit("/", 1)[-1].rsplit("-", 1)[0] for found in dumper.found]


def test_a_mask_is_no_overflow_but_a_nan_that_becomes_of_it_is() -> None:
    assert overflows_of_attention([[False, True], [False, False]]) == []
    assert overflows_of_attention([[True, True], [False, False]]) == ["Softmax"]
    assert overflows_of_attention([[True, True], [False, False]], np.nan) == ["MaskedFill"]
