"""What a comparison of bounds takes for different, and the inputs of operators explain.

A bound tells how far two right runs may be apart in a whole network, and no bound holds for each: rounding grows from
operator to operator, and is all that is left of terms that cancel. Whether an operator is right needs none of that: it
is right where golden's operator, with golden's attributes, makes in float64 of mine's inputs what mine has made, within
the bound of mine's dtype; and a value that a right operator made of right values is right, however far it is from
golden's. What makes far more of the rounding that comes in stays a difference, as a cosine of large angles in bfloat16,
unless it does so in few elements, which lie at a border.

Source: induction over the trace. Entries - parameters, data - have no operator that could explain them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from msdump.analysis.compare.common_tensors import host_shape, is_of_one_size
from msdump.analysis.compare.result import (
    AGREES,
    AMPLIFIED,
    DIFFERS,
    IDENTICAL,
    OperatorResult,
    StepResult,
    TensorResult,
)
from msdump.analysis.compare.values import Value, figures_of
from msdump.analysis.distance.bounds import bounds_of, reason_to_differ
from msdump.analysis.distance.metrics import PairMetrics, compare_arrays
from msdump.analysis.find.look_up import FoundOperator
from msdump.analysis.graph_info import GraphFiles, GraphNode
from msdump.analysis.memory_state import UNSET
from msdump.analysis.steps import Operator, Slot, Step, StepKey
from msdump.errors import MsdumpError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.attributes import differing_attributes
from msdump.operators.kinds import is_mover, kind_of
from msdump.operators.traits import is_random
from msdump.tables.messages import message
from msdump.tensors.arrays import Array

# Operators that are computed again, and bytes that they read, all of them and each: further on a comparison would take
# too long, and too much memory in float64.
_MAX_RUNS, _MAX_BYTES, _MAX_OPERATOR = 4000, 1 << 30, 1 << 26
# The share of elements that may lie at a border.
_FEW = 0.05


class Explanations:
    """Goes through the operators of one comparison in the order in which they ran.

    largest   relative error of what was explained; 0 where nothing was
    """

    def __init__(
        self,
        dump: DumpDir,
        steps: Sequence[Step],
        graphs: tuple[GraphFiles, GraphFiles],
        tolerance: float | None,
    ) -> None:
        """dump, steps: of golden; graphs: of mine and golden; tolerance: relative error in place of the dtype's"""
        self._dump = dump
        self._tolerance = tolerance
        self._steps = {step.key: step for step in steps}
        self._graphs = graphs
        self._right: set[tuple[Value, Value]] = set()
        self._runs = self._bytes = 0
        self._is_apart = False
        self._operators: dict[StepKey, dict[str, Operator]] = {}
        self.largest = 0.0

    @property
    def notes(self) -> tuple[str, ...]:
        """How far rounding has grown, where it has."""
        text = message(
            "rounding has grown to a relative error of {error:.3g}: golden's operators make the same of what mine read",
            error=self.largest,
        )  # fmt: skip
        return (text,) if self.largest else ()

    def settled(self, steps: Sequence[StepResult]) -> tuple[StepResult, ...]:
        """Steps in which the tensors agree that the inputs of their operators explain, with that as the reason.

        Edges: from an operator on that has other attributes than golden's nothing is explained, and its own outputs
               differ where they are beyond their bound; a NaN or Inf that golden has not, random numbers,
               operators of another kind than golden's and those of which inputs are missing never are.
        """
        found = []
        for step in steps:
            operators = tuple(self._settled(step, result) for result in step.operators)
            found.append(dataclasses.replace(step, operators=operators))
        return tuple(map(self._with_parameters, found))

    def _with_parameters(self, step: StepResult) -> StepResult:
        """A graph shows a parameter at its end: a later graph may tell who made it."""
        operators = tuple(
            dataclasses.replace(one, outputs=tuple(map(self._inherited, one.outputs)))
            if one.pair.mine.is_parameter and not one.is_agreeing
            else one
            for one in step.operators
        )
        return dataclasses.replace(step, operators=operators)

    def _settled(self, step: StepResult, result: OperatorResult) -> OperatorResult:
        if all(tensor.status == IDENTICAL for tensor in result.tensors):
            return result
        nodes = self._nodes(step, result)
        has_others = nodes is not None and _has_other_attributes(*nodes)
        if self._is_apart and not has_others:
            return result
        inputs = tuple(map(self._inherited, result.inputs))
        outputs = tuple(map(self._inherited, result.outputs))
        if has_others:
            self._is_apart = True
            # Nor does rounding excuse it, whose bound in a half precision is some per cent.
            return dataclasses.replace(result, inputs=inputs, outputs=tuple(map(self._unexcused, outputs)))
        settled = dataclasses.replace(result, inputs=inputs, outputs=outputs)
        is_copy = is_mover(result.pair.mine.op_type)
        is_of_right = all(one.status in (IDENTICAL, AGREES) or (is_copy and one.reason == UNSET) for one in inputs)
        is_in_bounds = not settled.is_wrong or is_copy or _is_at_border(settled)
        if is_of_right and not settled.is_agreeing and is_in_bounds:
            settled = dataclasses.replace(settled, outputs=self._explained(step, settled, nodes))
        self._right.update(
            both for one in settled.outputs if self._is_beyond(one) and (both := _values(one)) is not None
        )
        return settled

    def _inherited(self, tensor: TensorResult) -> TensorResult:
        if tensor.status != DIFFERS or not self._right or _values(tensor) not in self._right:
            return tensor
        return _agreeing(tensor)

    def _explained(
        self, step: StepResult, result: OperatorResult, nodes: tuple[GraphNode, GraphNode] | None
    ) -> tuple[TensorResult, ...]:
        target = self._target(step, result, nodes)
        if target is None:
            return result.outputs
        self._runs += 1
        from msdump.analysis.replay.replay import exact_results

        try:
            exact = exact_results(self._dump, target)
            slots = {id(tensor): slot for slot, tensor in target.operator.outputs.items()}
            outputs = []
            for tensor in result.outputs:
                made = exact.get(slots.get(id(tensor.mine), Slot(-1)))
                metrics = tensor.metrics
                # What only moves elements brings no NaN; memory that nobody wrote may hold one.
                is_number = metrics is not None and (not metrics.mismatched or is_mover(result.pair.mine.op_type))
                is_asked = tensor.status == DIFFERS and is_number
                is_explained = is_asked and made is not None and self._is_near(tensor.mine, made)
                self.largest = max(self.largest, tensor.error or 0.0) if is_explained else self.largest
                outputs.append(_agreeing(tensor) if is_explained else tensor)
            return tuple(outputs)
        except (MsdumpError, OSError):
            return result.outputs

    def _target(
        self, step: StepResult, result: OperatorResult, nodes: tuple[GraphNode, GraphNode] | None
    ) -> FoundOperator | None:
        """Golden's operator with the inputs of mine's; None where it can't be computed, or is another one."""
        pair = result.pair
        if nodes is None or pair.mine.parts or pair.golden.parts or is_random(pair.mine.op_type):
            return None
        if any(tensor.axes or tensor.factor != 1 for tensor in result.tensors):
            return None
        if any(host_shape(tensor.mine) != host_shape(tensor.golden) for tensor in result.tensors):
            return None
        key = pair.golden_step or step.golden
        original = self._original(key, pair.golden)
        if original is None or kind_of(pair.mine.op_type) != kind_of(original.op_type):
            return None
        inputs = self._placed(original.inputs, pair.golden.inputs, pair.mine.inputs)
        outputs = self._placed(original.outputs, pair.golden.outputs, pair.mine.outputs)
        if len(inputs) < len(original.inputs) or not outputs:
            return None
        size = sum(tensor.size_bytes for tensor in inputs.values())
        self._bytes += size
        if self._runs >= _MAX_RUNS or self._bytes > _MAX_BYTES or size > _MAX_OPERATOR:
            return None
        operator = dataclasses.replace(original, inputs=inputs, outputs=outputs)
        return FoundOperator(self._steps[key], operator, nodes[1])

    @staticmethod
    def _placed(
        original: Mapping[Slot, DumpedTensor], paired: Mapping[Slot, DumpedTensor], mine: Mapping[Slot, DumpedTensor]
    ) -> dict[Slot, DumpedTensor]:
        """Tensors of mine by golden's own slots: a pair has those of mine."""
        slots = {id(tensor): slot for slot, tensor in paired.items()}
        found = ((slot, slots.get(id(tensor))) for slot, tensor in original.items())
        return {slot: mine[other] for slot, other in found if other is not None and other in mine}

    def _original(self, key: StepKey, golden: Operator) -> Operator | None:
        if key not in self._operators and key in self._steps:
            self._operators[key] = {one.label: one for one in self._steps[key].operators}
        return self._operators.get(key, {}).get(golden.label)

    def _nodes(self, step: StepResult, result: OperatorResult) -> tuple[GraphNode, GraphNode] | None:
        pair = result.pair
        mine = self._graphs[0].node(result.step, pair.mine)
        golden = self._graphs[1].node(pair.golden_step or step.golden, pair.golden)
        return None if mine is None or golden is None else (mine, golden)

    def _unexcused(self, tensor: TensorResult) -> TensorResult:
        if tensor.metrics is None or not self._is_beyond(tensor):
            return tensor
        return dataclasses.replace(tensor, status=DIFFERS, reason=self._reason(tensor, tensor.metrics))

    def _is_beyond(self, tensor: TensorResult) -> bool:
        """Whether a tensor agrees though it is further from golden's than its dtype allows."""
        return tensor.status == AGREES and tensor.metrics is not None and bool(self._reason(tensor, tensor.metrics))

    def _reason(self, tensor: TensorResult, metrics: PairMetrics) -> str:
        bounds = bounds_of(tensor.mine.true_dtype, tensor.golden.true_dtype, self._tolerance)
        return reason_to_differ(metrics, bounds)

    def _is_near(self, mine: DumpedTensor, exact: Array) -> bool:
        """Whether a result of mine is, within the bound of its dtype, what float64 makes of the same inputs."""
        metrics = compare_arrays(mine.load_host(), exact, False)
        return not reason_to_differ(metrics, bounds_of(mine.true_dtype, mine.true_dtype, self._tolerance))


