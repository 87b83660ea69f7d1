"""Propagation of each Inf through a step: its origin, its readers, and whether it is harmful.

An Inf is benign when the script put it there as a constant, or when every operator that read it stopped it: a mask of
-Inf before a softmax. `Stages` tells at which stage of a training step the value appeared: in the model, in the loss,
or after the model's output.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from msdump.analysis._payload import key_of
from msdump.analysis.find._health import HealthTable, NonFiniteCounts
from msdump.analysis.graph_info import GraphFile, GraphNode, Origin
from msdump.analysis.memory_state import Moment, UnsetTensors
from msdump.analysis.steps import Operator, Slot, Step, StepKey, inner_operators
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.paths.parse import FX
from msdump.operators.traits import (
    NEUTRAL,
    STOPS,
    brings_data,
    effect_on_inf,
    holds_inf_by_design,
    places_constant,
    reads_literal,
    reads_shape_only,
)
from msdump.tensors.records import INPUT, OUTPUT

# How a value that is not finite came about.
MADE, CAME_IN, UNKNOWN, CONSTANT, RECEIVED = "made", "came in", "unknown", "constant", "received"
CAME_WITH_DATA, UNSET_MEMORY = "data", "unset"
# An output of a step: index of the operator, slot.
OutputKey = tuple[int, Slot]
# How PyTorch names tensors that a traced function holds, which are no arguments.
_TORCH_CONSTANTS = ("_tensor_constant", "_frozen_param", "lifted_tensor_")
# The stages that are worth a word. AFTER_OUTPUT: code between two graphs, which the dump does not hold.
IN_LOSS, AFTER_OUTPUT = "loss", "after output"
# Scopes of loss cells (`_loss_fn-SoftmaxCrossEntropyWithLogits`, `criterion-MSELoss`); not of cells that wrap a network
# together with its loss.
_LOSS_NAME = re.compile(r"(?:^|[-_/])(?:loss_fn|loss|criterion)-(?!With)")
_LOSS_CLASS = re.compile(r"-\w*(?:Loss|CrossEntropy|CrossEntropyWithLogits)$")
# What PyTorch calls gradients that come into a backward graph.
_TANGENT = re.compile(r"tangents?_[0-9]+")
GRADIENTS = ("Gradients/", "Gradients_")


@dataclass(frozen=True, slots=True)
class BadTensor:
    """A tensor with values that are not finite; counts are None where only their presence is known."""

    io: str
    slot: Slot
    tensor: DumpedTensor
    health: NonFiniteCounts

    @property
    def nan(self) -> int | None:
        return self.health.nan

    @property
    def inf(self) -> int | None:
        return self.health.inf


@dataclass(eq=False)
class InfRoot:
    """Origin and fate of an Inf. Numbers are indices of operators in the step.

    operator    that made it, or the first that read it where it came in
    how         MADE, CAME_IN, UNKNOWN or CONSTANT
    tensors     that hold it there
    parameter   name of what brought it, where a graph file tells it
    stops       operators that ended it as a mask is ended
    nan         operators that made a NaN of it
    earlier     where it was made in an earlier graph of the iteration: each operator there, and what became of its Inf
    """

    operator: int
    how: str
    tensors: tuple[BadTensor, ...]
    parameter: str | None = None
    stops: list[int] = field(default_factory=list)
    nan: list[int] = field(default_factory=list)
    is_loose: bool = False
    earlier: tuple[tuple[Operator, InfRoot], ...] = ()

    @property
    def is_benign(self) -> bool:
        """`is_loose`: somewhere it was not stopped, but lost (1 / Inf) or never read."""
        if self.earlier:
            # A backward pass reads what the forward pass has saved, and loses it as often as it stops it.
            return not self.nan and all(root.is_benign for _, root in self.earlier)
        return self.how == CONSTANT or (bool(self.stops) and not self.nan and not self.is_loose)


_NO_FLOWS: Mapping[int, InfinityFlow] = {}


class InfinityFlow:
    """All roots of one step, and the roots of each tensor.

    earlier     by graph, of those that ran before in the same iteration of the same rank
    reaches_end, read_later   by operator, whether a NaN that it holds reaches an end of the program; outputs that a
                later graph of the iteration reads, and by which operator; once `mark_ends` has filled them
    operators   of the step, without parameters, in execution order
    inputs, outputs   bad tensors of each of them; none are those in memory that no operator has written yet
    unset_inputs      those of inputs, by operator
    """

    def __init__(
        self,
        step: Step,
        health: HealthTable,
        graph: GraphFile | None,
        unset: UnsetTensors | None = None,
        earlier: Mapping[int, InfinityFlow] = _NO_FLOWS,
    ) -> None:
        self._earlier = earlier
        self.graph_id = step.key.graph_id
        self.reaches_end: list[bool] = []
        self.read_later: dict[OutputKey, Operator] = {}
        self.operators = tuple(operator for operator in step.operators if not operator.is_parameter)
        self.inputs: list[tuple[BadTensor, ...]] = [()] * len(self.operators)
        self.outputs = list(self.inputs)
        if health.has_bad:
            moment = Moment(step, graph)
            self.inputs = [_bad_inputs(operator, health, moment) for operator in self.operators]
            # Memory from elsewhere is made by nobody here: who reads it first is told.
            self.outputs = [
                () if brings_data(operator.op_type) else _bad(operator, OUTPUT, health) for operator in self.operators
            ]
        self.unset_inputs: dict[int, tuple[BadTensor, ...]] = {}
        if unset is not None and health.has_bad:
            for index, (operator, read) in enumerate(zip(self.operators, self.inputs, strict=True)):
                if read and (hidden := tuple(each for each in read if unset.has(operator, each.io, each.slot))):
                    self.unset_inputs[index] = hidden
            for sides in (self.inputs, self.outputs):
                sides[:] = [
                    tuple(bad for bad in side if not unset.has(operator, bad.io, bad.slot))
                    for operator, side in zip(self.operators, sides, strict=True)
                ]
        for index, inside in inner_operators(self.operators).items() if health.has_bad else ():
            self.inputs[index] = self._handed_in(index, inside)
        self.roots: list[InfRoot] = []
        self._graph = graph
        self._nodes: dict[int, GraphNode | None] = {}
        if graph is not None:
            self._nodes = {i: graph.find(o.full_name, o.op_name) for i, o in enumerate(self.operators)}
        self._links = _Links(self._nodes)
        self._roots_of: dict[OutputKey, tuple[InfRoot, ...]] = {}
        self._arrived: dict[object, InfRoot] = {}
        self._roots_read: dict[OutputKey, tuple[InfRoot, ...]] = {}
        self._is_read: set[OutputKey] = set()
        for index, bad in enumerate(zip(self.inputs, self.outputs, strict=True)):
            if any(bad):
                self._follow(index)
        for output, roots in self._roots_of.items():
            for root in roots:
                root.is_loose |= output not in self._is_read

    @property
    def meant_parameters(self) -> set[str]:
        """Names of those that came in with an Inf which was meant, as a mask in a buffer is."""
        roots = [root for root in self.roots if root.parameter is not None]
        bad = {root.parameter for root in roots if not root.is_benign}
        return {root.parameter for root in roots if root.parameter is not None and root.parameter not in bad}

    def is_harmful(self, index: int, bad: BadTensor) -> bool:
        """Whether a tensor holds a NaN, or an Inf that is not benign."""
        roots = self.roots_of(index, bad)
        return bad.health.has_nan or not roots or not all(root.is_benign for root in roots)

    def roots_of(self, index: int, bad: BadTensor) -> tuple[InfRoot, ...]:
        """Where the Inf of a tensor of an operator began."""
        return (self._roots_read if bad.io == INPUT else self._roots_of).get((index, bad.slot), ())

    def node(self, index: int) -> GraphNode | None:
        """What a graph file says of an operator."""
        return self._nodes.get(index)

    def has_inputs(self, index: int) -> bool:
        """Whether the inputs of an operator are known: from the dump, or from a graph file that says it has none."""
        node = self._nodes.get(index)
        return bool(self.operators[index].inputs) or (node is not None and not node.inputs)

    def origin(self, index: int, slot: Slot) -> Origin | None:
        """What a graph file says of an input."""
        node = self._nodes.get(index)
        return node.inputs[slot.number] if node is not None and slot.number < len(node.inputs) else None

    # -- one operator ------------------------------------------------------------------------------

    def _follow(self, index: int) -> None:
        operator = self.operators[index]
        inputs = [bad for bad in self.inputs[index] if bad.health.has_inf]
        outputs = [bad for bad in self.outputs[index] if bad.health.has_inf]
        has_nan = any(bad.health.has_nan for bad in self.inputs[index])
        incoming = self._read(index, inputs)
        if any(bad.health.has_nan for bad in self.outputs[index]):
            if not has_nan:
                for root in incoming:
                    root.nan.append(index)
        elif not outputs and operator.outputs:
            has_positive = any(bad.health.positive_inf for bad in inputs)
            self._end(index, incoming, effect_on_inf(operator.op_type, has_positive))
        designed = [bad for bad in outputs if holds_inf_by_design(operator.op_type, bad.slot.number, _is_negative(bad))]
        if designed:
            self._place(index, designed)
            outputs = [bad for bad in outputs if bad not in designed]
        if outputs and not incoming and not has_nan:
            incoming = self._passed_on(index, outputs) or (self._begin(index, outputs),)
        for bad in outputs:
            self._roots_of[index, bad.slot] = incoming
        for bad in self.outputs[index]:
            self._links.add(index, bad)

    def _handed_in(self, index: int, inside: Sequence[int]) -> tuple[BadTensor, ...]:
        """What an operator that runs others was given by these; what it reads itself, those read.

        inside   places of the operators that it runs
        """
        sources: dict[int, BadTensor] = {}
        for written in self.outputs[index]:
            given = [bad for place in inside for bad in self.outputs[place]] or list(self.inputs[index])
            same = [bad for bad in given if _fingerprint(bad) == _fingerprint(written)]
            kin = same or [
                bad
                for bad in given
                if (bad.health.has_nan and written.health.has_nan) or (bad.health.has_inf and written.health.has_inf)
            ]
            sources |= {id(bad): bad for bad in kin[-1:]}
        first = len(self.operators[index].inputs)
        return tuple(
            BadTensor(INPUT, Slot(first + number), bad.tensor, bad.health)
            for number, bad in enumerate(sources.values())
        )

    def _read(self, index: int, inputs: Sequence[BadTensor]) -> tuple[InfRoot, ...]:
        roots: dict[int, InfRoot] = {}
        is_neutral = effect_on_inf(self.operators[index].op_type, False) == NEUTRAL
        for bad in inputs:
            output = self._links.source(index, bad)
            begun = (self._arrive(index, bad),) if output not in self._roots_of else self._roots_of[output]
            if output is not None and not is_neutral and self.operators[index].outputs:
                self._is_read.add(output)
            self._roots_read[index, bad.slot] = begun
            roots |= {id(root): root for root in begun}
        return tuple(roots.values())

    def _arrive(self, index: int, bad: BadTensor) -> InfRoot:
        """The root of an Inf that no operator of the step made; one for all its readers."""
        origin = self.origin(index, bad.slot)
        is_constant = _is_argument(bad.tensor) if origin is None else self._is_constant(origin)
        name = None if origin is None else origin.name
        is_constant |= reads_literal(self.operators[index].op_type)
        key = (origin.maker if origin is not None else None) or name or key_of(bad.tensor)
        if key not in self._arrived:
            earlier = () if origin is None else self._made_earlier(origin)
            root = InfRoot(index, CONSTANT if is_constant else CAME_IN, (bad,), None if is_constant else name)
            root.earlier = earlier
            self._arrived[key] = root
            self.roots.append(root)
        return self._arrived[key]

    def _made_earlier(self, origin: Origin) -> tuple[tuple[Operator, InfRoot], ...]:
        """Operators of an earlier graph whose Inf an input is."""
        graph_id, name, output = origin.maker or (-1, "", 0)
        flow = self._earlier.get(graph_id)
        return () if flow is None else flow.made(name, Slot(output))

    def source(self, index: int, bad: BadTensor) -> OutputKey | None:
        """The output of this step that an input is; None for one that comes from outside."""
        return self._links.source(index, bad)

    def data_node(self, index: int, slot: Slot) -> GraphNode | None:
        """Of an input that is memory from elsewhere, as from the process of a loader: the operator that gave it."""
        origin = self.origin(index, slot)
        maker = None if origin is None or origin.slot is None else self._links.index_of(origin.name)
        return self.node(maker) if maker is not None and brings_data(self.operators[maker].op_type) else None

    def made_elsewhere(self, index: int, slot: int) -> tuple[int, str, int] | None:
        """Graph, operator and output of an input that an earlier graph of the iteration made, where the dump tells."""
        origin = self.origin(index, Slot(slot))
        return None if origin is None else origin.maker

    def output_of(self, name: str, slot: int) -> OutputKey | None:
        """An output of this step, by the full name of its operator."""
        index = self._links.index_of(name)
        return None if index is None else (index, Slot(slot))

    def made(self, name: str, slot: Slot) -> tuple[tuple[Operator, InfRoot], ...]:
        """Where the Inf of an output began.   name: full name of the operator"""
        index = self._links.index_of(name)
        roots = () if index is None else self._roots_of.get((index, slot), ())
        return tuple(one for root in roots for one in (root.earlier or [(self.operators[root.operator], root)]))

    def _is_constant(self, origin: Origin) -> bool:
        """True for a constant of the graph, and for what an operator that was not dumped places."""
        maker = None if self._graph is None or origin.slot is None else self._graph.by_name.get(origin.name)
        if maker is not None:
            return places_constant(maker.op_type)
        return origin.is_constant or origin.name.startswith(_TORCH_CONSTANTS)

    def _passed_on(self, index: int, outputs: Sequence[BadTensor]) -> tuple[InfRoot, ...]:
        """Roots of an Inf that an operator whose inputs are not in the dump has probably passed on: as many as an
        earlier output holds."""
        output = None if self.has_inputs(index) else self._links.of_counts(outputs[0].health)
        if output is None or places_constant(self.operators[index].op_type):
            return ()
        self._is_read.add(output)
        return self._roots_of[output]

    def _place(self, index: int, outputs: Sequence[BadTensor]) -> None:
        """An Inf that an operator puts into a further output of its own by design."""
        root = InfRoot(index, CONSTANT, tuple(outputs))
        self.roots.append(root)
        for bad in outputs:
            self._roots_of[index, bad.slot] = (root,)

    def _begin(self, index: int, outputs: Sequence[BadTensor]) -> InfRoot:
        is_constant = places_constant(self.operators[index].op_type)
        how = CONSTANT if is_constant else MADE if self.has_inputs(index) else UNKNOWN
        root = InfRoot(index, how, tuple(outputs))
        self.roots.append(root)
        return root

    def _end(self, index: int, incoming: Collection[InfRoot], effect: str) -> None:
        for root in incoming:
            if effect == STOPS:
                root.stops.append(index)
            elif effect != NEUTRAL:
                root.is_loose = True


class _Links:
    """Which output of the step an input is: by graph file, by the bytes on disk, or by dtype, size and counts."""

    def __init__(self, nodes: Mapping[int, GraphNode | None]) -> None:
        self._nodes = nodes
        names = ((node.full_name, index) for index, node in nodes.items() if node is not None)
        self._index_by_name = dict(names)
        self._by_key: dict[object, OutputKey] = {}
        self._by_print: dict[object, OutputKey] = {}
        self._by_counts: dict[object, OutputKey] = {}

    def index_of(self, name: str) -> int | None:
        """Of an operator, by its full name."""
        return self._index_by_name.get(name)

    def add(self, index: int, bad: BadTensor) -> None:
        output = index, bad.slot
        self._by_key[key_of(bad.tensor)] = self._by_print[_fingerprint(bad)] = output
        self._by_counts[_counts(bad.health)] = output

    def of_counts(self, health: NonFiniteCounts) -> OutputKey | None:
        """The last output with so many NaN and Inf."""
        return self._by_counts.get(_counts(health))

    def source(self, index: int, bad: BadTensor) -> OutputKey | None:
        node = self._nodes.get(index)
        if node is not None and bad.slot.number < len(node.inputs):
            origin = node.inputs[bad.slot.number]
            if origin is not None:
                maker = self._index_by_name.get(origin.name)
                return None if maker is None or origin.slot is None else (maker, Slot(origin.slot))
        return self._by_key.get(key_of(bad.tensor)) or self._by_print.get(_fingerprint(bad))


def _counts(health: NonFiniteCounts) -> object:
    return health.nan, health.negative_inf, health.positive_inf


def _is_negative(bad: BadTensor) -> bool:
    return bad.health.positive_inf == 0 and bad.health.nan == 0


def _fingerprint(bad: BadTensor) -> object:
    return bad.tensor.dtype, math.prod(bad.tensor.shape), bad.health


def _bad(operator: Operator, io: str, health: HealthTable) -> tuple[BadTensor, ...]:
    tensors = [(slot, tensor, health.of(tensor)) for slot, tensor in operator.tensors(io).items()]
    return tuple(BadTensor(io, slot, tensor, state) for slot, tensor, state in tensors if state.is_bad)


def _bad_inputs(operator: Operator, health: HealthTable, moment: Moment) -> tuple[BadTensor, ...]:
    if reads_shape_only(operator.op_type):
        return ()
    inputs = _bad(operator, INPUT, health)
    # What an operator has overwritten says nothing of what it read.
    blind = moment.blind_slots(operator) if inputs else ()
    return tuple(bad for bad in inputs if bad.slot.number not in blind)


def _is_argument(tensor: DumpedTensor) -> bool:
    """A number that the script wrote down, which TorchAir's eager dump saves like a tensor."""
    return tensor.file.levels.grammar == FX and tensor.shape == ()


