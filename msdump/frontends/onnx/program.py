"""Program: a model as a list of calls over slots; values are freed after their last use."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime

from msdump.errors import ExecutionError
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

    out    slots of its outputs, in the order of `node.makes`
    frees  slots that are not read again
    """

    node: ModelNode
    session: NodeSession
    launch: Launch
    out: tuple[int, ...]
    frees: tuple[int, ...]


class OnnxProgram:
    """All operators of a model, in order. Slots hold OrtValues; strings, sequences and maps are Python's own.

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
    ) -> None:
        self.types = types
        self.slot_by_name: dict[str, int] = {}
        self.outputs = tuple(outputs)
        self.constants = constants
        for name in (*inputs, *constants):
            self._slot(name)
        sessions_by_node = [(node, self._session(node, sessions)) for node in nodes]
        for node in nodes:
            for name in node.makes:
                self._slot(name)
        frees = self._last_uses(nodes)
        self.calls = [
            NodeCall(node, session, self._launch(session), self._slots(node.makes), frees[index])
            for index, (node, session) in enumerate(sessions_by_node)
        ]
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
        """What to raise for what a session has raised."""
        if not is_ort_error(error):
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

    def _session(self, node: ModelNode, sessions: SessionMaker) -> NodeSession:
        """Operators that onnx does not know are asked for their types one after the other."""
        session = sessions.make(node, self.types)
        for (_, name), text in zip(session.fetches, session.output_types, strict=True):
            proto = type_proto(text)
            if proto is not None and not self._knows_elements(name):
                self.types[name] = proto
        return session

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
                value if dtype is None else owned_value_of(value, dtype)
                for dtype, value in zip(dtypes, results, strict=True)
            ]

        return launch
