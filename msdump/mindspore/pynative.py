"""PyNative steps: a call whose operators run at once, handed to the dump as a graph when it has ended."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msdump.engine import opening
from msdump.graph.graph import Graph, Value
from msdump.graph.run import Calls, ObservedGraph
from msdump.mindspore import iterations
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.compiler import (
    GraphCache,
    Uncompiled,
    announce_marks,
    argument_names,
    compiled,
    graph_inputs,
    open_session,
    order_parameters,
    take_graph_id,
    trace,
    without_parameters,
)
from msdump.mindspore.context import get_context
from msdump.mindspore.iterations import Iteration
from msdump.mindspore.outside import is_in_step
from msdump.mindspore.program.compile import ASCEND
from msdump.mindspore.program.device_formats import assign_device_formats
from msdump.mindspore.recorder import StepRecorder
from msdump.mindspore.structure import flatten
from msdump.mindspore.tracer import TracedCell, Tracer
from msdump.process import sessions
from msdump.tensors.arrays import Array
from msdump.tensors.records import OpInfo

if TYPE_CHECKING:
    from msdump.engine.graphs import GraphSession

# What observers are told of a step that none of them will see.
_UNSEEN = Graph(name="unseen", graph_id=-1)


def step_session(jit_level: str = "") -> GraphSession | None:
    """The session that watches a PyNative call that begins now; None when Dump is off or the call is part of a step.

    Raises: ConfigError at the first call of the process.
    """
    session = opening.current() if opening.is_decided() else open_session(jit_level)
    return None if session is None or is_in_step.get() else session


def run_step(
    session: GraphSession, function: Callable[..., Any], cache: GraphCache, args: Sequence[Any], kwargs: dict[str, Any],
    cell: TracedCell | None = None, stands_for_graph: bool = False, weights: Iterable[Parameter] = (),
) -> Any:  # fmt: skip
    """`function(*args, **kwargs)` as an iteration, or a part of one. `cell` is the root whose `construct` it is.

    weights  with respect to which it takes gradients, where that is known before

    A step that is dumped gives the same results as one that is not. When it raises, what ran until then is handed
    over, and the exception goes on.
    """
    token = is_in_step.set(True)
    try:
        if stands_for_graph:
            iteration = Iteration(session.next_iteration())
        else:
            iteration = iterations.begin(session, cache, weights if cell is None else cell.get_parameters())
        if session.plan.watches(iteration.number):
            return _run_watched(session, iteration, function, cache, args, kwargs, cell, stands_for_graph)
        with sessions.lock:
            for observer in session.observers:
                observer.on_iteration_begin(_UNSEEN, iteration.number)
        if stands_for_graph:
            return run_recorded(function, args, kwargs, cell, True)
        if cell is None:
            return function(*args, **kwargs)
        with cell.entered(None):
            return function(*cell._lowered(args), **kwargs)
    finally:
        is_in_step.reset(token)


def call_in_graph_mode(
    function: Callable[..., Any], cache: GraphCache, args: Sequence[Any], kwargs: dict[str, Any],
    cell: TracedCell | None = None, jit_level: str = "",
) -> Any:  # fmt: skip
    """Run `function(*args, **kwargs)` as a graph, or operator by operator where no graph can hold it."""
    graph, leaves = compiled(function, cache, args, kwargs, cell, jit_level)
    if not isinstance(graph, Uncompiled):
        return graph.run(leaves)
    session = step_session(jit_level)
    if session is None:
        return run_recorded(function, args, kwargs, cell, True)
    return run_step(session, function, cache, args, kwargs, cell, True)


def run_recorded(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], cell: TracedCell | None,
    stands_for_graph: bool = False,
) -> Any:  # fmt: skip
    """`function(*args, **kwargs)` with all operators remembered, so that gradients of what has run can be taken."""
    graph = Graph(name="recording")
    tracer = Tracer(graph, True, cell is not None, stands_for_graph=stands_for_graph)
    result = _run_in(tracer, function, args, kwargs, cell)
    leaves: list[Tensor] = []
    flatten(result, leaves)
    for leaf in leaves:
        leaf.detach()
    return result


def _run_watched(
    session: GraphSession, iteration: Iteration, function: Callable[..., Any], cache: GraphCache, args: Sequence[Any],
    kwargs: dict[str, Any], cell: TracedCell | None, stands_for_graph: bool,
) -> Any:  # fmt: skip
    recorder = StepRecorder()
    tracer = Tracer(Graph(), True, cell is not None, recorder, stands_for_graph)
    leaves: list[Tensor] = []
    try:
        result = _run_in(tracer, function, args, kwargs, cell)
    except Exception as error:
        with sessions.lock:
            seen = _observed(session, iteration, cache, tracer, recorder, cell, leaves)
            _hand_over(seen, tracer, recorder, iteration.number, error)
        raise
    flatten(result, leaves)
    # Only here: a step that waits for a step of another thread must not keep it from ending.
    with sessions.lock:
        seen = _observed(session, iteration, cache, tracer, recorder, cell, leaves)
        _hand_over(seen, tracer, recorder, iteration.number, None)
    for leaf in leaves:
        leaf.detach()
    return result


def _run_in(
    tracer: Tracer, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], cell: TracedCell | None
) -> Any:
    if not tracer.stands_for_graph:
        _bind_inputs(tracer, function, args, kwargs)
        return trace(tracer, function, args, kwargs, cell)
    # As in a graph: what the program writes to its arguments stays its own.
    inputs, keywords = graph_inputs(tracer, function, args, kwargs)
    return without_parameters(trace(tracer, function, inputs, keywords, cell), tracer)


def _bind_inputs(tracer: Tracer, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    names = argument_names(function, len(args))
    for name, arg in (*zip(names, args, strict=True), *kwargs.items()):
        leaves: list[Tensor] = []
        structure = flatten(arg, leaves)
        for index, leaf in enumerate(leaves):
            tracer.bind_input(name if structure.kind == "tensor" else f"{name}{index}", leaf)


def _observed(
    session: GraphSession, iteration: Iteration, cache: GraphCache, tracer: Tracer, recorder: StepRecorder,
    cell: TracedCell | None, results: Sequence[Tensor],
) -> ObservedGraph:  # fmt: skip
    """The graph of what was recorded, which observers get to know when it is new. Steps of equal structure share it.

    Edges:  where it runs again in its iteration, as for the next part of a batch, it is another graph: the files of
            one graph and iteration are those of one run.
    """
    graph = _finished(tracer, recorder, cell, results)
    structure = (_structure(graph), 0)
    while (seen := cache.steps.get(structure)) is not None and seen.graph.graph_id in iteration.graphs:
        structure = (structure[0], structure[1] + 1)
    if seen is None or tuple(seen.masks) != session.observers:
        graph.graph_id = take_graph_id(session)
        graph.name = f"kernel_graph_{graph.graph_id}"
        if get_context("device_target") == ASCEND:
            assign_device_formats(graph)
        announce_marks(session, graph)
        seen = cache.steps[structure] = ObservedGraph(graph, session.observers)
    iteration.graphs.add(seen.graph.graph_id)
    return seen


def _finished(tracer: Tracer, recorder: StepRecorder, cell: TracedCell | None, results: Sequence[Tensor]) -> Graph:
    """The recorded graph with what ran, in the order in which it ran."""
    graph = tracer.graph
    graph.nodes = [launch.node for launch in recorder.launches]
    graph.outputs = [value for value in map(tracer.known_value, results) if value is not None]
    used = {value.id for node in graph.nodes for value in node.inputs} | {value.id for value in graph.outputs}
    graph.constants = [value for value in graph.constants if value.id in used]
    graph.parameters = [value for value in graph.parameters if value.id in used]
    graph.number()
    order_parameters(graph, tracer, cell)
    graph.is_dynamic = cell is not None and cell.has_open_inputs
    return graph


def _structure(graph: Graph) -> Hashable:
    """What must be equal for two recordings to be the same graph. Attributes may differ: seeds and positions do."""
    return (
        graph.is_dynamic,
        tuple((value.id, value.name, value.type) for value in graph.inputs),
        tuple((value.id, id(value.parameter)) for value in graph.parameters),
        tuple((value.id, value.type) for value in graph.constants),
        tuple(
            (
                node.op_type,
                node.scope,
                node.has_mark,
                node.forward.id if node.forward else None,
                tuple(value.id for value in node.inputs),
                tuple((value.id, value.type) for value in node.outputs),
            )
            for node in graph.nodes
        ),
        tuple(value.id for value in graph.outputs),
    )


def _hand_over(
    seen: ObservedGraph, tracer: Tracer, recorder: StepRecorder, iteration: int, error: Exception | None
) -> None:
    """Tell the observers of the step as if it ran now: they see every tensor as it was then."""
    run = seen.begin(iteration)
    if run is None:
        return
    calls = _RecordedCalls(seen.ops, tracer, recorder, error)
    if error is None:
        run.run(calls)
        return
    trace = error.__traceback__
    try:
        run.launch_all(calls)
    except Exception as raised:
        if raised is not error:
            raise
        error.__traceback__ = trace


class _RecordedCalls(Calls):
    """A step that has run already.   error: what ended it early; an operator that ran then raises it again."""

    def __init__(self, ops: Sequence[OpInfo], tracer: Tracer, recorder: StepRecorder, error: Exception | None) -> None:
        launches = recorder.launches
        infos = iter(ops)
        self.ops = [next(infos) if launch.node.definition.is_kernel else None for launch in launches]
        self._tracer = tracer
        self._recorder = recorder
        self._error = error
        self._failed = len(launches) - 1 if recorder.is_running else -1

    def launch(self, number: int) -> None:
        if number == self._failed and self._error is not None:
            raise self._error

    def inputs(self, number: int) -> Sequence[Array]:
        return self._recorder.read(number)

    def outputs(self, number: int) -> Sequence[Array]:
        return self._recorder.written(number)

    def failed_outputs(self, number: int) -> Sequence[Array]:
        return self._recorder.written(number)

    def array(self, value: Value) -> Array:
        """Memory of a parameter as the step left it, of an input as the step got it."""
        if value.parameter is not None:
            return value.parameter.array
        return self._recorder.at_start(self._tracer.arrays[value.id])
