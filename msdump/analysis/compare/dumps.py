"""Two dumps against each other: operators are paired, tensors measured, and the first operator that goes wrong named.

from msdump.analysis import compare_dumps
comparison = compare_dumps("dump_npu", "dump_cpu", mapping="fused.json")
comparison.first_wrong, comparison.is_agreeing
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msdump.analysis.compare._measure import Measurer
from msdump.analysis.compare.common_tensors import common_tensors, host_shape, is_of_one_size
from msdump.analysis.compare.dialects import is_between_frameworks
from msdump.analysis.compare.explained import Explanations
from msdump.analysis.compare.hashes import compare_hashes
from msdump.analysis.compare.iterations import coarse_paths
from msdump.analysis.compare.mapping import OperatorMap, gathered, read_mapping, unused_rules
from msdump.analysis.compare.named import is_named_only, without_inputs
from msdump.analysis.compare.pairing import OperatorPair, is_gathered, pair_operators
from msdump.analysis.compare.pipeline import (
    ComparedSide,
    StepPair,
    compare_pairs,
    compare_sides,
    name_sides,
    pair_sides,
)
from msdump.analysis.compare.quantised.signs import quantised_types
from msdump.analysis.compare.result import (
    AGREES,
    DIFFERS,
    IDENTICAL,
    NOT_COMPARED,
    Comparison,
    TensorResult,
    tensor_result,
)
from msdump.analysis.compare.rounded import MIXED, half_share
from msdump.analysis.compare.step_pairs import pair_steps
from msdump.analysis.compare.ties import settle_ties
from msdump.analysis.compare.written import in_written_order
from msdump.analysis.distance.bounds import Bounds, Errors, bounds_of, coarser, errors_of, is_noise, reason_to_differ
from msdump.analysis.distance.metrics import PairMetrics
from msdump.analysis.graph_info import GraphFiles, with_inputs
from msdump.analysis.steps import Operator, Slot, Step, nothing_selected, opened, read_steps, with_own_operators
from msdump.errors import ConfigError, FormatError
from msdump.formats.debug_log import is_debug_log
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.gradients_csv import GradientRow, first_differing
from msdump.formats.selection import StepSelection
from msdump.operators.kinds import has
from msdump.operators.traits import is_random, unread_inputs
from msdump.tables.messages import COMMA, joined, message
from msdump.tensors.records import INPUT, OUTPUT

if TYPE_CHECKING:
    from msdump.analysis.compare.quantised.comparing import QuantisedSteps

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

    mine, golden    folders or files of dumps, or dumps that are open: mine is judged by golden
    reference       a run in high precision: then a tensor of mine differs only when it is further from the reference
                    than twice what golden, a run of mine's precision, is
    mapping         file or value that tells which operators belong together, see `mapping`
    tolerance       relative error that still agrees, instead of the dtype's
    rank, graph, iteration  steps that are compared, a number or several of each; graph also a glob of the net's name
    has_divergence  also the KullbackLeiblerDivergence, which takes a second pass
    thread_count    None: one for each core that the process may use
    progress        called with (bytes done, bytes in all) from the calling thread

    mine or golden may be a log of PyTorch's DebugMode (`*.txt`, `*.log`), whose hashes are compared (`hashes`).

    Edges:   tensors that differ in memory that no operator has written yet (`empty`) are not compared;
             damaged files are named in `damaged`, the rest is compared; the result does not depend on `thread_count`.
    Raises:  ConfigError when the dumps have no operator in common; FormatError when there is nothing at a path.
    """
    dumps = [opened(dump) for dump in (mine, golden, *(() if reference is None else (reference,)))]
    selection = StepSelection(rank, graph, iteration)
    if any(is_debug_log(dump.path) for dump in dumps):
        if reference is not None:
            raise ConfigError(
                "reference: expected none beside a log of DebugMode, got one. Hashes do not tell how far apart tensors "
                "are: leave --reference and --tolerance-from out."
            )
        return compare_hashes(dumps[0], dumps[1], selection, mapping, tolerance, progress)
    graphs: list[GraphFiles] = []
    steps_of_dumps: list[list[Step]] = []
    gradients: list[dict[int, tuple[GradientRow, ...]]] = []
    for index, dump in enumerate(dumps):
        twin = next(
            (earlier for earlier, earlier_dump in enumerate(dumps[:index]) if _is_same_dump(dump, earlier_dump)), None
        )
        if twin is not None:
            dumps[index] = dumps[twin]
            graphs.append(graphs[twin])
            gradients.append(gradients[twin])
            steps_of_dumps.append([with_own_operators(step) for step in steps_of_dumps[twin]])
            continue
        with dump.listed_once():
            graphs.append(GraphFiles(dump))
            steps_of_dumps.append(_steps(dump, graphs[-1], selection))
            gradients.append(dump.gradients)
    if not any(map(any, steps_of_dumps)) and all(dump.has_statistics() for dump in dumps):
        from msdump.analysis.compare.statistics import compare_statistics

        if reference is not None:
            raise ConfigError(
                "reference: expected none beside dumps of statistics alone, got one. Dump tensors for it."
            )
        return compare_statistics(
            dumps[0], dumps[1], mapping=mapping, rank=rank, graph=graph, iteration=iteration, tolerance=tolerance
        )
    for dump, steps in zip(dumps, steps_of_dumps, strict=True):
        if not any(step.operators for step in steps):
            raise _no_tensors(dump, selection)
    operator_map = mapping if isinstance(mapping, OperatorMap) else read_mapping(mapping) if mapping else OperatorMap()
    gathered_steps = gathered(steps_of_dumps, operator_map.originals)
    ends = (gathered_steps[0], gathered_steps[-1])
    # A compiled graph under the names of its program has the names that golden files of a program have.
    is_one_named = len({is_named_only(steps) for steps in ends}) == 2 and not any(map(is_gathered, ends))
    if all(map(is_named_only, ends)):
        gathered_steps = [in_written_order(*ends), *gathered_steps[1:]]
    if is_one_named:
        gathered_steps = [without_inputs(steps) if is_named_only(steps) else steps for steps in gathered_steps]
    sides = [ComparedSide(steps, files) for steps, files in zip(gathered_steps, graphs, strict=True)]
    # Against a reference the other run of the same precision tells what rounding costs.
    quantised = None if reference is not None else _pair_quantised(sides[0], sides[-1], operator_map)
    tensors = _TensorJudge(
        {} if reference is None else _yardsticks(sides[0], sides[1], operator_map),
        tolerance,
        Measurer(has_divergence, thread_count, progress),
    )

    def damaged() -> list[tuple[str, FormatError]]:
        return [*(problem for dump in dumps for problem in dump.damaged), *tensors.measurer.damaged]

    def compared(pairs: Sequence[StepPair]) -> Comparison:
        tensors.measure(pairs)
        paths = [dump.path for dump in dumps]
        comparison = compare_pairs(paths, (sides[0], sides[-1]), pairs, operator_map, tensors.judge, damaged)
        if not comparison.is_agreeing and tensors.learn_paths(sides[0], sides[-1]):
            comparison = compare_pairs(paths, (sides[0], sides[-1]), pairs, operator_map, tensors.judge, damaged)
        if quantised is not None:
            return quantised.judged(comparison, tolerance)
        if reference is not None:
            return comparison
        settled, tie = settle_ties(comparison.steps, graphs[0], graphs[-1], tolerance)
        comparison = replace(comparison, steps=settled, tie=tie)
        if comparison.is_agreeing or any(map(is_named_only, ends)):
            return comparison
        explanations = Explanations(dumps[-1], sides[-1].steps, (graphs[0], graphs[-1]), tolerance)
        return replace(comparison, steps=explanations.settled(comparison.steps), notes=explanations.notes)

    pairs: Sequence[StepPair] | None = None
    if quantised is not None:
        pairs = quantised.pairs
    elif is_one_named:
        pairs = name_sides(sides[0], sides[-1], operator_map, tolerance)
    elif reference is not None and not is_between_frameworks(sides[0].steps, sides[-1].steps):
        pairs = pair_sides(sides[0], sides[-1], operator_map)
    ends_of = sides[0], sides[-1]
    comparison = compare_sides(ends_of, [dump.path for dump in dumps], operator_map, tolerance, compared, pairs)
    operators = (operator for side in sides for step in side.steps for operator in step.operators)
    notes = (
        *comparison.notes,
        *unused_rules(operator_map, operators),
        *tensors.notes,
        *_gradient_notes(gradients[0], gradients[-1], bounds_of("float32", "float32", tolerance).worst),
    )
    return replace(comparison, notes=notes, graphs=(graphs[0], graphs[-1]))


