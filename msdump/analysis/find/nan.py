"""Where NaN and Inf come from: the first NaN, the first unexpected Inf, the operators they spread to, what grew before.

from msdump.analysis import find_non_finite
report = find_non_finite("dump")
report.first_nan.operator.label, report.first_nan.line, report.first_nan.infected
"""

from __future__ import annotations

import itertools
import math
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from msdump.analysis._payload import Progress
from msdump.analysis.find._allocation import allocation_of, bad_from_the_start
from msdump.analysis.find._fate import is_of_gradients, mark_ends, skips_step
from msdump.analysis.find._health import HealthTable
from msdump.analysis.find._infinity_flow import (
    AFTER_OUTPUT,
    CAME_IN,
    CAME_WITH_DATA,
    CONSTANT,
    MADE,
    RECEIVED,
    UNKNOWN,
    UNSET_MEMORY,
    BadTensor,
    InfinityFlow,
    InfRoot,
    Stages,
)
from msdump.analysis.find.between import BadGradients, bad_gradients
from msdump.analysis.find.measured import measured_steps
from msdump.analysis.graph_info import GraphFiles, GraphNode, with_inputs
from msdump.analysis.learning.findings import learning_findings
from msdump.analysis.learning.kinds import LearningFinding
from msdump.analysis.measurements import Measurements
from msdump.analysis.memory_state import SameBytes, UnsetTensors, same_in
from msdump.analysis.missing import lost_lines, lost_of
from msdump.analysis.steps import (
    Operator,
    Slot,
    Step,
    StepKey,
    count_iterations,
    opened,
)
from msdump.errors import FormatError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.selection import StepSelection
from msdump.formats.sidecars import Lost
from msdump.graph.types import SourceLine
from msdump.operators.traits import drops_nan, is_collective, only_moves
from msdump.tables.frames import html_table
from msdump.tables.messages import COMMA, Message, joined, message, messages
from msdump.tensors import dtypes
from msdump.tensors.records import OUTPUT

