"""Result of comparing two dumps: tensors, operators, steps, and the first wrong operator."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from msdump.analysis._payload import has_same_bytes
from msdump.analysis.compare.common_tensors import host_shape
from msdump.analysis.compare.faults import Fault
from msdump.analysis.compare.pairing import OperatorPair
from msdump.analysis.distance.metrics import PairMetrics
from msdump.analysis.graph_info import GraphFiles
from msdump.analysis.memory_state import UNSET, SameBytes
from msdump.analysis.steps import Operator, Slot, StepKey
from msdump.errors import FormatError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.kinds import has, kind_of
from msdump.operators.traits import is_random
from msdump.tables.frames import html_table
from msdump.tables.messages import messages
from msdump.tensors.makers import maker

if TYPE_CHECKING:
    from msdump.analysis.compare.quantised.ranking import QuantisedVerdict

IDENTICAL, AGREES, DIFFERS, NOT_COMPARED = messages("identical", "agrees", "differs", "not compared")

# Errors of inputs grow on their way through an operator; one that has grown more is the operator's own.
AMPLIFIED = 8.0
# Each element of their results is as far off as the elements that it is made of, however small it is itself. A result
# with a larger relative error than this is named in spite of that.
_LOST = 0.1


@dataclass(frozen=True, slots=True)
class TensorResult:
    """One tensor of a pair of operators.

    status     "identical" (the same bytes), "agrees", "differs" or "not compared"
    reason     why it differs or was not compared, or a remark
    metrics    None for identical tensors, which need no arithmetic, and for those that were not compared
    yardstick  error of the other low-precision run against the reference, in a three-way comparison
    axes       order of the axes of one side in which they agree, where that is not the order of both
    factor     by which mine's numbers were multiplied, where the scale of a loss is in them
    """

    io: str
    slot: Slot
    mine: DumpedTensor
    golden: DumpedTensor
    status: str
    reason: str = ""
    metrics: PairMetrics | None = None
    yardstick: float | None = None
    axes: tuple[int, ...] = ()
    factor: float = 1.0

    @property
    def error(self) -> float | None:
        """Relative error; 0 for identical tensors, Inf where one side is not finite; None when not compared."""
        if self.metrics is None:
            return 0.0 if self.status == IDENTICAL else None
        return math.inf if self.metrics.mismatched else self.metrics.relative_error


tensor_result = maker(TensorResult)


@dataclass(frozen=True, slots=True)
class OperatorResult:
    """A pair of operators and all tensors that both sides have of them.

    step             of mine
    pair             both operators, and how they were paired
    inputs, outputs  tensors that both sides have, by slot
    """

    step: StepKey
    pair: OperatorPair
    inputs: tuple[TensorResult, ...]
    outputs: tuple[TensorResult, ...]

    @property
    def tensors(self) -> tuple[TensorResult, ...]:
        """Inputs, then outputs."""
        return (*self.inputs, *self.outputs)

    @property
    def input_error(self) -> float | None:
        """Largest error among the inputs; None when none was compared."""
        return _largest_error(self.inputs)

    @property
    def output_error(self) -> float | None:
        """Largest error among the outputs; None when none was compared."""
        return _largest_error(self.outputs)

    @property
    def added_error(self) -> float | None:
        """What the operator adds: its output's error less that of its inputs. Negative where errors heal."""
        input_error, output_error = self.input_error, self.output_error
        if input_error is None or output_error is None:
            return None
        return 0.0 if input_error == output_error else output_error - input_error

    @property
    def draws_only(self) -> bool:
        """Whether what differs is what it drew at random, and nothing that it was given."""
        return self.is_random and all(tensor.status != DIFFERS for tensor in self.inputs)

    @property
    def is_random(self) -> bool:
        """Whether its outputs are numbers that it drew."""
        return is_random(self.pair.mine.op_type)

    @property
    def is_agreeing(self) -> bool:
        """Whether no tensor differs; what was not compared does not."""
        for tensor in self.inputs:
            if tensor.status == DIFFERS:
                return False
        for tensor in self.outputs:  # noqa: SIM110 - asked of each operator several times
            if tensor.status == DIFFERS:
                return False
        return True

    @property
    def is_wrong(self) -> bool:
        """Inputs agree, an output does not, and not for what came in: its error is many times that of the inputs.

        Edges: what an operator draws at random is not wrong, nor is one that hands on what others made, nor a sum or
        difference whose terms nearly cancel, as of `1 - x`, and whose error is no larger than theirs.
        """
        for tensor in self.outputs:
            if tensor.status == DIFFERS:
                break
        else:
            return False  # most operators agree, and each is asked several times
        if self.is_random or self.pair.mine.hands_on:
            return False
        # Memory that nobody wrote tells something only of an operator that reads nothing else.
        is_all = len(self.inputs) == len(self.pair.mine.inputs)
        has_inputs = any(one.status in (IDENTICAL, AGREES) or (one.reason == UNSET and is_all) for one in self.inputs)
        inputs_agree = all(tensor.status != DIFFERS for tensor in self.inputs)
        if not has_inputs or not inputs_agree:
            return False
        input_error, output_error = self.input_error or 0.0, self.output_error
        if output_error is None:
            return True
        if output_error <= AMPLIFIED * input_error:
            return False
        return output_error > _LOST or not self._keeps_the_error_of_its_terms()

    def _keeps_the_error_of_its_terms(self) -> bool:
        """Whether it adds or subtracts, and its largest error is what those of its inputs can make, which have any sign
        where many are added up.
        """
        op_type = self.pair.mine.op_type
        if has(op_type, "sums"):
            sizes = [math.prod(host_shape(tensors[0].mine)) for tensors in (self.inputs, self.outputs)]
            grown = math.sqrt(sizes[0] / max(1, sizes[1]))
            grown = 1 / grown if kind_of(op_type) == "mean" else grown
        elif has(op_type, "termwise"):
            grown = 1.0
        else:
            return False
        came_in, went_out = (
            [tensor.metrics for tensor in tensors if tensor.metrics is not None]
            for tensors in (self.inputs, self.outputs)
        )
        if any(metrics.mismatched or metrics.unequal for metrics in went_out):
            return False
        terms = sum(metrics.worst_error for metrics in came_in)
        return max(metrics.worst_error for metrics in went_out) <= AMPLIFIED * grown * terms


