"""Inputs that an operator overwrites: a dump shows them as they were read (msdump) or as they were left (MindSpore on
CPU), and values of different moments cannot be compared."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from msdump.analysis._payload import has_same_bytes
from msdump.analysis.graph_info import GraphFile
from msdump.analysis.steps import Operator, Slot, Step
from msdump.formats.dump_tensor import DumpedTensor
from msdump.graph.primitive import REGISTRY, PrimitiveDef

OTHER_MOMENT = "written in place: one dump shows it before the operator ran, the other after"
SameBytes = Callable[[DumpedTensor, DumpedTensor], bool]
# PyTorch says it in the name: aten.add_.Tensor, which file names of some layouts spell aten_add__Tensor.
_ATEN_IN_PLACE = re.compile(r"aten[._](?!_)\w*[a-z0-9]_[._][A-Za-z]\w*")


@functools.cache
def _registry() -> Mapping[str, PrimitiveDef]:
    # The kernels fill it. They are a fourth of the time that a command takes to begin, and few dumps make it look.
    import msdump.kernels  # noqa: F401

    return REGISTRY


def mutated_slots(op_type: str) -> tuple[int, ...]:
    """Input slots that operators of a type write.   Source: `mutates` of the kernels; the schema names of ATen."""
    definition = _registry().get(op_type)
    if definition is not None:
        return definition.mutates
    return (0,) if _ATEN_IN_PLACE.fullmatch(op_type) else ()


def written_inputs(op_type: str) -> Mapping[int, int]:
    """Output slot -> input slot whose memory it is, written in place."""
    definition = _registry().get(op_type)
    if definition is not None:
        return definition.aliases
    return {0: 0} if mutated_slots(op_type) else {}


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
        return mutated_slots(operator.op_type) if self.shows_result(operator) else ()

    def shows_result(self, operator: Operator) -> bool | None:
        """True when what an operator overwrites shows what it wrote; None when the dump does not tell.

        The output that is the same memory tells it; for an operator without one the parameters, which a dump shows as
        the step left them; else the other operators of the step, because a dump shows all of them at one moment.
        """
        if not mutated_slots(operator.op_type):
            return None
        answer = self._shown_by_operator(operator)
        return self._of_step if answer is None else answer

    @cached_property
    def _of_step(self) -> bool | None:
        writers = (operator for operator in self.step.operators if mutated_slots(operator.op_type))
        return next((answer for answer in map(self._shown_by_operator, writers) if answer is not None), None)

    def _shown_by_operator(self, operator: Operator) -> bool | None:
        aliases = written_inputs(operator.op_type)
        for output, written in aliases.items():
            before, after = operator.inputs.get(Slot(written)), operator.outputs.get(Slot(output))
            if before is not None and after is not None:
                return self.is_same(before, after)
        return None if aliases else self._shown_by_parameters(operator)

    def _shown_by_parameters(self, operator: Operator) -> bool | None:
        """Whether inputs are among the parameters of the step's end; None where no parameter could be one of them."""
        answers = []
        for slot in mutated_slots(operator.op_type):
            tensor = operator.inputs.get(Slot(slot))
            likely = [] if tensor is None else self._parameters_of(operator, slot, tensor)
            if tensor is not None and likely:
                answers.append(any(self.is_same(tensor, parameter) for parameter in likely))
        return all(answers) if answers else None

    def _parameters_of(self, operator: Operator, slot: int, tensor: DumpedTensor) -> list[DumpedTensor]:
        node = None if self.graph is None else self.graph.find(operator.full_name, operator.op_name)
        origin = node.inputs[slot] if node is not None and slot < len(node.inputs) else None
        parameters = [other for other in self.step.operators if other.is_parameter]
        if origin is not None:
            parameters = [other for other in parameters if other.op_name == origin.name]
        return [
            parameter
            for other in parameters
            for parameter in other.outputs.values()
            if parameter.dtype == tensor.dtype and math.prod(parameter.shape) == math.prod(tensor.shape)
        ]


def slots_of_other_moments(mine: Operator, golden: Operator, moments: tuple[Moment, Moment]) -> tuple[int, ...]:
    """Inputs of two operators of one type that one side shows before they were overwritten and the other after."""
    slots = mutated_slots(mine.op_type) if mine.op_type == golden.op_type else ()
    if not slots:
        return ()
    answers = {moment.shows_result(side) for side, moment in zip((mine, golden), moments, strict=True)}
    return slots if answers == {True, False} else ()
