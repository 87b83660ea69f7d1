"""What a dumped tensor shows of its memory: values of before an operator overwrote it or of after, or none yet.

A dump shows inputs that an operator overwrites as they were read (msdump) or as they were left (MindSpore on CPU);
values of different moments cannot be compared. Memory that no operator has written tells nothing about any operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from msdump.analysis._payload import has_same_bytes
from msdump.analysis.graph_info import GraphFile, GraphNode
from msdump.analysis.steps import STATISTIC, Operator, Slot, StatisticSteps, Step
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.statistic_row import StatisticRow
from msdump.operators.traits import is_unset, makes_unset, memory_use, only_moves, overwrites_unread, unread_inputs
from msdump.tables.messages import message
from msdump.tensors.records import INPUT, OUTPUT

OTHER_MOMENT = message("written in place: one dump shows it before the operator ran, the other after")
SameBytes = Callable[[DumpedTensor, DumpedTensor], bool]


@dataclass(frozen=True)
class Moment:
    """When one step of a dump shows the inputs that its operators overwrite.

    graph    tells which parameter an input is; None: by its bytes
    is_same  whether two tensors hold the same values
    """

    step: Step
    graph: GraphFile | None = None
    is_same: SameBytes = has_same_bytes

    def blind_slots(self, operator: Operator) -> tuple[int, ...]:
        """Input slots that do not show what the operator read."""
        return memory_use(operator.op_type).overwrites if self.shows_result(operator) else ()

    def shows_result(self, operator: Operator) -> bool | None:
        """True when what an operator overwrites shows what it wrote; None when the dump does not tell.

        The output that is the same memory tells it; for an operator without one the parameters, which a dump shows as
        the step left them; else the other operators of the step, because a dump shows all of them at one moment.
        """
        if not memory_use(operator.op_type).overwrites:
            return None
        answer = self._shown_by_operator(operator)
        return self._of_step if answer is None else answer

    @cached_property
    def _of_step(self) -> bool | None:
        writers = (operator for operator in self.step.operators if memory_use(operator.op_type).overwrites)
        return next((answer for answer in map(self._shown_by_operator, writers) if answer is not None), None)

    def _shown_by_operator(self, operator: Operator) -> bool | None:
        aliases = memory_use(operator.op_type).results
        for output, written in aliases.items():
            before, after = operator.inputs.get(Slot(written)), operator.outputs.get(Slot(output))
            if before is not None and after is not None:
                return self.is_same(before, after)
        return None if aliases else self._shown_by_parameters(operator)

    def _shown_by_parameters(self, operator: Operator) -> bool | None:
        """Whether inputs are among the parameters of the step's end; None where no parameter could be one of them."""
        answers = []
        for slot in memory_use(operator.op_type).overwrites:
            tensor = operator.inputs.get(Slot(slot))
            likely = [] if tensor is None else self._parameters_of(operator, slot, tensor)
            if tensor is not None and likely:
                answers.append(any(self.is_same(tensor, parameter) for parameter in likely))
        return all(answers) if answers else None

    def _parameters_of(self, operator: Operator, slot: int, tensor: DumpedTensor) -> list[DumpedTensor]:
        node = None if self.graph is None else self.graph.find(operator.full_name, operator.op_name)
        origin = node.inputs[slot] if node is not None and slot < len(node.inputs) else None
        parameters = [operator for operator in self.step.operators if operator.is_parameter]
        if origin is not None:
            parameters = [parameter for parameter in parameters if parameter.op_name == origin.name]
        return [
            parameter
            for candidate in parameters
            for parameter in candidate.outputs.values()
            if parameter.dtype == tensor.dtype and math.prod(parameter.shape) == math.prod(tensor.shape)
        ]


def slots_of_other_moments(mine: Operator, golden: Operator, moments: tuple[Moment, Moment]) -> tuple[int, ...]:
    """Inputs of two operators of one type that one side shows before they were overwritten and the other after."""
    slots = memory_use(mine.op_type).overwrites if mine.op_type == golden.op_type else ()
    if not slots:
        return ()
    answers = {moment.shows_result(side) for side, moment in zip((mine, golden), moments, strict=True)}
    return slots if answers == {True, False} else ()


# -- memory that no operator has written yet ---------------------------------------------------------------------------

UNSET = message("memory that no operator has written yet")