def _pair_quantised(mine: ComparedSide, golden: ComparedSide, mapping: OperatorMap) -> QuantisedSteps | None:
    """As `pair_quantised`, which most comparisons do not need."""
    if quantised_types(mine.steps) == quantised_types(golden.steps):
        return None
    from msdump.analysis.compare.quantised.comparing import pair_quantised

    return pair_quantised(mine, golden, mapping)


def _is_same_dump(left: DumpDir, right: DumpDir) -> bool:
    """Whether reading one tells what reading the other would."""
    return left.path == right.path and left.is_strict == right.is_strict


def _yardsticks(mine: ComparedSide, second_run: ComparedSide, mapping: OperatorMap) -> dict[int, Operator]:
    """mine's operator -> the operator of the other low-precision run, by id."""
    return {
        id(pair.mine): pair.golden
        for my_step, second_step in pair_steps(mine.steps, second_run.steps)
        for pair in pair_operators(my_step.operators, second_step.operators, mapping).pairs
    }


def _steps(dump: DumpDir, graphs: GraphFiles, selection: StepSelection) -> list[Step]:
    """Steps of a dump; a dump of outputs alone gets its inputs from the operators that made them."""
    return [with_inputs(step, graphs.of(step.key)) for step in read_steps(dump, selection)]


