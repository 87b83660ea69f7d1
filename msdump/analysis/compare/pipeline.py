"""The way of every comparison of two dumps, of tensors or of statistics alone: steps and operators are paired, a judge
compares the tensors that both sides have, and what one side cannot show is not compared."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msdump.analysis._payload import has_same_bytes
from msdump.analysis.compare.across import Crossing, cross
from msdump.analysis.compare.common_tensors import common_tensors, host_shape
from msdump.analysis.compare.dialects import is_between_frameworks
from msdump.analysis.compare.faults import Fault
from msdump.analysis.compare.in_order import align
from msdump.analysis.compare.mapping import OperatorMap
from msdump.analysis.compare.named import pair_named
from msdump.analysis.compare.pairing import BY_MAPPING, OperatorPair, Pairing, in_other_order, pair_operators
from msdump.analysis.compare.result import (
    AGREES,
    DIFFERS,
    IDENTICAL,
    NOT_COMPARED,
    Comparison,
    OperatorResult,
    StepResult,
    TensorResult,
    operator_result,
)
from msdump.analysis.compare.step_pairs import pair_steps
from msdump.analysis.compare.trace import Look
from msdump.analysis.compare.values import Likeness, figures_of, likeness_of
from msdump.analysis.graph_info import GraphFiles
from msdump.analysis.memory_state import OTHER_MOMENT, UNSET, Moment, SameBytes, UnsetTensors, slots_of_other_moments
from msdump.analysis.steps import Operator, Slot, Step, StepKey, as_they_ran
from msdump.errors import ConfigError, FormatError
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.kinds import is_mover
from msdump.operators.traits import is_random
from msdump.tables.messages import message
from msdump.tensors.records import INPUT, OUTPUT

# An operator of a loop's body: one side may have run it more often.
_TRIP = re.compile(r"/body/[0-9]+/")
_MATRIX = 2  # axes of what may be transposed and has the same shape
# Compares one tensor of a pair of operators: side ("input" or "output"), slot, mine, golden.
Judge = Callable[[OperatorPair, str, Slot, DumpedTensor, DumpedTensor], TensorResult]


@dataclass(frozen=True, eq=False)
class ComparedSide:
    """The steps of one dump and its graph files.

    is_same   whether two of its tensors hold the same values
    look      figures of one of its tensors
    """

    steps: Sequence[Step]
    graphs: GraphFiles
    is_same: SameBytes = has_same_bytes
    look: Look = figures_of


@dataclass(frozen=True, slots=True)
class StepPair:
    """Two steps that belong together, before any tensor is compared. Moments and unset tensors: of mine and golden.

    others, likenesses, beyond, faults   as `Crossing` has them, of dumps of two frameworks
    """

    mine: Step
    golden: Step
    pairing: Pairing
    moments: tuple[Moment, Moment]
    unset: tuple[UnsetTensors, UnsetTensors]
    others: tuple[Step, ...] = ()
    likenesses: Mapping[tuple[int, int], Likeness] = field(default_factory=dict)
    beyond: tuple[tuple[StepKey, Operator], ...] = ()
    faults: tuple[Fault, ...] | None = None


def pair_sides(mine: ComparedSide, golden: ComparedSide, mapping: OperatorMap | None) -> list[StepPair]:
    """Steps that belong together, in mine's order, with their operators paired."""
    return [
        _step_pair(
            (mine, golden), my_step, golden_step, pair_operators(my_step.operators, golden_step.operators, mapping)
        )
        for my_step, golden_step in pair_steps(as_they_ran(mine.steps), golden.steps)
    ]


def cross_sides(
    mine: ComparedSide, golden: ComparedSide, mapping: OperatorMap | None, tolerance: float | None
) -> list[StepPair]:
    """`pair_sides` of dumps of two frameworks, which may have other graphs."""
    looks, graphs = (mine.look, golden.look), (mine.graphs, golden.graphs)
    return _crossed((mine, golden), cross(mine.steps, golden.steps, mapping, tolerance, looks, graphs))


def name_sides(
    mine: ComparedSide, golden: ComparedSide, mapping: OperatorMap, tolerance: float | None
) -> list[StepPair]:
    """`pair_sides` where one side has names of tensors in place of operators."""
    return _crossed((mine, golden), pair_named(mine.steps, golden.steps, mapping, tolerance))


def align_sides(mine: ComparedSide, golden: ComparedSide, mapping: OperatorMap) -> list[StepPair]:
    """`pair_sides` where one side is a log, which knows no steps: operators pair by type and order alone."""
    return _crossed((mine, golden), align(mine.steps, golden.steps, mapping))


def _crossed(sides: tuple[ComparedSide, ComparedSide], crossings: Iterable[Crossing]) -> list[StepPair]:
    return [
        replace(
            _step_pair(sides, crossing.mine, crossing.golden, crossing.pairing),
            others=crossing.others,
            likenesses=crossing.likenesses,
            beyond=crossing.beyond,
            faults=crossing.faults,
        )
        for crossing in crossings
    ]


