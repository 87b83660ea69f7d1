"""Two dumps against each other: operators are paired, tensors measured, and the first operator that goes wrong named.

from msdump.analysis import compare_dumps
comparison = compare_dumps("dump_npu", "dump_cpu", mapping="fused.json")
comparison.first_wrong, comparison.is_agreeing
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from msdump.analysis.compare.bounds import Bounds, Errors, bounds_of, errors_of, is_noise, reason_to_differ
from msdump.analysis.compare.mapping import OperatorMap, gathered, read_mapping
from msdump.analysis.compare.measure import Measurer
from msdump.analysis.compare.metrics import PairMetrics
from msdump.analysis.compare.pairing import OperatorPair, Pairing, host_shape, pair_operators, pair_steps
from msdump.analysis.compare.result import (
    AGREES,
    DIFFERS,
    IDENTICAL,
    NOT_COMPARED,
    Comparison,
    OperatorResult,
    StepResult,
    TensorResult,
)
from msdump.analysis.graph_info import GraphFiles, with_inputs
from msdump.analysis.in_place import OTHER_MOMENT, Moment, slots_of_other_moments
from msdump.analysis.steps import Operator, Slot, Step, nothing_selected, read_steps
from msdump.analysis.unset import UNSET, UnsetTensors
from msdump.errors import ConfigError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.records import INPUT, OUTPUT

DumpPath = DumpDir | str | os.PathLike[str]
Progress = Callable[[int, int], None]


def compare_dumps(
    mine: DumpPath,
    golden: DumpPath,
    reference: DumpPath | None = None,
    *,
    mapping: OperatorMap | str | os.PathLike[str] | None = None,
    rank: int | Collection[int] | None = None,
    graph: int | str | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
    tolerance: float | None = None,
    has_divergence: bool = True,
    thread_count: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare every tensor that two dumps have of the same operators.

    reference       a run in high precision: then a tensor of mine differs only when it is further from the reference
                    than twice what golden, a run of mine's precision, is
    mapping         file or value that tells which operators belong together, see `mapping`
    tolerance       relative error that still agrees, instead of the dtype's
    has_divergence  also the KullbackLeiblerDivergence, which takes a second pass
    progress        called with (bytes done, bytes in all) from the calling thread

    Edges:   tensors that differ in memory that no operator has written yet (`empty`) are not compared;
             damaged files are named in `damaged`, the rest is compared; the result does not depend on `thread_count`.
    Raises:  ConfigError when the dumps have no operator in common; FormatError when there is nothing at a path.
    """
    dumps = [_opened(dump) for dump in (mine, golden, *(() if reference is None else (reference,)))]
    graphs = [GraphFiles(dump) for dump in dumps]
    steps_of_dumps = [_steps(dump, files, rank, graph, iteration) for dump, files in zip(dumps, graphs, strict=True)]
    for dump, steps in zip(dumps, steps_of_dumps, strict=True):
        if not any(step.operators for step in steps):
            raise _no_tensors(dump, rank, graph, iteration)
    operator_map = mapping if isinstance(mapping, OperatorMap) else read_mapping(mapping) if mapping else OperatorMap()
    sides = gathered(steps_of_dumps, operator_map.originals)
    work = _Work(graphs, operator_map, tolerance, Measurer(has_divergence, thread_count, progress))
    plans = work.plan(sides)
    if not any(plan.pairing.pairs for plan in plans):
        raise ConfigError(
            f"{dumps[0].path} and {dumps[-1].path}: expected operators in common, got none. "
            "Say with a mapping file which operator is which (msdump compare --mapping FILE)."
        )
    work.measure(plans)
    used = {id(plan.mine) for plan in plans}, {id(plan.golden) for plan in plans}
    results = tuple(work.result(plan) for plan in plans)
    return Comparison(
        dumps[0].path,
        dumps[1].path,
        dumps[2].path if reference is not None else None,
        results,
        tuple(step.key for step in sides[0] if id(step) not in used[0]),
        tuple(step.key for step in sides[-1] if id(step) not in used[1]),
        tuple(problem for dump in dumps for problem in dump.damaged) + tuple(work.measurer.damaged),
    )


def _opened(dump: DumpPath) -> DumpDir:
    return dump if isinstance(dump, DumpDir) else DumpDir.open(dump)