class UnsetTensors:
    """Answers for the operators of one step.

    graph    tells who made an input; where it does not, an input is unset when its bytes are those of an unset result
    is_same  whether two tensors of one dtype and shape hold the same bytes
    is_strict  what certainly nobody has written: not memory of which the step only makes views, as of buffers of
             wrappers, nor where an operator has written a part of it
    operands all of them, by operator
    """

    def __init__(
        self, step: Step, graph: GraphFile | None, is_same: SameBytes = has_same_bytes, is_strict: bool = False
    ) -> None:
        self._graph = graph
        self._is_same = is_same
        self._unset: set[tuple[int, str, Slot]] = set()
        self.operands: list[tuple[Operator, str, Slot]] = []
        is_open = graph is not None and graph.is_open and not is_strict
        self._results = _idle_inputs(step, graph) if graph is not None and is_open else set()
        self._is_strict = is_strict
        # By result: that of which it is a view.
        self._roots: dict[tuple[str, int | None], tuple[str, int | None]] = {}
        self._tensors: list[DumpedTensor] = []
        for operator in step.operators:
            if not operator.is_parameter:
                self._add(operator)

    def has(self, operator: Operator, io: str, slot: Slot) -> bool:
        return (id(operator), io, slot) in self._unset

    def _add(self, operator: Operator) -> None:
        is_plain = not makes_unset(operator.op_type) and not overwrites_unread(operator.op_type)
        if is_plain and not self._results and not self._tensors:
            return  # nothing is there that it could have read
        node = None if self._graph is None else self._graph.find(operator.full_name, operator.op_name)
        overwritten = unread_inputs(operator.op_type, ["input"] if node is None else node.input_names)
        read = {slot for slot, tensor in operator.inputs.items() if self._is_input(slot, tensor, node)}
        self._put(
            operator,
            INPUT,
            read if self._is_strict else read | {slot for slot in operator.inputs if slot.number in overwritten},
        )
        unset = {slot for slot in read if slot.number not in overwritten}
        of_graph = [None if origin is None else (origin.name, origin.slot) for origin in node.inputs] if node else []
        known = {slot: key for slot, key in enumerate(of_graph) if key is not None and key in self._results}
        views = [key for slot, key in known.items() if slot not in overwritten or not self._is_strict]
        reads = bool(unset) or bool(views)
        if self._is_strict:
            places = memory_use(operator.op_type).overwrites
            written = {self._roots.get(key, key) for slot, key in known.items() if slot in places}
            self._results -= {key for key, root in self._roots.items() if root in written}
        if not is_unset(operator.op_type, [reads]):
            return
        self._put(operator, OUTPUT, operator.outputs)
        for slot, tensor in operator.outputs.items():
            if tensor.size_bytes:
                self._tensors.append(tensor)
            if node is not None:
                result = node.full_name, slot.number
                self._results.add(result)
                self._roots[result] = next((self._roots.get(key, key) for key in views), result)

    def _put(self, operator: Operator, io: str, slots: Iterable[Slot]) -> None:
        for slot in slots:
            self._unset.add((id(operator), io, slot))
            self.operands.append((operator, io, slot))

    def _is_input(self, slot: Slot, tensor: DumpedTensor, node: GraphNode | None) -> bool:
        if node is not None:
            origin = node.inputs[slot.number] if slot.number < len(node.inputs) else None
            return origin is not None and (origin.name, origin.slot) in self._results
        return any(
            (tensor.dtype, tensor.shape) == (other.dtype, other.shape) and self._is_same(tensor, other)
            for other in self._tensors
        )


def _idle_inputs(step: Step, graph: GraphFile) -> set[tuple[str, int | None]]:
    """Tensors that a step begins with and of which its operators only make views: memory that something else fills
    later, as buffers that PyTorch makes in C++, and those that it has given back.

    Returns: name and slot, as `Origin`; of an operator that runs in another iteration alone, or of the graph's input
    """
    parameters = {operator.op_name for operator in step.operators if operator.is_parameter}
    names = {name for operator in step.operators for name in (operator.full_name, operator.op_name) if name}
    present = {node.full_name for node in graph.nodes if names & {node.full_name, node.full_name.rsplit("/", 1)[-1]}}
    begun: set[tuple[str, int | None]] = set()
    read: set[tuple[str, int | None]] = set()
    read_names: set[str] = set()
    for node in reversed(graph.nodes):
        if node.full_name not in present:
            continue
        unread = unread_inputs(node.op_type, node.input_names)
        is_read = not only_moves(node.op_type) or node.full_name in read_names
        for slot, origin in enumerate(node.inputs):
            if origin is None:
                continue
            key = origin.name, origin.slot
            if origin.name not in present:
                begun.add(key)
            if is_read and slot not in unread:
                read.add(key)
                read_names.add(origin.name)
    return {key for key in begun - read if key[0] not in parameters}


def same_in(table: StatisticSteps) -> SameBytes:
    """Whether two tensors of a dump hold the same bytes, or have the same statistics where those are all there is."""

    def is_same(left: DumpedTensor, right: DumpedTensor) -> bool:
        forms = {left.file.form, right.file.form}
        if STATISTIC not in forms:
            return has_same_bytes(left, right)
        return len(forms) == 1 and has_same_statistics(table.row(left), table.row(right))

    return is_same


def has_same_statistics(one: StatisticRow, other: StatisticRow) -> bool:
    """Whether all that two rows say of their values is alike. NaN is equal to itself."""
    names = ("md5", "max", "min", "avg", "nan", "negative_inf", "positive_inf", "zero", "l2norm")
    return all(repr(getattr(one, name)) == repr(getattr(other, name)) for name in names)
