"""Gradients of a module's results and operands in backward, observed on autograd's nodes.

Hooks of PyTorch for the backward of modules put a node of their own around each module: gradients are added up in
another order, and lose other last digits. Here the nodes that are there are asked, and their order tells what a module
has to do with each.

Source: mindstudio-probe 26.2, when a backward of a module begins and ends among the functions around it.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import torch
from torch.autograd.graph import get_gradient_edge

from msdump.frontends.msprobe.api_calls import unrecorded

if TYPE_CHECKING:
    from typing import TypeGuard

    from torch.autograd.graph import Node

# A node, and which of its results.
Edge: TypeAlias = "tuple[Node | None, int]"
Gradients = Sequence[torch.Tensor | None]
_KEY = "msdump.modules"


class BackwardObserver(Protocol):
    def is_recording_backward(self) -> bool: ...
    def backward_begins(self, name: str) -> None: ...
    def module_backward_ends(self, name: str, incoming: object, outgoing: object) -> None: ...


class Operands:
    """Operands of a module: the tensors that get gradients, and their edges.

    first  the number that autograd's next node gets
    """

    def __init__(self, values: object) -> None:
        self.tensors = list(hooked_in(values))
        self.edges = [_edge_of(tensor) for tensor in self.tensors]
        self._versions = [tensor._version for tensor in self.tensors]
        self.first = torch._C._autograd._get_sequence_nr()

    def index_by_edge(self) -> dict[Edge, int]:
        """Of the operands by their edges, after the call. A tensor that is given again has its first index alone; one
        that the module has worked in place on has none.   Source: msprobe, for the latter."""
        index_by_edge: dict[Edge, int] = {}
        for index, (tensor, version, edge) in enumerate(zip(self.tensors, self._versions, self.edges, strict=True)):
            if tensor._version == version:
                index_by_edge.setdefault(edge, index)
        return index_by_edge


class ModuleBackward:
    """One call of a module. It knows no node, as nodes know it.

    end_below  the backward is over when autograd has come to nodes with smaller numbers than this one
    """

    def __init__(self, name: str, operands: Operands) -> None:
        self.name = name
        self.end_below = operands.first
        tensors = operands.tensors
        # Of operands that no gradient came to, where others got one; none where a tensor is given again.
        self._like = [
            None
            if any(tensor is earlier for earlier in tensors[:index])
            else (tensor.shape, tensor.dtype, tensor.device)
            for index, tensor in enumerate(tensors)
        ]
        self._outgoing: list[torch.Tensor | None] = [None] * len(tensors)
        self._incoming: list[torch.Tensor | None] = []
        self._versions: list[_Version] = []
        self._is_running = False
        self._has_outgoing = False

    def watch(self, backwards: Backwards, output: object, operands: Operands) -> object:
        """The result of the module, watched: the same one, or with a view in place of a tensor that is not the
        module's alone."""
        tensors = list(hooked_in(output))
        if not tensors:
            return output
        first, operand_by_edge = operands.first, operands.index_by_edge()
        consumers, inner = _walk(tensors, first, operand_by_edge)
        views = []
        for tensor, edge in zip(tensors, map(_edge_of, tensors), strict=True):
            view = tensor.view_as(tensor) if edge in inner or _is_older(tensor, first) else tensor
            views.append(view)
            # An operand that is given back goes into its view.
            if view is not tensor and edge in operand_by_edge:
                consumers.append((view.grad_fn, 0, operand_by_edge[edge]))
        self._incoming = [None] * len(views)
        self._versions = [_Version(view) for view in views]
        self._listen(backwards, views)
        indices_by_node: dict[Any, list[tuple[int, int]]] = {}
        for node, slot, index in consumers:
            indices_by_node.setdefault(node, []).append((slot, index))
        for node, indices in indices_by_node.items():
            node.register_hook(functools.partial(self._goes, indices))
        if all(view is tensor for view, tensor in zip(views, tensors, strict=True)):
            return output
        return rebuilt(output, iter(views))

    def _listen(self, backwards: Backwards, results: Sequence[torch.Tensor]) -> None:
        indices_by_node: dict[Any, list[tuple[int, int]]] = {}
        for index, result in enumerate(results):
            indices_by_node.setdefault(result.grad_fn, []).append((result.output_nr, index))
        if not self._outgoing:
            self.end_below = min(node._sequence_nr() for node in indices_by_node) + 1
        for node, indices in indices_by_node.items():
            _before(node, _Listener(self, indices), backwards)

    def take(self) -> tuple[Gradients, Gradients] | None:
        """What came and what went in this backward, which is forgotten; None where nothing went on."""
        incoming, outgoing, is_complete = self._incoming, self._outgoing, self._has_outgoing or not self._outgoing
        self._incoming, self._outgoing = [None] * len(incoming), [None] * len(outgoing)
        self._is_running = self._has_outgoing = False
        if not is_complete:
            return None
        filled = [
            torch.zeros(like[0], dtype=like[1], device=like[2]) if gradient is None and like is not None else gradient
            for gradient, like in zip(outgoing, self._like, strict=True)
        ]
        return tuple(incoming), tuple(filled)

    def is_unchanged(self, index: int) -> bool:
        """Whether no later operator has worked in place on this result.   Source: msprobe, which sees no gradient of
        one that was."""
        return self._versions[index].is_current

    def comes(self, gradients: Gradients, indices: Sequence[tuple[int, int]]) -> None:
        """Gradients of results.   indices: which of them is that of which result"""
        self._is_running = True
        for slot, index in indices:
            self._incoming[index] = gradients[slot]

    def _goes(self, indices: Sequence[tuple[int, int]], gradients: Gradients, _: Gradients) -> None:
        """Gradients to operands."""
        if not self._is_running:
            return
        with unrecorded(), torch.no_grad():
            for slot, index in indices:
                gradient, before = gradients[slot], self._outgoing[index]
                if gradient is not None:
                    self._outgoing[index] = gradient if before is None else before + gradient
                    self._has_outgoing = True


