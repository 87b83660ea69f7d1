"""Program: a model as a list of calls over slots; values are freed after their last use."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import onnx
import onnxruntime

from msdump.errors import ExecutionError, MsdumpError
from msdump.frontends.onnx.node_session import (
    NodeSession,
    SessionMaker,
    error_text,
    is_ort_error,
    run_options,
    type_proto,
)
from msdump.frontends.onnx.nodes import ModelConstant, ModelNode
from msdump.frontends.onnx.ort_values import array_of, dtype_name, owned_value_of, value_of

Slots = list[Any]
# From the slots to the results of one operator.
Launch = Callable[[Slots], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class NodeCall:
    """One operator.

    session  None for one that runs here, as `flow` says
    flow     of an operator that runs the operators of its subgraphs
    out      slots of its outputs, in the order of `node.makes`
    frees    slots that are not read again
    """

    node: ModelNode
    session: NodeSession | None
    flow: Flow | None
    launch: Launch
    out: tuple[int, ...]
    frees: tuple[int, ...]


class Body:
    """A subgraph of an operator, ready to run.

    label     name of the operator's attribute that holds it
    inputs    what each run is given
    outputs   what each run gives
    is_made   of each output: whether a node of it makes it, so that its memory is the run's own
    dtypes    of each output, as `OnnxProgram.dtype_of`
    own_names of values that it makes or brings along
    """

    def __init__(
        self,
        label: str,
        program: OnnxProgram,
        inputs: Sequence[str],
        own_names: Iterable[str],
        captured: Sequence[tuple[int, int]],
    ) -> None:
        """captured: slot of the program around it, and slot here, of each value that it reads from there"""
        self.label = label
        self.program = program
        self.inputs = tuple(inputs)
        self.outputs = program.outputs
        made = {name for call in program.calls for name in call.node.makes}
        self.is_made = tuple(name in made for name in self.outputs)
        self.own_names = made.union(own_names)
        self.dtypes = tuple(map(self.dtype_of, self.outputs))
        self._given = tuple(program.slot_by_name[name] for name in inputs)
        self._captured = tuple(captured)

    def begin(self, around: Slots, given: Sequence[Any]) -> Slots:
        """The slots of one run.

        around  those of the program around it
        given   what the inputs hold
        """
        slots: Slots = [None] * len(self.program.slot_by_name)
        for outer, inner in self._captured:
            slots[inner] = around[outer]
        for slot, value in zip(self._given, given, strict=True):
            slots[slot] = value
        return slots

    def results(self, slots: Slots) -> list[Any]:
        """What the slots of a run that has ended hold of the outputs."""
        return [self._result(name, slots) for name in self.outputs]

    def type_of(self, name: str) -> onnx.TypeProto | None:
        """Type of a value of it; None where it is not known."""
        constant = self.program.constants.get(name)
        if constant is not None:
            return onnx.helper.make_tensor_type_proto(constant.elem_type, constant.proto.dims)
        return self.program.types.get(name)

    def dtype_of(self, name: str) -> str | None:
        """As `OnnxProgram.dtype_of`, of constants as well."""
        constant = self.program.constants.get(name)
        return self.program.dtype_of(name) if constant is None else dtype_name(constant.elem_type)

    def _result(self, name: str, slots: Slots) -> Any:
        constant = self.program.constants.get(name)
        if constant is None:
            return slots[self.program.slot_by_name[name]]
        dtype = dtype_name(constant.elem_type)
        if constant.array is None or dtype is None:
            return onnx.numpy_helper.to_array(constant.proto)
        return owned_value_of(constant.array, dtype)


# Runs all operators of a body. Its slots hold what it was given; the number counts the runs of a loop, None: a branch.
RunBody = Callable[[Body, Slots, int | None], None]


class Flow(ABC):
    """An operator that decides what runs.   `bodies`: its subgraphs."""

    bodies: tuple[Body, ...] = ()

    @abstractmethod
    def run(self, slots: Slots, run_body: RunBody) -> Sequence[Any]:
        """Run it once, from the slots of the program around it to its results, which are memory of their own.

        Raises: what its operators raise; ExecutionError for results that do not fit together.
        """


class MakesFlows(Protocol):
    """What knows operators with subgraphs."""

    def make(self, node: ModelNode, around: OnnxProgram, sessions: SessionMaker, whole: Launch) -> Flow | None:
        """What runs the subgraphs of a node of a program; None where onnxruntime has to run it whole."""


class OnnxProgram:
    """All operators of a model or subgraph, in order. Slots hold OrtValues; strings, sequences, maps are Python's own.

    slot_by_name  of inputs, constants and results
    types         type of every value, by name
    Any number of threads may run it at once.
    """

    def __init__(
        self,
        nodes: Sequence[ModelNode],
        constants: Mapping[str, ModelConstant],
        inputs: Sequence[str],
        outputs: Sequence[str],
        types: dict[str, onnx.TypeProto],
        sessions: SessionMaker,
        flows: MakesFlows,
    ) -> None:
        self.types = types
        self.slot_by_name: dict[str, int] = {}
        self.outputs = tuple(outputs)
        self.constants = constants
        for name in (*inputs, *constants):
            self._slot(name)
        for node in nodes:
            for name in node.makes:
                self._slot(name)
        frees = self._last_uses(nodes)
        self.calls = [self._call(node, sessions, flows, freed) for node, freed in zip(nodes, frees, strict=True)]
        self._quick = [(call.launch, call.out, call.frees) for call in self.calls]

    def dtype_of(self, name: str) -> str | None:
        """Name of the dtype table of a value; None for strings, packed dtypes and what is no tensor."""
        type = self.types.get(name)
        return dtype_name(type.tensor_type.elem_type) if type is not None and type.HasField("tensor_type") else None

    def is_native(self, name: str) -> bool:
        """True for a value that stands in its slot as an OrtValue."""
        type = self.types.get(name)
        if type is None or not type.HasField("tensor_type"):
            return False
        return bool(type.tensor_type.elem_type != onnx.TensorProto.STRING)

    def begin(self, arrays: Mapping[str, Any]) -> Slots:
        """The slots of one run. The arrays must outlive it: nothing is copied."""
        slots: Slots = [None] * len(self.slot_by_name)
        for name, array in arrays.items():
            dtype = self.dtype_of(name)
            slots[self.slot_by_name[name]] = array if dtype is None else value_of(array, dtype)
        return slots

    def run(self, slots: Slots) -> None:
        """Run once, without observers."""
        calls = iter(self._quick)
        try:
            for launch, out, frees in calls:
                results = launch(slots)
                for index, slot in enumerate(out):
                    slots[slot] = results[index]
                for slot in frees:
                    slots[slot] = None
        except Exception as error:
            failed = self.calls[len(self._quick) - operator.length_hint(calls) - 1]
            explained = self.explain(error, failed)
            if explained is error:
                raise
            raise explained from error

    def explain(self, error: Exception, call: NodeCall) -> Exception:
        """What to raise for what a session has raised, or an operator that this one runs."""
        if isinstance(error, MsdumpError) or not is_ort_error(error):
            return error
        explained = ExecutionError(
            f"{call.node.where}: expected operands that it can work on, got {error_text(error)} "
            "Look at the shapes of what feeds it."
        )
        explained.operator = call.node.name
        return explained

    def results(self, slots: Slots, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name: arrays that nothing else writes, lists and maps."""
        results: dict[str, Any] = {}
        for name in self.outputs:
            constant = self.constants.get(name)
            if constant is not None and constant.array is not None:
                results[name] = constant.array
            elif name in arrays:
                results[name] = arrays[name].copy() if isinstance(arrays[name], np.ndarray) else arrays[name]
            else:
                value = slots[self.slot_by_name[name]]
                results[name] = array_of(value) if self.dtype_of(name) is not None else value
        return results

    # -- building ---------------------------------------------------------------------------------

    def _slot(self, name: str) -> int:
        return self.slot_by_name.setdefault(name, len(self.slot_by_name))

    def _slots(self, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(self.slot_by_name[name] for name in names)

    def learn_types(self, types: Iterable[tuple[str, onnx.TypeProto | None]]) -> None:
        """Types of values that onnx does not know; None is no news."""
        for name, proto in types:
            if name and proto is not None and not self._knows_elements(name):
                self.types[name] = proto

    def _call(self, node: ModelNode, sessions: SessionMaker, flows: MakesFlows, frees: tuple[int, ...]) -> NodeCall:
        """Operators are made one after the other: onnx does not know the types of all, and their sessions do."""
        out = self._slots(node.makes)
        flow = flows.make(node, self, sessions, self._whole(node, sessions)) if node.has_subgraphs else None
        if flow is not None:
            return NodeCall(node, None, flow, partial(flow.run, run_body=_run_body), out, frees)
        session = sessions.make(node, self.types)
        self.learn_types(
            (name, type_proto(text)) for (_, name), text in zip(session.fetches, session.output_types, strict=True)
        )
        return NodeCall(node, session, None, self._launch(session), out, frees)

    def _whole(self, node: ModelNode, sessions: SessionMaker) -> Launch:
        """An operator with its subgraphs in one session, which is made when it is needed first."""
        launches: list[Launch] = []

        def launch(slots: Slots) -> Sequence[Any]:
            if not launches:
                launches.append(self._launch(sessions.make(node, self.types)))
            return launches[0](slots)

        return launch

    def _knows_elements(self, name: str) -> bool:
        type = self.types.get(name)
        return type is not None and (not type.HasField("tensor_type") or type.tensor_type.elem_type != 0)

    def _last_uses(self, nodes: Sequence[ModelNode]) -> list[tuple[int, ...]]:
        last: dict[str, int] = {}
        for index, node in enumerate(nodes):
            last.update(dict.fromkeys((*node.reads, *node.makes), index))
        frees: list[list[int]] = [[] for _ in nodes]
        for name, index in last.items():
            if name not in self.outputs and name not in self.constants:
                frees[index].append(self.slot_by_name[name])
        return [tuple(slots) for slots in frees]

    def _launch(self, session: NodeSession) -> Launch:
        names = [name for _, name in (*session.feeds, *session.fetches)]
        if not all(self.is_native(name) for name in names):
            return self._python_launch(session)
        run = session.native.run_with_ort_values
        fetches = [name for name, _ in session.fetches]
        options = run_options()
        feeds = tuple(name for name, _ in session.feeds)
        slots_read = self._slots([name for _, name in session.feeds])
        if len(feeds) == 1:
            (feed,), (slot,) = feeds, slots_read
            return lambda slots: run({feed: slots[slot]}, fetches, options)
        if not feeds:
            return lambda slots: run({}, fetches, options)
        gather = operator.itemgetter(*slots_read)
        return lambda slots: run(dict(zip(feeds, gather(slots), strict=True)), fetches, options)

    def _python_launch(self, session: NodeSession) -> Launch:
        """For an operator on strings, sequences or maps: Python's own objects in and out."""
        run = session.native.run
        options = run_options()
        fetches = [name for name, _ in session.fetches]
        feeds = [(feed, self.slot_by_name[name], self.is_native(name)) for feed, name in session.feeds]
        makes = [name for _, name in session.fetches]

        def launch(slots: Slots) -> Sequence[Any]:
            values = {
                feed: onnxruntime.OrtValue(slots[slot]) if is_native else slots[slot] for feed, slot, is_native in feeds
            }
            results = run(fetches, values, options)
            dtypes = [self.dtype_of(name) for name in makes]
            return [
                _owned(value) if dtype is None else owned_value_of(value, dtype)
                for dtype, value in zip(dtypes, results, strict=True)
            ]

        return launch


def _owned(value: Any) -> Any:
    """The same with memory of its own: a sequence that onnxruntime returns may lie in what the operator read."""
    if not isinstance(value, list):
        return value
    return [element.copy() if isinstance(element, np.ndarray) else element for element in value]


def _run_body(body: Body, slots: Slots, number: int | None) -> None:
    body.program.run(slots)
