"""An FX graph as observers see it: which tensors its calls read and write, and their bytes while it runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from msdump.frontends.torch.convert import array_of
from msdump.frontends.torch.device import PinnedCopies, measured_array
from msdump.frontends.torch.graph_from_fx import FxGraph
from msdump.frontends.torch.operators import Path, is_collective, waited
from msdump.frontends.torch.program import FxProgram
from msdump.graph.graph import SAVED, Graph, Value
from msdump.graph.run import Calls, ObservedGraph, Observer, WatchedRun
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import OpInfo

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class CallOperands:
    """Where the operands of one call are.

    inputs   (value, slot of the program) of each input
    outputs  (value, path in the result) of each output
    over     ids of values that lie in memory which the call writes
    """

    op: OpInfo
    inputs: tuple[tuple[Value, int], ...]
    outputs: tuple[tuple[Value, Path], ...]
    over: frozenset[int]
    is_collective: bool


class ObservedFxProgram:
    """A program with the Graph that it is for one set of shapes, and that observers know.

    operands   of each call; None for a call that observers do not see
    arguments  (value, slot) of each input of the graph
    drops      ids of values that are not read after each call
    """

    def __init__(self, program: FxProgram, fx_graph: FxGraph, observers: Sequence[Observer]) -> None:
        self.program = program
        self.seen = ObservedGraph(fx_graph.graph, observers)
        self.operands = _operands(program, fx_graph, self.seen.ops)
        self.ops = [None if operands is None else operands.op for operands in self.operands]
        slots = program.slot_by_node
        self.arguments = [
            (value, slots[node]) for node in program.placeholders if (value := fx_graph.value_of(node)) is not None
        ]
        self.drops = _drops(program, fx_graph)

    @property
    def graph(self) -> Graph:
        return self.seen.graph

    def run(
        self,
        watched: WatchedRun,
        args: list[object],
        copies: PinnedCopies | None,
        report: Callable[[str], None],
        *,
        measures_only: bool = False,
    ) -> Any:
        """Run once while observers watch; empties `args`, and returns what the program returns.

        copies         brings tensors of a device to the host; None where they are there
        measures_only  no observer wants more than statistics: of a device nothing else is brought
        report         called with the reason why a tensor cannot be shown
        """
        slots = self.program.begin(args)
        calls = _ProgramCalls(self, slots, copies, report, measures_only and copies is not None)
        watched.launch_all(calls)
        outputs = self.program.outputs(slots)
        calls.forget_arrays()
        watched.finish(calls)
        return outputs


def _operands(program: FxProgram, fx_graph: FxGraph, ops: Sequence[OpInfo]) -> list[CallOperands | None]:
    infos = dict(zip((node.id for node in fx_graph.graph.nodes), ops, strict=True))
    values_by_root: dict[int, set[int]] = {}
    for value_id, root in fx_graph.roots.items():
        values_by_root.setdefault(root, set()).add(value_id)
    slots = program.slot_by_node
    operands: list[CallOperands | None] = []
    for call in program.calls:
        node = fx_graph.nodes.get(call.node)
        if node is None:
            operands.append(None)
            continue
        inputs = [(value, slots[argument]) for argument, value in fx_graph.operands[call.node]]
        results = [(value, path) for (producer, path), value in fx_graph.values.items() if producer is call.node]
        over = {
            value for slot in node.definition.mutates for value in values_by_root[fx_graph.roots[node.inputs[slot].id]]
        }
        operands.append(
            CallOperands(
                infos[node.id], tuple(inputs), tuple(results), frozenset(over), is_collective(call.node.target)
            )
        )
    return operands


def _drops(program: FxProgram, fx_graph: FxGraph) -> list[tuple[int, ...]]:
    """Ids of values that are not read after each call."""
    drops: list[tuple[int, ...]] = []
    node_by_slot = {slot: node for node, slot in program.slot_by_node.items()}
    for call in program.calls:
        nodes = [node_by_slot[slot] for slot in call.frees]
        values = [fx_graph.values.get((node, ())) or fx_graph.value_of(node) for node in nodes]
        drops.append(tuple(value.id for value in values if value is not None))
    return drops


class _ProgramCalls(Calls):
    """One run of a program. Arrays are views of the tensors; nothing is copied but what would be lost."""

    def __init__(
        self,
        seen: ObservedFxProgram,
        slots: list[Any],
        copies: PinnedCopies | None,
        report: Callable[[str], None],
        measures: bool,
    ) -> None:
        self.ops = seen.ops
        self.is_late = copies is not None
        # Statistics are of the tensors as they were.
        self.is_before_told = not measures
        self._calls = seen.program.calls
        self._operands = seen.operands
        self._drops = seen.drops
        self._slots = slots
        # The user's own tensors, as the step leaves them; what was saved for this graph belongs to the step.
        self._arguments = {value.id: slots[slot] for value, slot in seen.arguments if value.kind != SAVED}
        self._copies = copies
        self._report = report
        self._measures = measures
        self._arrays: dict[int, Array] = {}
        self._late: deque[tuple[Any, Callable[[], None]]] = deque()

    def launch(self, number: int) -> None:
        call = self._calls[number]
        self._slots[call.out] = call.run(self._slots)

    def inputs(self, number: int) -> Sequence[Array]:
        return [self._array(value, self._slots[slot]) for value, slot in self._of(number).inputs]

    def outputs(self, number: int) -> Sequence[Array]:
        operands, out = self._of(number), self._calls[number].out
        if operands.is_collective:
            self._slots[out] = waited(self._slots[out])
        result = self._slots[out]
        return [self._array(value, _item(result, path)) for value, path in operands.outputs]

    def failed_outputs(self, number: int) -> Sequence[Array]:
        return [np.empty((0,), dtypes.dtype(info.dtype).numpy) for info in self._of(number).op.outputs]

    def array(self, value: Value) -> Array:
        array = self._array(value, self._arguments[value.id])
        self.settle()
        return array

    def protect(self, number: int) -> Collection[int]:
        """Forget the other views of what is overwritten."""
        over = self._of(number).over
        for value_id in over:
            self._arrays.pop(value_id, None)
        if self._copies is None:
            return over
        self._copies.protect()
        return ()

    def release(self, number: int) -> None:
        for slot in self._calls[number].frees:
            self._slots[slot] = None
        for value_id in self._drops[number]:
            self._arrays.pop(value_id, None)

    def hand_over(self, tell: Callable[[], None]) -> None:
        assert self._copies is not None
        self._late.append((self._copies.mark(), tell))
        self._tell_ready(is_last=False)

    def settle(self) -> None:
        if self._copies is not None:
            self._copies.mark().synchronize()
            self._tell_ready(is_last=True)

    def forget_arrays(self) -> None:
        """The iteration has ended: tensors are read anew."""
        self._arrays.clear()

    # -- parts ------------------------------------------------------------------------------------

    def _tell_ready(self, is_last: bool) -> None:
        while self._late and (is_last or self._late[0][0].query()):
            self._late.popleft()[1]()

    def _of(self, number: int) -> CallOperands:
        operands = self._operands[number]
        assert operands is not None
        return operands

    def _array(self, value: Value, tensor: torch.Tensor) -> Array:
        array = self._arrays.get(value.id)
        if array is None:
            array = self._arrays[value.id] = read_tensor(value, tensor, self._copies, self._report, self._measures)
        return array


def read_tensor(
    value: Value,
    tensor: torch.Tensor,
    copies: PinnedCopies | None,
    report: Callable[[str], None],
    measures: bool = False,
) -> Array:
    """The array of a tensor, which shares its memory where that is the host's.

    Edges: empty for what cannot be read, or is of another type than the graph says; the report tells.
    """
    expected = value.type
    numpy_dtype = dtypes.dtype(expected.dtype).numpy
    try:
        if copies is not None and copies.takes(tensor):
            array = measured_array(copies, tensor) if measures else copies.array(tensor)
        elif tensor.device.type == "cpu":
            array = array_of(tensor)
        else:
            array = array_of(tensor.detach().cpu())
    except (RuntimeError, TypeError, AttributeError) as error:
        report(f"tensor of {_owner(value)} that cannot be read ({type(error).__name__})")
        return np.empty((0,), numpy_dtype)
    if array.dtype != numpy_dtype or (array.shape != expected.shape and -1 not in expected.shape):
        report(f"tensor of {_owner(value)} that is of another type than the operator declares")
        return np.empty((0,), numpy_dtype)
    return array


def _owner(value: Value) -> str:
    """Name of the operator that made a value, or of the input that it is."""
    return value.name if value.node is None else value.node.full_name


def _item(result: Any, path: Path) -> Any:
    for index in path:
        result = result[index]
    return result