class Backwards:
    """The backwards of modules that have begun and have not ended, by the run of autograd that they are part of.

    Any thread may call it. The observer is told with a lock held, and may take one of its own.
    """

    def __init__(self, observer: BackwardObserver) -> None:
        self._observer = observer
        self._lock = threading.RLock()
        self._running: dict[int, list[ModuleBackward]] = {}

    def begin(self, module: ModuleBackward, number: int) -> None:
        """The node of this number, which a module's result comes from, runs next."""
        task = torch._C._current_graph_task_id()
        with self._lock:
            running = self._running.get(task)
            if running is None:
                running = self._running[task] = []
                torch.autograd.Variable._execution_engine.queue_callback(lambda: self._finish(task))
            self._end_above(running, number, module)
            if module not in running:
                running.append(module)
                if self._observer.is_recording_backward():
                    self._observer.backward_begins(module.name)

    def reach(self, number: int) -> None:
        """Autograd is at the node of this number: what has a greater one is over."""
        with self._lock:
            self._end_above(self._running.get(torch._C._current_graph_task_id(), []), number)

    def forget(self) -> None:
        """Of runs that failed."""
        with self._lock:
            self._running.clear()

    def leave_to_parent(self) -> None:
        self._lock = threading.RLock()
        self._running = {}

    def _finish(self, task: int) -> None:
        with self._lock, unrecorded():
            self._end_above(self._running.pop(task, []), -1)

    def _end_above(self, running: list[ModuleBackward], number: int, going: ModuleBackward | None = None) -> None:
        """End the modules that are over at the node of this number, but for the one that this node goes on with."""
        # The inner one of two that began at the same node is the later one.
        ended = [module for module in reversed(running) if module.end_below > number and module is not going]
        for module in sorted(ended, key=lambda module: module.end_below, reverse=True):
            running.remove(module)
            taken = module.take()
            if taken is not None and self._observer.is_recording_backward():
                self._observer.module_backward_ends(module.name, *taken)


