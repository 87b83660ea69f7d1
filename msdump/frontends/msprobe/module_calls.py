"""Hooks on the modules of a model: a call of one is a record, and so are its backward and its parameters' gradients."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch.utils.hooks import BackwardHook

from msdump.frontends.msprobe.api_calls import is_unrecorded, unrecorded

# A wrapper of the whole model, whose hooks would see the shards of all parameters.   Source: msprobe.
_LEFT_OUT = "FullyShardedDataParallel"
_DEFAULT_CREATION = torch._C._autograd.CreationMeta(0)


class ModuleObserver(Protocol):
    """What is told of calls; its methods run in the thread of the call. Names of records have no number yet for those
    of parameters."""

    def is_recording(self) -> bool: ...
    def is_recording_backward(self) -> bool: ...
    def module_begins(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...
    def module_ends(self, name: str, output: Any, parameters: Mapping[str, torch.Tensor]) -> None: ...
    def backward_begins(self, name: str) -> None: ...
    def module_backward_ends(self, name: str, incoming: Any, outgoing: Any) -> None: ...
    def watches_gradients(self) -> bool: ...
    def gradient_is_there(self, module: str, parameter: str, gradient: torch.Tensor | None) -> None: ...


class ModuleCalls:
    """counts: by name of a module, calls of this step"""

    def __init__(self, observer: ModuleObserver) -> None:
        self.counts: Counter[str] = Counter()
        self._observer = observer
        self._watched: list[Any] = []
        self._gradients: dict[str, torch.utils.hooks.RemovableHandle] = {}

    def watch(self, model: Any) -> None:
        """Hook the modules of a model, or of a list of models, themselves not included. Once for each model."""
        if any(model is other for other in self._watched):
            return
        self._watched.append(model)
        for prefix, module in _modules_of(model):
            _Hooked(self, self._observer, prefix, module)

    def watch_gradients(self, prefix: str, parameters: Mapping[str, torch.Tensor]) -> None:
        """Tell when the gradients of parameters are complete, after the next backward."""
        observer = self._observer
        for name, parameter in parameters.items():
            if not parameter.requires_grad or not torch.is_grad_enabled():
                continue
            key = f"{prefix}.{name}"
            old = self._gradients.pop(key, None)
            if old is not None:
                old.remove()
            edge = parameter.expand_as(parameter).grad_fn
            if edge is not None:
                accumulation: Any = edge.next_functions[0][0]
                self._gradients[key] = accumulation.register_hook(_gradient_hook(observer, prefix, name, parameter))


def _gradient_hook(observer: ModuleObserver, prefix: str, name: str, parameter: torch.Tensor) -> Callable[..., None]:
    def hook(*_: Any) -> None:
        if not is_unrecorded() and observer.is_recording():
            with unrecorded():
                observer.gradient_is_there(prefix, name, parameter.grad)

    return hook


def _modules_of(model: Any) -> Iterator[tuple[str, torch.nn.Module]]:
    models = list(enumerate(model)) if isinstance(model, (list, tuple)) else [(None, model)]
    for number, each in models:
        place = "" if number is None else f"{number}."
        for name, module in each.named_modules():
            kind = type(module).__name__
            if module is each or kind == _LEFT_OUT or isinstance(module, torch.jit.ScriptModule):
                continue
            yield f"Module.{place}{name}.{kind}", module


class _Hooked:
    """One module. Its calls may be nested, and may run in several threads."""

    def __init__(self, calls: ModuleCalls, observer: ModuleObserver, prefix: str, module: torch.nn.Module) -> None:
        self._calls = calls
        self._observer = observer
        self._prefix = prefix
        self._running = threading.local()
        # A hook of the user that cannot stand beside another one.
        self._has_old_hook = bool(module._backward_hooks) and module._is_full_backward_hook is False
        module.register_forward_pre_hook(self._before, with_kwargs=True)
        module.register_forward_hook(self._after, prepend=True, with_kwargs=True, always_call=True)

    def _before(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        open_calls = self._open_calls()
        if torch.compiler.is_compiling():
            return None
        if is_unrecorded() or not self._observer.is_recording():
            open_calls.append(None)
            return None
        number = self._calls.counts[self._prefix]
        self._calls.counts[self._prefix] += 1
        with unrecorded():
            self._observer.module_begins(f"{self._prefix}.forward.{number}", args, kwargs)
            if self._has_old_hook:
                open_calls.append((number, None))
                return None
            hook = self._backward_hook(module, f"{self._prefix}.backward.{number}")
            open_calls.append((number, hook))
            return _with_hook(hook.setup_input_hook, args), kwargs

    def _after(self, module: torch.nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        if torch.compiler.is_compiling():
            return None
        open_calls = self._open_calls()
        entry = open_calls.pop() if open_calls else None
        if entry is None:
            return None
        number, hook = entry
        with unrecorded():
            parameters = dict(module.named_parameters(recurse=False))
            name = f"{self._prefix}.forward.{number}"
            if self._observer.watches_gradients():
                self._calls.watch_gradients(self._prefix, parameters)
            self._observer.module_ends(name, output, parameters)
            return output if hook is None or output is None else _with_hook(hook.setup_output_hook, output)

    def _backward_hook(self, module: torch.nn.Module, name: str) -> BackwardHook:
        observer = self._observer

        def before(_: torch.nn.Module, __: Any) -> None:
            if not is_unrecorded() and observer.is_recording_backward():
                observer.backward_begins(name)

        def after(_: torch.nn.Module, outgoing: Any, incoming: Any) -> None:
            if not is_unrecorded() and observer.is_recording_backward():
                with unrecorded():
                    observer.module_backward_ends(name, incoming, outgoing)

        return BackwardHook(module, [after], [before])

    def _open_calls(self) -> list[tuple[int, BackwardHook | None] | None]:
        if not hasattr(self._running, "calls"):
            self._running.calls = []
        calls: list[tuple[int, BackwardHook | None] | None] = self._running.calls
        return calls


def _with_hook(setup: Callable[[Any], Any], value: Any) -> Any:
    """A value whose tensors went through a hook of autograd, wherever in lists and dictionaries they stand."""
    tensors: list[torch.Tensor] = []
    _collect(value, tensors)
    hooked = setup(tuple(tensors))
    if not tensors or hooked is None:
        return value
    results = iter(_writable(tensor) for tensor in hooked)
    return _rebuilt(value, results)


def _is_hooked(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad and torch.is_grad_enabled()


def _collect(value: Any, tensors: list[torch.Tensor]) -> None:
    if _is_hooked(value):
        tensors.append(value)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, tensors)
    elif isinstance(value, dict):
        for item in value.values():
            _collect(item, tensors)


def _rebuilt(value: Any, tensors: Iterator[torch.Tensor]) -> Any:
    if _is_hooked(value):
        return next(tensors)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_rebuilt(item, tensors) for item in value))
    if isinstance(value, (list, tuple)):
        items = [_rebuilt(item, tensors) for item in value]
        if type(value) in (list, tuple):
            return type(value)(items)
        return _filled(value, items) if isinstance(value, list) else type(value)(items)
    if isinstance(value, dict):
        for key, item in list(value.items()):
            value[key] = _rebuilt(item, tensors)
    return value


def _filled(value: list[Any], items: Sequence[Any]) -> list[Any]:
    value[:] = items
    return value


def _writable(tensor: torch.Tensor) -> torch.Tensor:
    """Results of the hook are views, which a script may not write to: it may write to what they stand for."""
    if tensor._base is not None and torch._C._autograd._get_creation_meta(tensor) != _DEFAULT_CREATION:
        torch._C._autograd._set_creation_meta(tensor, _DEFAULT_CREATION)
    return tensor