def _no_tensors(dump: DumpDir, selection: StepSelection) -> ConfigError:
    text = f"{dump.path}: expected a dump with tensors, got none."
    if dump.damaged:
        return ConfigError(f"{text} {len(dump.damaged)} of its files are damaged; the first: {dump.damaged[0][1]}")
    if dump.has_statistics() and not any(dump.files()):
        return ConfigError(f"{text} It holds statistics only: compare those with `msdump stat DIR --golden OTHER`.")
    return nothing_selected(dump, selection, expected="a dump with tensors")


class _TensorJudge:
    """One comparison while it runs. golden is the reference when there is one; then `yardsticks` has the operators of
    the other low-precision run."""

    def __init__(self, yardsticks: dict[int, Operator], tolerance: float | None, measurer: Measurer) -> None:
        self._yardsticks = yardsticks
        self._tolerance = tolerance
        self.measurer = measurer
        # Dtypes of the paths of tensors, by id, where they are coarser than their own; None before that is known.
        self._paths: dict[int, str] | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """By which bounds tensors were compared, where these are not those of their own dtypes."""
        dtypes = sorted({str(dtype) for dtype in (self._paths or {}).values()})
        text = message("numbers that a run has computed in {dtypes} were compared within its bounds, in float32 too",
            dtypes=joined(COMMA, dtypes))  # fmt: skip
        return (text,) if dtypes else ()

    def learn_paths(self, mine: ComparedSide, golden: ComparedSide) -> bool:
        """Take the precision of its path for the bound of each tensor of a run in mixed precision; False if none is."""
        if self._paths is None:
            self._paths = {}
            for side in (mine, golden):
                if half_share(operator for step in side.steps for operator in step.operators) >= MIXED:
                    self._paths |= coarse_paths(side.steps)
        return bool(self._paths)

    def _dtypes(self, mine: DumpedTensor, golden: DumpedTensor) -> tuple[str, str]:
        """Of the numbers of both, or of their paths where these are coarser."""
        mine_dtype, golden_dtype = self.measurer.dtypes_of(mine, golden)
        paths = self._paths or {}
        return coarser(mine_dtype, paths.get(id(mine), "")), coarser(golden_dtype, paths.get(id(golden), ""))

    def measure(self, pairs: Sequence[StepPair]) -> None:
        """Measure every distinct pair of tensors once."""
        tensors = []
        for step in pairs:
            for pair in step.pairing.pairs:
                for io, slot, mine, golden in common_tensors(pair.mine, pair.golden):
                    tensors.append((mine, golden))
                    yardstick = self._yardstick(pair, io, slot)
                    if yardstick is not None:
                        tensors.append((yardstick, golden))
        self.measurer.measure([both for both in tensors if is_of_one_size(*both)])

    def _yardstick(self, pair: OperatorPair, io: str, slot: Slot) -> DumpedTensor | None:
        other = self._yardsticks.get(id(pair.mine))
        return None if other is None else other.tensors(io).get(slot)

    def judge(self, pair: OperatorPair, io: str, slot: Slot, mine: DumpedTensor, golden: DumpedTensor) -> TensorResult:
        """The verdict on one tensor of a pair of operators."""
        if not is_of_one_size(mine, golden):
            shapes = message("shape {mine} against {golden}", mine=_shape_text(mine), golden=_shape_text(golden))
            return TensorResult(io, slot, mine, golden, DIFFERS, shapes)
        measured = self.measurer.of(mine, golden)
        if measured.problem:
            return TensorResult(io, slot, mine, golden, NOT_COMPARED, measured.problem)
        remark = _remark(mine, golden)
        if measured.metrics is None:
            return tensor_result(io, slot, mine, golden, IDENTICAL, remark)
        yardstick_error = self._errors(self._yardstick(pair, io, slot), golden)
        bounds = bounds_of(*self._dtypes(mine, golden), self._tolerance)
        reason = reason_to_differ(measured.metrics, bounds, yardstick_error)
        if (
            reason
            and io == OUTPUT
            and not is_random(pair.mine.op_type)
            and self._is_rounding(pair, measured.metrics, bounds)
        ):
            reason, remark = "", message("{reason}, which is rounding of the inputs", reason=reason)
        status, by = DIFFERS if reason else AGREES, None if yardstick_error is None else yardstick_error.relative
        return TensorResult(io, slot, mine, golden, status, reason or remark, measured.metrics, by)

    def _errors(self, yardstick: DumpedTensor | None, golden: DumpedTensor) -> Errors | None:
        """How far the other low-precision run is from the reference; None where it has no such tensor."""
        if yardstick is None or not is_of_one_size(yardstick, golden):
            return None
        measured = self.measurer.of(yardstick, golden)
        return None if measured.problem else errors_of(measured.metrics)

    def _is_rounding(self, pair: OperatorPair, metrics: PairMetrics, bounds: Bounds) -> bool:
        """Whether an output differs by some roundings of the inputs, whose dtype may be the coarser one: a small output
        alone does not tell that its numbers are bfloat16."""
        inputs = [
            both for io, _, *both in common_tensors(pair.mine, pair.golden) if io == INPUT and is_of_one_size(*both)
        ]
        input_bounds = [bounds_of(*self._dtypes(*both), self._tolerance) for both in inputs]
        coarsest = max([bounds, *input_bounds], key=lambda input_bound: input_bound.epsilon)
        scale = self._scale(pair.golden)
        if has(pair.golden.op_type, "bounded"):
            # Its result is no sum of what it reads: a large argument excuses no error of it.
            scale = min(scale, max(map(self.measurer.largest_of, pair.golden.outputs.values()), default=0.0))
        return is_noise(metrics, coarsest, scale)

    def _scale(self, operator: Operator) -> float:
        """Largest value among the inputs of an operator, or of those that it stands for; memory that it only fills is
        none.
        """
        tensors = [
            tensor
            for part in (operator, *operator.parts)
            for slot, tensor in part.inputs.items()
            if slot.number not in unread_inputs(part.op_type, [str(number.number) for number in part.inputs])
        ]
        return max(map(self.measurer.largest_of, tensors), default=0.0)


