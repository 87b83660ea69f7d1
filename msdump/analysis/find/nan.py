"""Where NaN and Inf come from: the first NaN, the first unexpected Inf, the operators they spread to, what grew before.

from msdump.analysis import find_non_finite
report = find_non_finite("dump")
report.first_nan.operator.label, report.first_nan.line, report.first_nan.infected
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from msdump.analysis._payload import Progress
from msdump.analysis.find._health import HealthTable
from msdump.analysis.find._infinity_flow import (
    AFTER_OUTPUT,
    CAME_IN,
    CONSTANT,
    MADE,
    RECEIVED,
    UNKNOWN,
    BadTensor,
    InfinityFlow,
    InfRoot,
    Stages,
)
from msdump.analysis.graph_info import GraphFiles, with_inputs
from msdump.analysis.measurements import Measurements
from msdump.analysis.memory_state import UnsetTensors, has_same_statistics
from msdump.analysis.steps import (
    Operator,
    Slot,
    Step,
    StepKey,
    nothing_selected,
    opened,
    read_statistic_steps,
    read_steps,
)
from msdump.errors import FormatError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.selection import StepSelection
from msdump.graph.traits import is_collective
from msdump.graph.types import SourceLine
from msdump.tables.frames import html_table
from msdump.tensors import dtypes
from msdump.tensors.records import OUTPUT

STEEP = 100.0  # times the value of the iteration before
_LEAST = 1e-3  # smaller values are rounding of sums that cancel
_Name = tuple[str, str, str, Slot]
NAN, INF = "NaN", "Inf"
__all__ = [
    "AFTER_OUTPUT", "CAME_IN", "CONSTANT", "INF", "MADE", "NAN", "UNKNOWN", "BadTensor", "BenignInf", "NonFinite",
    "NonFiniteReport", "find_non_finite",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Growth:
    """A tensor that rose to at least STEEP times its largest absolute value of the iteration before.

    before            the earlier iteration of the same graph
    largest           absolute value of the finite elements in `step`; largest_before in `before`
    line              of the user's script, where a graph file tells it
    """

    step: StepKey
    before: StepKey
    operator: Operator
    io: str
    slot: Slot
    tensor: DumpedTensor
    largest: float
    largest_before: float
    line: SourceLine | None

    @property
    def factor(self) -> float:
        return self.largest / self.largest_before


def find_growth(steps: Iterable[tuple[Step, UnsetTensors]], health: HealthTable, graphs: GraphFiles) -> Growth | None:
    """The first such tensor in time; float tensors only.

    Edges: a tensor that was all 0 has no factor; one without finite values ends nothing and begins nothing, and so
           does memory that no operator has written yet.
    """
    last: dict[tuple[int | None, int | None], tuple[StepKey, dict[_Name, float]]] = {}
    listed = list(steps)
    times = Counter((step.key.rank_id, step.key.graph_id) for step, _ in listed)
    for step, unset in listed:
        graph = step.key.rank_id, step.key.graph_id
        if times[graph] == 1:
            continue
        before, earlier = last.get(graph, (step.key, {}))
        largest: dict[_Name, float] = {}
        for operator, io, slot, tensor in _float_tensors(step):
            value = health.of(tensor).largest
            if value is None or unset.has(operator, io, slot):
                continue
            name = operator.op_type, operator.label, io, slot
            largest[name] = value
            if value >= max(_LEAST, STEEP * earlier.get(name, 0.0)) and earlier.get(name):
                node = graphs.node(step.key, operator)
                line = None if node is None else node.own_line
                return Growth(step.key, before, operator, io, slot, tensor, value, earlier[name], line)
        last[graph] = step.key, largest
    return None


def _float_tensors(step: Step) -> Iterable[tuple[Operator, str, Slot, DumpedTensor]]:
    for operator in step.operators:
        for io, slot, tensor in operator.all_tensors():
            row = dtypes.BY_NAME.get(tensor.dtype)
            if row is not None and row.is_float:
                yield operator, io, slot, tensor


@dataclass(frozen=True, slots=True)
class NonFinite:
    """The first NaN, or the first unexpected Inf, of a step.

    operator    the first operator that has one
    how         "made": of inputs without one; "came in": an input has one that no operator of the step made;
                "received": a collective brought it from another process; "unknown": the dump does not hold its inputs
    line        of the user's script, where a graph file tells it
    tensors     of that operator: its bad outputs, or the input that brought them
    parameter   name of the parameter or data input that brought them, where a graph file tells it
    infected    later operators with bad inputs and outputs, in execution order
    also_made   later operators that make some of their own out of finite inputs
    stopped     later operators with bad inputs whose outputs are finite
    parameters  names of parameters that are bad after the step
    kind        NAN or INF
    sources     operators whose Inf became the NaN
    stage       "loss": made in the loss, so after the model's output; "after output": it came into the backward graph
                with the gradient of the model's output, so that code which is not in the dump made it; else ""
    after       where it came in: the graph of the same iteration that had ended just before, without a bad value
    """

    step: StepKey
    operator: Operator
    how: str
    line: SourceLine | None
    tensors: tuple[BadTensor, ...]
    parameter: str | None
    infected: tuple[Operator, ...]
    also_made: tuple[Operator, ...]
    stopped: tuple[Operator, ...]
    parameters: tuple[str, ...]
    kind: str = NAN
    sources: tuple[Operator, ...] = ()
    stage: str = ""
    after: StepKey | None = None


@dataclass(frozen=True, slots=True)
class BenignInf:
    """An expected Inf.

    operator  that put it there, or the first that read it
    how       "constant": the script wrote it down; else as in NonFinite, and then `stops` stopped it
    """

    step: StepKey
    operator: Operator
    how: str
    line: SourceLine | None
    tensors: tuple[BadTensor, ...]
    stops: tuple[Operator, ...]


@dataclass(frozen=True, slots=True)
class NonFiniteReport:
    """Result of `find_non_finite`, in order of execution.

    nan, inf   of each step that has one: its first NaN, its first unexpected Inf
    benign     every Inf that was meant
    grew       the first tensor that rose steeply from one iteration to the next
    unset      tensors that no operator has written yet: (step, label of the operator, input or output, slot)
    """

    nan: tuple[NonFinite, ...]
    inf: tuple[NonFinite, ...]
    step_count: int
    tensor_count: int
    damaged: tuple[tuple[str, FormatError], ...]
    benign: tuple[BenignInf, ...] = ()
    grew: Growth | None = None
    steps: tuple[NonFinite, ...] = ()
    unset: frozenset[tuple[StepKey, str, str, Slot]] = frozenset()

    def _repr_html_(self) -> str:
        """What a notebook shows: the first one of each step."""
        found = f"{len(self.steps)} of {self.step_count} steps have a NaN, or an Inf that was not meant"
        rows = ((str(step.step), step.kind, step.operator.label, step.how, str(step.line or "")) for step in self.steps)
        return html_table(found, ("step", "kind", "operator", "how", "line"), rows, len(self.steps))

    @property
    def first(self) -> NonFinite | None:
        """The first of both kinds."""
        return self.steps[0] if self.steps else None

    @property
    def firsts(self) -> tuple[NonFinite, ...]:
        """The first NaN and the first unexpected Inf, the earlier one first: an Inf before the NaN that it became."""
        both = [result for result in (self.first_nan, self.first_inf) if result is not None]
        return tuple(sorted(both, key=lambda result: result is not self.first))

    @property
    def first_nan(self) -> NonFinite | None:
        return self.nan[0] if self.nan else None

    @property
    def first_inf(self) -> NonFinite | None:
        """The first unexpected Inf."""
        return self.inf[0] if self.inf else None


def find_non_finite(
    dump: DumpDir | str | os.PathLike[str],
    *,
    rank: int | Collection[int] | None = None,
    graph: int | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
    measurements: Measurements | None = None,
    thread_count: int | None = None,
    progress: Progress | None = None,
) -> NonFiniteReport:
    """Look for the first NaN and the first unexpected Inf in each step of a dump, and for what grew.

    Statistics are used where a step has them; tensors are read where it has none. Inputs that were not dumped are
    taken from the operators that made them when the dump has a graph file.

    measurements  as of `tensor_statistics`; what they leave unmeasured counts as finite

    Edges:   a float without Inf (fp8) counts as Inf when it is at its largest value, where it saturates. What lies in
             memory that no operator has written yet (`empty`) counts for nothing.
    Raises:  ConfigError when there is nothing to look at; FormatError when there is nothing at the path.
    """
    dump = opened(dump)
    selection = StepSelection(rank, graph, iteration)
    with dump.listed_once():
        graphs, health = GraphFiles(dump), HealthTable()
        table, damaged = read_statistic_steps(dump, selection, every_run=True)
        measured = list(table.steps)
        health.add_rows(table.row, _tensors(measured), damaged)
        keys = {step.key for step in measured}
        others = [step for step in read_steps(dump, selection, every_run=True) if step.key not in keys]
    health.add_tensors(_tensors(others), damaged, thread_count, progress, measurements)
    steps = sorted([*measured, *others], key=_when)
    if not any(step.operators for step in steps):
        raise nothing_selected(dump, selection, expected="tensors or statistics")

    def unset_in(step: Step) -> UnsetTensors:
        graph = graphs.of(step.key)
        if step.key not in keys:
            return UnsetTensors(step, graph)
        return UnsetTensors(step, graph, lambda left, right: has_same_statistics(table.row(left), table.row(right)))

    stages = Stages()
    steps_with_inputs = [with_inputs(step, graphs.of(step.key)) for step in steps]
    unset = [unset_in(step) for step in steps_with_inputs]
    searches = [
        _Search(step, health, graphs, stages, tensors) for step, tensors in zip(steps_with_inputs, unset, strict=True)
    ]
    return NonFiniteReport(
        _in_time(search.nan for search in searches),
        _in_time(search.inf for search in searches),
        len(steps),
        len(health),
        (*dump.damaged, *damaged, *graphs.damaged),
        tuple(benign for search in searches for benign in search.benign),
        find_growth(zip(steps_with_inputs, unset, strict=True), health, graphs),
        _in_time(search.first for search in searches),
        frozenset(
            (step.key, operator.label, io, slot)
            for step, tensors in zip(steps_with_inputs, unset, strict=True)
            for operator, io, slot in tensors.operands
        ),
    )


def _in_time(results: Iterable[NonFinite | None]) -> tuple[NonFinite, ...]:
    """In the order of their steps; in each iteration, what came from another process behind what that one has made."""
    present = (result for result in results if result is not None)
    iterations = (list(group) for _, group in itertools.groupby(present, key=lambda result: result.step.iteration))
    return tuple(
        result for group in iterations for result in sorted(group, key=lambda suspect: suspect.how == RECEIVED)
    )


def _when(step: Step) -> tuple[int, ...]:
    """Order in time: what happens in one iteration on two ranks happens together."""
    key = step.key
    parts = (step.time_us, key.iteration, key.rank_id, step.began_us, key.graph_id)
    return tuple(-1 if part is None else part for part in parts)


def _tensors(steps: Iterable[Step]) -> list[DumpedTensor]:
    return [tensor for step in steps for operator in step.operators for _, _, tensor in operator.all_tensors()]


# -- one step ------------------------------------------------------------------------------------------------------


class _Search:
    """The search in one step."""

    def __init__(
        self, step: Step, health: HealthTable, graphs: GraphFiles, stages: Stages, unset: UnsetTensors
    ) -> None:
        self._step = step
        self._flow = InfinityFlow(step, health, graphs.of(step.key), unset, stages.earlier(step.key))
        self._spoiled = {
            operator.op_name: bad
            for operator in step.operators
            if operator.is_parameter and (bad := _bad_parameter(operator, health))
        }
        self._before = stages.before(step.key)
        self._stages = stages
        self.benign = tuple(self._benign(root) for root in self._flow.roots if root.is_benign)
        self._reads = [self._bad(index, bads) if bads else () for index, bads in enumerate(self._flow.inputs)]
        self._writes = [self._bad(index, bads) if bads else () for index, bads in enumerate(self._flow.outputs)]
        nan, inf = self._first_nan(), self._first_inf()
        self.nan = None if nan is None else self._result(nan, NAN)
        self.inf = None if inf is None else self._result(inf, INF)
        if self.nan is None and self.inf is None and self._spoiled:
            kind = NAN if any(bad.health.has_nan for bads in self._spoiled.values() for bad in bads) else INF
            only = self._only_parameters(kind)
            self.nan, self.inf = (only, None) if kind == NAN else (None, only)
        origins = [(index, result) for index, result in ((nan, self.nan), (inf, self.inf)) if result is not None]
        self.first = min(origins, key=lambda origin: -1 if origin[0] is None else origin[0])[1] if origins else None
        stages.end(step.key, self.first is not None, self._flow)

    def _bad(self, index: int, tensors: tuple[BadTensor, ...]) -> tuple[BadTensor, ...]:
        return tuple(bad for bad in tensors if self._flow.is_harmful(index, bad))

    def _first_nan(self) -> int | None:
        sides = enumerate(zip(self._flow.inputs, self._flow.outputs, strict=True))
        return next((i for i, (read, written) in sides if any(bad.health.has_nan for bad in (*read, *written))), None)

    def _first_inf(self) -> int | None:
        """Of those that the graph has made itself, or that nobody knows: where another graph made it, it is told."""
        roots = self._flow.roots
        return min((root.operator for root in roots if not root.is_benign and not root.earlier), default=None)

    def _result(self, index: int, kind: str) -> NonFinite:
        flow, operator = self._flow, self._flow.operators[index]
        inputs = [bad for bad in flow.inputs[index] if _is_of(kind, bad) and flow.is_harmful(index, bad)]
        outputs = [bad for bad in flow.outputs[index] if _is_of(kind, bad) and flow.is_harmful(index, bad)]
        how = CAME_IN if inputs else MADE if flow.has_inputs(index) else UNKNOWN
        if not inputs and is_collective(operator.op_type):
            how = RECEIVED
        parameter = None
        if inputs:
            origin = flow.origin(index, inputs[0].slot)
            parameter = origin.name if origin is not None and origin.slot is None else None
        later = range(index + 1, len(flow.operators))
        hit = [candidate for candidate in later if self._reads[candidate]]
        fresh = [candidate for candidate in later if self._writes[candidate] and not self._reads[candidate]]
        node = flow.node(index)
        return NonFinite(
            self._step.key,
            operator,
            how,
            None if node is None else node.own_line,
            tuple(inputs or outputs),
            parameter,
            self._operators(
                candidate for candidate in hit if self._writes[candidate] or not flow.operators[candidate].outputs
            ),
            self._operators(fresh),
            self._operators(o for o in hit if flow.operators[o].outputs and not self._writes[o]),
            tuple(self._spoiled),
            kind,
            self._sources(index) if kind == NAN and not inputs else (),
            self._stages.stage_of(operator, how, parameter, self._before),
            self._before if how == CAME_IN else None,
        )

    def _sources(self, index: int) -> tuple[Operator, ...]:
        """Operators whose Inf an operator read, in this graph or in an earlier one of the iteration."""
        flow = self._flow
        roots = {id(root): root for bad in flow.inputs[index] for root in flow.roots_of(index, bad)}
        made: dict[int, Operator] = {}
        for root in roots.values():
            if root.earlier:
                made |= {id(operator): operator for operator, _ in root.earlier}
            elif root.operator != index:
                made[id(flow.operators[root.operator])] = flow.operators[root.operator]
        return tuple(made.values())

    def _operators(self, indices: Iterable[int]) -> tuple[Operator, ...]:
        return tuple(self._flow.operators[i] for i in indices)

    def _benign(self, root: InfRoot) -> BenignInf:
        node = self._flow.node(root.operator)
        return BenignInf(
            self._step.key,
            self._flow.operators[root.operator],
            root.how,
            None if node is None else node.own_line,
            root.tensors,
            self._operators(dict.fromkeys(root.stops)),
        )

    def _only_parameters(self, kind: str) -> NonFinite:
        """A step of which only parameters are bad."""
        name, tensors = next(iter(self._spoiled.items()))
        first = next(o for o in self._step.operators if o.is_parameter and o.op_name == name)
        names = tuple(self._spoiled)
        return NonFinite(self._step.key, first, UNKNOWN, None, tensors, name, (), (), (), names, kind)


def _bad_parameter(operator: Operator, health: HealthTable) -> tuple[BadTensor, ...]:
    tensors = [BadTensor(OUTPUT, slot, tensor, health.of(tensor)) for slot, tensor in operator.outputs.items()]
    return tuple(bad for bad in tensors if bad.health.is_bad)


def _is_of(kind: str, bad: BadTensor) -> bool:
    return bad.health.has_nan if kind == NAN else bad.health.has_inf