def _steps(
    dump: DumpDir,
    graphs: GraphFiles,
    rank: int | Collection[int] | None,
    graph: int | str | Collection[int] | None,
    iteration: int | Collection[int] | None,
) -> list[Step]:
    """Steps of a dump; a dump of outputs alone gets its inputs from the operators that made them."""
    steps = read_steps(dump, rank=rank, graph=graph, iteration=iteration)
    return [with_inputs(step, graphs.of(step.key)) for step in steps]


def _no_tensors(
    dump: DumpDir,
    rank: int | Collection[int] | None,
    graph: int | str | Collection[int] | None,
    iteration: int | Collection[int] | None,
) -> ConfigError:
    text = f"{dump.path}: expected a dump with tensors, got none."
    if dump.damaged:
        return ConfigError(f"{text} {len(dump.damaged)} of its files are damaged; the first: {dump.damaged[0][1]}")
    if dump.statistic_files() and not any(dump.files()):
        return ConfigError(f"{text} It holds statistics only: compare those with `msdump stat DIR --diff OTHER`.")
    return nothing_selected(dump, expected="a dump with tensors", rank=rank, graph=graph, iteration=iteration)


@dataclass(frozen=True, slots=True)
class _Plan:
    """One pair of steps before anything is measured.

    others   mine's operator -> the operator of the other low-precision run, by id
    moments  of mine and golden
    unset    of mine and of golden
    """

    mine: Step
    golden: Step
    pairing: Pairing
    others: dict[int, Operator]
    moments: tuple[Moment, Moment]
    unset: tuple[UnsetTensors, UnsetTensors]


