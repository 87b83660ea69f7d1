"""Operators that decide: a value within rounding of the border falls on one side in one run, and on the other in
the other.

The gradient of ReLU is 0 or 1, max-pooling takes one of two values that are nearly equal. Two runs that are both right
then differ by far more than rounding, in few elements, and so does all that follows from them. Such an operator is
right where it does to each run's own numbers what it does to the other's: the elements whose decision fell alike agree,
and the others lie at the border. What it reaches is measured against the error that reaches it.

A sum whose terms cancel is the same: where both runs are left with rounding alone, as the gradient of a bias in front
of a batch norm, that has any sign and any size, and an optimizer such as Adam makes whole steps of it.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from msdump.analysis.compare.decisions import (
    EQUAL,
    Both,
    agree,
    flipped_of,
    keeps_errors,
    multiplies,
    normalised,
    raises_errors,
)
from msdump.analysis.compare.result import (
    AGREES,
    AMPLIFIED,
    DIFFERS,
    OperatorResult,
    StepResult,
    TensorResult,
    Tie,
)
from msdump.analysis.distance.bounds import Bounds, bounds_of, largest
from msdump.analysis.distance.metrics import PairMetrics
from msdump.analysis.full_names import stage_of
from msdump.analysis.graph_info import GraphFiles, Origin
from msdump.analysis.steps import Operator, StepKey
from msdump.errors import FormatError
from msdump.operators.kinds import has, is_mover, kind_of
from msdump.operators.table import row_of
from msdump.tables.messages import COMMA, joined, messages
from msdump.tensors.arrays import Array

# Sums of the same numbers in another order.
_SUMMED = 1e-9
# Two runs that are so far apart show no fault any more.
_LOST = 0.1
# Elements that are as close as this were not reached by a decision; of those of a result so many may be further apart.
_CLOSE, _STRAY = 1e-4, 0.01
# An output so much smaller than what it is computed from is a sum of it, whose terms cancel.
_REDUCED = 4
_PRODUCT = "mul"
_DECIDING = frozenset({"steps", "compares", "selects", "routes", "sums", "termwise", "exponential", "normalises"})


def settle_ties(
    steps: Sequence[StepResult], graphs: GraphFiles, golden: GraphFiles, tolerance: float | None
) -> tuple[tuple[StepResult, ...], Tie | None]:
    """Steps in which what follows from a decision at the border agrees, with the reason as a remark, and the first
    such decision.

    graphs   of mine: what made an input says whether the decision reached it; golden: of the other run
    Edges: nothing is read where nothing differs; a tensor that cannot be read is left as it is.
    """
    if not any(_has_deciding(step) for step in steps):
        return tuple(steps), None
    pairs = (result.pair for step in steps for result in step.operators)
    stages = frozenset(pair.golden.stage for pair in pairs if not pair.golden.is_parameter)
    search = _Search(graphs, tolerance, stages)
    search.forms = _Forms(golden, steps) if any(step.faults is not None for step in steps) else None
    search.movers = {
        (step.mine, operator.label): operator
        for step in steps
        for operator in (*step.only_mine, *step.expected)
        if is_mover(operator.op_type)
    }
    settled = tuple(map(search.settled_step, steps))
    first = search.first
    if first is None:
        return tuple(steps), None
    return settled, dataclasses.replace(first, reached=search.reached, error=search.error, lost=search.lost)


def why_settled(result: OperatorResult) -> str:
    """Why a difference that an operator decides is none: `AT_BORDER`, or another of these messages."""
    return _why(result.pair.mine.op_type)


def _adds(op_type: str) -> bool:
    return has(op_type, "sums") or has(op_type, "termwise")


def _decides(op_type: str) -> bool:
    """Whether a result jumps at a border: of what is chosen, or of a sum whose terms cancel."""
    row = row_of(op_type)
    return row is not None and (row.kind == _PRODUCT or bool(row.jumps) or not row.traits.isdisjoint(_DECIDING))


def _has_deciding(step: StepResult) -> bool:
    return any(
        (_begins(result) and _decides(result.pair.mine.op_type)) or _is_left_with_rounding(result)
        for result in step.operators
    )


def _begins(result: OperatorResult) -> bool:
    """Whether an output differs and no input does, by however little more than the inputs."""
    return not result.is_agreeing and all(tensor.status != DIFFERS for tensor in result.inputs)


def _is_left_with_rounding(result: OperatorResult) -> bool:
    """Whether it agrees though its numbers do not, for a sum that is no more than the rounding of what it reads."""
    return has(result.pair.mine.op_type, "sums") and any(
        tensor.status == AGREES and tensor.metrics is not None and tensor.metrics.relative_error > _LOST
        for tensor in result.outputs
    )


class _Search:
    """Goes through the operators in the order in which they ran.

    Behind a decision at the border all is measured by what comes in: an operator is wrong where it makes far more of
    it. What came from somewhere else, as other data do, differs by more than anything that the decision reached.
    """

    def __init__(self, graphs: GraphFiles, tolerance: float | None, stages: frozenset[str]) -> None:
        self._graphs = graphs
        self._tolerance = tolerance
        self._stages = stages
        # Errors of outputs by the step and name of the operator.
        self._errors: dict[tuple[StepKey, str], dict[int, float]] = {}
        self.first: Tie | None = None
        self.reached = 0
        self.error = 0.0
        self.lost: StepKey | None = None
        self._largest = 0.0
        # Of a forward pass: errors of the operators that a decision has reached.
        self._forward_errors: list[float] = []
        # Errors of outputs that a decision has reached in this iteration and the last one, by their number of elements.
        self._made: dict[int, list[PairMetrics]] = defaultdict(list)
        self._made_before: dict[int, list[PairMetrics]] = {}
        self._iteration: tuple[int | None, int | None] = None, None
        self.forms: _Forms | None = None
        # Casts and views of mine without a counterpart, by their step and name.
        self.movers: dict[tuple[StepKey, str], Operator] = {}

    def settled_step(self, step: StepResult) -> StepResult:
        """The step with its operators as they are then."""
        if (step.mine.rank_id, step.mine.iteration) != self._iteration:
            self._iteration = step.mine.rank_id, step.mine.iteration
            self._made_before, self._made = self._made, defaultdict(list)
        self._forward_errors = []
        settled = dataclasses.replace(step, operators=tuple(map(self._settled_operator, step.operators)))
        if self._forward_errors:
            # Gradients that are zero but for rounding differ by any factor, and tell nothing.
            middle = float(np.median(self._forward_errors))
            self.error = max(self.error, middle)
            if self.lost is None and middle > _LOST:
                self.lost = step.mine
        return settled

    def _settled_operator(self, result: OperatorResult) -> OperatorResult:
        """The result as it is once what follows from a decision at the border is no difference."""
        settled = self._settled(result)
        if not result.pair.mine.is_parameter:
            errors = {tensor.slot.number: _error(tensor) for tensor in settled.outputs if tensor.status != DIFFERS}
            self._errors[result.step, result.pair.mine.label] = errors
        return settled

    def _settled(self, result: OperatorResult) -> OperatorResult:
        if result.is_agreeing:
            if self.first is None and _is_left_with_rounding(result):
                size = max(tensor.metrics.count for tensor in result.outputs if tensor.metrics is not None)
                self.first = Tie(result, size, size)
            if self.first is not None:
                self._note(result.outputs)
            return result
        try:
            followed = result if self.first is None else self._followed(result)
            if followed.is_agreeing or any(tensor.status == DIFFERS for tensor in followed.inputs):
                return followed
            return self._decided(followed) or followed
        except (FormatError, OSError):
            return result

    def _followed(self, result: OperatorResult) -> OperatorResult:
        """An operator whose inputs differ by no more than the decision explains, and whose outputs do not where their
        error is what came in. Parameters are read by the next iteration.
        """
        limit = AMPLIFIED * self._largest
        if result.pair.mine.is_parameter:
            inputs, outputs = result.inputs, self._excused(result.outputs, lambda tensor: _error(tensor) <= limit)
        else:
            node = self._graphs.node(result.step, result.pair.mine)
            origins = () if node is None else node.inputs
            for tensor in result.inputs:
                if tensor.status == DIFFERS and not (
                    _is_measured(tensor, self._limit(result, origins, tensor)) or self._was_made(tensor)
                ):
                    return result
            inputs = self._excused(result.inputs, lambda tensor: True)
            came_in = AMPLIFIED * max(map(_error, result.inputs), default=0.0)
            outputs = self._excused(
                result.outputs,
                lambda tensor: (
                    (_error(tensor) <= came_in and _keeps_the_rest(result, tensor)) or _is_sum_of(tensor, result.inputs)
                ),
            )
        settled = dataclasses.replace(result, inputs=inputs, outputs=outputs)
        if settled.is_agreeing:
            self._note_reached(result.pair.mine, settled.outputs)
        return settled

    def _limit(self, result: OperatorResult, origins: Sequence[Origin | None], tensor: TensorResult) -> float:
        """The largest error of an input that a decision explains: what made it has that error."""
        slot = tensor.slot.number
        step, origin = self._past_casts(result.step, origins[slot] if slot < len(origins) else None)
        if origin is None or (origin.slot is None and origin.maker is None):
            return AMPLIFIED * self._largest  # its maker is not known, or it came in from outside
        if origin.maker is None:
            made = self._errors.get((step, origin.name), {})
            output = origin.slot or 0
        else:
            graph, name, output = origin.maker
            if stage_of(name) not in self._stages:
                return AMPLIFIED * self._largest  # the other run shows nothing of that part of a step
            own = step._replace(graph_id=graph)
            # What a later part of an iteration writes, as an optimizer does, is read in the next one.
            before = own if own.iteration is None else own._replace(iteration=own.iteration - 1)
            made = self._errors.get((own, name)) or self._errors.get((before, name), {})
        if not made and self.forms is not None and self.forms.has_made(result, tensor):
            return AMPLIFIED * self._largest
        # An operator that the other run has not makes numbers that no decision explains.
        # A cast rounds once more.
        epsilon = bounds_of(tensor.mine.true_dtype, tensor.golden.true_dtype, None).epsilon
        return EQUAL * made[output] + epsilon if output in made else 0.0

    def _past_casts(self, step: StepKey, origin: Origin | None) -> tuple[StepKey, Origin | None]:
        """Step and origin of what a value is a cast or a view of, by operators that the other run has not."""
        while origin is not None:
            key = step if origin.maker is None else step._replace(graph_id=origin.maker[0])
            name = origin.name if origin.maker is None else origin.maker[1]
            mover = self.movers.get((key, name))
            node = None if mover is None else self._graphs.node(key, mover)
            if node is None or not node.inputs:
                break
            step, origin = key, node.inputs[0]
        return step, origin

    def _was_made(self, tensor: TensorResult) -> bool:
        """Whether an operator that a decision has reached made it, in memory that the graph knows as another's, such as
        what is written through a view, or a parameter: the same errors, in any order of the elements.
        """
        metrics = tensor.metrics
        return metrics is not None and any(
            made.worst_error == metrics.worst_error
            and math.isclose(made.relative_error, metrics.relative_error, rel_tol=_SUMMED)
            for made in (*self._made.get(metrics.count, ()), *self._made_before.get(metrics.count, ()))
        )

    def _excused(
        self, tensors: Sequence[TensorResult], is_carried: Callable[[TensorResult], bool]
    ) -> tuple[TensorResult, ...]:
        """The tensors, of which those that differ agree where that is what came in."""
        return tuple(
            _as_agreeing(tensor)
            if tensor.status == DIFFERS and _is_measured(tensor, math.inf) and is_carried(tensor)
            else tensor
            for tensor in tensors
        )

    def _note(self, tensors: Sequence[TensorResult]) -> None:
        self._largest = max([self._largest, *map(_error, tensors)])

    def _note_reached(self, operator: Operator, outputs: Sequence[TensorResult]) -> None:
        self.reached += 1
        self._note(outputs)
        for tensor in outputs:
            if tensor.metrics is not None:
                self._made[tensor.metrics.count].append(tensor.metrics)
        if operator.stage == "forward" and not operator.is_parameter:
            self._forward_errors.append(max(map(_error, outputs), default=0.0))

    def _decided(self, result: OperatorResult) -> OperatorResult | None:
        """An operator whose inputs agree and whose outputs differ in decisions at the border alone; None for others."""
        op_type = result.pair.mine.op_type
        if not _decides(op_type):
            return None
        inputs = [Both.of(tensor) for tensor in result.inputs if tensor.metrics is not None]
        is_normalised = has(op_type, "normalises")
        if not inputs and not is_normalised:
            return None  # the same numbers came in: nothing excuses another result
        came_in = max(map(_error, result.inputs), default=0.0)
        outputs, tie = [], Tie(result, 0, 0)
        for tensor in result.outputs:
            if tensor.status == DIFFERS:
                if not _is_measured(tensor, math.inf):
                    return None
                both = Both.of(tensor)
                if is_normalised:
                    flipped = normalised(result.pair.mine, both)
                elif has(op_type, "termwise"):
                    flipped = np.ones(both.mine.size, bool) if keeps_errors(result.inputs, tensor) else None
                elif kind_of(op_type) == _PRODUCT:
                    flipped = np.ones(both.mine.size, bool) if multiplies(result.inputs, both) else None
                elif has(op_type, "exponential"):
                    flipped = np.ones(both.mine.size, bool) if raises_errors(inputs, both) else None
                else:
                    flipped = flipped_of(op_type, inputs, both)
                if flipped is None or not agree(both, ~flipped, self._bounds(both, came_in)):
                    return None
                count = int(np.count_nonzero(flipped))
                tie = Tie(result, count, both.mine.size) if count > tie.count else tie
                tensor = _as_agreeing(tensor, _why(op_type))
            outputs.append(tensor)
        self.first = self.first or tie
        self._note_reached(result.pair.mine, outputs)
        return dataclasses.replace(result, outputs=tuple(outputs))

    def _bounds(self, both: Both, came_in: float) -> Bounds:
        """What elements that were decided alike may differ by: behind an earlier decision, what it brought."""
        bounds = bounds_of(both.dtypes[0], both.dtypes[1], self._tolerance)
        brought = 0.0 if self.first is None else AMPLIFIED * came_in
        return Bounds(max(bounds.relative, brought), max(bounds.worst, 10 * brought), bounds.epsilon)


class _Forms:
    """What golden computes in a form of its own, by operators without a counterpart."""

    def __init__(self, golden: GraphFiles, steps: Sequence[StepResult]) -> None:
        self._golden = golden
        self._paired = {
            part.label
            for step in steps
            for result in step.operators
            if result.outputs
            for part in (result.pair.golden, *result.pair.golden.parts)
        }

    def has_made(self, result: OperatorResult, tensor: TensorResult) -> bool:
        """Whether such an operator made golden's operand: then the other run has a form as well, and nothing more. What
        only moves elements of a forward pass is no form; gradients each framework moves in its own way.
        """
        key = result.pair.golden_step
        parts = result.pair.golden.parts or (result.pair.golden,)
        node = None if key is None else self._golden.node(key, parts[0])
        slot = tensor.golden.slot
        while key is not None and node is not None and slot < len(node.inputs):
            origin = node.inputs[slot]
            if origin is None:
                return False
            graph, name = (key.graph_id, origin.name) if origin.maker is None else origin.maker[:2]
            if name in self._paired:
                return False
            key, slot = key._replace(graph_id=graph), 0
            file = self._golden.of(key)
            node = None if file is None else file.find(name)
            if node is None or not is_mover(node.op_type) or result.pair.mine.stage != "forward":
                return True
        return False


# -- sizes of errors -----------------------------------------------------------------------------------------------


def _is_measured(tensor: TensorResult, limit: float) -> bool:
    """Whether both sides are finite in the same places, and their error is within the limit."""
    return tensor.metrics is not None and not tensor.metrics.mismatched and _error(tensor) <= limit


AT_BORDER, CANCELLED, RAISED, MULTIPLIED, NORMALISED = messages(
    "for a decision at the border",
    "of terms that cancel, which leave their rounding",
    "of exponentials, which make a relative error of an absolute one",
    "of products of what was read",
    "of gradients so small that the place of an epsilon shows",
)


def _why(op_type: str) -> str:
    if has(op_type, "exponential"):
        return RAISED
    if kind_of(op_type) == _PRODUCT:
        return MULTIPLIED
    return CANCELLED if _adds(op_type) else NORMALISED if has(op_type, "normalises") else AT_BORDER


def _as_agreeing(tensor: TensorResult, why: str = AT_BORDER) -> TensorResult:
    return dataclasses.replace(tensor, status=AGREES, reason=joined(COMMA, (tensor.reason, why)))


def _error(tensor: TensorResult) -> float:
    """Relative error, or a tenth of the worst one where that is larger, as bounds have them; of integers and bools,
    which have none, that of as many elements that are another.
    """
    metrics = tensor.metrics
    if metrics is None:
        return 0.0
    if metrics.unequal:
        return math.sqrt(metrics.unequal / max(1, metrics.count))
    return max(metrics.relative_error, metrics.worst_relative_error / 10)


def _keeps_the_rest(result: OperatorResult, output: TensorResult) -> bool:
    """Whether elements that are made of such as no decision has reached agree, where that can be told: the error of a
    few elements must not excuse one of all.   Raises: FormatError, OSError.
    """
    if not has(result.pair.mine.op_type, "proportional"):
        return True
    inputs = [Both.of(tensor) for tensor in result.inputs if tensor.metrics is not None]
    both = Both.of(output)
    if not both.is_real or any(one.mine.shape != both.mine.shape or not one.is_real for one in inputs):
        return True
    close = max(_CLOSE, *(4 * bounds_of(*one.dtypes, None).epsilon for one in (*inputs, both)))
    untouched = np.ones(both.mine.shape, bool)
    for one in inputs:
        untouched &= _is_close(one, close)
    count = int(np.count_nonzero(untouched))
    strayed = int(np.count_nonzero(untouched & ~_is_close(both, (len(inputs) + 2) * close, floor=1e-6)))
    return strayed <= _STRAY * count


def _is_close(both: Both, relative: float, floor: float = 0.0) -> Array:
    """Which elements are.   floor: those that are smaller, as a share of the largest, count as if they were so large"""
    with np.errstate(invalid="ignore"):
        top = float(np.abs(both.golden).max(initial=0.0, where=np.isfinite(both.golden)))
        far: Array = np.abs(both.mine - both.golden) > relative * np.maximum(np.abs(both.golden), floor * top)
    return np.logical_not(far)


def _is_sum_of(output: TensorResult, inputs: Sequence[TensorResult]) -> bool:
    """Whether the error of an output that sums inputs up is within that of its terms, which cancel."""
    assert output.metrics is not None
    size = max((tensor.metrics.count for tensor in inputs if tensor.metrics is not None), default=0)
    if output.metrics.count * _REDUCED > size:
        return False
    terms = [
        (metrics.root_mean_square_error * math.sqrt(metrics.count), largest(tensor.golden.load_host()))
        for tensor in inputs
        if (metrics := tensor.metrics) is not None and not metrics.unequal
    ]
    factors = max([1.0, *(top for _, top in terms)])
    return output.metrics.worst_error <= AMPLIFIED * factors * max((distance for distance, _ in terms), default=0.0)
