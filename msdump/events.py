"""OpEvent: inside the process, one operator is about to run or has just run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msdump.arrays import Array
from msdump.records import DEFAULT_FORMAT, TensorKey

# Bits of the per-node mask that an observer returns from `on_graph`. KEEP: its operands are looked at when the
# iteration ends, so their memory is no other value's before; without it an executor that does not keep all memory may
# leave the arrays of its event out.
BEFORE, AFTER, KEEP = 1, 2, 4


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """What is known about one operand before anything ran.

    sub_format   group count of FRACTAL_Z
    original     name and output of the operator that it is in the program as the user wrote it; None where unknown
    """

    key: TensorKey
    dtype: str
    shape: tuple[int, ...]
    format: str = DEFAULT_FORMAT
    sub_format: int = 0
    original: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class OpInfo:
    """What is known about one operator before anything ran. `index` is its place in the execution order.

    is_marked   the script asked for it with `set_dump`
    """

    graph_id: int
    index: int
    op_type: str
    full_name: str
    task_id: int
    stream_id: int
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    mutates: tuple[int, ...] = ()
    is_marked: bool = False


@dataclass(frozen=True, slots=True)
class OpEvent:
    """One operator at one moment. Arrays are the executor's own memory: copy what must outlive the call."""

    op: OpInfo
    iteration: int
    inputs: Sequence[Array]
    outputs: Sequence[Array]