class _Listener(NamedTuple):
    """indices: which gradient of the node is that of which result of the module"""

    module: ModuleBackward
    indices: list[tuple[int, int]]


def _before(node: Any, listener: _Listener, backwards: Backwards) -> None:
    """Tell before a node runs. The last one to ask is told first: modules around others end later, and begin first."""
    listeners: list[_Listener] | None = node.metadata.get(_KEY)
    if listeners is None:
        told: list[_Listener] = []
        node.metadata[_KEY] = listeners = told
        number = node._sequence_nr()

        def hook(gradients: Gradients) -> None:
            with unrecorded():
                for module, indices in reversed(told):
                    seen = [(slot, index) for slot, index in indices if module.is_unchanged(index)]
                    if seen:
                        backwards.begin(module, number)
                        module.comes(gradients, seen)
                        backwards.reach(number)

        node.register_prehook(hook)
    listeners.append(listener)


class _Version:
    """Version of a tensor, without a reference to its memory."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._alias: torch.Tensor | None = None
        if type(tensor) is torch.Tensor and tensor.layout == torch.strided and not is_transformed():
            self._alias = tensor.detach()
            # The counter stays that of the tensor.
            self._alias.data = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
            self._first = self._alias._version

    @property
    def is_current(self) -> bool:
        return self._alias is None or self._alias._version == self._first


def is_transformed() -> bool:
    """Whether a transform of torch.func (vmap, grad) is active."""
    return torch._C._are_functorch_transforms_active()


def _edge_of(tensor: torch.Tensor) -> Edge:
    edge = get_gradient_edge(tensor)
    return edge.node, edge.output_nr


def _is_older(tensor: torch.Tensor, first: int) -> bool:
    """Whether a tensor existed before the module ran."""
    return tensor.grad_fn is None or tensor.grad_fn._sequence_nr() < first


def _walk(
    tensors: Sequence[torch.Tensor], first: int, operand_by_edge: Mapping[Edge, int]
) -> tuple[list[tuple[Any, int, int]], set[Edge]]:
    """From results back to operands, over the nodes that the module made.

    Gives which result of which node goes to which operand, and the results that other results are made from.
    """
    ends = {_edge_of(tensor) for tensor in tensors}
    consumers: list[tuple[Any, int, int]] = []
    inner: set[Edge] = set()
    waiting: list[Any] = list({tensor.grad_fn for tensor in tensors if not _is_older(tensor, first)})
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        for slot, edge in enumerate(node.next_functions):
            index = operand_by_edge.get(edge)
            if index is not None:
                consumers.append((node, slot, index))
            elif edge[0] is not None and edge[0] not in seen and edge[0]._sequence_nr() >= first:
                seen.add(edge[0])
                waiting.append(edge[0])
            if edge in ends:
                inner.add(edge)
    return consumers, inner


def is_hooked(value: object) -> TypeGuard[torch.Tensor]:
    return isinstance(value, torch.Tensor) and value.requires_grad and torch.is_grad_enabled()


def hooked_in(value: object) -> Iterator[torch.Tensor]:
    """The tensors of lists, tuples and dictionaries that get gradients."""
    if is_hooked(value):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from hooked_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from hooked_in(item)


def rebuilt(value: Any, tensors: Iterator[torch.Tensor]) -> Any:
    """The value with other tensors in place of those that get gradients."""
    if is_hooked(value):
        return next(tensors)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(rebuilt(item, tensors) for item in value))
    if isinstance(value, (list, tuple)):
        items = [rebuilt(item, tensors) for item in value]
        if type(value) in (list, tuple):
            return type(value)(items)
        return _filled(value, items) if isinstance(value, list) else type(value)(items)
    if isinstance(value, dict):
        for key, item in list(value.items()):
            value[key] = rebuilt(item, tensors)
    return value


def _filled(value: list[object], items: Sequence[object]) -> list[object]:
    value[:] = items
    return value
