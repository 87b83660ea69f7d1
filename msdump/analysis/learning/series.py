"""What a training did, iteration by iteration: its loss, its parameters, their gradients, and who made them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, TypeAlias

from msdump.analysis.full_names import stage_of
from msdump.analysis.graph_info import GraphFile, GraphFiles, GraphNode, Origin
from msdump.analysis.roles import gradients_of
from msdump.analysis.steps import Operator, Slot, Step, StepKey
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.learning_json import GradientSpan, Learning, LearningParameter
from msdump.formats.statistic_row import StatisticRow
from msdump.graph.types import SourceLine
from msdump.operators.kinds import kind_of
from msdump.operators.traits import only_moves
from msdump.statistics.stats import Statistics

Numbers: TypeAlias = "Statistics | StatisticRow"
# What PyTorch calls the gradient of the loss by itself: it is made like the loss when the backward pass begins.
_SEED = "aten.ones_like."
# Of the norm of what is added up: some last bits of a float32.   test: healthy_trainings_bias_before_norm
_ROUNDING = 2.0**-20
_LONGEST_WAY = 16  # operators one after the other
_SUMS, _SUM_OF_CONV = ("sum", "bias_add_grad"), ("conv_backward", 2)


class Measured(Protocol):
    """Statistics of tensors, which the search for NaN has read."""

    def numbers(self, tensor: DumpedTensor) -> Numbers | None: ...


class Made(NamedTuple):
    """An output: which operator of which step has made it."""

    step: Step
    operator: Operator
    slot: int

    @property
    def shape(self) -> tuple[int, ...]:
        tensor = self.operator.outputs.get(Slot(self.slot))
        return () if tensor is None else tuple(tensor.shape)


@dataclass(frozen=True, slots=True)
class Loss:
    """The value that an iteration computes gradients of.   line: that made it"""

    value: float
    key: StepKey
    operator: Operator
    line: SourceLine | None


def is_zero(numbers: Numbers | None) -> bool:
    """Whether all elements are 0, and some are there."""
    return numbers is not None and numbers.max == 0 and numbers.min == 0 and not numbers.nan


def count_of(numbers: Numbers) -> int:
    """Of elements; statistics may leave it out, and have the shape."""
    if numbers.count is None and isinstance(numbers, StatisticRow):
        return math.prod(numbers.shape)
    return numbers.count or 0


def norm_of(numbers: Numbers) -> float:
    """Root of the mean square: of tensors of any size, comparable."""
    count = count_of(numbers)
    return numbers.l2norm / math.sqrt(count) if numbers.l2norm and count else 0.0


def content_of(numbers: Numbers) -> tuple[object, ...]:
    return numbers.max, numbers.min, numbers.avg, numbers.l2norm


class Series:
    """Of one rank.

    steps     of its graphs, in the order in which they ran
    learning  what the dump tells of parameters, where it does
    """

    def __init__(
        self, steps: Sequence[Step], measured: Measured, graphs: GraphFiles, learning: Learning | None
    ) -> None:
        self._measured = measured
        self._graphs = graphs
        self.learning = learning
        self.by_iteration: dict[int, list[Step]] = {}
        for step in steps:
            if step.key.iteration is not None:
                self.by_iteration.setdefault(step.key.iteration, []).append(step)
        self._operators: dict[int, dict[str, Operator]] = {}

    # -- operators --------------------------------------------------------------------------------

    def find(self, iteration: int, graph: int | None, label: str) -> tuple[Step, Operator] | None:
        """An operator by its name."""
        for step in self.by_iteration.get(iteration, ()):
            if step.key.graph_id == graph:
                known = self._operators.get(id(step))
                if known is None:
                    known = self._operators[id(step)] = {operator.label: operator for operator in step.operators}
                operator = known.get(label)
                if operator is not None:
                    return step, operator
        return None

    def numbers(self, tensor: DumpedTensor | None) -> Numbers | None:
        return None if tensor is None else self._measured.numbers(tensor)

    def output(self, made: Made) -> Numbers | None:
        return self.numbers(made.operator.outputs.get(Slot(made.slot)))

    def largest(self, made: Made) -> float:
        """Largest absolute value of an output, of those that are finite."""
        numbers = self.output(made)
        values = () if numbers is None else (numbers.max, numbers.min)
        return max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)

    def is_rounding(self, made: Made) -> bool:
        """Whether a gradient is what rounding has left of a sum that cancels out, as of a bias before a norm."""
        largest = self.largest(made)
        node = self.node(made.step, made.operator)
        if node is not None and node.inputs and only_moves(made.operator.op_type):
            before = self.before_moves(made.step, node.inputs[0])
            if before is None:
                return False
            made = before
        kind = kind_of(made.operator.op_type)
        if kind not in _SUMS and (kind, made.slot) != _SUM_OF_CONV:
            return False
        read = self.numbers(made.operator.inputs.get(Slot(0)))
        return read is not None and bool(read.l2norm) and largest <= _ROUNDING * (read.l2norm or 0.0)

    def node(self, step: Step, operator: Operator) -> GraphNode | None:
        return self._graphs.node(step.key, operator)

    def graph(self, step: Step) -> GraphFile | None:
        return self._graphs.of(step.key)

    def maker(self, step: Step, origin: Origin | None) -> Made | None:
        """Who made an input; None for a parameter, for data, and where the dump does not tell."""
        if origin is None or step.key.iteration is None:
            return None
        if origin.slot is not None:
            found = self.find(step.key.iteration, step.key.graph_id, origin.name)
            return None if found is None else Made(*found, origin.slot)
        if origin.maker is not None:
            graph, name, slot = origin.maker
            found = self.find(step.key.iteration, graph, name)
            return None if found is None else Made(*found, slot)
        return None

    def before_moves(self, step: Step, origin: Origin | None) -> Made | None:
        """Who made an input, before it was only moved, copied or cast."""
        made = self.maker(step, origin)
        while made is not None and only_moves(made.operator.op_type):
            node = self.node(made.step, made.operator)
            made = self.maker(made.step, node.inputs[0]) if node is not None and node.inputs else None
        return made

    def way_back(self, step: Step, origin: Origin | None) -> Iterator[tuple[Made, GraphNode]]:
        """Who made an input, who made the first one of its own inputs, and so on: the last ones of them."""
        for _ in range(_LONGEST_WAY):
            made = self.maker(step, origin)
            node = None if made is None else self.node(made.step, made.operator)
            if made is None or node is None:
                return
            yield made, node
            if not node.inputs:
                return
            step, origin = made.step, node.inputs[0]

    def entry_of(self, step: Step, origin: Origin | None) -> Origin | None:
        """What an input was before it was moved, where no operator of the iteration has made that."""
        for made, node in self.way_back(step, origin):
            if not only_moves(made.operator.op_type) or not node.inputs:
                return None
            step, origin = made.step, node.inputs[0]
        return origin if self.maker(step, origin) is None else None

    # -- parameters -------------------------------------------------------------------------------

    @cached_property
    def parameters(self) -> Mapping[str, Mapping[int, tuple[Numbers, DumpedTensor]]]:
        """By name and iteration; the last graph of an iteration shows what it has left."""
        found: dict[str, dict[int, tuple[Numbers, DumpedTensor]]] = {}
        data = self._graphs.data_inputs
        for iteration, steps in self.by_iteration.items():
            for step in steps:
                for operator in reversed(step.operators):  # they come last
                    if not operator.is_parameter:
                        break
                    tensor = operator.outputs.get(Slot(0))
                    numbers = self.numbers(tensor)
                    if tensor is not None and numbers is not None and operator.op_name not in data:
                        found.setdefault(operator.op_name, {})[iteration] = numbers, tensor
        return found

    @cached_property
    def initial(self) -> Mapping[str, Numbers]:
        """Parameters as the first forward pass has read them, where the dump shows them before the first step, too."""
        found: dict[str, Numbers] = {}
        steps = self.by_iteration[min(self.by_iteration)]
        for step in steps[:-1]:
            if any(operator.stage == "optimizer" for operator in step.operators):
                break
            for operator in step.operators:
                numbers = self.numbers(operator.outputs.get(Slot(0))) if operator.is_parameter else None
                if numbers is not None:
                    found.setdefault(operator.op_name, numbers)
        return found

    @cached_property
    def rows(self) -> Mapping[str, LearningParameter]:
        """What the dump tells of parameters, by name."""
        return {} if self.learning is None else {row.name: row for row in self.learning.parameters}

    @cached_property
    def gradients(self) -> Mapping[str, Mapping[int, Made]]:
        """Who made the gradient of each parameter in each iteration, where that was dumped."""
        found: dict[str, dict[int, Made]] = {}
        if self.learning is not None:
            for row in self.learning.parameters:
                for iteration, span in self.spans(row):
                    if span.operator is not None and span.has:
                        made = self.find(iteration, span.graph, span.operator)
                        if made is not None:
                            found.setdefault(row.name, {})[iteration] = Made(*made, span.slot or 0)
            return found
        by_graph: dict[int, tuple[GraphFile, Mapping[tuple[str, int], str]]] = {}
        for iteration, steps in self.by_iteration.items():
            for step in steps:
                graph = self._graphs.of(step.key)
                if graph is not None and id(graph) not in by_graph:
                    by_graph[id(graph)] = graph, gradients_of(graph)
                for (label, slot), name in () if graph is None else by_graph[id(graph)][1].items():
                    known = self.find(iteration, step.key.graph_id, label)
                    if known is not None:
                        found.setdefault(name, {})[iteration] = Made(*known, slot)
        return found

    def spans(self, row: LearningParameter) -> Iterator[tuple[int, GradientSpan]]:
        """What is true of a parameter in each iteration with a backward pass that is dumped and looked at."""
        for iteration in self.backwards:
            if (span := row.at(iteration)) is not None:
                yield iteration, span

    @cached_property
    def backwards(self) -> Sequence[int]:
        """Iterations with a backward pass."""
        if self.learning is None:
            return sorted(self.by_iteration)
        spans = self.learning.backwards
        return [each for each in sorted(self.by_iteration) if any(first <= each <= last for first, last in spans)]

    # -- loss -------------------------------------------------------------------------------------

    @cached_property
    def losses(self) -> Mapping[int, Loss]:
        """By iteration; of several backward passes in one the last one counts."""
        found: dict[int, Loss] = {}
        for iteration, steps in self.by_iteration.items():
            for step in steps:
                for operator in reversed(step.operators):
                    if operator.label.rpartition("/")[2].startswith(_SEED) and (loss := self._loss(step, operator)):
                        found[iteration] = loss
                        break
            if iteration not in found and self.learning is None and (loss := self._returned_loss(steps)) is not None:
                found[iteration] = loss
        return found

    def _seeds(self, iteration: int) -> Iterator[tuple[Step, Operator]]:
        """Where backward passes begin, the last one first."""
        for step in reversed(self.by_iteration[iteration]):
            for operator in reversed(step.operators):
                if operator.label.rpartition("/")[2].startswith(_SEED):
                    yield step, operator

    def count_backwards(self, iteration: int) -> int:
        """Backward passes of an iteration: those whose gradients are added up."""
        return len(list(self._seeds(iteration)))

    def earlier_losses(self, iteration: int) -> Iterator[tuple[Loss, SourceLine | None]]:
        """Losses of all backward passes of an iteration but the last one, each with the line that begins the pass."""
        for step, operator in itertools.islice(self._seeds(iteration), 1, None):
            loss, node = self._loss(step, operator), self.node(step, operator)
            if loss is not None:
                yield loss, None if node is None else node.own_line

    def backward_line(self, iteration: int) -> SourceLine | None:
        """The line that begins the last one of them."""
        node = next((self.node(step, operator) for step, operator in self._seeds(iteration)), None)
        return None if node is None else node.own_line

    def _returned_loss(self, steps: Sequence[Step]) -> Loss | None:
        """The first output of a compiled graph, where that is one number, in an iteration with a backward pass."""
        if not any(stage_of(operator.label) == "backward" for step in steps for operator in step.operators):
            return None
        for step in steps:
            graph = self.graph(step)
            origin = graph.outputs[0] if graph is not None and graph.outputs else None
            if graph is None or origin is None or stage_of(origin.name) != "forward":
                continue
            made = self.maker(step, origin)
            numbers = None if made is None else self.output(made)
            if made is not None and numbers is not None and count_of(numbers) == 1 and numbers.max is not None:
                node = self.node(made.step, made.operator)
                line = None if node is None else node.own_line
                return Loss(float(numbers.max), step.key, made.operator, line)
        return None

    def _loss(self, step: Step, seed: Operator) -> Loss | None:
        numbers = self.numbers(seed.inputs.get(Slot(0)))
        if numbers is None or count_of(numbers) != 1 or numbers.max is None:
            return None
        step, operator, node = step, seed, self.node(step, seed)
        while node is not None and node.inputs and (made := self.maker(step, node.inputs[0])) is not None:
            step, operator = made.step, made.operator
            node = self.node(step, operator)
            if not only_moves(operator.op_type):
                break
        return Loss(float(numbers.max), step.key, operator, None if node is None else node.own_line)