STEEP = 100.0  # times the value of the iteration before
_LEAST = 1e-3  # smaller values are rounding of sums that cancel
_Name = tuple[str, str, str, Slot]
NAN, INF = "NaN", "Inf"
# Of a finding.
HOW: Mapping[str, Message] = {
    text: text for text in messages("made", "came in", "data", "received", "unset", "unknown")
}
__all__ = [
    "AFTER_OUTPUT", "CAME_IN", "CONSTANT", "HOW", "INF", "MADE", "NAN", "UNKNOWN", "BadTensor", "BenignInf",
    "NonFinite", "NonFiniteReport", "find_non_finite",
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
                "data": as "came in", in memory that a loader's process has sent;
                "received": a collective brought it from another process; "unset": it lay in memory that no operator
                has written; "unknown": the dump does not hold its inputs
    line        of the user's script, where a graph file tells it; of "unset" that of the allocation
    maker       where it came in: graph, operator and output of another graph of the iteration that made it, where the
                dump tells
    inner_line  of a library that the script's line calls, where that one runs the operator
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
    attributes  of the operator, in that iteration, that are no finite numbers themselves
    returns     operators of the backward pass that read it again, where an operator of the forward pass drops it
    after       where it came in: the graph of the same iteration that had ended just before, without a bad value
    shows       the operator of a later iteration that it spoils, with its step, where it has spoiled nothing in its own
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
    returns: tuple[Operator, ...] = ()
    attributes: tuple[tuple[str, float], ...] = ()
    inner_line: SourceLine | None = None
    maker: tuple[int, str, int] | None = None
    shows: tuple[StepKey, Operator] | None = None


@dataclass(frozen=True, slots=True)
class BenignInf:
    """An expected Inf, or a NaN that was dropped again.

    operator  that put it there, or the first that read it
    how       "constant": the script wrote it down; else as in NonFinite, and then `stops` stopped it
    kind      NAN or INF
    """

    step: StepKey
    operator: Operator
    how: str
    line: SourceLine | None
    tensors: tuple[BadTensor, ...]
    stops: tuple[Operator, ...]
    kind: str = INF


@dataclass(frozen=True, slots=True)
class NonFiniteReport:
    """Result of `find_non_finite`, in order of execution.

    nan, inf   of each graph of each rank and iteration that has one: its first NaN, its first unexpected Inf
    step_count  iterations that were looked at, however many ranks and graphs ran in each
    benign     every Inf that was meant
    grew       the first tensor that rose steeply from one iteration to the next
    unset      tensors that no operator has written yet: (step, label of the operator, input or output, slot)
    skipped    of each step that a scaler of the loss skipped because of it; none of these is in `steps`
    lost       what dumps that are not complete lack, by rank
    between    gradients of an iteration that a sampled dump has left out, where they are bad before all of these
    learning   why the training may not learn, or grows, before the first of these
    untold     by dtype: how many tensors have statistics that tell nothing of their values
    initial    names of parameters that held the first of these before the first step: as initial values, or loaded
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
    skipped: tuple[NonFinite, ...] = ()
    between: BadGradients | None = None
    untold: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[int, Lost] = field(default_factory=dict)
    learning: tuple[LearningFinding, ...] = ()
    initial: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """One line: how many steps have one, and the first operator."""
        first = (
            "" if self.first is None else f"; first {self.first.kind}: {self.first.operator.label}, {self.first.step}"
        )
        return f"<{type(self).__name__}: {self._summary}{first}>"

    @property
    def _summary(self) -> str:
        return f"{self.bad_step_count} of {self.step_count} iterations have a NaN, or an Inf that was not meant"

    def _repr_html_(self) -> str:
        """What a notebook shows: the first one of each step."""
        found = self._summary
        rows = ((str(step.step), step.kind, step.operator.label, step.how, str(step.line or "")) for step in self.steps)
        return html_table(found, ("step", "kind", "operator", "how", "line"), rows, len(self.steps))

    @property
    def bad_step_count(self) -> int:
        """Iterations that have one, on any rank and in any graph."""
        return count_iterations(result.step for result in self.steps)

    @property
    def lost_lines(self) -> list[str]:
        """For people: what is missing."""
        return lost_lines(self.lost)

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

    rank, graph, iteration  steps that are looked at, a number or several of each
    measurements  as of `tensor_statistics`; what they leave unmeasured counts as finite
    thread_count  None: one for each core that the process may use
    progress      called with (bytes done, bytes in all) from the calling thread

    Edges:   a float without Inf (fp8) counts as Inf when it is at its largest value, where it saturates. What lies in
             memory that no operator has written yet (`empty`) counts for nothing.
    Raises:  ConfigError when there is nothing to look at; FormatError when there is nothing at the path.
    """
    dump = opened(dump)
    selection = StepSelection(rank, graph, iteration)
    with dump.listed_once():
        found = measured_steps(dump, selection, measurements, thread_count, progress)
        gradients, lost, learning = dump.gradients, lost_of(dump, selection), dump.learning
    steps, health, graphs, damaged = found.steps, found.health, found.graphs, found.damaged
    same, stages = same_in(found.table), Stages()
    steps_with_inputs = [with_inputs(step, graphs.of(step.key)) for step in steps]
    unset = [UnsetTensors(step, graphs.of(step.key), same) for step in steps_with_inputs]
    flows = _flows(steps_with_inputs, unset, health, graphs)
    searches = [
        _Search(step, health, flow, stages, graphs) for step, flow in zip(steps_with_inputs, flows, strict=True)
    ]
    skipped = _skipped(searches, steps_with_inputs, health, graphs)
    searches_that_count = [search for search in searches if id(search) not in skipped]
    if searches_that_count:
        _follow_back(searches_that_count, same)
    firsts = _in_time(search.first for search in searches_that_count)
    blamed = {operator.label for first in firsts for operator in first.sources}
    return NonFiniteReport(
        _in_time(search.nan for search in searches_that_count),
        _in_time(search.inf for search in searches_that_count),
        count_iterations(step.key for step in steps),
        len(health),
        (*dump.damaged, *damaged, *graphs.damaged),
        # Not those that a finding is made of.
        tuple(one for search in searches for one in search.benign if one.operator.label not in blamed),
        find_growth(zip(steps_with_inputs, unset, strict=True), health, graphs),
        firsts,
        frozenset(
            (step.key, operator.label, io, slot)
            for step, tensors in zip(steps_with_inputs, unset, strict=True)
            for operator, io, slot in tensors.operands
        ),
        _in_time(search.first for search in searches if id(search) in skipped),
        bad_gradients(gradients, selection, firsts[0].step.iteration if firsts else None),
        dict(health.untold),
        lost,
        learning_findings(steps_with_inputs, health, graphs, learning, firsts[0].step.iteration if firsts else None),
        bad_from_the_start(firsts[0], steps_with_inputs, health, graphs) if firsts else (),
    )


def _flows(
    steps: Sequence[Step], unset: Sequence[UnsetTensors], health: HealthTable, graphs: GraphFiles
) -> list[InfinityFlow]:
    """Of each step, with those of the graphs before it in the same iteration of the same rank."""
    flows = []
    iterations: dict[tuple[int | None, int | None], list[InfinityFlow]] = {}
    for step, tensors in zip(steps, unset, strict=True):
        key = step.key
        before = iterations.setdefault((key.rank_id, key.iteration), [])
        earlier = {flow.graph_id: flow for flow in before if flow.graph_id is not None}
        flow = InfinityFlow(step, health, graphs.of(key), tensors, {} if key.iteration is None else earlier)
        before.append(flow)
        flows.append(flow)
    if health.has_bad:
        for iteration in iterations.values():
            mark_ends(iteration)
    return flows


def _skipped(searches: Sequence[_Search], steps: Sequence[Step], health: HealthTable, graphs: GraphFiles) -> set[int]:
    """Those whose finding made a scaler of the loss skip the step of training: it is behind the forward pass, which has
    none.   Returns: identities of the searches
    """
    iterations: dict[tuple[int | None, int | None], list[tuple[_Search, Step]]] = {}
    for search, step in zip(searches, steps, strict=True):
        iterations.setdefault((step.key.rank_id, step.key.iteration), []).append((search, step))
    skipped: set[int] = set()
    for found in iterations.values():
        bad = [search for search, _ in found if search.first is not None]
        forward = min((step.key.graph_id or 0 for _, step in found), default=0)
        is_clean = all(
            search.first is not None
            and not search.first.parameters
            and (is_of_gradients(search.first.operator) or search.first.step.graph_id != forward)
            for search in bad
        )
        files = {id(step): graphs.of(step.key) for _, step in found} if bad and is_clean else {}
        if files and skips_step((step for _, step in found), health, files):
            skipped |= {id(search) for search in bad}
    return skipped


def _follow_back(searches: Sequence[_Search], is_same: SameBytes) -> None:
    """Where the first finding came in from outside, and an operator of an earlier iteration has made those numbers,
    which spoiled nothing then: that operator is the finding.

    searches   in the order of their steps
    """
    firsts = [(place, search) for place, search in enumerate(searches) if search.first is not None]
    place, search = firsts[0] if firsts else (0, searches[0])
    found = search.first
    if found is None or found.how != CAME_IN or found.maker is not None:
        return
    brought = found.tensors[0].tensor
    for earlier in searches[:place]:
        if earlier.key.rank_id == search.key.rank_id and earlier.find_maker(brought, found, is_same):
            return


def _in_time(results: Iterable[NonFinite | None]) -> tuple[NonFinite, ...]:
    """In the order of their steps; in each iteration, what came from another process behind what that one has made, and
    what came into a process, nobody knows from where, behind what another one has made: gradients of all are reduced in
    buffers of their own. What came from another graph comes behind what that one has made.
    """
    present = (result for result in results if result is not None)
    iterations = (list(group) for _, group in itertools.groupby(present, key=lambda result: result.step.iteration))
    ordered: list[NonFinite] = []
    for group in iterations:
        made = {result.step.rank_id for result in group if result.how == MADE}

        def lateness(result: NonFinite, made: set[int | None] = made) -> int:
            if result.how == RECEIVED:
                return 2
            # From another rank; or from another graph of the iteration, be it by way of a third one.
            is_told = bool(made - {result.step.rank_id}) or (result.maker is not None and bool(made))
            return int(result.how == CAME_IN and is_told)

        ordered += sorted(group, key=lateness)
    return tuple(ordered)


# -- one step ------------------------------------------------------------------------------------------------------


class _Search:
    """The search in one step."""

    def __init__(self, step: Step, health: HealthTable, flow: InfinityFlow, stages: Stages, graphs: GraphFiles) -> None:
        self._step = step
        self._graphs = graphs
        self._flow = flow
        meant = self._flow.meant_parameters
        self._spoiled = {
            operator.op_name: bad
            for operator in step.operators
            if operator.is_parameter
            and (bad := _bad_parameter(operator, health))
            and (operator.op_name not in meant or any(each.health.has_nan for each in bad))
        }
        self._before = stages.before(step.key)
        self._stages = stages
        self.benign = (
            *(self._benign(root) for root in self._flow.roots if root.is_benign),
            *(self._dropped(index) for index in self._dropped_nans()),
        )
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
        stages.end(step.key, is_bad=self.first is not None)

    @property
    def key(self) -> StepKey:
        return self._step.key

    def find_maker(self, tensor: DumpedTensor, later: NonFinite, is_same: SameBytes) -> bool:
        """Whether an operator has made these numbers out of finite ones; then it is the finding of this step.

        later   the finding of a later step that they came into
        """
        flow = self._flow
        for index, written in enumerate(flow.outputs):
            made = [bad for bad in written if _is_of(later.kind, bad) and bad.tensor.shape == tensor.shape]
            if not any(is_same(bad.tensor, tensor) for bad in made):
                continue
            first = self._first_of(index, later.kind)
            if any(_is_of(later.kind, bad) for bad in flow.inputs[first]):
                return False  # from further away
            written = tuple(bad for bad in flow.outputs[first] if _is_of(later.kind, bad))
            shows = later.step, later.operator
            self.first = replace(self._result(first, later.kind), how=MADE, tensors=written, shows=shows)
            self.benign = tuple(each for each in self.benign if each.operator is not flow.operators[first])
            self.nan, self.inf = (self.first, self.inf) if later.kind == NAN else (self.nan, self.first)
            return True
        return False

    def _first_of(self, index: int, kind: str) -> int:
        """The operator that made what this one hands on."""
        while True:
            bads = [bad for bad in self._flow.inputs[index] if _is_of(kind, bad)]
            source = self._flow.source(index, bads[0]) if bads else None
            if source is None:
                return index
            index = source[0]

    def _bad(self, index: int, tensors: tuple[BadTensor, ...]) -> tuple[BadTensor, ...]:
        return tuple(bad for bad in tensors if self._flow.is_harmful(index, bad))

    def _first_nan(self) -> int | None:
        sides = enumerate(zip(self._flow.inputs, self._flow.outputs, strict=True))
        return next(
            (
                i
                for i, (read, written) in sides
                if (read or written)
                and any(bad.health.has_nan for bad in (*read, *written))
                and self._flow.reaches_end[i]
            ),
            None,
        )

    def _dropped_nans(self) -> Iterator[int]:
        """Operators that make a NaN which reaches no end."""
        flow = self._flow
        for index, written in enumerate(flow.outputs):
            if not any(bad.health.has_nan for bad in written) or flow.reaches_end[index]:
                continue
            if not any(bad.health.has_nan for bad in flow.inputs[index]):
                yield index

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
        data = flow.data_node(index, inputs[0].slot) if inputs else None
        if data is not None:
            how = CAME_WITH_DATA
        unset = () if inputs else tuple(bad for bad in flow.unset_inputs.get(index, ()) if bad.health.is_bad)
        if how in (MADE, CAME_IN) and (inputs or unset):
            data = allocation_of(flow.origin(index, (inputs or unset)[0].slot), self._step.key, self._graphs)
            how = how if data is None else UNSET_MEMORY
        parameter = None
        if inputs:
            origin = flow.origin(index, inputs[0].slot)
            parameter = origin.name if origin is not None and origin.slot is None else None
        later = range(index + 1, len(flow.operators))
        hit = [candidate for candidate in later if self._reads[candidate]]
        fresh = [candidate for candidate in later if self._writes[candidate] and not self._reads[candidate]]
        node = self._node(index)
        return NonFinite(
            self._step.key,
            operator,
            how,
            None if node is None else (data or node).own_line,
            tuple(inputs or (unset if how == UNSET_MEMORY else outputs)),
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
            self._returns(index) if kind == NAN and not inputs else (),
            () if node is None or inputs else tuple(_bad_attributes(node)),
            None if node is None or data is not None else node.inner_line,
            flow.made_elsewhere(index, inputs[0].slot.number) if inputs else None,
        )

    def _returns(self, index: int) -> tuple[Operator, ...]:
        """Where gradients bring back what was dropped."""
        flow = self._flow
        made = {(index, bad.slot) for bad in flow.outputs[index]}
        found = []
        for reader in range(index + 1, len(flow.operators)):
            if any(flow.source(reader, bad) in made for bad in flow.inputs[reader]):
                written = {(reader, bad.slot) for bad in flow.outputs[reader] if bad.health.has_nan}
                if written and not only_moves(flow.operators[reader].op_type):
                    return ()  # it went on by itself
                made |= written
        for output in made:
            if output in flow.read_later:
                found.append(flow.read_later[output])
        return tuple(dict.fromkeys(found))

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

    def _node(self, index: int) -> GraphNode | None:
        """What the dump says of an operator. Graph files tell it with the flow, msprobe's files without one."""
        node = self._flow.node(index)
        return self._graphs.node(self._step.key, self._flow.operators[index]) if node is None else node

    def _benign(self, root: InfRoot) -> BenignInf:
        node = self._node(root.operator)
        return BenignInf(
            self._step.key,
            self._flow.operators[root.operator],
            root.how,
            None if node is None else node.own_line,
            root.tensors,
            self._operators(dict.fromkeys(root.stops)),
        )

    def _dropped(self, index: int) -> BenignInf:
        """A NaN that was left out again."""
        flow = self._flow
        node = self._node(index)
        made = {(index, bad.slot) for bad in flow.outputs[index]}
        stops = []
        for reader in range(index + 1, len(flow.operators)):
            if any(flow.source(reader, bad) in made for bad in flow.inputs[reader] if bad.health.has_nan):
                written = [bad for bad in flow.outputs[reader] if bad.health.has_nan]
                made |= {(reader, bad.slot) for bad in written}
                if not written and drops_nan(flow.operators[reader].op_type):
                    stops.append(reader)
        return BenignInf(
            self._step.key,
            flow.operators[index],
            MADE,
            None if node is None else node.own_line,
            flow.outputs[index],
            self._operators(stops),
            NAN,
        )

    def _only_parameters(self, kind: str) -> NonFinite:
        """A step of which only parameters are bad."""
        name, tensors = next(iter(self._spoiled.items()))
        first = next(o for o in self._step.operators if o.is_parameter and o.op_name == name)
        names = tuple(self._spoiled)
        return NonFinite(self._step.key, first, UNKNOWN, None, tensors, name, (), (), (), names, kind)


def initial_text(names: Sequence[str]) -> Message:
    """What `NonFiniteReport.initial` means."""
    return message(
        "before the first step already, in {names}: initial values, or what was loaded", names=joined(COMMA, names)
    )


def _bad_attributes(node: GraphNode) -> Iterator[tuple[str, float]]:
    """Attributes that are NaN or Inf, or hold one."""
    for name, value in (node.attrs or {}).items():
        for item in value if isinstance(value, list | tuple) else (value,):
            if isinstance(item, float) and not math.isfinite(item):
                yield name, item
                break


def _bad_parameter(operator: Operator, health: HealthTable) -> tuple[BadTensor, ...]:
    tensors = [BadTensor(OUTPUT, slot, tensor, health.of(tensor)) for slot, tensor in operator.outputs.items()]
    return tuple(bad for bad in tensors if bad.health.is_bad)


def _is_of(kind: str, bad: BadTensor) -> bool:
    return bad.health.has_nan if kind == NAN else bad.health.has_inf
