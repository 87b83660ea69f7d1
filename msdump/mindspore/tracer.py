"""Tracer: the graph under construction while a `construct` or a function runs, with the scope of the moment.

A recording tracer (PyNative) also computes every operator at once, so that tensors stay concrete.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from msdump.errors import GraphError, KernelNotFoundError, MsdumpError
from msdump.graph.graph import Graph, Node, Value
from msdump.graph.primitive import Primitive, definition_of
from msdump.graph.types import SourceLine
from msdump.mindspore import eager
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor, active_tracer
from msdump.mindspore.context import get_context
from msdump.mindspore.sources import source_lines, user_line
from msdump.mindspore.structure import flatten
from msdump.tensors.arrays import Array

if TYPE_CHECKING:
    from msdump.mindspore.recorder import StepRecorder

# Flag of a cell and attribute of an operator: what `set_dump` said of it. A cell of which it said nothing goes with
# the cell that calls it.
MARK = "dump"


class TracedCell(Protocol):
    """What the trace of a network needs of a Cell."""

    cls_name: str
    scope_name: str

    @property
    def has_open_inputs(self) -> bool: ...

    @property
    def takes_gradients(self) -> bool: ...

    def compile_flags(self) -> tuple[object, ...]: ...

    def get_flags(self) -> dict[str, Any]: ...

    def path_to(self, cell: Any) -> list[tuple[str, Any]]: ...

    def entered(self, tracer: Tracer | None) -> AbstractContextManager[None]: ...

    def _lowered(self, args: Sequence[Any]) -> Sequence[Any]: ...

    def get_parameters(self) -> Iterator[Parameter]: ...

    def trainable_params(self) -> list[Parameter]: ...


def current_tracer() -> Tracer | None:
    """The tracer of this thread, None when operators run at once."""
    return active_tracer.get()


class Tracer:
    """Owned by one compilation (or one gradient call or dumped step in PyNative); lives on one thread.

    is_recording      operators run at once and are remembered, instead of only being remembered
    stands_for_graph  recording only: of a call that no graph can hold; operators alone change tensors
    recorder          keeps what operators read and wrote, for the dump of a PyNative step; None without an observer
    has_cell_scopes   False under `jit` and `value_and_grad`, where MindSpore knows no cells
    arrays            recording only: value id -> what it holds
    cells             every cell that took part, with the flags it had
    weights           parameters with respect to which a gradient was taken
    gradient_hooks    value id -> functions that see the gradient of that value, each in a tuple
    expects_gradients  whether gradients of calls that have ended may be taken; in a recording, which then binds, only
                      where a cell is known to do so
    writes            (identity, name) -> cell whose attribute of that name the program sets
    draw_counter      what random operators read so that every run draws anew; None when there are none
    refusal           the first thing that Python code needed and that only a run of the graph knows, None for none
    unbound           variables without a value after a branch or loop of the graph -> the error where one is read
    """

    def __init__(
        self, graph: Graph, is_recording: bool = False, has_cell_scopes: bool = True,
        recorder: StepRecorder | None = None, stands_for_graph: bool = False,
    ) -> None:  # fmt: skip
        self.graph = self._root = graph
        self.is_recording = is_recording
        self.recorder = recorder
        self.has_cell_scopes = has_cell_scopes
        self.stands_for_graph = stands_for_graph
        self.arrays: dict[int, Array] = {}
        self.cells: dict[int, tuple[TracedCell, tuple[object, ...]]] = {}
        self.weights: list[Parameter] = []
        self.draw_counter: Parameter | None = None
        self.unbound: dict[str, Exception] = {}
        self.writes: dict[tuple[int, str], Any] = {}
        self.refusal: Exception | None = None
        self._texts: Counter[int] = Counter()
        self._replaced: dict[tuple[int, str], Any] = {}
        self.gradient_hooks: dict[int, list[tuple[Callable[[Tensor], Any]]]] = {}
        self.expects_gradients = not is_recording
        self._calls: dict[Hashable, tuple[Any, Any, int]] = {}
        self._owner = object()
        self._path: list[TracedCell] = []
        self._scopes = ["Default"]
        self._marks = [False]
        self._stage = "forward"
        self._forward: Node | None = None
        self._gradients = 0
        self._value_by_tensor: dict[int, tuple[Tensor, Value]] = {}
        self._program = graph
        # Regions that are being traced, and the region of each value that one has made.
        self._open: list[Graph] = []
        self._region_of: dict[int, Graph] = {}

    @contextmanager
    def active(self) -> Iterator[Tracer]:
        """While this is open, operators of this thread go here."""
        token = active_tracer.set(self)
        try:
            yield self
        finally:
            active_tracer.reset(token)

    @contextmanager
    def inside(self, cell: TracedCell) -> Iterator[None]:
        """While this is open, operators belong to `cell`."""
        self.cells.setdefault(id(cell), (cell, cell.compile_flags()))
        scope = self._scopes[-1]
        if self._path and self.has_cell_scopes:
            scope = "/".join([scope, *_components(self._path[-1], cell)])
        self._path.append(cell)
        self._scopes.append(scope)
        self._marks.append(bool(cell.get_flags().get(MARK, self._marks[-1])))
        try:
            yield
        finally:
            self._path.pop()
            self._scopes.pop()
            self._marks.pop()

    @contextmanager
    def region(self, region: Graph | None = None) -> Iterator[Graph]:
        """While this is open, operators go to a region of the program, a new one unless it is given."""
        outer, self.graph = self.graph, region or self.graph.part()
        self._open.append(self.graph)
        try:
            yield self.graph
        except (MsdumpError, NameError):
            raise
        except Exception as error:
            # Only the run knows whether this branch is taken, and the error is raised.
            text = f"{user_line() or self.scope}: expected branches that end, got {type(error).__name__} from one."
            self.note_refusal(GraphError(text))
            raise
        finally:
            inner = self._open.pop()
            self.graph = outer
            values = (*inner.inputs, *(value for node in inner.nodes for value in node.outputs))
            self._region_of.update((value.id, inner) for value in values)

    @contextmanager
    def marking(self, is_marked: bool) -> Iterator[None]:
        """While this is open, operators are marked, or not, whatever their cell says."""
        self._marks.append(is_marked)
        try:
            yield
        finally:
            self._marks.pop()

    @contextmanager
    def updating(self) -> Iterator[None]:
        """While this is open, operators belong to the optimizer's update."""
        before, self._stage = self._stage, "update"
        try:
            yield
        finally:
            self._stage = before

    @contextmanager
    def backward_of(self, node: Node) -> Iterator[None]:
        """While this is open, operators are the gradient of `node`, in its scope.

        Source: MindSpore: operators of a cell's `bprop` bear the scope of the cell.
        """
        before = self._stage, self._forward
        self._stage, self._forward = "backward", node
        self._scopes.append(node.scope)
        try:
            yield
        finally:
            self._stage, self._forward = before
            self._scopes.pop()

    @contextmanager
    def differentiating(self) -> Iterator[None]:
        """While this is open, a gradient of what runs is wanted."""
        self._gradients += 1
        try:
            yield
        finally:
            self._gradients -= 1

    @property
    def is_differentiating(self) -> bool:
        """Is a gradient of what runs wanted?"""
        return self._gradients > 0

    @property
    def is_in_subgraph(self) -> bool:
        """Is a branch or the body of a loop being traced?"""
        return self.graph is not self._root

    @property
    def is_binding(self) -> bool:
        """Whether only operators may touch tensors; a PyNative step that is merely watched leaves all freedom."""
        return self.recorder is None or self.stands_for_graph or self._gradients > 0

    @property
    def scope(self) -> str:
        return self._scopes[-1]

    @property
    def is_marking(self) -> bool:
        """Whether the script marked what runs now."""
        return self._marks[-1]

    def position(self) -> tuple[str, tuple[SourceLine, ...], str]:
        """Scope, source and stage of an operator that would be added now."""
        return self.scope, source_lines(), self._stage

    def add(self, primitive: Primitive, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Add one operator; its outputs.   Raises: GraphError with the user's line when operands do not fit."""
        values = [self.value_of(tensor) for tensor in inputs]
        lines = () if self.is_recording and self.recorder is None else source_lines()
        try:
            if (primitive.definition or definition_of(primitive.op_type)).compute is not None:
                return self._add_computed(primitive, values, lines)
            node = self.graph.add_node(primitive, values, self.scope, lines, self._forward, self._stage)
        except KernelNotFoundError as error:
            place = f"{lines[-1]}: " if lines else ""
            raise KernelNotFoundError(f"{place}{error}") from error
        except GraphError as error:
            if lines:
                raise
            raise type(error)(f"{user_line()}: {error}") from error
        node.has_mark = self._marks[-1]
        if self.is_recording:
            self.run([node])
        return tuple(self.tensor_of(value) for value in node.outputs)

    def _add_computed(
        self, primitive: Primitive, values: Sequence[Value], lines: Sequence[SourceLine]
    ) -> tuple[Tensor, ...]:
        """Add and run one operator whose results are as large as the data decide."""
        if not self.is_recording:
            refused = GraphError(
                f"{user_line() or self.scope}: {primitive.op_type}: expected shapes that are known while the graph is "
                "traced, got a result that is as large as the data decide. Run with set_context(mode=PYNATIVE_MODE)."
            )
            self.note_refusal(refused)
            raise refused
        arrays = [self._array_of(value) for value in values]
        results = eager.run(primitive, arrays)
        types = [eager.type_of(array) for array in results]
        node = self.graph.add_foreign_node(primitive, values, types, self.scope, lines, stage=self._stage)
        node.has_mark = self._marks[-1]
        if self.recorder is not None:
            with self.recorder.launching(node, arrays, results):
                pass
        self.arrays.update((value.id, array) for value, array in zip(node.outputs, results, strict=True))
        return tuple(self.tensor_of(value) for value in node.outputs)

    def run(self, nodes: Sequence[Node]) -> None:
        """Compute nodes that were added to a recording."""
        for node in nodes:
            arrays = [self._array_of(value) for value in node.inputs]
            results = eager.allocated(node.primitive, arrays, [value.type for value in node.outputs])
            if self.recorder is None:
                eager.launch(node.primitive, arrays, results)
            else:
                with self.recorder.launching(node, arrays, results):
                    eager.launch(node.primitive, arrays, results)
            self.arrays.update((value.id, array) for value, array in zip(node.outputs, results, strict=True))

    def remember_call(self, cell: Any, args: Sequence[Any], kwargs: dict[str, Any], outputs: Any) -> None:
        """A cell whose gradient may be taken has run; its operators need not run again for that."""
        self._calls[self._call_key(cell, args, kwargs)] = (cell, outputs, len(self.graph.nodes))

    def recall(self, cell: Any, args: Sequence[Any]) -> Any:
        """What this cell gave for these arguments, None unless it ran and nothing was written since then."""
        known = self._calls.get(self._call_key(cell, args, {}))
        if known is None or any(node.definition.mutates for node in self.graph.nodes[known[2] :]):
            return None
        return known[1]

    def _call_key(self, cell: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Hashable:
        leaves: list[Tensor] = []
        structure = flatten((tuple(args), kwargs), leaves)
        return id(cell), structure, tuple(self.value_of(leaf).id for leaf in leaves)

    def catch_up(self, values: Sequence[Value]) -> None:
        """Compute what a recording has still to compute for these values: Python code is about to see them."""
        if self.is_recording:
            self.run(leading_to(values, [node for node in self.graph.nodes if not self._has_run(node)]))

    def _has_run(self, node: Node) -> bool:
        return any(value.id in self.arrays for value in node.outputs)

    def _array_of(self, value: Value) -> Array:
        if value.parameter is not None:
            return value.parameter.array
        if value.constant is not None:
            return value.constant
        return self.arrays[value.id]

    def add_input(self, name: str, tensor: Tensor) -> Tensor:
        """A tensor that stands for `tensor` inside the graph."""
        value = self.graph.add_input(name, tensor.type_)
        if self.is_recording:
            self.arrays[value.id] = tensor.array
        return self.tensor_of(value)

    def bind_input(self, name: str, tensor: Tensor) -> None:
        """Let `tensor` itself stand for an input of the recording."""
        if self.known_value(tensor) is None:
            value = self.graph.add_input(name, tensor.type_)
            self.arrays[value.id] = tensor.array
            self._value_by_tensor[id(tensor)] = (tensor, value)

    def tensor_of(self, value: Value) -> Tensor:
        """The tensor that shows a value of this graph."""
        array = self._array_of(value) if self.is_recording else None
        return Tensor.of_value(value, self._owner, array)

    def tensor_numbered(self, value_id: int) -> Tensor:
        """The tensor that shows the value of this number."""
        graph = self.graph
        results = (value for node in graph.nodes for value in node.outputs)
        values = itertools.chain(graph.inputs, results)
        return self.tensor_of(next(value for value in values if value.id == value_id))

    def note_write(self, cell: Any, name: str) -> None:
        """The program sets an attribute of a cell; what it holds in the end is a result of the graph."""
        self.writes[id(cell), name] = cell
        self._replaced.setdefault((id(cell), name), cell.__dict__.get(name, _MISSING))

    def undo_writes(self) -> None:
        """Give attributes what they held before this trace, which leads to no graph."""
        for key, before in self._replaced.items():
            held = self.writes[key].__dict__
            if before is _MISSING:
                held.pop(key[1], None)
            else:
                held[key[1]] = before

    def note_refusal(self, error: Exception) -> None:
        """Python code needs something that only the run knows; the script may catch the error, but cannot go on."""
        if not self.is_recording and self.refusal is None:
            self.refusal = error

    def note_text(self, value_id: int) -> None:
        """The text of a value is about to be made; only `print` can take it in the value's place."""
        self._texts[value_id] += 1

    def print_text(self, value_id: int) -> None:
        """Such a text was printed."""
        self._texts[value_id] -= 1

    @property
    def has_open_texts(self) -> bool:
        """Were texts of values made that nothing printed?"""
        return any(count > 0 for count in self._texts.values())

    def draw(self) -> Parameter:
        """The counter of runs for random operators."""
        if self.draw_counter is None:
            self.draw_counter = Parameter(Tensor(np.zeros((1,), np.int64)), name="draw", requires_grad=False)
        return self.draw_counter

    def owns(self, tensor: Tensor) -> bool:
        """Does `tensor` come from this graph?"""
        return tensor.value_owned_by(self._owner) is not None

    def known_value(self, tensor: Tensor) -> Value | None:
        """The value that stands for a tensor in this graph, None for a tensor that was not met yet."""
        entry = self._value_by_tensor.get(id(tensor))
        return entry[1] if entry is not None else tensor.value_owned_by(self._owner)

    def forget(self, tensor: Tensor) -> None:
        """The script is about to write to elements of `tensor`, which is data of its own from here on."""
        if self.recorder is not None:
            self.recorder.keep(tensor.array)
        self._value_by_tensor.pop(id(tensor), None)
        tensor.detach()

    def value_of(self, tensor: Tensor) -> Value:
        """The value of a tensor in this graph; a tensor from outside becomes a constant."""
        if isinstance(tensor, Parameter):
            return self._program.add_parameter(tensor.memory)
        value = self.known_value(tensor)
        if value is not None:
            region = self._region_of.get(value.id)
            if region is not None and region not in self._open and self._forward is None:
                raise GraphError(
                    f"{user_line() or self.scope}: expected tensors that exist here, got one that was made in a branch "
                    "or a loop on a tensor's value and left it in another way than in a variable. Assign it to a "
                    "variable there, one that has a value before it where a loop does so."
                )
            return value
        if not tensor.is_concrete:
            raise GraphError(
                "a tensor that another construct made while it was traced is used here. Return it from that "
                "construct, or pass it as an argument, instead of keeping it in an attribute or a global."
            )
        value = self.constant(tensor.array, tensor.type_.dtype)
        self._value_by_tensor[id(tensor)] = (tensor, value)
        return value

    def constant(self, array: Array, dtype: str) -> Value:
        """A constant; equal scalars of one graph are shared."""
        if array.ndim == 0:
            for value in self.graph.constants:
                data = value.constant
                is_scalar = data is not None and data.shape == () and value.type.dtype == dtype
                if is_scalar and data is not None and data.tobytes() == array.tobytes():
                    return value
        return self.graph.add_constant(array, dtype)


_MISSING = object()


def leading_to(results: Sequence[Value | None], nodes: Sequence[Node]) -> list[Node]:
    """Those of `nodes` that lead to the results, in order."""
    needed = {value.id for value in results if value is not None}
    kept: list[Node] = []
    for node in reversed(nodes):
        if any(value.id in needed for value in node.outputs):
            needed.update(value.id for value in node.inputs)
            kept.append(node)
    return kept[::-1]


def _components(parent: TracedCell, cell: TracedCell) -> list[str]:
    """Scope components of a call of `cell` by `parent`.   Source: MindSpore IR, `{attribute}-{ClassName}`."""
    path = parent.path_to(cell) or ([(cell.scope_name, cell)] if cell.scope_name else [])
    if not get_context("reserve_class_name_in_scope"):
        return [name for name, _ in path]
    return [f"{name}-{part.cls_name}" for name, part in path]
