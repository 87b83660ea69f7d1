"""The modules of a model: a call of one is a record, and so are its backward and its parameters' gradients.

Nothing is left in a module: a hook in it would be copied and saved with it. The call of all modules of the process is
replaced, and hooks a module for as long as the module runs.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import torch

from msdump.frontends.msprobe.api_calls import is_unrecorded, unrecorded
from msdump.frontends.msprobe.module_backward import BackwardObserver, Backwards, ModuleBackward, Operands

# A wrapper of the whole model, whose hooks would see the shards of all parameters.   Source: msprobe.
_LEFT_OUT = "FullyShardedDataParallel"
_MODULE: Any = torch.nn.Module
Model = torch.nn.Module | list[torch.nn.Module] | tuple[torch.nn.Module, ...]


class ModuleObserver(BackwardObserver, Protocol):
    """What is told of calls; its methods run in the thread of the call. Names of records have no number yet for those
    of parameters."""

    def is_recording(self) -> bool: ...
    def module_begins(self, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> None: ...
    def module_ends(self, name: str, output: object, parameters: Mapping[str, torch.Tensor]) -> None: ...
    def watches_gradients(self) -> bool: ...
    def gradient_is_there(self, module: str, parameter: str, gradient: torch.Tensor | None) -> None: ...


class ModuleCalls:
    """counts: by name of a module, calls of this step"""

    def __init__(self, observer: ModuleObserver) -> None:
        self.counts: Counter[str] = Counter()
        self.backwards = Backwards(observer)
        self.thread = _RunningCalls()
        self._observer = observer
        # Weakly: a model is freed when the script has no more use for it.
        self._models: list[list[weakref.ref[torch.nn.Module]]] = []
        self._watched: dict[int, _Watched] = {}
        self._original: Callable[..., Any] | None = None
        self._gradients: dict[str, torch.utils.hooks.RemovableHandle] = {}

    def watch(self, model: Model) -> None:
        """Record the calls of the modules of a model, or of a list of models, themselves not included. Once for each
        model."""
        models = list(model) if isinstance(model, (list, tuple)) else [model]
        known = [[reference() for reference in references] for references in self._models]
        if any(
            len(models) == len(known_models) and all(map(lambda a, b: a is b, models, known_models))
            for known_models in known
        ):
            return
        self._models.append([weakref.ref(model) for model in models])
        for prefix, module in _modules_of(model):
            self._of(module).prefixes.append(prefix)
        self._install()

    def tell(self, model: torch.nn.Module, listener: Callable[[], None]) -> None:
        """Call `listener` before each call of a model."""
        self._of(model).listener = listener
        self._install()

    def begin_dump(self, module: torch.nn.Module, name: str) -> None:
        """Record the calls of one module under a name that the script gives, until `end_dumps`.

        Edges: the first name counts.
        """
        watched = self._of(module)
        watched.dump_name = watched.dump_name or f"Module.{name}.{type(module).__name__}"
        self._install()

    def end_dumps(self) -> None:
        for watched in list(self._watched.values()):
            watched.dump_name = None

    def _of(self, module: torch.nn.Module) -> _Watched:
        watched = self._watched.get(id(module))
        if watched is None:
            watched = self._watched[id(module)] = _Watched(module, self._forget)
        return watched

    def let_go(self) -> None:
        """Modules are called as they were. Idempotent."""
        if self._original is not None:
            _MODULE._call_impl = self._original
            self._original = None

    def end_step(self) -> None:
        self.counts.clear()
        self.backwards.forget()

    def leave_to_parent(self) -> None:
        """In a process that was forked: a thread of the parent may have held a lock."""
        self.backwards.leave_to_parent()

    def _forget(self, key: int) -> None:
        self._watched.pop(key, None)

    def _install(self) -> None:
        if self._original is not None:
            return
        self._original = original = _MODULE._call_impl
        watched_by_id, observer = self._watched, self._observer

        @functools.wraps(original)
        def call(module: torch.nn.Module, *args: object, **kwargs: object) -> object:
            if torch.compiler.is_compiling():
                return original(module, *args, **kwargs)
            watched = watched_by_id.get(id(module))
            if watched is None or is_unrecorded() or torch._C._is_tracing():
                return original(module, *args, **kwargs)
            if watched.listener is not None:
                watched.listener()
            if not observer.is_recording():
                return original(module, *args, **kwargs)
            calls = [_Call(self, observer, prefix) for prefix in watched.names()]
            handles = [handle for call in calls for handle in call.hook(module)]
            self.thread.calls.append(calls)
            try:
                return original(module, *args, **kwargs)
            finally:
                self.thread.calls.pop()
                for handle in handles:
                    handle.remove()

        _MODULE._call_impl = call

    def watch_gradients(self, prefix: str, parameters: Mapping[str, torch.Tensor]) -> None:
        """Tell when the gradients of parameters are complete, after the next backward."""
        observer = self._observer
        for name, parameter in parameters.items():
            # What is no leaf stands in for a parameter, and keeps no gradient.
            if not parameter.requires_grad or not torch.is_grad_enabled() or not parameter.is_leaf:
                continue
            key = f"{prefix}.{name}"
            old = self._gradients.pop(key, None)
            if old is not None:
                old.remove()
            edge = parameter.expand_as(parameter).grad_fn
            if edge is not None:
                accumulation: Any = edge.next_functions[0][0]
                self._gradients[key] = accumulation.register_hook(_gradient_hook(observer, prefix, name, parameter))


class _Watched:
    """A module whose calls are looked at.

    prefixes   beginnings of its records' names, one for each started model that holds it
    dump_name  another one, for a while
    listener   called before each call
    """

    def __init__(self, module: torch.nn.Module, forget: Callable[[int], None]) -> None:
        self.prefixes: list[str] = []
        self.dump_name: str | None = None
        self.listener: Callable[[], None] | None = None
        key = id(module)
        self._reference = weakref.ref(module, lambda _: forget(key))

    def names(self) -> list[str]:
        return self.prefixes if self.dump_name is None else [self.dump_name, *self.prefixes]


class _RunningCalls(threading.local):
    """calls: of modules that are running in a thread, the innermost last"""

    def __init__(self) -> None:
        self.calls: list[list[_Call]] = []


class _Call:
    """One call of a module."""

    def __init__(self, calls: ModuleCalls, observer: ModuleObserver, prefix: str) -> None:
        self._calls = calls
        self._observer = observer
        self._prefix = prefix
        self._number = -1
        self._operands: Operands | None = None

    def hook(self, module: torch.nn.Module) -> list[torch.utils.hooks.RemovableHandle]:
        """Hooks around `forward` alone: behind what changes its operands, before what changes its result.

        They are functions, which a copy of the module shares, as do calls in other threads and inside of this one:
        there they do nothing.
        """
        thread = self._calls.thread

        def is_this(called: torch.nn.Module) -> bool:
            return called is module and bool(thread.calls) and self in thread.calls[-1]

        def before(called: torch.nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
            if is_this(called):
                self._before(args, kwargs)

        def after(called: torch.nn.Module, args: object, kwargs: object, output: object) -> object:
            return self._after(module, output) if is_this(called) else None

        return [
            module.register_forward_pre_hook(before, with_kwargs=True),
            module.register_forward_hook(after, prepend=True, with_kwargs=True, always_call=True),
        ]

    def _before(self, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        self._number = number = self._calls.counts[self._prefix]
        self._calls.counts[self._prefix] += 1
        with unrecorded():
            self._observer.module_begins(f"{self._prefix}.forward.{number}", args, kwargs)
            self._operands = Operands((args, kwargs))

    def _after(self, module: torch.nn.Module, output: object) -> object:
        if self._operands is None:
            return None  # what another hook raised ended the call before it began
        with unrecorded():
            parameters = dict(module.named_parameters(recurse=False))
            if self._observer.watches_gradients():
                self._calls.watch_gradients(self._prefix, parameters)
            self._observer.module_ends(f"{self._prefix}.forward.{self._number}", output, parameters)
            backward = ModuleBackward(f"{self._prefix}.backward.{self._number}", self._operands)
            return backward.watch(self._calls.backwards, output, self._operands)


def _gradient_hook(observer: ModuleObserver, prefix: str, name: str, parameter: torch.Tensor) -> Callable[..., None]:
    def hook(*_: object) -> None:
        if not is_unrecorded() and observer.is_recording():
            with unrecorded():
                observer.gradient_is_there(prefix, name, parameter.grad)

    return hook


def _modules_of(model: Model) -> Iterator[tuple[str, torch.nn.Module]]:
    models = list(enumerate(model)) if isinstance(model, (list, tuple)) else [(None, model)]
    for number, root in models:
        prefix = "" if number is None else f"{number}."
        for name, module in root.named_modules():
            kind = type(module).__name__
            if module is root or kind == _LEFT_OUT or isinstance(module, torch.jit.ScriptModule):
                continue
            yield f"Module.{prefix}{name}.{kind}", module
