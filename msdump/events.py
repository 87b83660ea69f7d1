"""OpEvent: inside the process, one operator is about to run or has just run; Observer: who is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from msdump.records import DEFAULT_FORMAT, TensorKey

if TYPE_CHECKING:
    from msdump.graph.graph import Graph, Value

Array = np.ndarray[Any, np.dtype[Any]]

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


@dataclass(frozen=True, slots=True)
class FinishedStep:
    """A watched iteration that has ended: one event per operator, in execution order, and the memory of any
    value of the graph (parameters and inputs included) as the step left it."""

    graph: Graph
    iteration: int
    events: Sequence[OpEvent]
    array: Callable[[Value], Array]


class Observer(Protocol):
    """Everything that watches a run. All calls come from the thread that runs the graph.

    `needs_all_values` asks the executor for memory without reuse: at the end of an iteration every value is
    still there, as the last operator that wrote it left it.
    """

    needs_all_values: bool

    def on_graph(self, graph: Graph) -> Sequence[int]:
        """A graph was compiled. Returns one mask per operator: 0 or some of BEFORE, AFTER, KEEP."""
        ...

    def on_iteration_begin(self, graph: Graph, iteration: int) -> bool:
        """True when this iteration is to be watched; False makes it run as if nobody were there."""
        ...

    def before_op(self, event: OpEvent) -> None: ...

    def after_op(self, event: OpEvent) -> None: ...

    def on_iteration_end(self, step: FinishedStep) -> None: ...

    def on_error(self, event: OpEvent, error: BaseException) -> None:
        """A kernel raised; the error goes on after this call."""
        ...

    def close(self) -> None:
        """The last call: everything that is pending is finished or reported."""
        ...
