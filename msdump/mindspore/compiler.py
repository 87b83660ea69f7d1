"""Compiler: a call of a cell or function, traced into a graph, finished, and run; once per input signature."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING, Any

from msdump.engine import opening
from msdump.errors import GraphError, TracedValueError, UncompilableError
from msdump.graph.graph import Graph, Value
from msdump.mindspore.common.parameter import Parameter, hook_changes
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.context import PYNATIVE_MODE, STRICT, context_jit_level, get_context
from msdump.mindspore.control.functions import rewrite_asker, rewriting
from msdump.mindspore.outside_names import written_names
from msdump.mindspore.printing import printing_in_graph
from msdump.mindspore.program.compile import finish, finish_program
from msdump.mindspore.program.executor import Executor
from msdump.mindspore.program.flow_executor import FlowExecutor
from msdump.mindspore.program.regions import has_regions
from msdump.mindspore.saved_graphs import SavedGraphs
from msdump.mindspore.sources import mark_root
from msdump.mindspore.structure import Structure, flatten, unflatten, without_iterators
from msdump.mindspore.tracer import TracedCell, Tracer
from msdump.process import sessions

if TYPE_CHECKING:
    from msdump.engine.graphs import GraphSession
    from msdump.graph.run import ObservedGraph

log = logging.getLogger("msdump")


@dataclass(frozen=True)
class CompiledGraph:
    """A graph that can run, and how its outputs become what the function returned.

    cells   every cell that took part with the flags it was traced with: other flags need another graph
    draw    counter that random operators read, None when there are none
    writes  cells and names of attributes that a run sets; their values come behind what the function returned
    lock    held while the graph runs: its memory, and the observers of the process, take one run at a time
    """

    executor: Executor | FlowExecutor
    outputs: Structure
    cells: tuple[tuple[TracedCell, tuple[object, ...]], ...]
    session: GraphSession | None
    draw: Parameter | None = None
    writes: tuple[tuple[object, str], ...] = ()
    lock: AbstractContextManager[object] = field(default_factory=threading.RLock)

    @property
    def is_current(self) -> bool:
        is_watched = opening.is_current(self.session)
        return is_watched and all(cell.compile_flags() == flags for cell, flags in self.cells)

    def run(self, leaves: Sequence[Tensor]) -> Any:
        """Run once on the tensors of a call."""
        with self.lock:
            iteration = self.session.next_iteration() if self.session is not None else 0
            if self.draw is not None:
                self.draw.memory.array += 1
            is_observed = self.session is not None and not self.session.is_foreign
            arrays = self.executor.run([leaf.array for leaf in leaves], iteration, is_observed)
        result, values = unflatten(self.outputs, iter([Tensor.of_array(array) for array in arrays]))
        for (cell, name), value in zip(self.writes, values, strict=True):
            object.__setattr__(cell, name, value)
        return result


@dataclass(frozen=True)
class Uncompiled:
    """A call that no graph can hold, which therefore runs operator by operator.   cells: as of CompiledGraph"""

    cells: tuple[tuple[TracedCell, tuple[object, ...]], ...]
    session: None = None

    @property
    def is_current(self) -> bool:
        return all(cell.compile_flags() == flags for cell, flags in self.cells)


@dataclass
class GraphCache:
    """The graphs of one cell or function, by input signature; of its PyNative steps that were dumped, by structure."""

    by_signature: dict[Hashable, list[CompiledGraph | Uncompiled]] = field(default_factory=dict)
    steps: dict[Hashable, ObservedGraph] = field(default_factory=dict)

    def find(self, signature: Hashable) -> CompiledGraph | Uncompiled | None:
        return next((graph for graph in self.by_signature.get(signature, ()) if graph.is_current), None)

    def add(self, signature: Hashable, graph: CompiledGraph | Uncompiled) -> None:
        graphs = self.by_signature.get(signature, [])
        # What was compiled for a dump that has ended runs no more.
        lasting = [other for other in graphs if other.session is None or not other.session.has_ended]
        self.by_signature[signature] = [*lasting, graph]


_next_graph_id = 0


def take_graph_id(session: GraphSession | None) -> int:
    """The number of the next graph of this process, which no other front end has in the dump."""
    global _next_graph_id
    number = _next_graph_id if session is None else session.take_graph_id(_next_graph_id)
    _next_graph_id = number + 1
    return number


def open_session(jit_level: str = "") -> GraphSession | None:
    """The session of the process, None when Dump is off. `jit_level`: of a cell or function, before the context's.

    Raises: ConfigError.
    """
    is_pynative = get_context("mode") == PYNATIVE_MODE
    level = jit_level or context_jit_level()
    return opening.open_mindspore(get_context("device_target"), get_context("device_id"), is_pynative, level)


def compiled(
    function: Callable[..., Any], cache: GraphCache, args: Sequence[Any], kwargs: dict[str, Any],
    cell: TracedCell | None = None, jit_level: str = "",
) -> tuple[CompiledGraph | Uncompiled, list[Tensor]]:  # fmt: skip
    """The graph of `function(*args, **kwargs)`, and the tensors of this call. `cell`: the root whose `construct` it is.

    Raises: UncompilableError where the syntax level is STRICT.
    """
    leaves: list[Tensor] = []
    structure = flatten((tuple(args), kwargs), leaves)
    signature = (structure, get_context("reserve_class_name_in_scope"), hook_changes())
    graph = cache.find(signature)
    if graph is None:
        with sessions.lock:
            # Another thread may have compiled it in the meantime.
            graph = cache.find(signature)
            if graph is None:
                graph = _compiled(function, args, kwargs, cell, jit_level)
                cache.add(signature, graph)
    return graph, leaves


def _compiled(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], cell: TracedCell | None, jit_level: str
) -> CompiledGraph | Uncompiled:
    try:
        return _compile(function, args, kwargs, cell, jit_level)
    except UncompilableError as error:
        if get_context("jit_syntax_level") == STRICT:
            raise
        _warn_once(f"A call runs operator by operator, as no graph can hold it: {error}")
        return Uncompiled(error.cells)


_warned: set[str] = set()
sessions.call_at_reset(_warned.clear)


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        log.warning(text)


def _compile(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], cell: TracedCell | None, jit_level: str
) -> CompiledGraph:
    session = open_session(jit_level)
    saved = SavedGraphs.from_settings()
    with printing_in_graph():
        tracer, result = _traced(function, args, kwargs, cell)
    graph = tracer.graph
    leaves: list[Tensor] = []
    writes = tuple((cell, name) for (_, name), cell in tracer.writes.items())
    written = tuple(getattr(cell, name) for cell, name in writes)
    outputs = flatten((without_parameters(result, tracer), written), leaves)
    graph.outputs = [tracer.value_of(leaf) for leaf in leaves]
    order_parameters(graph, tracer, cell)
    graph.graph_id = _next_graph_id
    graph.name = f"kernel_graph_{graph.graph_id}"
    saved.save_traced(graph)
    executor = _executor(graph, tracer, session, saved)
    lock = threading.RLock() if session is None else sessions.lock
    return CompiledGraph(executor, outputs, tuple(tracer.cells.values()), session, tracer.draw_counter, writes, lock)


def traced_program(
    function: Callable[..., Any], args: Sequence[Any], cell: TracedCell | None = None
) -> tuple[Graph, Structure]:
    """The program of a call as the script builds it, before any pass, and what its outputs become.

    Raises: ValueError for one that sets attributes of a cell.
    """
    with printing_in_graph():
        tracer, result = _traced(function, args, {}, cell)
    if tracer.writes:
        names = ", ".join(name for _, name in tracer.writes)
        raise ValueError(f"expected a program that sets no attribute, got one that sets {names}.")
    leaves: list[Tensor] = []
    outputs = flatten(without_parameters(result, tracer), leaves)
    tracer.graph.outputs = [tracer.value_of(leaf) for leaf in leaves]
    return tracer.graph, outputs


def _traced(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], cell: TracedCell | None
) -> tuple[Tracer, Any]:
    """The program and what the function returned. Functions that ask a tensor for its truth are traced once more,
    rewritten so that both branches are traced."""
    joined: list[CodeType] = []
    name = written_names(function, cell)
    if name:
        raise UncompilableError(f"{name}: expected names of its own in a graph, got one outside that it sets.")
    while True:
        graph = Graph(is_dynamic=cell is not None and cell.has_open_inputs)
        tracer = Tracer(graph, has_cell_scopes=cell is not None)
        try:
            with rewriting():
                result = trace(tracer, function, *graph_inputs(tracer, function, args, kwargs), cell)
            _check_followed(tracer)
            return tracer, result
        except TracedValueError as error:
            tracer.undo_writes()
            try:
                rewrite_asker(error, joined)
            except GraphError as refused:
                raise _uncompilable(tracer, refused) from refused
        except UncompilableError:
            raise
        except Exception as error:
            tracer.undo_writes()
            _check_followed(tracer)
            if not isinstance(error, NameError):
                raise
            reasons = (reason for name, reason in tracer.unbound.items() if f"'{name}'" in str(error))
            reason = next(reasons, None)
            if reason is None:
                raise
            raise reason from error


def _check_followed(tracer: Tracer) -> None:
    """Raises: UncompilableError when the script saw something in the place of a value."""
    if tracer.refusal is None and tracer.has_open_texts:
        tracer.refusal = GraphError("expected texts of tensors in print alone, got one that the program keeps.")
    if tracer.refusal is not None:
        tracer.undo_writes()
        raise _uncompilable(tracer, tracer.refusal) from tracer.refusal


def _uncompilable(tracer: Tracer, reason: Exception) -> UncompilableError:
    error = UncompilableError(str(reason) or type(reason).__name__)
    error.cells = tuple(tracer.cells.values())
    return error


def _executor(
    graph: Graph, tracer: Tracer, session: GraphSession | None, saved: SavedGraphs
) -> Executor | FlowExecutor:
    """Finish the program and make it known to observers, as one graph, or as several where it has control flow."""
    observers = session.observers if session is not None else ()
    target = get_context("device_target")
    if not has_regions(graph.nodes):
        finish(graph, target)
        _announce([graph], session, saved)
        return Executor(graph, observers)
    program = finish_program(graph, target)
    _announce([piece.graph for piece in program.pieces()], session, saved)
    return FlowExecutor(program, observers, None if tracer.draw_counter is None else tracer.draw_counter.memory)


def _announce(graphs: Sequence[Graph], session: GraphSession | None, saved: SavedGraphs) -> None:
    for graph in graphs:
        graph.graph_id = take_graph_id(session)
        graph.name = f"kernel_graph_{graph.graph_id}"
        saved.save_compiled(graph)
    announce_marks(session, *graphs)


def announce_marks(session: GraphSession | None, *graphs: Graph) -> None:
    """Say when `dump_mode` 2 will find nothing in the graphs of a program."""
    is_marked = any(node.is_marked for graph in graphs for node in graph.nodes)
    if session is not None and session.plan.which.takes_marked and not is_marked:
        name = graphs[0].name
        log.warning("dump_mode 2: set_dump marked no operator of %s, so nothing of it will be dumped.", name)


def trace(
    tracer: Tracer, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], cell: TracedCell | None
) -> Any:
    """The frame of this function is where source traces begin."""
    with ExitStack() as stack:
        stack.enter_context(tracer.active())
        if cell is not None:
            stack.enter_context(cell.entered(tracer))
            args = cell._lowered(args)
        return without_iterators(function(*args, **kwargs))


mark_root(trace.__code__)


def graph_inputs(
    tracer: Tracer, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments with every tensor replaced by a graph input."""
    names = argument_names(function, len(args))
    inner = [_input_of(tracer, arg, name) for arg, name in zip(args, names, strict=True)]
    return inner, {name: _input_of(tracer, arg, name) for name, arg in kwargs.items()}