class Stages:
    """Which graphs of each process have ended, in their order."""

    def __init__(self) -> None:
        self._last: dict[int | None, tuple[StepKey, bool]] = {}

    def before(self, key: StepKey) -> StepKey | None:
        """The other graph of the same iteration that ended just before, when no step of that iteration was bad."""
        last, is_bad = self._last.get(key.rank_id, (key, True))
        is_same = last.iteration == key.iteration and last.graph_id != key.graph_id
        return last if is_same and not is_bad else None

    def end(self, key: StepKey, is_bad: bool) -> None:
        last, was_bad = self._last.get(key.rank_id, (key, False))
        self._last[key.rank_id] = key, is_bad or (was_bad and last.iteration == key.iteration)

    def stage_of(self, operator: Operator, how: str, parameter: str | None, before: StepKey | None) -> str:
        """IN_LOSS, AFTER_OUTPUT or "".

        parameter  name of the input that brought the value
        before     what `before` says of the step
        """
        if how == CAME_IN:
            if parameter is not None and _TANGENT.fullmatch(parameter):
                return AFTER_OUTPUT
            return AFTER_OUTPUT if parameter is None and before is not None else ""
        scopes = operator.label.split("/")[:-1]
        is_loss = _LOSS_NAME.search(operator.label) is not None or any(map(_LOSS_CLASS.search, scopes))
        return IN_LOSS if is_loss and not operator.label.startswith(GRADIENTS) else ""