def _agreeing(tensor: TensorResult) -> TensorResult:
    reason = message("{reason}, which is what its inputs give", reason=tensor.reason)
    return dataclasses.replace(tensor, status=AGREES, reason=reason)


def _is_at_border(result: OperatorResult) -> bool:
    """Whether but for few elements the outputs are as far from golden's as inputs are, or a few times that."""
    input_error = result.input_error or 0.0
    for tensor in result.outputs:
        if tensor.status != DIFFERS:
            continue
        if not is_of_one_size(tensor.mine, tensor.golden):
            return False
        mine, golden = (one.load_host().astype(np.float64).reshape(-1) for one in (tensor.mine, tensor.golden))
        with np.errstate(all="ignore"):
            errors = np.abs(mine - golden)
            kept = np.argsort(errors)[: errors.size - int(_FEW * errors.size)]
            if not np.linalg.norm(errors[kept]) <= AMPLIFIED * input_error * np.linalg.norm(golden[kept]):
                return False
    return True


def _values(tensor: TensorResult) -> tuple[Value, Value] | None:
    """What tells both tensors wherever they are read; None where one cannot be."""
    mine, golden = figures_of(tensor.mine), figures_of(tensor.golden)
    return None if mine is None or golden is None else (mine.value, golden.value)


def _has_other_attributes(mine: GraphNode, golden: GraphNode) -> bool:
    """Whether numbers and switches of two operators are not alike; dtypes, layouts and devices are texts."""
    if mine.attrs is None or golden.attrs is None:
        return False
    if mine.op_type != golden.op_type:
        return bool(differing_attributes((mine.op_type, mine.attrs), (golden.op_type, golden.attrs)))
    numbers = (
        {name: value for name, value in attrs.items() if not _is_text(value)} for attrs in (mine.attrs, golden.attrs)
    )
    return len({repr(sorted(each.items())) for each in numbers}) > 1


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list | tuple) and any(map(_is_text, value)))
