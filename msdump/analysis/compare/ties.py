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
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from msdump.analysis.compare.bounds import ROUNDINGS, Bounds, bounds_of, largest, reason_to_differ
from msdump.analysis.compare.metrics import PairMetrics, compare_arrays
from msdump.analysis.compare.pairing import host_shape
from msdump.analysis.compare.result import AGREES, AMPLIFIED, DIFFERS, OperatorResult, StepResult, TensorResult, Tie
from msdump.analysis.full_names import stage_of
from msdump.analysis.graph_info import GraphFiles, Origin
from msdump.analysis.steps import Operator, StepKey
from msdump.errors import FormatError
from msdump.operators.kinds import has, is_mover, kind_of
from msdump.operators.table import row_of
from msdump.operators.traits import jumps_of
from msdump.tables.messages import COMMA, joined, messages
from msdump.tensors.arrays import Array

# Errors of what is read and of what was made are computed apart.
_EQUAL = 1.001
# Sums of the same numbers in another order.
_SUMMED = 1e-9
# Two runs that are so far apart show no fault any more.
_LOST = 0.1
# Elements that are as close as this were not reached by a decision; of those of a result so many may be further apart.
_CLOSE, _STRAY = 1e-4, 0.01
# An output so much smaller than what it is computed from is a sum of it, whose terms cancel.
_REDUCED = 4
_PLANE = 2
_PRODUCT = "mul"
# Of an optimizer that divides a gradient by its size: from which share of the gradients on their steps tell how it
# does so, and how far these may be apart.
_LARGE_SHARE, _OF_A_STEP = 0.75, 0.01
_OF_CHANCES = 0.05
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


def sums_up(result: OperatorResult) -> bool:
    """Whether the first decision is none at a border, but a sum of terms that cancel."""
    return _adds(result.pair.mine.op_type)


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
        return _EQUAL * made[output] + epsilon if output in made else 0.0

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
        inputs = [_Both.of(tensor) for tensor in result.inputs if tensor.metrics is not None]
        is_normalised = has(op_type, "normalises")
        if not inputs and not is_normalised:
            return None  # the same numbers came in: nothing excuses another result
        came_in = max(map(_error, result.inputs), default=0.0)
        outputs, tie = [], Tie(result, 0, 0)
        for tensor in result.outputs:
            if tensor.status == DIFFERS:
                if not _is_measured(tensor, math.inf):
                    return None
                both = _Both.of(tensor)
                if is_normalised:
                    flipped = _normalised(result.pair.mine, both)
                elif has(op_type, "termwise"):
                    flipped = np.ones(both.mine.size, bool) if _keeps_errors(result.inputs, tensor) else None
                elif kind_of(op_type) == _PRODUCT:
                    flipped = np.ones(both.mine.size, bool) if _multiplies(result.inputs, both) else None
                elif has(op_type, "exponential"):
                    flipped = np.ones(both.mine.size, bool) if _raises_errors(inputs, both) else None
                else:
                    flipped = _flipped(op_type, inputs, both)
                if flipped is None or not _agree(both, ~flipped, self._bounds(both, came_in)):
                    return None
                count = int(np.count_nonzero(flipped))
                tie = Tie(result, count, both.mine.size) if count > tie.count else tie
                tensor = _as_agreeing(tensor, _why(op_type))
            outputs.append(tensor)
        self.first = self.first or tie
        self._note_reached(result.pair.mine, outputs)
        return dataclasses.replace(result, outputs=tuple(outputs))

    def _bounds(self, both: _Both, came_in: float) -> Bounds:
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
            for part in (result.pair.golden, *result.pair.golden.parts)
        }

    def has_made(self, result: OperatorResult, tensor: TensorResult) -> bool:
        """Whether such an operator made golden's operand: then the other run has a form as well, and nothing more."""
        key = result.pair.golden_step
        parts = result.pair.golden.parts or (result.pair.golden,)
        node = None if key is None else self._golden.node(key, parts[0])
        slot = tensor.golden.slot
        origin = node.inputs[slot] if node is not None and slot < len(node.inputs) else None
        name = None if origin is None else origin.name if origin.maker is None else origin.maker[1]
        return name is not None and name not in self._paired