def argument_names(function: Callable[..., Any], count: int) -> list[str]:
    """Names of graph inputs.   Source: MindSpore: argument names; `inputs0`, `inputs1` for `*inputs`."""
    names: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            names.extend(f"{parameter.name}{index}" for index in range(count - len(names)))
        elif parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    names = names[:count]
    # More arguments than the function takes: it says so itself when it is called.
    return names + [f"argument{index}" for index in range(len(names), count)]


def _input_of(tracer: Tracer, arg: Any, name: str) -> Any:
    leaves: list[Tensor] = []
    structure = flatten(arg, leaves)
    if structure.kind == "tensor":
        return tracer.add_input(name, leaves[0])
    inputs = [tracer.add_input(f"{name}{index}", leaf) for index, leaf in enumerate(leaves)]
    return unflatten(structure, iter(inputs))


def without_parameters(thing: Any, tracer: Tracer) -> Any:
    """A parameter that is returned is returned by value, as it stands when the graph ends."""
    if isinstance(thing, Parameter):
        return Tensor.of_array(thing.array.copy()) if tracer.is_recording else tracer.tensor_of(tracer.value_of(thing))
    if isinstance(thing, tuple | list):
        items = [without_parameters(item, tracer) for item in thing]
        return items if isinstance(thing, list) else tuple(items)
    if isinstance(thing, dict):
        return {key: without_parameters(item, tracer) for key, item in thing.items()}
    return thing


def _trainable(cell: TracedCell | None) -> list[Parameter]:
    return [] if cell is None else list(cell.trainable_params())


def order_parameters(graph: Graph, tracer: Tracer, cell: TracedCell | None) -> None:
    """Fix the order of graph inputs in IR and dump: weights backwards, data inputs, then the rest by first use.

    Source: IR of a real LeNet-5 run.
    """
    weights = tracer.weights or _trainable(cell)
    by_memory = {id(value.parameter): value for value in graph.parameters}
    order = [by_memory[id(weight.memory)] for weight in reversed(weights) if id(weight.memory) in by_memory]
    order.extend(graph.inputs)
    order += [*_parameters_by_use(graph), *graph.parameters]
    graph.parameter_order = list({value.id: value for value in order}.values())


def _parameters_by_use(graph: Graph) -> Iterator[Value]:
    for node in graph.nodes:
        for value in node.inputs:
            if value.parameter is not None:
                yield value
