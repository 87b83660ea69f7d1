"""The way of every comparison of two dumps, of tensors or of statistics alone: steps and operators are paired, a judge
compares the tensors that both sides have, and what one side cannot show is not compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from msdump.analysis._payload import has_same_bytes
from msdump.analysis.compare.mapping import OperatorMap
from msdump.analysis.compare.pairing import (
    BY_MAPPING,
    OperatorPair,
    Pairing,
    common_tensors,
    in_other_order,
    pair_operators,
    pair_steps,
)
from msdump.analysis.compare.result import (
    DIFFERS,
    NOT_COMPARED,
    Comparison,
    OperatorResult,
    StepResult,
    TensorResult,
    operator_result,
)
from msdump.analysis.graph_info import GraphFiles
from msdump.analysis.memory_state import OTHER_MOMENT, UNSET, Moment, SameBytes, UnsetTensors, slots_of_other_moments
from msdump.analysis.steps import Operator, Slot, Step, as_they_ran
from msdump.errors import FormatError
from msdump.formats.dump_tensor import DumpedTensor
from msdump.tensors.records import INPUT, OUTPUT

# Compares one tensor of a pair of operators: side ("input" or "output"), slot, mine, golden.
Judge = Callable[[OperatorPair, str, Slot, DumpedTensor, DumpedTensor], TensorResult]


@dataclass(frozen=True, eq=False)
class ComparedSide:
    """The steps of one dump and its graph files.

    is_same   whether two of its tensors hold the same values
    """

    steps: Sequence[Step]
    graphs: GraphFiles
    is_same: SameBytes = has_same_bytes


@dataclass(frozen=True, slots=True)
class StepPair:
    """Two steps that belong together, before any tensor is compared. Moments and unset tensors: of mine and golden."""

    mine: Step
    golden: Step
    pairing: Pairing
    moments: tuple[Moment, Moment]
    unset: tuple[UnsetTensors, UnsetTensors]


def pair_sides(mine: ComparedSide, golden: ComparedSide, mapping: OperatorMap | None) -> list[StepPair]:
    """Steps that belong together, in mine's order, with their operators paired."""
    pairs = []
    for my_step, golden_step in pair_steps(as_they_ran(mine.steps), golden.steps):
        x = my_step, mine.graphs.of(my_step.key), mine.is_same
        y = golden_step, golden.graphs.of(golden_step.key), golden.is_same
        pairing = pair_operators(my_step.operators, golden_step.operators, mapping)
        pairs.append(
            StepPair(my_step, golden_step, pairing, (Moment(*x), Moment(*y)), (UnsetTensors(*x), UnsetTensors(*y)))
        )
    return pairs


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
    used = {id(step) for pair in pairs for step in (pair.mine, pair.golden)}
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
        if any(tensor.status == DIFFERS for tensor in result.inputs) and result.pair.how != BY_MAPPING
    ]
    if len(doubtful) > 1:
        for index, pair in in_other_order([operators[index].pair for index in doubtful]).items():
            operators[doubtful[index]] = _operator_result(step, pair, mapping, judge)
    operators.sort(key=lambda result: result.pair.mine.is_parameter)
    pairing = step.pairing
    return StepResult(
        step.mine.key, step.golden.key, tuple(operators), pairing.only_mine, pairing.only_golden, pairing.expected
    )


def _operator_result(step: StepPair, pair: OperatorPair, mapping: OperatorMap | None, judge: Judge) -> OperatorResult:
    blind = slots_of_other_moments(pair.mine, pair.golden, step.moments)
    results: dict[str, list[TensorResult]] = {INPUT: [], OUTPUT: []}
    for io, slot, mine, golden in common_tensors(pair.mine, pair.golden):
        if io == INPUT and slot.number in blind:
            result = TensorResult(io, slot, mine, golden, NOT_COMPARED, OTHER_MOMENT)
        elif mapping is not None and mapping.ignore and _is_ignored(mapping, pair, io, slot):
            result = TensorResult(io, slot, mine, golden, NOT_COMPARED, "the mapping file leaves it out")
        else:
            result = judge(pair, io, slot, mine, golden)
        if result.status == DIFFERS and _is_unset(step, pair, io, slot):
            result = TensorResult(io, slot, mine, golden, NOT_COMPARED, UNSET)
        results[io].append(result)
    return operator_result(step.mine.key, pair, tuple(results[INPUT]), tuple(results[OUTPUT]))


def _is_ignored(mapping: OperatorMap, pair: OperatorPair, io: str, slot: Slot) -> bool:
    return any(mapping.ignores(side.names | {side.op_type}, io, slot.number) for side in _both(pair))


def _is_unset(step: StepPair, pair: OperatorPair, io: str, slot: Slot) -> bool:
    return any(unset.has(operator, io, slot) for unset, operator in zip(step.unset, _both(pair), strict=True))


def _both(pair: OperatorPair) -> tuple[Operator, Operator]:
    return pair.mine, pair.golden