@dataclass(frozen=True, slots=True)
class _Both:
    """The numbers of one tensor in both runs, in one shape where they have one.

    margin   how far two elements that belong together may lie apart
    """

    mine: Array
    golden: Array
    dtypes: tuple[str, str]
    margin: float

    @staticmethod
    def of(tensor: TensorResult) -> _Both:
        """Raises: FormatError, OSError."""
        mine, golden = (_numbers(side.load_host()) for side in (tensor.mine, tensor.golden))
        mine = mine if tensor.factor == 1 else mine * tensor.factor
        dtypes = tensor.mine.true_dtype, tensor.golden.true_dtype
        # What both have in common agrees: the largest difference that was seen is the margin.
        margin = 0.0 if tensor.metrics is None else 2.0 * tensor.metrics.worst_error
        return _Both(mine, golden, dtypes, margin)

    @property
    def is_real(self) -> bool:
        return self.mine.dtype.kind == "f"


def _numbers(array: Array) -> Array:
    """Floats as float64, others as they are."""
    return array.astype(np.float64) if array.dtype.kind in "fV" else array


def _agree(both: _Both, chosen: Array, bounds: Bounds) -> bool:
    mine, golden = both.mine.reshape(-1)[chosen.reshape(-1)], both.golden.reshape(-1)[chosen.reshape(-1)]
    return not reason_to_differ(compare_arrays(mine, golden, has_divergence=False), bounds)


def _flipped(op_type: str, inputs: Sequence[_Both], output: _Both) -> Array | None:
    """Which elements of an output were decided otherwise, at the border; None where that is not so."""
    same = [one for one in inputs if one.is_real and one.mine.shape == one.golden.shape]
    of_its_size = [one for one in same if one.mine.size == output.mine.size]
    kind = kind_of(op_type)
    if jumps := jumps_of(op_type):
        return _across(of_its_size, _sides_of(jumps))
    if has(op_type, "steps"):
        flipped = _across(of_its_size, _floors(kind))
        far = np.abs(output.mine.astype(np.float64) - output.golden.astype(np.float64)).reshape(-1) > 1
        return None if flipped is None or bool((far & flipped).any()) else flipped
    if has(op_type, "compares"):
        return _compared(kind, same, output)
    if has(op_type, "routes"):
        return _routed(of_its_size, output)
    if has(op_type, "sums"):
        return _cancelled(inputs, output, is_mean=kind == "mean")
    return _selected(same, output) if output.mine.dtype.kind in "iu" else None


def _sides_of(jumps: Sequence[float]) -> Callable[[Array], Array]:
    """On which side of each border a value lies, or on the border itself."""

    def sides(x: Array) -> Array:
        return np.asarray(np.sign(np.subtract.outer(np.array(jumps), x)).sum(axis=0))

    return sides


def _floors(kind: str) -> Callable[[Array], Array]:
    """Which whole numbers lie on either side; at a border itself libraries go up, down, or to the even one."""

    def parts(x: Array) -> Array:
        shifted = x - 0.5 if kind == "round" else x
        return np.ceil(shifted) if kind == "ceil" else np.floor(shifted) + (kind != "floor") * np.ceil(shifted)

    return parts


def _across(arguments: Sequence[_Both], side_of: Callable[[Array], Array]) -> Array | None:
    """Elements in which an argument lies on another side of a border."""
    flipped = None
    with np.errstate(invalid="ignore"):
        for one in arguments:
            other = (side_of(one.mine) != side_of(one.golden)).reshape(-1)
            flipped = other if flipped is None else flipped | other
    return flipped


def _compared(kind: str, arguments: Sequence[_Both], output: _Both) -> Array | None:
    """Of x < y: where the sign of x - y is another. Of x < c, whose c no file holds: there is one c for both runs."""
    if not arguments:
        return None
    flipped: Array = (output.mine != output.golden).reshape(-1)
    if len(arguments) > 1:
        x, y = arguments[:2]
        with np.errstate(invalid="ignore"):
            near = np.abs(x.golden - y.golden) <= x.margin + y.margin
        near = np.broadcast_to(near, output.mine.shape).reshape(-1)
        return flipped if bool(near[flipped].all()) else None
    only = arguments[0]
    if only.mine.size != output.mine.size:
        return None
    is_less = kind.lower().startswith("l")
    borders = [_border(x.reshape(-1), (said != is_less).reshape(-1)) for x, said in (
        (only.mine, output.mine.astype(bool)), (only.golden, output.golden.astype(bool)),
    )]  # fmt: skip
    low, high = max(low for low, _ in borders), min(high for _, high in borders)
    return flipped if low <= high + only.margin else None