class _Work:
    """One comparison while it runs. `golden` of its plans is the reference when there is one."""

    def __init__(
        self, graphs: Sequence[GraphFiles], mapping: OperatorMap, tolerance: float | None, measurer: Measurer
    ) -> None:
        self._graphs = graphs
        self._mapping = mapping
        self._tolerance = tolerance
        self.measurer = measurer

    def plan(self, sides: Sequence[list[Step]]) -> list[_Plan]:
        pairs = pair_steps(sides[0], sides[-1])
        others: dict[int, Step] = {}
        if len(sides) == 3:
            others = {id(mine): other for mine, other in pair_steps(sides[0], sides[1])}
        plans = []
        for mine, golden in pairs:
            pairing = pair_operators(mine.operators, golden.operators, self._mapping)
            other = others.get(id(mine))
            by_id: dict[int, Operator] = {}
            if other is not None:
                pairing_of_others = pair_operators(mine.operators, other.operators, self._mapping)
                by_id = {id(pair.mine): pair.golden for pair in pairing_of_others.pairs}
            steps = ((mine, self._graphs[0].of(mine.key)), (golden, self._graphs[-1].of(golden.key)))
            moments = (Moment(*steps[0]), Moment(*steps[1]))
            unset = (UnsetTensors(*steps[0]), UnsetTensors(*steps[1]))
            plans.append(_Plan(mine, golden, pairing, by_id, moments, unset))
        return plans

    def measure(self, plans: Sequence[_Plan]) -> None:
        """Measure every distinct pair of tensors once."""
        pairs = []
        for plan in plans:
            for pair in plan.pairing.pairs:
                other = plan.others.get(id(pair.mine))
                for io, slot, mine, golden in _common_tensors(pair):
                    pairs.append((mine, golden))
                    yardstick = None if other is None else other.tensors(io).get(slot)
                    if yardstick is not None and _is_of_one_size(yardstick, golden):
                        pairs.append((yardstick, golden))
        self.measurer.measure([both for both in pairs if _is_of_one_size(*both)])

    def result(self, plan: _Plan) -> StepResult:
        operators = tuple(self._operator_result(plan, pair) for pair in plan.pairing.pairs)
        ordered = sorted(operators, key=lambda result: result.pair.mine.is_parameter)
        pairing = plan.pairing
        return StepResult(
            plan.mine.key, plan.golden.key, tuple(ordered), pairing.only_mine, pairing.only_golden, pairing.expected
        )

    def _operator_result(self, plan: _Plan, pair: OperatorPair) -> OperatorResult:
        other = plan.others.get(id(pair.mine))
        blind = slots_of_other_moments(pair.mine, pair.golden, plan.moments)
        results: dict[str, list[TensorResult]] = {INPUT: [], OUTPUT: []}
        for io, slot, mine, golden in _common_tensors(pair):
            yardstick = None if other is None else other.tensors(io).get(slot)
            if io == INPUT and slot.number in blind:
                result = TensorResult(io, slot, mine, golden, NOT_COMPARED, OTHER_MOMENT)
            elif any(self._mapping.ignores(side.names | {side.op_type}, io, slot.number) for side in _both(pair)):
                result = TensorResult(io, slot, mine, golden, NOT_COMPARED, "the mapping file leaves it out")
            else:
                result = self._tensor_result(pair, io, slot, mine, golden, yardstick)
            sides = zip(plan.unset, _both(pair), strict=True)
            if result.status == DIFFERS and any(unset.has(operator, io, slot) for unset, operator in sides):
                result = TensorResult(io, slot, mine, golden, NOT_COMPARED, UNSET)
            results[io].append(result)
        return OperatorResult(plan.mine.key, pair, tuple(results[INPUT]), tuple(results[OUTPUT]))

    def _tensor_result(
        self,
        pair: OperatorPair,
        io: str,
        slot: Slot,
        mine: DumpedTensor,
        golden: DumpedTensor,
        yardstick: DumpedTensor | None,
    ) -> TensorResult:
        if not _is_of_one_size(mine, golden):
            shapes = f"shape {_shape_text(mine)} against {_shape_text(golden)}"
            return TensorResult(io, slot, mine, golden, DIFFERS, shapes)
        measured = self.measurer.of(mine, golden)
        if measured.problem:
            return TensorResult(io, slot, mine, golden, NOT_COMPARED, measured.problem)
        remark = _remark(mine, golden)
        if measured.metrics is None:
            return TensorResult(io, slot, mine, golden, IDENTICAL, remark)
        other = self._errors(yardstick, golden)
        bounds = bounds_of(*measured.dtypes, self._tolerance)
        reason = reason_to_differ(measured.metrics, bounds, other)
        if reason and io == OUTPUT and self._is_rounding(pair, measured.metrics, bounds):
            reason, remark = "", f"{reason}, which is rounding of the inputs"
        status, by = DIFFERS if reason else AGREES, None if other is None else other.relative
        return TensorResult(io, slot, mine, golden, status, reason or remark, measured.metrics, by)

    def _errors(self, yardstick: DumpedTensor | None, golden: DumpedTensor) -> Errors | None:
        """How far the other low-precision run is from the reference; None where it has no such tensor."""
        if yardstick is None or not _is_of_one_size(yardstick, golden):
            return None
        measured = self.measurer.of(yardstick, golden)
        return None if measured.problem else errors_of(measured.metrics)

    def _is_rounding(self, pair: OperatorPair, metrics: PairMetrics, bounds: Bounds) -> bool:
        """Whether an output differs by some roundings of the inputs, whose dtype may be the coarser one: a small output
        alone does not tell that its numbers are bfloat16."""
        inputs = [both for io, _, *both in _common_tensors(pair) if io == INPUT and _is_of_one_size(*both)]
        input_bounds = [bounds_of(*self.measurer.of(*both).dtypes, self._tolerance) for both in inputs]
        coarsest = max([bounds, *input_bounds], key=lambda one: one.epsilon)
        return is_noise(metrics, coarsest, self._scale(pair.golden))

    def _scale(self, operator: Operator) -> float:
        """Largest value among the inputs of an operator, or of those that it stands for."""
        tensors = (tensor for part in (operator, *operator.parts) for tensor in part.inputs.values())
        return max(map(self.measurer.largest_of, tensors), default=0.0)


def _both(pair: OperatorPair) -> tuple[Operator, Operator]:
    return pair.mine, pair.golden


def _common_tensors(pair: OperatorPair) -> Iterator[tuple[str, Slot, DumpedTensor, DumpedTensor]]:
    for io in (INPUT, OUTPUT):
        golden = pair.golden.tensors(io)
        for slot, mine in pair.mine.tensors(io).items():
            if slot in golden:
                yield io, slot, mine, golden[slot]


def _is_of_one_size(one: DumpedTensor, other: DumpedTensor) -> bool:
    return math.prod(host_shape(one)) == math.prod(host_shape(other))


def _remark(mine: DumpedTensor, golden: DumpedTensor) -> str:
    """What is not alike though the numbers may be."""
    remarks = []
    if host_shape(mine) != host_shape(golden):
        remarks.append(f"shape {_shape_text(mine)} against {_shape_text(golden)}")
    if mine.true_dtype != golden.true_dtype:
        remarks.append(f"dtype {mine.true_dtype} against {golden.true_dtype}")
    return ", ".join(remarks)


def _shape_text(tensor: DumpedTensor) -> str:
    return str(list(host_shape(tensor)))