def _step_pair(sides: tuple[ComparedSide, ComparedSide], mine: Step, golden: Step, pairing: Pairing) -> StepPair:
    x, y = ((step, side.graphs.of(step.key), side.is_same) for side, step in zip(sides, (mine, golden), strict=True))
    return StepPair(mine, golden, pairing, (Moment(*x), Moment(*y)), (UnsetTensors(*x), UnsetTensors(*y)))


def compare_sides(
    sides: tuple[ComparedSide, ComparedSide],
    paths: Sequence[Path],
    mapping: OperatorMap,
    tolerance: float | None,
    compared: Callable[[Sequence[StepPair]], Comparison],
    pairs: Sequence[StepPair] | None = None,
) -> Comparison:
    """Pair two sides by their names where they are one program, by their values where they are not, and compare them.

    paths      of both, for messages
    compared   compares pairs of steps
    pairs      where they are known
    Raises:    ConfigError where no operator of one has a counterpart.
    """
    mine, golden = sides
    is_free = pairs is None and not mapping.is_given
    if pairs is None and is_between_frameworks(mine.steps, golden.steps):
        pairs, is_free = cross_sides(mine, golden, mapping, tolerance), False
    if pairs is None or not _is_paired(pairs):
        pairs = pair_sides(mine, golden, mapping)
    if not _is_paired(pairs):
        raise ConfigError(
            f"{paths[0]} and {paths[-1]}: expected operators in common, got none. "
            "Say with a mapping file which operator is which (--mapping FILE)."
        )
    comparison = None
    missed = _Missed.of(sides, pairs) if is_free else _Missed(False, False)
    if not missed.by_one or not _is_apart(pairs, compared):
        comparison = compared(pairs)
        # What agrees by its name tells nothing of what both runs have alone, as where a function has become a module.
        if not (missed.by_both if comparison.is_agreeing else missed.by_one):
            return comparison
    crossed = compared(cross_sides(mine, golden, mapping, tolerance))
    return crossed if any(crossed.operators) else comparison or compared(pairs)


def compare_pairs(
    paths: Sequence[Path],
    sides: tuple[ComparedSide, ComparedSide],
    pairs: Sequence[StepPair],
    mapping: OperatorMap | None,
    judge: Judge,
    damaged: Callable[[], Iterable[tuple[str, FormatError]]],
) -> Comparison:
    """Let the judge compare all pairs.

    paths     of mine, golden and, where there is one, the reference
    sides     mine, and what it is compared with
    damaged   files that could not be read, asked when all pairs are compared
    """
    results = tuple(_step_result(pair, mapping, judge) for pair in pairs)
    used = {id(step) for pair in pairs for step in (pair.mine, pair.golden, *pair.others)}
    only_mine, only_golden = (tuple(step.key for step in side.steps if id(step) not in used) for side in sides)
    reference = paths[2] if len(paths) > 2 else None
    return Comparison(paths[0], paths[1], reference, results, only_mine, only_golden, tuple(damaged()))


def _step_result(step: StepPair, mapping: OperatorMap | None, judge: Judge) -> StepResult:
    """Operators in mine's execution order, parameters last."""
    operators = [_operator_result(step, pair, mapping, judge) for pair in step.pairing.pairs]
    # By name where they are called alike, they may still be others: what they read tells, where it differs.
    doubtful = [
        index
        for index, result in enumerate(operators)
        if result.inputs and any(tensor.status == DIFFERS for tensor in result.inputs) and result.pair.how != BY_MAPPING
    ]
    if len(doubtful) > 1:
        for index, pair in in_other_order([operators[index].pair for index in doubtful]).items():
            operators[doubtful[index]] = _operator_result(step, pair, mapping, judge)
    operators.sort(key=lambda result: result.pair.mine.is_parameter)
    pairing = step.pairing
    return StepResult(
        step.mine.key,
        step.golden.key,
        tuple(operators),
        pairing.only_mine,
        pairing.only_golden,
        pairing.expected,
        step.beyond,
        step.faults,
    )


def _operator_result(step: StepPair, pair: OperatorPair, mapping: OperatorMap | None, judge: Judge) -> OperatorResult:
    blind = slots_of_other_moments(pair.mine, pair.golden, step.moments)
    results: dict[str, list[TensorResult]] = {INPUT: [], OUTPUT: []}
    turned: dict[Slot, Likeness] = {}
    for io, slot, mine, golden in common_tensors(pair.mine, pair.golden):
        if io == INPUT and slot.number in blind:
            result = TensorResult(io, slot, mine, golden, NOT_COMPARED, OTHER_MOMENT)
        elif mapping is not None and mapping.ignore and _is_ignored(mapping, pair, io, slot):
            result = TensorResult(io, slot, mine, golden, NOT_COMPARED, "the mapping file leaves it out")
        else:
            likeness = step.likenesses.get((id(mine), id(golden))) if step.likenesses else None
            if likeness is None:
                result = judge(pair, io, slot, mine, golden)
                if result.status == DIFFERS and _is_permuted(host_shape(mine), host_shape(golden)):
                    likeness = likeness_of(mine, golden)
                    if likeness is not None and likeness.axes:
                        result = _in_other_axes(io, slot, mine, golden, likeness)
            else:
                if io == INPUT:
                    turned[slot] = likeness
                result = _in_other_axes(io, slot, mine, golden, likeness)
        if result.status == DIFFERS and _is_unset(step, pair, io, slot):
            result = TensorResult(io, slot, mine, golden, NOT_COMPARED, UNSET)
        results[io].append(result)
    if turned and all(result.status != DIFFERS for result in results[OUTPUT]):
        # A product says by an attribute that it reads its operand transposed; what shows in no result is no mistake.
        results[INPUT] = [
            _in_other_axes(INPUT, each.slot, each.mine, each.golden, turned[each.slot], is_layout=True)
            if each.status == DIFFERS and each.slot in turned
            else each
            for each in results[INPUT]
        ]
    return operator_result(step.mine.key, pair, tuple(results[INPUT]), tuple(results[OUTPUT]))


