"""From an event and the plan to records: which operands of an operator are dumped, and under which identity.

Pure: no files, no threads, no clock but the one that is passed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msdump.arrays import Array
from msdump.config.plan import DUMP_INPUT, DUMP_OUTPUT
from msdump.dump.clock import Clock
from msdump.events import OpEvent, OpInfo, TensorInfo
from msdump.records import INPUT, OUTPUT, TensorKey, TensorRecord


@dataclass(frozen=True, slots=True)
class Operand:
    """One input or output of an operator that the plan asks for."""

    io: str
    slot: int
    info: TensorInfo


def selected_operands(op: OpInfo, mask: int) -> tuple[Operand, ...]:
    """Operands that the mask asks for, inputs first."""
    operands: list[Operand] = []
    if mask & DUMP_INPUT:
        operands.extend(Operand(INPUT, slot, info) for slot, info in enumerate(op.inputs))
    if mask & DUMP_OUTPUT:
        operands.extend(Operand(OUTPUT, slot, info) for slot, info in enumerate(op.outputs))
    return tuple(operands)


def keys_to_keep(ops: Sequence[OpInfo], masks: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Op index -> mutated input slots whose old value somebody dumps, so that it is copied before the op runs.

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
    operands: Sequence[Operand],
    graph_id: int,
    clock: Clock,
    kept: Mapping[TensorKey, Array],
    task_id: int = 0,
    stream_id: int = 0,
) -> Iterator[TensorRecord]:
    """Records of one operator; an operand that was copied before a mutation comes from `kept`."""
    op = event.op
    for operand in operands:
        info = operand.info
        array = kept.get(info.key)
        if array is None:
            array = (event.inputs if operand.io == INPUT else event.outputs)[operand.slot]
        yield TensorRecord(
            op.op_type,
            op.full_name,
            task_id,
            stream_id,
            clock.next_us(),
            operand.io,
            operand.slot,
            info.dtype,
            # A shape that only the data decide (-1) is the array's own.
            array if array.shape == info.shape or -1 in info.shape or not array.size else array.reshape(info.shape),
            info.format,
            event.iteration,
            graph_id,
            info.key,
            sub_format=info.sub_format,
            original=info.original if operand.io == OUTPUT else None,
        )


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