operator_result = maker(OperatorResult)


@dataclass(frozen=True, slots=True)
class Tie:
    """An operator that decided otherwise in few elements, and how many operators and parameters differ for that.

    count     elements of `size` whose decision fell otherwise
    reached   pairs of operators and parameters that differ because of this one or a later one
    error     median of the relative errors of the operators that it reached in a forward pass, of the pass where it is
              largest; 0 where it reached none
    lost      the first pass where that is so large that a fault would not show; None where there is none
    """

    result: OperatorResult
    count: int
    size: int
    reached: int = 0
    error: float = 0.0
    lost: StepKey | None = None


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step: results in mine's execution order, parameters last, and operators without a counterpart.

    Of dumps of two frameworks:
    beyond   operators of golden that go on where mine ends, with their steps
    faults   where the iteration begins to differ; None of runs that were paired by their names
    """

    mine: StepKey
    golden: StepKey
    operators: tuple[OperatorResult, ...]
    only_mine: tuple[Operator, ...]
    only_golden: tuple[Operator, ...]
    expected: tuple[Operator, ...]
    beyond: tuple[tuple[StepKey, Operator], ...] = ()
    faults: tuple[Fault, ...] | None = None


@dataclass(frozen=True, slots=True)
class Hashes:
    """What decided where a side is a log, which holds hashes in place of tensors.

    names        of the hashes that both sides have
    has_inputs   whether inputs were compared, too
    is_same      whether two tensors of one side are the same, as far as its hashes or bytes tell
    """

    names: tuple[str, ...]
    has_inputs: bool
    is_same: SameBytes


@dataclass(frozen=True)
class Comparison:
    """Result of `compare_dumps`.

    only_mine, only_golden   steps without a counterpart
    damaged                  (file, what is wrong) of every file that could not be read, on any side
    notes                    sentences on rules of the mapping file that nothing fits, and on gradients of iterations
                             that a sampled dump has left out
    quantised                where one side is a quantised model: what each operator adds, else None
    tie                      first operator that decided otherwise about a value at the border, else None
    hashes                   where a side is a log of DebugMode: what decided, else None
    graphs                   graph files of mine and golden, where they have been read
    """

    mine: Path
    golden: Path
    reference: Path | None
    steps: tuple[StepResult, ...]
    only_mine: tuple[StepKey, ...]
    only_golden: tuple[StepKey, ...]
    damaged: tuple[tuple[str, FormatError], ...]
    notes: tuple[str, ...] = ()
    quantised: QuantisedVerdict | None = None
    tie: Tie | None = None
    hashes: Hashes | None = None
    graphs: tuple[GraphFiles, GraphFiles] | None = field(default=None, repr=False, compare=False)

    def graphs_of(self, is_mine: bool) -> GraphFiles:
        """Graph files of one side."""
        if self.graphs is None:
            return GraphFiles(DumpDir.open(self.mine if is_mine else self.golden))
        return self.graphs[not is_mine]

    @property
    def is_same(self) -> SameBytes:
        """Tells whether two tensors of one side are the same."""
        return has_same_bytes if self.hashes is None else self.hashes.is_same

    def __repr__(self) -> str:
        """One line: what was compared, and how much differs."""
        return f"<{type(self).__name__} of {self.mine} and {self.golden}: {self._summary(self._differing)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the tensors that differ."""
        pairs = self._differing
        title = self._summary(pairs)
        rows = (
            (str(operator.step), operator.pair.mine.label, f"{one.io} {one.slot}", one.error, one.reason)
            for operator, one in pairs
        )
        return html_table(title, ("step", "operator", "tensor", "error", "reason"), rows, len(pairs))

    @property
    def _differing(self) -> list[tuple[OperatorResult, TensorResult]]:
        return [(each, tensor) for each in self.differing for tensor in each.tensors if tensor.status == DIFFERS]

    def _summary(self, pairs: Sequence[object]) -> str:
        count = sum(1 for _ in self.operators)
        return f"{len(pairs)} tensors differ in {count} pairs of operators" if pairs else f"all {count} pairs agree"

    @property
    def operators(self) -> Iterator[OperatorResult]:
        """In execution order, step by step."""
        return (operator for step in self.steps for operator in step.operators)

    @functools.cached_property
    def differing(self) -> tuple[OperatorResult, ...]:
        """Operators with a tensor that differs, in execution order."""
        return tuple(operator for operator in self.operators if not operator.is_agreeing)

    @property
    def is_agreeing(self) -> bool:
        """Whether nothing differs, but for what an operator drew at random and nothing else shows."""
        if self.quantised is not None and self.quantised.finding is not None:
            return False
        return not self.faults and self.first_differing is None and not self.beyond

    @property
    def faults(self) -> list[tuple[Fault, OperatorResult | None]]:
        """Where the runs begin to differ, in order, with the result of the pair that it is in; a pair that agrees, for
        what came in or for a decision at the border, is none.
        """
        results: dict[int, OperatorResult] = {}
        found = []
        for step in self.steps:
            results.update((id(result.pair.mine), result) for result in step.operators)
            for fault in step.faults or ():
                result = None if fault.paired is None else results.get(id(fault.paired))
                led_to = [results[id(one)] for one in fault.ends if id(one) in results] if result is None else [result]
                if self.tie is not None and not led_to:
                    # Behind a decision at the border forms differ; what has a counterpart tells whether more does.
                    led_to = [one for one in results.values() if _is_of_one_iteration(one.step, fault.step)]
                if not led_to or not all(one.is_agreeing for one in led_to):
                    found.append((fault, result))
        return found

    @property
    def beyond(self) -> tuple[tuple[StepKey, Operator], ...]:
        """Operators of golden that go on where mine ends, of the first step with some."""
        return next((step.beyond for step in self.steps if step.beyond), ())

    @property
    def idle_draws(self) -> int:
        """How many operators drew other numbers at random, where nothing that they reach differs."""
        return len(self.differing) if self.is_agreeing else 0

    @property
    def first_wrong(self) -> OperatorResult | None:
        """First operator in execution order whose inputs agree and whose output does not."""
        return next((operator for operator in self.differing if operator.is_wrong), None)

    @functools.cached_property
    def first_differing(self) -> OperatorResult | None:
        """First operator with any tensor that differs; parameters, which no operator made, count last of their
        iteration.

        Edges: None where numbers that were drawn at random are all that differs, and operators behind them agree.
        """
        if not self.differing:
            return None
        first: OperatorResult | None = None
        parameter: OperatorResult | None = None
        is_followed = False
        for operator in self.operators:
            if parameter is not None and not _is_of_one_iteration(parameter.step, operator.step):
                break
            if operator.is_agreeing:
                if first is not None:
                    is_followed = is_followed or bool(operator.inputs)
                continue
            if operator.pair.mine.is_parameter:
                parameter = parameter or operator
                continue
            first = first or operator
            is_followed = False
            if not operator.draws_only:
                return first
        if parameter is not None:
            return first or parameter
        return None if is_followed else first


def _is_of_one_iteration(left: StepKey, right: StepKey) -> bool:
    return (left.rank_id, left.iteration) == (right.rank_id, right.iteration)


def _largest_error(tensors: Sequence[TensorResult]) -> float | None:
    return max((tensor.error for tensor in tensors if tensor.error is not None), default=None)
