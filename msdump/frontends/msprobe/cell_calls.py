"""The cells of a MindSpore network: a call of one is a record, and so are its backward and its parameters' gradients.

MindSpore is known by the methods of its cells and tensors alone: msdump's package of that name and an installed one are
the same here.
"""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import torch

from msdump.errors import ConfigError
from msdump.frontends.msprobe.api_calls import is_unrecorded, unrecorded
from msdump.frontends.msprobe.module_calls import ModuleObserver

_NUMPY_KINDS = "biufc"


class Parameter(Protocol):
    """What is used of one of MindSpore."""

    requires_grad: bool

    def register_hook(self, hook: Callable[[object], None]) -> object: ...


class Cell(Protocol):
    """What is used of one of MindSpore."""

    def cells_and_names(self) -> Iterable[tuple[str, Cell]]: ...
    def parameters_and_names(self, *, expand: bool) -> Iterable[tuple[str, Parameter]]: ...
    def register_forward_pre_hook(self, hook: Callable[..., None], *, with_kwargs: bool) -> object: ...
    def register_forward_hook(self, hook: Callable[..., None], *, with_kwargs: bool) -> object: ...
    def register_backward_pre_hook(self, hook: Callable[..., None]) -> object: ...
    def register_backward_hook(self, hook: Callable[..., None]) -> object: ...


class CellCalls:
    """counts: by name of a cell, calls of this step"""

    def __init__(self, observer: ModuleObserver) -> None:
        self.counts: Counter[str] = Counter()
        self._observer = observer
        self._watched: list[weakref.ref[Cell]] = []

    def watch(self, model: Cell | list[Cell] | tuple[Cell, ...]) -> None:
        """Hook the cells of a network, or of a list of networks, themselves not included. Once for each.

        Raises: ConfigError in GRAPH_MODE, where no Python function sees a value.
        """
        if is_graph_mode():
            raise ConfigError(
                "PrecisionDebugger.start: expected PYNATIVE_MODE, got GRAPH_MODE, where cells are compiled. Call "
                "set_context(mode=PYNATIVE_MODE), or dump with `msdump run --config data_dump.json SCRIPT`."
            )
        for number, network in enumerate(model) if isinstance(model, (list, tuple)) else [(None, model)]:
            if any(watched() is network for watched in self._watched):
                continue
            self._watched.append(weakref.ref(network))
            for prefix, cell in _cells_of(network, number):
                self._hook(prefix, cell)

    def let_go(self) -> None:
        """Hooks stay, and do nothing without a dump."""

    def end_step(self) -> None:
        self.counts.clear()

    def leave_to_parent(self) -> None:
        """In a process that was forked."""

    def _hook(self, prefix: str, cell: Cell) -> None:
        observer, counts = self._observer, self.counts
        running: list[int] = []
        # Of calls whose backward has not come yet: the last call comes back first.
        awaited: list[int] = []

        def before(_: Cell, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
            if is_unrecorded() or not observer.is_recording():
                running.append(-1)
                return
            number = counts[prefix]
            counts[prefix] += 1
            if not number:
                awaited.clear()
            running.append(number)
            with unrecorded():
                observer.module_begins(f"{prefix}.forward.{number}", as_torch(args), as_torch(kwargs))

        def after(_: Cell, args: object, kwargs: object, output: object) -> None:
            number = running.pop() if running else -1
            if number < 0:
                return
            awaited.append(number)
            with unrecorded():
                parameters = {name: as_torch(parameter) for name, parameter in _parameters_of(cell)}
                observer.module_ends(f"{prefix}.forward.{number}", as_torch(output), parameters)

        def before_backward(*_: object) -> None:
            if awaited and not is_unrecorded() and observer.is_recording_backward():
                with unrecorded():
                    observer.backward_begins(f"{prefix}.backward.{awaited[-1]}")

        def after_backward(_: Cell, outgoing: object, incoming: object) -> None:
            if awaited and not is_unrecorded() and observer.is_recording_backward():
                with unrecorded():
                    name = f"{prefix}.backward.{awaited.pop()}"
                    observer.module_backward_ends(name, as_torch(incoming), as_torch(outgoing))

        cell.register_forward_pre_hook(before, with_kwargs=True)
        cell.register_forward_hook(after, with_kwargs=True)
        cell.register_backward_pre_hook(before_backward)
        cell.register_backward_hook(after_backward)
        if observer.watches_gradients():
            for name, parameter in _parameters_of(cell):
                if parameter.requires_grad:
                    parameter.register_hook(self._gradient_hook(prefix, name))

    def _gradient_hook(self, prefix: str, name: str) -> Callable[[object], None]:
        observer = self._observer

        def hook(gradient: object) -> None:
            if not is_unrecorded() and observer.is_recording():
                with unrecorded():
                    observer.gradient_is_there(prefix, name, as_torch(gradient))

        return hook


def is_cell(value: object) -> bool:
    return hasattr(value, "cells_and_names") and hasattr(value, "construct")


def is_graph_mode() -> bool:
    mindspore: Any = sys.modules["mindspore"]
    return bool(mindspore.get_context("mode") == mindspore.GRAPH_MODE)


def as_torch(value: object) -> Any:
    """Tensors of MindSpore inside of lists, tuples and dictionaries as those of PyTorch."""
    if hasattr(value, "asnumpy"):
        array = value.asnumpy()
        # No dtype of PyTorch: shown as the array that it is.
        return torch.tensor(array) if array.dtype.kind in _NUMPY_KINDS else array
    if isinstance(value, (list, tuple)):
        return type(value)([as_torch(item) for item in value]) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {key: as_torch(item) for key, item in value.items()}
    return value


def _cells_of(network: Cell, number: int | None) -> Iterator[tuple[str, Cell]]:
    number_prefix = "" if number is None else f"{number}."
    for name, cell in network.cells_and_names():
        if cell is not network:
            yield f"Cell.{number_prefix}{name}.{type(cell).__name__}", cell


def _parameters_of(cell: Cell) -> Iterator[tuple[str, Parameter]]:
    for name, parameter in cell.parameters_and_names(expand=False):
        yield name.rpartition(".")[2], parameter
