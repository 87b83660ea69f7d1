"""A stage of an eager program, forward, backward or update: an open graph, and its run in each iteration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from msdump.frontends.torch.eager.call_sites import Lines, Site, source_lines
from msdump.frontends.torch.eager.regions import Region
from msdump.frontends.torch.eager.signatures import Signature, Tensor
from msdump.frontends.torch.operators import plain
from msdump.graph.graph import PARAMETER, Graph, Node, Value
from msdump.graph.primitive import Primitive, PrimitiveDef
from msdump.graph.run import Calls, MeasuredCalls, ObservedGraph, Observer, WatchedRun
from msdump.graph.types import SourceLine, TensorType
from msdump.process.sessions import lock
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import OpInfo, TensorInfo, TensorKey

if TYPE_CHECKING:
    import torch

    from msdump.config.plan import Plan

# The parts of a step, and what a script does before its first one.
FORWARD, BACKWARD, UPDATE, SETUP = range(4)


@dataclass(slots=True, eq=False)
class Named:
    """An operator by its name, in all iterations.

    number  tells it apart from others of its type
    name    full name, of the scope, the type, and the number
    lines   source lines of the script that run it; None until they are looked up
    of      the operator whose gradient it computes
    numbers its floats that are no tensors, as the last call had them
    plan    the last one that was asked whether it selects the operator
    last    what observers were told of the last call
    """

    number: int
    name: str
    lines: Lines | None = None
    of: Named | None = None
    numbers: tuple[object, ...] | None = None
    plan: object = None
    is_selected: bool = False
    last: OpInfo | None = None

    def is_selected_by(self, plan: Plan) -> bool:
        """Asked once of each plan."""
        if self.plan is not plan:
            (mask,) = plan.masks([self.name])
            self.plan, self.is_selected = plan, mask != 0
        return self.is_selected

    @property
    def source(self) -> tuple[SourceLine, ...]:
        """Lines of the script, outermost first: its own, then those of the operator whose gradient it computes."""
        own = source_lines(self.lines or ())
        return own if self.of is None else (*own, *self.of.source)


class _Caller:
    """Code that runs operators of one type in one scope: all that it ever ran, and how many in the iteration."""

    __slots__ = ("count", "iteration", "operators")

    def __init__(self) -> None:
        self.iteration = -1
        self.count = 0
        self.operators: list[Named] = []


@dataclass(slots=True)
class Call:
    """One call of an operator.

    scope            the modules around it
    inputs, outputs  what is known of each operand
    numbers          its floats that are no tensors
    copies           slot -> an input that the call may overwrite, as it was before
    read, written    arrays of the inputs and of the outputs
    error            what it raised
    """

    signature: Signature | Region
    scope: str
    operator: Named
    tensors: Sequence[Tensor]
    attributes: Callable[[], dict[str, object]]
    inputs: tuple[TensorInfo, ...]
    numbers: tuple[object, ...] = ()
    copies: Mapping[int, Array] = field(default_factory=dict)
    read: Sequence[Array] = ()
    outputs: tuple[TensorInfo, ...] = ()
    written: Sequence[Array] = ()
    error: Exception | None = None

    @property
    def name(self) -> str:
        return self.operator.name


class Stage:
    """Attributes: `part` of a step; `graph`, which grows with each operator that runs for the first time; `iteration`,
    the last one that was watched; `is_watched`, whether that goes on; `on_new`, called with a call of an operator that
    runs for the first time.
    """

    def __init__(self, part: int, graph_id: int, observers: Sequence[Observer]) -> None:
        self.part = part
        self.iteration = -1
        self.graph = Graph(f"kernel_graph_{graph_id}", graph_id, is_open=True)
        self.on_new: Callable[[Stage, Call], None] = _ignore
        self._observers = tuple(observers)
        self._seen = ObservedGraph(self.graph, self._observers)
        self._run: WatchedRun | None = None
        self.is_watched = False
        # By scope, type, and the code that runs them.
        self._callers: dict[tuple[str, str, Site], _Caller] = {}
        self._next_number: Counter[str] = Counter()
        # By name and operands: an operator may run with other shapes in another iteration.
        self._ops: dict[tuple[str, tuple[TensorInfo, ...], tuple[TensorInfo, ...]], OpInfo] = {}
        self._nodes: dict[str, Node] = {}
        self._values: dict[int, Value] = {}
        self._input_names: Counter[str] = Counter()
        self._parameter_values: dict[tuple[str, TensorType], Value] = {}
        self._parameters: dict[int, torch.Tensor] = {}
        self._names: dict[int, str] = {}
        # Of this iteration: numbers of parameters by their memory, and the values of those that were overwritten.
        self._by_memory: dict[int, set[int]] = {}
        self._overwritten: dict[int, tuple[TensorInfo, Array]] = {}
        self._attributes: dict[str, Mapping[str, object]] = {}

    def begin(self, iteration: int) -> None:
        self.iteration = iteration
        self._by_memory.clear()
        self._overwritten.clear()
        self._attributes = {}
        with lock:  # observers are told of one run at a time, whichever thread it is in
            self._run = self._seen.begin(iteration)
        self.is_watched = self._run is not None

    @property
    def variants(self) -> int:
        """How many operators it knows: one that runs with several shapes counts for each of them."""
        return len(self._ops)

    def forget(self) -> None:
        """Forget the operators, which are told anew when they run; between two iterations."""
        self._ops.clear()
        self._values.clear()
        self._seen = ObservedGraph(self.graph, self._observers)
        for value in self._parameter_values.values():
            self._seen.add_parameter(value)

    def named(self, scope: str, op_type: str, site: Site) -> Named:
        """The operator that is about to run.

        The same scope, type, call site, and index among those of them that run in an iteration are one operator, in
        each iteration, and nothing else ever has its number. Numbers count up in the order in which operators run for
        the first time: a program that does the same in each iteration has those of its first one in all of them.
        """
        key = scope, op_type, site
        caller = self._callers.get(key)
        if caller is None:
            caller = self._callers[key] = _Caller()
        if caller.iteration != self.iteration:
            caller.iteration, caller.count = self.iteration, 0
        index = caller.count
        caller.count = index + 1
        if index < len(caller.operators):
            return caller.operators[index]
        number = self._next_number[op_type]
        self._next_number[op_type] = number + 1
        operator = Named(number, f"{scope}/{op_type}-op{number}")
        caller.operators.append(operator)
        return operator

    def value_of(self, info: TensorInfo) -> Value | None:
        """The value of its graph that a tensor is; None where it is none."""
        return self._values.get(info.key.value_id)

    def show(self, call: Call) -> None:
        """Report a call to the observers.   Raises: what the call raised."""
        assert self._run is not None
        if call.numbers != call.operator.numbers:
            if call.operator.numbers is not None:
                self._attributes[call.name] = {name: plain(value) for name, value in call.attributes().items()}
            call.operator.numbers = call.numbers
        with lock:
            op = call.operator.last
            if op is None or op.inputs != call.inputs or op.outputs != call.outputs or not self._knows(op):
                op = self._ops.get((call.name, call.inputs, call.outputs)) or self._add(call)
                call.operator.last = op
            self._run.launch(_OneCall(call), op.index, op)

    def show_measured(self, calls: MeasuredCalls, may_wait: bool) -> None:
        """As `show`, of calls whose operators observers know.   may_wait: as `WatchedRun.add_measured`"""
        assert self._run is not None
        with lock:
            self._run.add_measured(calls, may_wait)

    def may_wait(self, ops: Sequence[OpInfo]) -> bool:
        """As `WatchedRun.may_wait`."""
        assert self._run is not None
        return self._run.may_wait(ops)

    def count_again(self, counts: Mapping[_Caller, int]) -> None:
        """Code has run so many operators again that have their names."""
        for caller, count in counts.items():
            if caller.iteration != self.iteration:
                caller.iteration, caller.count = self.iteration, 0
            caller.count += count

    def caller(self, scope: str, op_type: str, site: Site) -> _Caller:
        """Who runs an operator that has a name."""
        return self._callers[scope, op_type, site]

    def note_numbers(self, operator: Named, numbers: tuple[object, ...], attributes: Mapping[str, object]) -> None:
        """An operator has run with other numbers than in the iteration before."""
        self._attributes[operator.name] = attributes
        operator.numbers = numbers

    def show_failed(self, call: Call) -> None:
        """As `show`, of a call that raised. The script may catch that, and go on with the iteration."""
        assert self._run is not None
        try:
            self.show(call)
        except Exception as error:
            if error is not call.error:
                raise
        with lock:
            self._run.resume()

    def finish(self, now: ParametersNow) -> None:
        """The iteration has ended."""
        run, self._run, self.is_watched = self._run, None, False
        if run is not None:
            parameters = now.known(len(self._parameters))
            if parameters is None:
                parameters = self._parameters_at_end(now)
                now.note(len(self._parameters), parameters)
            with lock:
                run.finish(_End(parameters, now, self._attributes))
            self._overwritten.clear()

    def _parameters_at_end(self, now: ParametersNow) -> dict[int, _Final]:
        """By number. One that has another dtype or shape than when it was read is another value of the same name."""
        found: dict[int, _Final] = {}
        for number, tensor in list(self._parameters.items()):
            name = self._names[number]
            info, array = self._overwritten.get(number, (None, None))
            if info is None:
                if not now.is_readable(tensor, name):
                    continue
                info = now.info(tensor)
            value = self._parameter_value(name, info)
            if value.id == number or value.id not in found:
                found[value.id] = info, tensor, array
        return found

    # -- parts ------------------------------------------------------------------------------------

    def _knows(self, op: OpInfo) -> bool:
        """Whether observers were told of it since operators were last forgotten."""
        ops = self._seen.ops
        return op.index < len(ops) and ops[op.index] is op

    def _add(self, call: Call) -> OpInfo:
        mutates = tuple(slot for slot, each in enumerate(call.tensors) if each.is_written)
        if call.name not in self._nodes:
            self._nodes[call.name] = self._node(call, mutates)
            self.on_new(self, call)
        index = len(self._seen.ops)
        op_type = call.signature.op_type
        op = OpInfo(self.graph.graph_id, index, op_type, call.name, index, 0, call.inputs, call.outputs, mutates)
        self._ops[call.name, call.inputs, call.outputs] = op
        self._seen.append(op)
        return op

    def _node(self, call: Call, mutates: tuple[int, ...]) -> Node:
        names = tuple(each.name for each in call.tensors)
        op_type = call.signature.op_type
        definition = PrimitiveDef(op_type, input_names=names, mutates=mutates, has_side_effect=bool(mutates))
        attributes = {name: plain(value) for name, value in call.attributes().items()}
        primitive = Primitive(op_type, attributes, definition=definition)
        inputs = [self._value(info, name) for info, name in zip(call.inputs, names, strict=True)]
        types = [TensorType(info.dtype, info.shape) for info in call.outputs]
        node = self.graph.add_foreign_node(primitive, inputs, types, call.scope, call.operator.source)
        node.op_id = call.operator.number
        for info, value in zip(call.outputs, node.outputs, strict=True):
            self._values[info.key.value_id] = value
        return node

    def _value(self, info: TensorInfo, name: str) -> Value:
        value = self._values.get(info.key.value_id)
        if value is None:
            count = self._input_names[name]
            self._input_names[name] = count + 1
            value = self.graph.add_input(f"{name}_{count}" if count else name, TensorType(info.dtype, info.shape))
            self._values[info.key.value_id] = value
        return value

    def keep_parameters(
        self, memories: set[int], read: Callable[[str, torch.Tensor], tuple[TensorInfo, Array] | None]
    ) -> None:
        """Another part of the iteration is about to write into this memory: parameters there stay as they are now.

        read   name and tensor -> what it is now; None where nobody wants it
        """
        for memory in memories & self._by_memory.keys():
            for number in self._by_memory[memory] - self._overwritten.keys():
                kept = read(self._names[number], self._parameters[number])
                if kept is not None:
                    self._overwritten[number] = kept

    def add_parameter(self, info: TensorInfo, name: str, tensor: torch.Tensor, memory: int) -> Value:
        """A parameter of the model that an operator reads; its value is written when the iteration ends."""
        value = self._parameter_value(name, info)
        self._values[info.key.value_id] = value
        self._parameters[value.id] = tensor
        self._names[value.id] = name
        self._by_memory.setdefault(memory, set()).add(value.id)
        self._overwritten.pop(value.id, None)
        return value

    def _parameter_value(self, name: str, info: TensorInfo) -> Value:
        # By its name: an operator may have read it before its module was called, when it had none.
        type = TensorType(info.dtype, info.shape)
        value = self._parameter_values.get((name, type))
        if value is None:
            value = self._parameter_values[name, type] = self.graph.add_input(name, type, PARAMETER)
            with lock:
                self._seen.add_parameter(value)
        return value

    def add_parameters_again(self, read: ReadParameters, memories: Mapping[int, int]) -> None:
        """Operators that have run before read them again.   memories: of each, by identity of the tensor"""
        self._values.update(read.values)
        self._parameters.update(read.tensors)
        for number, tensor in read.tensors.items():
            self._by_memory.setdefault(memories[id(tensor)], set()).add(number)
            self._overwritten.pop(number, None)


def _ignore(stage: Stage, call: Call) -> None: ...


class ReadParameters:
    """Parameters that operators have read, as `Stage.add_parameter` knows them.

    values   by what keys of tensors call it
    tensors  by number of the value
    """

    def __init__(self) -> None:
        self.values: dict[int, Value] = {}
        self.tensors: dict[int, torch.Tensor] = {}

    def add(self, info: TensorInfo, value: Value, tensor: torch.Tensor) -> None:
        self.values[info.key.value_id] = value
        self.tensors[value.id] = tensor


class ParametersNow(Protocol):
    """Parameters of a model as they are at the moment.

    state   as of `FinishedStep`, after `known` or `note`
    """

    state: Hashable

    def known(self, count: int) -> Mapping[int, _Final] | None:
        """Those of a stage that knows so many, by number, as `note` was given them; None where that is not known."""

    def note(self, count: int, found: Mapping[int, _Final]) -> None:
        """What this has found."""

    def is_readable(self, tensor: torch.Tensor, name: str) -> bool:
        """Whether `info` knows it; the report counts it where not."""

    def info(self, tensor: torch.Tensor) -> TensorInfo: ...

    def array(self, info: TensorInfo, tensor: torch.Tensor) -> Array:
        """info: what `info` has returned"""

    def number(self, tensor: torch.Tensor) -> int | None:
        """As `Calls.measured`."""


class _OneCall(Calls):
    """A call that has run already. What it has overwritten was copied before."""

    is_before_told = False

    def __init__(self, call: Call) -> None:
        self._call = call
        self.ops = ()

    def launch(self, number: int) -> None:
        if self._call.error is not None:
            raise self._call.error

    def inputs(self, number: int) -> Sequence[Array]:
        return self._call.read

    def outputs(self, number: int) -> Sequence[Array]:
        return self._call.written

    def failed_outputs(self, number: int) -> Sequence[Array]:
        return [np.empty((0,), dtypes.dtype(info.dtype).numpy) for info in self._call.outputs]

    def array(self, value: Value) -> Array:
        raise AssertionError("asked for when an iteration ends")


# A parameter as an iteration leaves it: what is known of it, itself, and its values where they were kept.
_Final = tuple[TensorInfo, "torch.Tensor", Array | None]


class _End(Calls):
    """The end of an iteration.   parameters: by number of the value"""

    ops = ()

    def __init__(
        self,
        parameters: Mapping[int, _Final],
        now: ParametersNow,
        attributes: Mapping[str, Mapping[str, object]],
    ) -> None:
        self.attributes = attributes
        self.state = now.state
        self._parameters = parameters
        self._now = now

    def launch(self, number: int) -> None: ...

    def inputs(self, number: int) -> Sequence[Array]:
        return ()

    def outputs(self, number: int) -> Sequence[Array]:
        return ()

    def array(self, value: Value) -> Array:
        info, tensor, kept = self._parameters[value.id]
        return self._now.array(info, tensor) if kept is None else kept

    def key(self, value: Value) -> TensorKey | None:
        found = self._parameters.get(value.id)
        return None if found is None else found[0].key

    def measured(self, value: Value) -> int | None:
        _, tensor, kept = self._parameters[value.id]
        return self._now.number(tensor) if kept is None else None