def _remark(mine: DumpedTensor, golden: DumpedTensor) -> str:
    """What is not alike though the numbers may be."""
    if mine is golden:
        return ""
    remarks = []
    if host_shape(mine) != host_shape(golden):
        remarks.append(message("shape {mine} against {golden}", mine=_shape_text(mine), golden=_shape_text(golden)))
    if mine.true_dtype != golden.true_dtype:
        remarks.append(message("dtype {mine} against {golden}", mine=mine.true_dtype, golden=golden.true_dtype))
    return joined(COMMA, remarks) if remarks else ""


def _shape_text(tensor: DumpedTensor) -> str:
    return str(list(host_shape(tensor)))


def _gradient_notes(
    mine: Mapping[int, Sequence[GradientRow]], golden: Mapping[int, Sequence[GradientRow]], tolerance: float
) -> list[str]:
    """Of each rank that both have, a sentence on the first step that has no dump and whose gradients differ."""
    notes: list[str] = []
    for rank, rows in sorted(mine.items()):
        pair = first_differing(rows, golden.get(rank, ()), tolerance)
        if pair is not None:
            row, other = pair
            text = message(
                "between the iterations that were dumped, gradients of rank {rank} first differ in iteration "
                "{iteration}: L2 norm {mine:.6g}, golden {golden:.6g}",
                rank=rank, iteration=row.iteration, mine=row.l2norm, golden=other.l2norm,
            )  # fmt: skip
            notes.append(text)
    return notes
