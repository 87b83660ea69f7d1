"""Inputs that an operator overwrites: a dump shows them as they were read (msdump) or as they were left (MindSpore on
CPU), and values of different moments cannot be compared."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from msdump.analysis._payload import has_same_bytes
from msdump.analysis.graph_info import GraphFile
from msdump.analysis.steps import Operator, Slot, Step
from msdump.formats.dump_tensor import DumpedTensor
from msdump.graph.traits import memory_use

OTHER_MOMENT = "written in place: one dump shows it before the operator ran, the other after"
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
