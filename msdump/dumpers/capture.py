"""What is captured of an operator: its operands, which the plan chooses once for each graph, and their records.

No files, no threads, and no clock but the one that is passed in.
"""

from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from msdump.config.plan import DUMP_INPUT, DUMP_OUTPUT, Plan
from msdump.config.selection import Choice, ModelOperator
from msdump.graph.graph import SAVED, Graph, KeyTable, Node, Value
from msdump.graph.run import FinishedStep
from msdump.tensors.arrays import Array
from msdump.tensors.c_order import copy_elements
from msdump.tensors.records import (
    AFTER,
    BEFORE,
    INPUT,
    OUTPUT,
    OpEvent,
    OpInfo,
    TensorInfo,
    TensorKey,
    TensorRecord,
    made_record,
)


class Clock:
    """Microseconds since the epoch, strictly increasing, so that no two files of a process share a stamp.

    Thread safe. `now_us` is injected by tests.
    """

    def __init__(self, now_us: Callable[[], int] = lambda: time.time_ns() // 1000) -> None:
        self._now_us = now_us
        self._last = 0
        self._lock = threading.Lock()

    def next_us(self) -> int:
        return next(self.stamps(1))

    def stamps(self, count: int) -> Iterator[int]:
        """For this number of records."""
        first = self.first_of(count)
        return iter(range(first, first + count))

    def first_of(self, count: int) -> int:
        """The first of stamps that follow each other, for this number of records."""
        with self._lock:
            first = max(self._now_us(), self._last + 1)
            self._last = first + count - 1 if count else self._last
        return first


@dataclass(frozen=True, slots=True)
class SelectedOperand:
    """One input or output of an operator that the plan asks for."""

    io: str
    slot: int
    info: TensorInfo


def selected_operands(op: OpInfo, mask: int) -> tuple[SelectedOperand, ...]:
    """Operands that the mask asks for, inputs first."""
    operands: list[SelectedOperand] = []
    if mask & DUMP_INPUT:
        operands.extend(SelectedOperand(INPUT, slot, info) for slot, info in enumerate(op.inputs))
    if mask & DUMP_OUTPUT:
        operands.extend(SelectedOperand(OUTPUT, slot, info) for slot, info in enumerate(op.outputs))
    return tuple(operands)


def keys_to_keep(ops: Sequence[OpInfo], masks: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Op index -> mutated input slots whose old value is dumped, so that it is copied before the op runs.

    A dump that is written when the step has ended would otherwise show the new value under the old name.
    """
    dumped = {operand.info.key for op, mask in zip(ops, masks, strict=True) for operand in selected_operands(op, mask)}
    keep: dict[int, tuple[int, ...]] = {}
    for op in ops:
        slots = tuple(slot for slot in op.mutates if op.inputs[slot].key in dumped)
        if slots:
            keep[op.index] = slots
    return keep


def op_records(
    event: OpEvent,
    operands: Sequence[SelectedOperand],
    graph_id: int,
    stamps: Iterator[int],
    kept: Mapping[TensorKey, Array],
    task_id: int = 0,
    stream_id: int = 0,
) -> list[TensorRecord]:
    """Records of one operator; an operand that was copied before a mutation comes from `kept`."""
    op = event.op
    op_type, full_name, iteration = op.op_type, op.full_name, event.iteration
    records = []
    for operand in operands:
        io, slot = operand.io, operand.slot
        # Of this run: one of several makes tensors of its own.
        info = (op.inputs if io == INPUT else op.outputs)[slot]
        array = kept.get(info.key) if kept else None
        if array is None:
            array = (event.inputs if io == INPUT else event.outputs)[slot]
        # What was known before it ran may say more of its shape, but has no other elements: a shape that only the data
        # decide (-1), or that no front end has foreseen, is the array's own.
        if array.shape != info.shape and array.size and array.size == math.prod(info.shape):
            array = array.reshape(info.shape)
        records.append(
            made_record(
                op_type,
                full_name,
                task_id,
                stream_id,
                next(stamps),
                io,
                slot,
                info.dtype or _dtype_name(array.dtype),
                array,
                info.format,
                iteration,
                graph_id,
                info.key,
                False,
                info.sub_format,
                False,
                info.original if io == OUTPUT else None,
            )
        )
    return records


@functools.cache
def _dtype_name(dtype: np.dtype[Any]) -> str:
    """Of an operand whose dtype is not known before the operator runs."""
    return "string" if dtype.kind == "U" else dtype.name


def parameter_record(
    name: str, dtype: str, array: Array, key: TensorKey | None, iteration: int, graph_id: int, timestamp_us: int
) -> TensorRecord:
    """Record of a graph input as it stands when the step has ended.   Source: MindSpore dump, `Parameter.*`."""
    return TensorRecord(
        "Parameter",
        name,
        0,
        0,
        timestamp_us,
        OUTPUT,
        0,
        dtype,
        array,
        iteration=iteration,
        graph_id=graph_id,
        key=key,
        is_parameter=True,
    )


class GraphMemory:
    """Which tensors of a graph lie in memory that is not written while they wait."""

    def __init__(self, graph: Graph, ops: Sequence[OpInfo]) -> None:
        mutated = {op.inputs[slot].key.value_id for op in ops for slot in op.mutates}
        self._constant_ids = {value.id for value in graph.constants} - mutated
        self._held_ids = graph.held - mutated
        self._borrowed_ids = graph.borrowed - mutated
        self.lends = bool(self._borrowed_ids)

    def is_constant(self, key: TensorKey | None) -> bool:
        """True for memory that is never written."""
        return key is not None and key.value_id in self._constant_ids

    def is_held(self, key: TensorKey | None) -> bool:
        """True for memory that is immutable while it is referenced."""
        return key is not None and key.value_id in self._held_ids

    def is_borrowed(self, key: TensorKey | None) -> bool:
        """True for user memory, which is stable until the run has ended."""
        return key is not None and key.value_id in self._borrowed_ids


class WatchedGraph(GraphMemory):
    """What the dumper decided about one graph at compile time.

    takes_empty  whether outputs of operators count without elements, as where their statistics are written
    """

    def __init__(self, graph: Graph, plan: Plan, takes_empty: bool = False) -> None:
        # An open graph tells of its operators one by one, also where it has some already.
        self.ops = [] if graph.is_open else graph.op_infos()
        super().__init__(graph, self.ops)
        self.masks = plan.masks([op.full_name for op in self.ops], [op.is_marked for op in self.ops])
        self.operands: list[tuple[SelectedOperand, ...]] = [
            selected_operands(op, mask) for op, mask in zip(self.ops, self.masks, strict=True)
        ]
        self.keep = keys_to_keep(self.ops, self.masks)
        self.kept: dict[TensorKey, Array] = {}
        self.final_keys = graph.final_keys()
        self.parameters: list[Value] = []
        self.constants: list[tuple[int, Value]] = []
        if plan.operands.outputs and not graph.is_open:
            inputs = (value for value in graph.dumped_parameters() if value.kind != SAVED)
            self.parameters = [value for value in inputs if plan.dumps_parameter(value.name)]
            # Of a graph of which nothing is selected they would be all that is dumped.
            is_selected = bool(self.parameters) or any(self.masks)
            self.constants = list(enumerate(graph.constants)) if plan.dumps_constants and is_selected else []
        self.has_constants_on_disk = False
        # Of an open graph: the iteration, and the keys of the parameters that it has shown.
        self._shown: tuple[int, dict[int, TensorKey | None]] = (-1, {})
        self._plan = plan
        self._takes_empty = takes_empty
        self._op_sizes = [self._size_of(operands) for operands in self.operands]

    def add(self, op: OpInfo) -> int:
        """A further operator of an open graph. Returns what the plan asks for of it.

        What it overwrites is not kept: the caller that runs an open graph shows copies.
        """
        (mask,) = self._plan.masks([op.full_name], [op.is_marked])
        self.ops.append(op)
        self.masks.append(mask)
        self.operands.append(selected_operands(op, mask))
        self._op_sizes.append(self._size_of(self.operands[-1]))
        return mask

    def add_parameter(self, value: Value) -> None:
        """A further parameter of an open graph."""
        if self._plan.operands.outputs and self._plan.dumps_parameter(value.name):
            self.parameters.append(value)

    def parameters_of(self, step: FinishedStep) -> Sequence[Value]:
        """Those that are written when a step ends; asked for once. An open graph may end several times in an iteration,
        and has shown some of them as they still are.
        """
        if not step.graph.is_open:
            return self.parameters
        shown = self.shown_in(step.iteration)
        keys = {value.id: self.final_key(value, step) for value in self.parameters}
        new = [value for value in self.parameters if keys[value.id] not in (None, shown.get(value.id))]
        shown.update(keys)
        return new

    def shown_in(self, iteration: int) -> dict[int, TensorKey | None]:
        """By number of a parameter of an open graph: the key with which this iteration has shown it already."""
        if self._shown[0] != iteration:
            self._shown = iteration, {}
        return self._shown[1]

    def final_key(self, value: Value, step: FinishedStep) -> TensorKey | None:
        """Key of a parameter as the step left it."""
        return step.key(value) if step.graph.is_open else self.final_keys[value.id]

    @property
    def size(self) -> int:
        """Tensors of one iteration that get a file or a row, as `op_size`."""
        parameters = sum(0 not in value.type.shape for value in self.parameters)
        return sum(self._op_sizes) + parameters

    def op_size(self, index: int) -> int:
        """Tensors of one operator that get a file or a row; one whose shape only the run decides counts as one with
        elements.
        """
        return self._op_sizes[index]

    def _size_of(self, operands: Sequence[SelectedOperand]) -> int:
        return sum(0 not in operand.info.shape or (self._takes_empty and operand.io == OUTPUT) for operand in operands)


DATA = "Data"
_COLLECTIVE_PREFIX = "Hcom"


@dataclass(frozen=True, slots=True)
class DataOperator:
    """An input of the graph as the operator that hands it in: its input and its output are the same tensor."""

    value: Value
    info: TensorInfo
    operands: tuple[SelectedOperand, ...]


class AclWatchedGraph(GraphMemory):
    """What is written of one graph.

    before     by operator: operands of a file of their own, written as they are before the operator runs
    after      by operator: operands that are written when it has run
    data       by operator: inputs of the graph that it is the first to read
    late_data  inputs of the graph that no operator reads
    masks      what the executor has to show
    """

    def __init__(self, graph: Graph, plan: Plan, choices: Sequence[Choice | None]) -> None:
        """choices: for each of `graph_operators`, or for those that compute alone: then no input is written."""
        self.ops = graph.op_infos()
        super().__init__(graph, self.ops)
        of_data = len(choices) - len(self.ops)
        wanted = plan.operands.sides
        self.before: list[tuple[SelectedOperand, ...]] = []
        self.after: list[tuple[SelectedOperand, ...]] = []
        for op, choice in zip(self.ops, choices[of_data:], strict=True):
            operands = _operands(op.inputs, op.outputs, wanted, choice)
            is_apart = overwrites_inputs(op)
            self.before.append(tuple(operand for operand in operands if is_apart and operand.io == INPUT))
            self.after.append(tuple(operand for operand in operands if not (is_apart and operand.io == INPUT)))
        self.data: dict[int, list[tuple[int, DataOperator]]] = {}
        self.late_data: list[DataOperator] = []
        for value, choice in zip(graph.handed_in[:of_data], choices[:of_data], strict=True):
            self._add_data(graph, value, wanted, choice)
        self.masks = [
            (BEFORE if before or op.index in self.data else 0) | (AFTER if after else 0)
            for op, before, after in zip(self.ops, self.before, self.after, strict=True)
        ]
        self.operator_masks = [len(before) + len(after) for before, after in zip(self.before, self.after, strict=True)]

    @property
    def is_watched(self) -> bool:
        """False when nothing of the graph is written."""
        return any(self.masks) or bool(self.late_data)

    def _add_data(self, graph: Graph, value: Value, wanted: Sequence[str], choice: Choice | None) -> None:
        """Written when its first reader is about to run: later operators may write its memory."""
        key = KeyTable(graph).of(value)
        info = TensorInfo(key, value.type.dtype, value.type.shape, value.format, value.sub_format)
        operands = _operands((info,), (info,), wanted, choice)
        if not operands:
            return
        found = DataOperator(value, info, operands)
        for op, node in zip(self.ops, graph.kernels, strict=True):
            # One that another runs may not run; what it reads, that one reads.
            for slot, read in enumerate(op.inputs if node.owner is None else ()):
                if read.key == key:
                    self.data.setdefault(op.index, []).append((slot, found))
                    return
        self.late_data.append(found)


def graph_operators(graph: Graph, originals: Mapping[str, tuple[str, ...]]) -> list[ModelOperator]:
    """The operators of a graph as ACL counts them: one of type `Data` for each input, then those that compute.

    originals   name of an operator -> its names before it was renamed or fused
    """
    index_by_value = {value.id: slot for slot, value in enumerate(graph.handed_in)}
    operators = [ModelOperator(DATA, value.name) for value in graph.handed_in]
    index_by_node = {node.id: len(operators) + index for index, node in enumerate(graph.kernels)}
    for node in graph.kernels:
        indices = (_producer(value, index_by_value, index_by_node) for value in node.inputs)
        producers = tuple(dict.fromkeys(producer for producer in indices if producer is not None))
        before = originals.get(node.full_name, ())
        operators.append(ModelOperator(node.op_type, node.full_name, before, producers, node.run_pattern))
    return operators


def overwrites_inputs(op: OpInfo) -> bool:
    """True for operators that may change what they read: their inputs are written before they run.

    Source: ACL, `dump_mode` all: collective operators (Hcom...) have a file of inputs and a file of outputs.
    """
    return bool(op.mutates) or op.op_type.startswith(_COLLECTIVE_PREFIX)


def _operands(
    inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], wanted: Sequence[str], choice: Choice | None
) -> tuple[SelectedOperand, ...]:
    if choice is None:
        return ()
    infos_by_io = {INPUT: inputs, OUTPUT: outputs}
    return tuple(
        SelectedOperand(io, slot, info)
        for io in wanted
        for slot, info in enumerate(infos_by_io[io])
        if choice.dumps(io, slot)
    )


def _producer(value: Value, index_by_value: dict[int, int], index_by_node: dict[int, int]) -> int | None:
    """Place of the operator that makes a value; one that only keeps an order hands on its first operand."""
    node: Node | None = value.node
    while node is not None and node.id not in index_by_node and node.inputs:
        value = node.inputs[0]
        node = value.node
    return index_by_value.get(value.id) if node is None else index_by_node.get(node.id)


class InputCopies:
    """Copies of the mutated inputs of one operator at a time, in buffers that the next operator uses again.

    `take` before the operator, `arrays` until the next `take`. For the one thread that runs the graph.
    """

    def __init__(self) -> None:
        self._buffers: dict[int, Array] = {}
        self.arrays: dict[TensorKey, Array] = {}

    def take(self, event: OpEvent, slots: Iterable[int]) -> None:
        """Copy the inputs in `slots`, and drop the copies of the previous operator."""
        self.arrays.clear()
        for slot in slots:
            array = event.inputs[slot]
            buffer = self._buffers.get(slot)
            if buffer is None or buffer.size < array.nbytes:
                buffer = self._buffers[slot] = np.empty(array.nbytes, np.uint8)
            copy = buffer[: array.nbytes].view(array.dtype).reshape(array.shape)
            copy_elements(copy, array)
            self.arrays[event.op.inputs[slot].key] = copy
