"""Functions of PyTorch, wrapped: each call that is no part of another one is a record, and so is its backward.

The functions are replaced where scripts and layers look them up, as `torch.nn.functional.linear` and
`torch.Tensor.__add__`: the name by which one was called is in the name of its record, which no mode of PyTorch tells.
"""

from __future__ import annotations

import functools
import inspect
import pickle
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch
import torch.distributed as dist

from msdump.frontends.msprobe import saving
from msdump.frontends.msprobe.function_names import DISTRIBUTED, FUNCTIONAL, TENSOR_METHODS, TORCH, names_of

Function = Callable[..., Any]
_DROPOUTS = {
    f"{prefix}.{name}"
    for prefix, names in (
        (FUNCTIONAL, "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout"),
        (TORCH, "dropout dropout_ alpha_dropout alpha_dropout_ feature_alpha_dropout feature_alpha_dropout_"),
        (TORCH, "feature_dropout feature_dropout_"),
    )
    for name in names.split()
}
_WAITED = ("isend", "irecv", "batch_isend_irecv")


class ApiObserver(Protocol):
    """Listener to calls; its methods run in the thread of the call."""

    def is_recording_functions(self) -> bool: ...
    def is_recording_backward(self) -> bool: ...
    def function_begins(self, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> None: ...
    def function_ends(self, name: str, output: object) -> None: ...
    def backward_reaches(self, number: int) -> None:
        """number: that of the node of autograd that runs"""

    def backward_ends(self, name: str, incoming: object, outgoing: object) -> None:
        """incoming: gradients of the results; outgoing: those of the operands"""


class _CallState(threading.local):
    """Of one thread.   is_calling: inside of a recorded call; is_own: what runs is the dump's"""

    is_calling = False
    is_own = False


_thread = _CallState()


@contextmanager
def unrecorded() -> Iterator[None]:
    """What this thread calls inside is no call of the script."""
    before, _thread.is_own = _thread.is_own, True
    try:
        yield
    finally:
        _thread.is_own = before


def is_unrecorded() -> bool:
    return _thread.is_own


class ApiCalls:
    """The wrapped functions of this process, from `install` to `remove`.

    counts  by name of a function: calls of this step, for the numbers in names of records
    """

    def __init__(self, observer: ApiObserver) -> None:
        self.counts: Counter[str] = Counter()
        self._observer = observer
        self._originals: list[tuple[object, str, object]] = []
        self._wrapped: list[tuple[object, str, object]] = []
        # By id of the owner and name of the function: the owner, which keeps its id, and the function.
        self._registered: dict[tuple[int, str], tuple[object, object]] = {}
        self._by_original: dict[tuple[str, str, int], Function] = {}
        self._is_installed = False

    def install(self) -> None:
        """Replace the functions. Idempotent."""
        if self._is_installed:
            return
        self._is_installed = True
        # Modules of PyTorch that remember functions are to remember its own.
        from torch.utils._device import _device_constructors

        _device_constructors()
        if not self._wrapped:
            for prefix, owner in _owners():
                for name in sorted(names_of(prefix)):
                    self._wrap(prefix, owner, name)
            self._add(torch.jit, "script", self._without_wrappers(torch.jit.script))
            save = self._without_wrappers(self._saving(torch.save))
            self._add(torch, "save", save)
            self._add(torch.serialization, "save", save)
            if dist.is_available():
                self._add(dist.Work, "wait", self._noting_wait(dist.Work.wait))
        _put(self._wrapped)

    def remove(self) -> None:
        """Put PyTorch's functions back. Idempotent."""
        if self._is_installed:
            self._is_installed = False
            _put(self._originals)

    def register(self, owner: object, name: str, prefix: str) -> None:
        """Record the calls of one more function as well."""
        original = getattr(owner, name)
        self._registered[id(owner), name] = owner, original
        setattr(owner, name, self._wrapper(original, f"{prefix}.{name}"))

    def unregister(self, owner: object, name: str) -> None:
        _, original = self._registered.pop((id(owner), name), (owner, None))
        if original is not None:
            setattr(owner, name, original)

    def _wrap(self, prefix: str, owner: object, path: str) -> None:
        module_name, _, name = path.rpartition(".")
        if module_name:
            owner = getattr(owner, module_name, None)
        original = getattr(owner, name, None)
        if callable(original):
            # One function under two names stays one: PyTorch compares `dist.isend` with its own.
            key = prefix, name, id(original)
            if key not in self._by_original:
                self._by_original[key] = self._wrapper(original, f"{prefix}.{name}")
            self._add(owner, name, self._by_original[key])

    def _add(self, owner: object, name: str, wrapper: object) -> None:
        self._originals.append((owner, name, getattr(owner, name)))
        self._wrapped.append((owner, name, wrapper))

    def _wrapper(self, function: Function, name: str) -> Function:
        observer = self._observer

        def wrapper(*args: object, **kwargs: object) -> object:
            if (
                torch.compiler.is_compiling()
                or _thread.is_calling
                or _thread.is_own
                or not observer.is_recording_functions()
                or torch._C._is_tracing()
            ):
                return function(*args, **kwargs)
            return self._record(function, name, args, kwargs)

        functools.update_wrapper(wrapper, function)
        saving.originals[wrapper] = function
        return wrapper

    def _record(self, function: Function, name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
        observer = self._observer
        _thread.is_calling = True
        try:
            record = f"{name}.{self.counts[name]}"
            with unrecorded():
                observer.function_begins(f"{record}.forward", args, kwargs)
            output = function(*args, **kwargs)
            if observer.is_recording_functions():
                with unrecorded():
                    self._watch_backward(name, record, args, kwargs, output)
                    self._end(function, name, f"{record}.forward", args, kwargs, output)
                self.counts[name] += 1
            return output
        finally:
            _thread.is_calling = False

    def _end(
        self,
        function: Function,
        name: str,
        record: str,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        output: object,
    ) -> None:
        """The call is over. A collective has its results in its operands, one that is waited for not yet."""
        prefix, _, plain_name = name.partition(".")
        if prefix != DISTRIBUTED:
            self._observer.function_ends(record, output)
            return
        operands = (*args, *kwargs.values())
        self._observer.function_ends(record, operands)
        works = output if isinstance(output, list) else [output]
        if any(isinstance(work, dist.Work) for work in works) and (
            plain_name in _WAITED or _is_async(function, args, kwargs)
        ):
            waiting = _Waiting(record, operands, sum(isinstance(work, dist.Work) for work in works))
            for work in works:
                if isinstance(work, dist.Work):
                    _waited[id(work)] = waiting, work

    def _noting_wait(self, wait: Function) -> Function:
        @functools.wraps(wait)
        def waiting(work: dist.Work, *args: object, **kwargs: object) -> object:
            result = wait(work, *args, **kwargs)
            entry, _ = _waited.pop(id(work), (None, None))
            if entry is not None:
                entry.missing -= 1
                if not entry.missing and self._observer.is_recording_functions():
                    with unrecorded():
                        self._observer.function_ends(entry.record, entry.operands)
            return result

        return waiting

    def _watch_backward(
        self, name: str, record: str, args: tuple[object, ...], kwargs: dict[str, object], output: object
    ) -> None:
        """Record the backward of the first tensor of the results.   Source: msprobe, which asks no other one."""
        if name in _DROPOUTS and (args[1] if len(args) > 1 else kwargs.get("p", 0.5)) == 0:
            return
        tensor = _first_tensor(output)
        if tensor is None or not (tensor.requires_grad and torch.is_grad_enabled()) or tensor.grad_fn is None:
            return
        observer, number = self._observer, tensor.grad_fn._sequence_nr()

        def backward(outgoing: object, incoming: object) -> None:
            if not _thread.is_own and observer.is_recording_backward():
                with unrecorded():
                    observer.backward_reaches(number)
                    observer.backward_ends(f"{record}.backward", incoming, outgoing)

        tensor.grad_fn.register_hook(backward)

    def _without_wrappers(self, function: Function) -> Function:
        """`torch.jit.script` reads the source of what a function calls, `torch.save` looks up the functions that an
        object holds: they are to find PyTorch's own."""

        @functools.wraps(function)
        def called(*args: object, **kwargs: object) -> object:
            is_installed = self._is_installed
            self.remove()
            try:
                return function(*args, **kwargs)
            finally:
                if is_installed:
                    self.install()

        return called

    def _saving(self, save: Function) -> Function:
        @functools.wraps(save)
        def saved(obj: object, f: object, pickle_module: object = pickle, *args: object, **kwargs: object) -> object:
            return save(obj, f, saving if pickle_module is pickle else pickle_module, *args, **kwargs)

        return saved


class _Waiting:
    """A collective whose result is there when its last part was waited for."""

    def __init__(self, record: str, operands: Sequence[object], missing: int) -> None:
        self.record = record
        self.operands = operands
        self.missing = missing


# By id, with the object, so that no other one gets this id.
_waited: dict[int, tuple[_Waiting, dist.Work]] = {}


def forget_waiting() -> None:
    _waited.clear()


def _owners() -> Iterator[tuple[str, object]]:
    """Prefixes of records, and where their functions are looked up.   Source: msprobe."""
    yield FUNCTIONAL, torch.nn.functional
    yield TENSOR_METHODS, torch.Tensor
    yield TORCH, torch
    if dist.is_available():
        yield DISTRIBUTED, dist
        yield DISTRIBUTED, dist.distributed_c10d


def _put(attributes: Sequence[tuple[object, str, object]]) -> None:
    for owner, name, value in attributes:
        setattr(owner, name, value)


def _first_tensor(value: object) -> torch.Tensor | None:
    while not isinstance(value, torch.Tensor):
        if isinstance(value, dict):
            value = next((item for item in value.values() if isinstance(item, torch.Tensor)), None)
        elif isinstance(value, (list, tuple)) and value:
            value = value[0]
        else:
            return None
    return value


def _is_async(function: Function, args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    try:
        return bool(inspect.signature(function).bind(*args, **kwargs).arguments.get("async_op", False))
    except (TypeError, ValueError):
        return False
