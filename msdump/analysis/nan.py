"""Where NaN and Inf come from: the first operator that makes one out of finite inputs, and those it infects.

from msdump.analysis import find_non_finite
found = find_non_finite("dump")
found.first.operator.label, found.first.line, found.first.infected
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from msdump import dtypes
from msdump.analysis.graph_info import GraphFiles, with_inputs
from msdump.analysis.in_place import Moment
from msdump.analysis.operators import Operator, Slot, Step, StepKey, read_steps
from msdump.analysis.payload import identity
from msdump.analysis.statistic_steps import read_statistic_steps
from msdump.analysis.unset import UnsetTensors, has_same_statistics
from msdump.errors import ConfigError, DtypeError, FormatError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.graph_files.source_line import SourceLine
from msdump.records import INPUT, OUTPUT
from msdump.stats import has_non_finite, statistics

# How the first non-finite value of a step came about.
MADE, CAME_IN, UNKNOWN = "made", "came in", "unknown"


@dataclass(frozen=True, slots=True)
class BadTensor:
    """A tensor with values that are not finite; counts are None where only their presence is known."""

    io: str
    slot: Slot
    tensor: DumpedTensor
    nan: int | None
    inf: int | None


@dataclass(frozen=True, slots=True)
class NonFinite:
    """One step that holds a NaN or Inf.

    operator    the first operator that has one
    how         "made": out of finite inputs; "came in": an input has one that no operator of the step made;
                "unknown": the dump does not hold its inputs
    line        of the user's script, where a graph file tells it
    tensors     of that operator: its bad outputs, or the input that brought them
    parameter   name of the parameter or data input that brought them, where a graph file tells it
    infected    later operators with bad inputs and outputs, in execution order
    also_made   later operators that make some of their own out of finite inputs
    stopped     later operators with bad inputs whose outputs are finite
    parameters  names of parameters that are bad after the step
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


@dataclass(frozen=True, slots=True)
class NonFiniteReport:
    """All that `find_non_finite` found; `steps` holds those that are bad, in the order in which they ran."""

    steps: tuple[NonFinite, ...]
    step_count: int
    tensor_count: int
    damaged: tuple[tuple[str, FormatError], ...]

    @property
    def first(self) -> NonFinite | None:
        return self.steps[0] if self.steps else None