def _is_permuted(mine: tuple[int, ...], golden: tuple[int, ...]) -> bool:
    """Whether two shapes of images, or of more axes, have the same lengths in another order."""
    return mine != golden and len(mine) > _MATRIX and sorted(mine) == sorted(golden)


def _in_other_axes(
    io: str, slot: Slot, mine: DumpedTensor, golden: DumpedTensor, likeness: Likeness, is_layout: bool = False
) -> TensorResult:
    """Two tensors that agree once the axes of one are exchanged: another layout, or a mistake where both have one shape
    of more than two axes and nothing shows that it `is_layout`.
    """
    x, y = host_shape(mine), host_shape(golden)
    if not likeness.axes:
        scaled = message("the same numbers, {factor} times as large, as the loss is", factor=f"{1 / likeness.factor:g}")
        status = DIFFERS if likeness.reason else AGREES
        remark, factor = likeness.reason or scaled, likeness.factor
        return TensorResult(io, slot, mine, golden, status, remark, likeness.metrics, factor=factor)
    side = "golden" if likeness.is_of_golden else "mine"
    remark = f"the same numbers with the axes of {side} in the order {list(likeness.axes)}"
    if x == y and len(x) > _MATRIX and not is_layout:
        return TensorResult(io, slot, mine, golden, DIFFERS, remark)
    status = IDENTICAL if likeness.metrics is None else DIFFERS if likeness.reason else AGREES
    remark = likeness.reason or f"shape {list(x)} against {list(y)}, {remark}"
    return TensorResult(io, slot, mine, golden, status, remark, likeness.metrics, axes=likeness.axes)


def _is_ignored(mapping: OperatorMap, pair: OperatorPair, io: str, slot: Slot) -> bool:
    return any(mapping.ignores(side.names | {side.op_type}, io, slot.number) for side in _both(pair))


def _is_unset(step: StepPair, pair: OperatorPair, io: str, slot: Slot) -> bool:
    return any(unset.has(operator, io, slot) for unset, operator in zip(step.unset, _both(pair), strict=True))


def _both(pair: OperatorPair) -> tuple[Operator, Operator]:
    return pair.mine, pair.golden


def _is_paired(pairs: Sequence[StepPair]) -> bool:
    return any(pair.pairing.pairs for pair in pairs)


@dataclass(frozen=True, slots=True)
class _Missed:
    """Whether runs have operators that compute, with inputs, and that no name of the other one is: results alone tell
    no place.

    by_one    one of them in a step that both have
    by_both   each of them in such a step, or a graph of its own in an iteration that both have: what only one side has
              may have been chosen for its dump
    """

    by_one: bool
    by_both: bool

    @staticmethod
    def of(sides: tuple[ComparedSide, ComparedSide], pairs: Sequence[StepPair]) -> _Missed:
        paired = {id(step) for pair in pairs for step in (pair.mine, pair.golden)}
        iterations = [{step.key.iteration for step in side.steps} for side in sides]
        in_steps = [
            [one for pair in pairs for one in pair.pairing.only_mine if _is_missed(one)],
            [one for pair in pairs for one in pair.pairing.only_golden if _is_missed(one)],
        ]
        alone = [
            (
                one
                for step in side.steps
                if id(step) not in paired and step.key.iteration in iterations[0] & iterations[1]
                for one in step.operators
                if _is_missed(one)
            )
            for side in sides
        ]
        with_inputs = (
            any(one.inputs for one in itertools.chain(here, there)) for here, there in zip(in_steps, alone, strict=True)
        )
        return _Missed(any(one.inputs for one in itertools.chain(*in_steps)), all(with_inputs))


def _is_missed(operator: Operator) -> bool:
    return not is_mover(operator.op_type) and not is_random(operator.op_type) and not _TRIP.search(operator.label)


def _is_apart(pairs: Sequence[StepPair], compared: Callable[[Sequence[StepPair]], Comparison]) -> bool:
    """Whether the first pair whose results are other bytes differs. It is found without a measure of all others."""
    for step in pairs:
        for pair in step.pairing.pairs:
            common = common_tensors(pair.mine, pair.golden)
            if not all(has_same_bytes(mine, golden) for io, _, mine, golden in common if io == OUTPUT):
                alone = compared([replace(step, pairing=Pairing((pair,), (), ()))])
                return alone.first_differing is not None
    return False