def _border(x: Array, is_above: Array) -> tuple[float, float]:
    """Between which values the constant lies that x was compared with."""
    finite = np.isfinite(x)
    below, above = x[finite & ~is_above], x[finite & is_above]
    return float(below.max(initial=-math.inf)), float(above.min(initial=math.inf))


def _routed(arguments: Sequence[_Both], output: _Both) -> Array | None:
    """The gradient of max-pooling goes to another element of the window, whose value is nearly the same."""
    moved = np.abs(output.mine - output.golden).reshape(-1)
    top = max(float(np.abs(output.golden).max(initial=0.0)), math.ulp(0.0))
    flipped: Array = moved > 1e-5 * top
    gained = flipped & (np.abs(output.mine) > np.abs(output.golden)).reshape(-1)
    lost = flipped & ~gained
    for one in arguments:
        x = one.golden.reshape(-1)
        values = x[gained], x[lost]
        if (
            all(side.size for side in values)
            and _are_near(*values, one.margin)
            and _are_near(*values[::-1], one.margin)
        ):
            return flipped
    return None


def _cancelled(inputs: Sequence[_Both], output: _Both, is_mean: bool) -> Array | None:
    """Sums that are rounding alone in both runs; None where none is, or where it is not clear what is summed up."""
    if not inputs or not output.is_real or output.mine.shape != output.golden.shape:
        return None
    terms = inputs[0]
    axes = _summed_axes(terms.mine, output.mine)
    if not terms.is_real or terms.mine.shape != terms.golden.shape or axes is None:
        return None
    epsilon = max(bounds_of(*one.dtypes, None).epsilon for one in (terms, output))
    noise = np.ones(output.mine.size, bool)
    for values, found in ((terms.mine, output.mine), (terms.golden, output.golden)):
        size = np.abs(values).sum(axis=axes).reshape(-1) / (values.size / found.size if is_mean else 1.0)
        noise &= np.abs(found).reshape(-1) <= ROUNDINGS * epsilon * size
    return noise if noise.any() else None


def _keeps_errors(inputs: Sequence[TensorResult], output: TensorResult) -> bool:
    """Whether no element of a sum or difference is further off than the elements that it is made of."""
    came_in = sum(tensor.metrics.worst_error for tensor in inputs if tensor.metrics is not None)
    return output.metrics is not None and output.metrics.worst_error <= _EQUAL * came_in


def _multiplies(tensors: Sequence[TensorResult], output: _Both) -> bool:
    """Whether both results are the products of what their runs have read: elements that are large on both sides may
    carry most of the errors.   Raises: FormatError, OSError.
    """
    inputs = [_Both.of(tensor) for tensor in tensors]
    if len(inputs) != 2 or not all(one.is_real for one in (*inputs, output)):
        return False
    margin = ROUNDINGS * bounds_of(*output.dtypes, None).epsilon
    for sides, made in (
        ([one.mine for one in inputs], output.mine), ([one.golden for one in inputs], output.golden),
    ):  # fmt: skip
        if not all(side.shape in (made.shape, ()) for side in sides):
            return False
        if not np.allclose(sides[0] * sides[1], made, rtol=margin, atol=margin * float(np.abs(made).max(initial=0.0))):
            return False
    return True


def _raises_errors(inputs: Sequence[_Both], output: _Both) -> bool:
    """Whether a result is no further off than exponentials of an operand are by its error: of large scores a small
    relative error is a large one of what a softmax makes of them.
    """
    if any(one.mine.shape != output.mine.shape or not one.is_real for one in (*inputs, output)):
        return False
    raised = [one for one in inputs if len(inputs) == 1 or _is_logarithm(one.golden)]
    factors = [one for one in inputs if not any(one is each for each in raised)]
    size = max(float(np.abs(one.golden).max(initial=0.0)) for one in factors or (output,))
    error = max(map(_worst, raised), default=0.0)
    return _worst(output) <= _EQUAL * (sum(map(_worst, factors)) + size * math.expm1(2 * min(error, 1.0)))


def _worst(both: _Both) -> float:
    with np.errstate(invalid="ignore"):
        return float(np.abs(both.mine - both.golden).max(initial=0.0))