def find_non_finite(
    dump: DumpDir | str | os.PathLike[str],
    *,
    rank: int | Collection[int] | None = None,
    graph: int | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
    thread_count: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> NonFiniteReport:
    """Look for the first NaN or Inf of each step of a dump.

    Statistics are believed where a step has them; tensors are read where it has none. Inputs that were not dumped are
    taken from the operators that made them when the dump has a graph file.

    Edges:   a float without Inf (fp8) counts when it is at its largest value, where it saturates. What lies in memory
             that no operator has written yet (`empty`) counts for nothing.
    Raises:  ConfigError when there is nothing to look at; FormatError when there is nothing at the path.
    """
    dump = dump if isinstance(dump, DumpDir) else DumpDir.open(dump)
    graphs = GraphFiles(dump)
    table, damaged = read_statistic_steps(dump, rank=rank, graph=graph, iteration=iteration)
    steps = list(table.steps)
    counts = _counts_of_rows(table.row, (tensor for step in steps for tensor in _tensors(step)), damaged)
    known = {step.key for step in steps}
    others = [step for step in read_steps(dump, rank=rank, graph=graph, iteration=iteration) if step.key not in known]
    counts |= _counts_of_tensors([t for step in others for t in _tensors(step)], damaged, thread_count, progress)
    steps = sorted([*steps, *others], key=_when)
    if not any(step.operators for step in steps):
        raise ConfigError(f"{dump.path}: expected tensors or statistics, got none. Is it the folder of a dump?")

    def look(step: Step) -> NonFinite | None:
        graph = graphs.of(step.key)
        whole = with_inputs(step, graph)
        if step.key in known:
            unset = UnsetTensors(whole, graph, lambda a, b: has_same_statistics(table.row(a), table.row(b)))
        else:
            unset = UnsetTensors(whole, graph)
        return _look(whole, counts, graphs, unset)

    found = [look(step) for step in steps]
    return NonFiniteReport(
        tuple(step for step in found if step is not None),
        len(steps),
        len(counts),
        (*dump.damaged, *damaged, *graphs.damaged),
    )


def _when(step: Step) -> tuple[int, ...]:
    """Order in time: what happens in one iteration on two ranks happens together."""
    key = step.key
    return tuple(-1 if part is None else part for part in (step.time_us, key.iteration, key.rank_id, key.graph_id))


def _tensors(step: Step) -> Iterable[DumpedTensor]:
    return (tensor for operator in step.operators for io in (INPUT, OUTPUT) for tensor in operator.tensors(io).values())


# -- counting ------------------------------------------------------------------------------------------------------

_Key = tuple[object, ...]
# (NaN, Inf) of each bad or good tensor; a count is None where only the presence is known.
_Counts = dict[_Key, tuple[int | None, int | None]]


def _key(tensor: DumpedTensor) -> _Key:
    try:
        return identity(tensor)
    except OSError:
        return (tensor.where,)


def _counts_of_rows(
    row_of: Callable[..., object], tensors: Iterable[DumpedTensor], damaged: list[tuple[str, FormatError]]
) -> _Counts:
    counts: _Counts = {}
    complained: set[str] = set()
    for tensor in tensors:
        row = row_of(tensor)
        nan = getattr(row, "nan", None)
        infinities = getattr(row, "negative_inf", None), getattr(row, "positive_inf", None)
        if nan is None and infinities == (None, None) and tensor.path not in complained:
            complained.add(tensor.path)
            text = 'expected a column "NaN Count", "Negative Inf Count" or "Positive Inf Count", got none of them.'
            damaged.append((tensor.path, FormatError(f"{tensor.path}: {text}")))
        counts[_key(tensor)] = nan or 0, sum(number or 0 for number in infinities)
    return counts


def _counts_of_tensors(
    tensors: Iterable[DumpedTensor],
    damaged: list[tuple[str, FormatError]],
    thread_count: int | None,
    progress: Callable[[int, int], None] | None,
) -> _Counts:
    """Each distinct tensor once, on all cores."""
    distinct = {_key(tensor): tensor for tensor in tensors}
    total, done = sum(tensor.size_bytes for tensor in distinct.values()), 0
    counts: _Counts = {}
    problems: dict[_Key, FormatError] = {}
    pool = ThreadPoolExecutor(thread_count or len(os.sched_getaffinity(0)), "msdump-nan")
    try:
        futures = {pool.submit(_count, tensor): key for key, tensor in distinct.items()}
        for future in as_completed(futures):
            key, result = futures[future], future.result()
            if isinstance(result, FormatError):
                problems[key] = result
            else:
                counts[key] = result
            done += distinct[key].size_bytes
            if progress is not None:
                progress(done, total)
    finally:
        pool.shutdown(cancel_futures=True)
    damaged += [(tensor.path, problems[key]) for key, tensor in distinct.items() if key in problems]
    return counts


def _count(tensor: DumpedTensor) -> tuple[int | None, int | None] | FormatError:
    if tensor.dtype not in dtypes.BY_NAME or dtypes.dtype(tensor.dtype).kind not in ("float", "complex", "other"):
        return 0, 0
    try:
        array = tensor.load()
        name = dtypes.dtype_from_numpy(array.dtype).name
        if not has_non_finite(array, name):
            return 0, 0
        numbers = statistics(array, name)
        return numbers.nan, numbers.negative_inf + numbers.positive_inf
    except DtypeError:
        return None, None
    except FormatError as error:
        return error
    except OSError as error:
        return FormatError(f"{tensor.path}: expected to read it, got: {error.strerror or error}.")


# -- one step ------------------------------------------------------------------------------------------------------


def _bad(
    operator: Operator,
    io: str,
    counts: _Counts,
    moment: Moment | None = None,
    unset: UnsetTensors | None = None,
) -> tuple[BadTensor, ...]:
    found = []
    # What an operator has overwritten says nothing of what it read.
    blind = () if moment is None else moment.blind_slots(operator)
    for slot, tensor in operator.tensors(io).items():
        if slot.number in blind or (unset is not None and unset.has(operator, io, slot)):
            continue
        nan, inf = counts.get(_key(tensor), (0, 0))
        if nan != 0 or inf != 0:
            found.append(BadTensor(io, slot, tensor, nan, inf))
    return tuple(found)


def _look(step: Step, counts: _Counts, graphs: GraphFiles, unset: UnsetTensors) -> NonFinite | None:
    operators = [operator for operator in step.operators if not operator.is_parameter]
    moment = Moment(step, graphs.of(step.key))
    bad = {
        id(one): (_bad(one, INPUT, counts, moment, unset), _bad(one, OUTPUT, counts, None, unset)) for one in operators
    }
    parameters = tuple(o.op_name for o in step.operators if o.is_parameter and _bad(o, OUTPUT, counts))
    place = next((at for at, operator in enumerate(operators) if any(bad[id(operator)])), None)
    if place is None:
        return None if not parameters else _only_parameters(step, parameters, counts)
    operator = operators[place]
    inputs, outputs = bad[id(operator)]
    how = CAME_IN if inputs else MADE if operator.inputs or _has_no_inputs(operator, step, graphs) else UNKNOWN
    node = graphs.node(step.key, operator)
    parameter = None
    if inputs and node is not None and inputs[0].slot.number < len(node.inputs):
        origin = node.inputs[inputs[0].slot.number]
        parameter = origin.name if origin is not None and origin.slot is None else None
    later = [other for other in operators[place + 1 :] if bad[id(other)][0]]
    fresh = [other for other in operators[place + 1 :] if bad[id(other)][1] and not bad[id(other)][0]]
    return NonFinite(
        step.key,
        operator,
        how,
        None if node is None else node.own_line,
        inputs or outputs,
        parameter,
        tuple(o for o in later if bad[id(o)][1] or not o.outputs),
        tuple(fresh),
        tuple(o for o in later if o.outputs and not bad[id(o)][1]),
        parameters,
    )


def _has_no_inputs(operator: Operator, step: Step, graphs: GraphFiles) -> bool:
    """True when the graph file says that an operator without dumped inputs has none."""
    node = graphs.node(step.key, operator)
    return node is not None and not node.inputs


def _only_parameters(
    step: Step, names: tuple[str, ...], counts: Mapping[_Key, tuple[int | None, int | None]]
) -> NonFinite:
    """A step of which only parameters were dumped."""
    first = next(o for o in step.operators if o.is_parameter and _bad(o, OUTPUT, dict(counts)))
    return NonFinite(
        step.key, first, UNKNOWN, None, _bad(first, OUTPUT, dict(counts)), first.op_name, (), (), (), names
    )