def _is_logarithm(x: Array) -> bool:
    """Whether elements are logarithms of chances, which add up to 1 along an axis."""
    with np.errstate(over="ignore"):
        sums = (np.exp(x).sum(axis) for axis in range(x.ndim))
        return any(bool((np.abs(one - 1) < _OF_CHANCES).all()) for one in sums)


def _normalised(operator: Operator, output: _Both) -> Array | None:
    """The elements of small gradients, where those of the largest made the same step: the epsilon by which an optimizer
    divides stands in different places in libraries.
    """
    of_its_size = [one for one in operator.inputs.values() if math.prod(host_shape(one)) == output.mine.size]
    if len(of_its_size) < 2 or not output.is_real:
        return None
    before, gradient = (_numbers(one.load_host()).reshape(-1) for one in (of_its_size[0], of_its_size[-1]))
    large: Array = np.abs(gradient) >= np.quantile(np.abs(gradient), _LARGE_SHARE)
    mine, golden = output.mine.reshape(-1), output.golden.reshape(-1)
    step = float(np.abs(golden - before).max())
    return ~large if bool((np.abs(mine - golden)[large] <= _OF_A_STEP * step).all()) else None


def _summed_axes(x: Array, total: Array) -> tuple[int, ...] | None:
    """Axes over which a tensor is summed up, by the shapes; None where several would fit, or none."""
    found = set()
    for count in range(1, x.ndim + 1):
        for axes in itertools.combinations(range(x.ndim), count):
            kept = tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
            held = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
            if total.shape in (kept, held):
                found.add(tuple(axis for axis in axes if x.shape[axis] != 1))
    return found.pop() if len(found) == 1 else None


def _are_near(values: Array, others: Array, margin: float) -> bool:
    """Whether each value has another one within the margin."""
    ordered = np.sort(others)
    at = np.searchsorted(ordered, values)
    left = np.abs(values - ordered[np.maximum(at - 1, 0)])
    right = np.abs(values - ordered[np.minimum(at, ordered.size - 1)])
    return bool((np.minimum(left, right) <= margin).all())


def _selected(arguments: Sequence[_Both], output: _Both) -> Array | None:
    """Indices that differ name elements that are nearly the same."""
    flipped: Array = (output.mine != output.golden).reshape(-1)
    for one in arguments:
        # Indices of one side alone may be none: then nothing pairs.
        for mine, golden in zip(_picked(one.mine, output.mine), _picked(one.golden, output.golden), strict=False):
            if bool((np.abs(mine - golden).reshape(-1) <= one.margin).all()):
                return flipped
    return None


def _picked(x: Array, index: Array) -> Iterator[Array]:
    """The elements that indices name, in each way in which the shapes allow it: along an axis, in each plane, of all.

    Edges: indices past the end name nothing.
    """
    if index.size == 0 or index.min() < 0:
        return
    for axis in range(x.ndim):
        rest = x.shape[:axis] + x.shape[axis + 1 :]
        along = np.expand_dims(index, axis) if index.shape == rest else index
        if along.ndim == x.ndim and along.shape[:axis] + along.shape[axis + 1 :] == rest:
            yield np.take_along_axis(x, np.minimum(along, x.shape[axis] - 1).astype(np.intp), axis)
    if x.ndim > _PLANE and index.ndim == x.ndim and index.shape[:-_PLANE] == x.shape[:-_PLANE]:
        planes = x.reshape(-1, x.shape[-1] * x.shape[-2])
        flat = np.minimum(index.reshape(planes.shape[0], -1), planes.shape[1] - 1).astype(np.intp)
        yield np.take_along_axis(planes, flat, 1)
    yield x.reshape(-1)[np.minimum(index.reshape(-1), x.size - 1).astype(np.intp)]


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
    inputs = [_Both.of(tensor) for tensor in result.inputs if tensor.metrics is not None]
    both = _Both.of(output)
    if not both.is_real or any(one.mine.shape != both.mine.shape or not one.is_real for one in inputs):
        return True
    close = max(_CLOSE, *(4 * bounds_of(*one.dtypes, None).epsilon for one in (*inputs, both)))
    untouched = np.ones(both.mine.shape, bool)
    for one in inputs:
        untouched &= _is_close(one, close)
    count = int(np.count_nonzero(untouched))
    strayed = int(np.count_nonzero(untouched & ~_is_close(both, (len(inputs) + 2) * close, floor=1e-6)))
    return strayed <= _STRAY * count


def _is_close(both: _Both, relative: float, floor: float = 0.0) -> Array:
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
