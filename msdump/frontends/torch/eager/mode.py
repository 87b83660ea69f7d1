"""The dispatch mode of a program: on PyTorch's stack of modes to see operators, and taken from it where that is safe.

A key of dispatch says whether a thread has modes. Guards such as `torch.inference_mode` note all keys when they begin
and restore them when they end, whatever has happened to the stack meanwhile: a stack that has become empty inside of
one ends in an internal error of PyTorch's, and a mode that was entered inside of one sees nothing after it.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import FrameType
from typing import Any, Protocol

import torch
from torch._dynamo import eval_frame
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode,
    _get_current_dispatch_mode_stack,
    _pop_mode,
    _push_mode,
)

# Keys that say that there are modes.   Source: PyTorch, `TorchDispatchModeTLS`.
_OF_MODES = (torch._C.DispatchKey.Python, torch._C.DispatchKey.PythonTLSSnapshot)
_NUMBERS = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}


class _Program(Protocol):
    """What a mode asks of its program."""

    @property
    def is_in_backward(self) -> bool: ...

    def run(self, function: Any, args: Sequence[object], keywords: Mapping[str, object]) -> object: ...


class _Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Shows operators to a program, but where it lets them through as they are.

    is_blind  inside of what the program shows as a whole
    is_idle   in an iteration that is not dumped, where it cannot be taken from the stack of modes
    """

    supports_higher_order_operators = True

    def __init__(self, program: _Program) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._program: _Program | None = program
        self._shown_to: _Program | None = program
        self.is_blind = self.is_idle = False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """So Dynamo compiles what it compiles without this mode.   Source: PyTorch 2.9 and later."""
        return True

    def end(self) -> None:
        """Let operators through as they are: a thread may keep the mode that somebody else has ended."""
        self._program = self._shown_to = None

    def let_through(self, is_blind: bool | None = None, is_idle: bool | None = None) -> None:
        """None: as before."""
        self.is_blind = self.is_blind if is_blind is None else is_blind
        self.is_idle = self.is_idle if is_idle is None else is_idle
        self._shown_to = None if self.is_blind or self.is_idle else self._program

    def __torch_dispatch__(
        self,
        function: torch._ops.OperatorBase,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        for at in _tensors_alone(function):
            if at < len(args) and type(args[at]) in _NUMBERS:
                args = (*args[:at], _as_tensor(args[at]), *args[at + 1 :])
        if self._shown_to is None:
            return function(*args, **(kwargs or {}))
        return self._shown_to.run(function, args, kwargs or {})


class StackedMode:
    """The mode of a program, in the thread that makes this object: its keys and its modes are those of the entry."""

    def __init__(self, program: _Program) -> None:
        self._mode = _Mode(program)
        self._program = program
        self._thread = threading.get_ident()
        self._keys = _other_keys()
        self._below = _modes_of_script()
        self._is_wanted = False
        # Not what the stack of modes says: while an operator is shown, the mode is not on it.
        self._is_on = False
        self._stays_on = False
        self._may_be_lost = False
        self.is_away = False

    def show(self, is_wanted: bool) -> None:
        """Show operators, or no longer: without the mode they cost what they cost without msdump.

        The mode stays, and lets operators through, where PyTorch will restore that it is there: inside of a guard, in a
        backward pass, and for good where iterations begin inside of a call of what `torch.compile` made.
        """
        self._is_wanted = is_wanted
        self._mode.let_through(is_idle=not is_wanted)
        if self.is_away or is_wanted == self._is_on or threading.get_ident() != self._thread:
            return
        self._stays_on = self._stays_on or _is_in_compiled_call()
        is_in_backward = self._program.is_in_backward
        if is_wanted:
            self._enter()
            self._may_be_lost = is_in_backward
        elif not self._stays_on and not is_in_backward and _other_keys() == self._keys:
            self._leave()

    def settle(self) -> None:
        """A guard, a backward pass or a call of what `torch.compile` made has ended, and PyTorch has restored what it
        had noted before that: the keys are those of the stack again, and the mode leaves it where it had to wait.
        """
        if self.is_away or threading.get_ident() != self._thread:
            return
        stack = _get_current_dispatch_mode_stack()
        is_there = any(each is self._mode for each in stack)
        if is_there or not stack:
            for key in _OF_MODES:
                if torch._C._dispatch_tls_is_dispatch_key_included(key) != bool(stack):
                    torch._C._dispatch_tls_set_dispatch_key_included(key, bool(stack))
        if self._is_on and self._may_be_lost and not self._program.is_in_backward:
            self._is_on, self._may_be_lost = is_there, False
        if self._is_on != self._is_wanted:
            self.show(self._is_wanted)

    def close(self) -> str:
        """Leave the stack for ever.   Returns: where that has to be, where it is too late or too early; then the mode
        stays, and lets operators through."""
        is_in_thread = threading.get_ident() == self._thread
        self._stays_on = False
        self.show(False)
        self._mode.end()
        self._thread = 0
        if not is_in_thread:
            return "in the thread that entered it"
        return "in the guard that it was entered in, such as torch.inference_mode" if self._is_on else ""

    @contextlib.contextmanager
    def blind(self) -> Iterator[None]:
        """No operator is seen: what runs in here meets no mode of msdump's, where it is the innermost one."""
        mode = self._mode
        if _get_current_dispatch_mode() is mode:
            _pop_mode()
            try:
                yield
            finally:
                _push_mode(mode)
        else:
            was_blind = mode.is_blind
            mode.let_through(is_blind=True)
            try:
                yield
            finally:
                mode.let_through(is_blind=was_blind)

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """For while `torch.jit` records: in a dispatch mode PyTorch refuses to trace a convolution, and others."""
        stack, was_away = _modes_of_script(), self.is_away
        is_on = self._mode in stack
        above = stack[stack.index(self._mode) + 1 :] if is_on else []
        if is_on:
            with _without(above):
                _pop_mode()
        self.is_away = True
        try:
            yield
        finally:
            self.is_away = was_away
            if is_on:
                with _without(above):
                    _push_mode(self._mode)

    @property
    def is_here(self) -> bool:
        """Whether operators of this thread come to the mode, as of one that computes gradients."""
        return any(each is self._mode for each in _get_current_dispatch_mode_stack())

    def _enter(self) -> None:
        """Below the modes that the script has entered since: each of these takes away the innermost when it ends."""
        with _without([each for each in _modes_of_script() if all(each is not other for other in self._below)]):
            _push_mode(self._mode)
        self._is_on = True

    def _leave(self) -> None:
        stack = _modes_of_script()
        if self._mode in stack:
            with _without(stack[stack.index(self._mode) + 1 :]):
                _pop_mode()
            self._is_on = False


@cache
def _tensors_alone(function: torch._ops.OperatorBase) -> tuple[int, ...]:
    """Which arguments of an operator must be tensors. PyTorch hands a tensor that stands for a number to a mode as the
    number, also in their place, as for the text and the check of a graph that `torch.jit` has recorded.
    """
    schema = getattr(function, "_schema", None)
    if schema is None or torch._C._should_allow_numbers_as_tensors(schema.name.rpartition("::")[2]):
        return ()
    return tuple(at for at, each in enumerate(schema.arguments) if isinstance(each.type, torch.TensorType))


def _as_tensor(number: Any) -> torch.Tensor:
    return torch.scalar_tensor(number, dtype=_NUMBERS[type(number)])


def _other_keys() -> int:
    """Keys of dispatch that hold for this thread, without those that modes have."""
    keys = torch._C._dispatch_tls_local_include_set()
    for key in _OF_MODES:
        keys = keys.remove(key)
    return int(keys.raw_repr())


def _modes_of_script() -> list[TorchDispatchMode]:
    """Without those of PyTorch's own, such as that of fake tensors: each of these has a slot outside of the stack."""
    return [each for each in _get_current_dispatch_mode_stack() if getattr(each, "_mode_key", None) is None]


@contextlib.contextmanager
def _without(innermost: Sequence[TorchDispatchMode]) -> Iterator[None]:
    for _ in innermost:
        _pop_mode()
    try:
        yield
    finally:
        for each in innermost:
            _push_mode(each)


def _is_in_compiled_call() -> bool:
    """Whether what runs was called by a function that `torch.compile` made.   Source: PyTorch 2.8 and later."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "compile_wrapper" and frame.f_code.co_filename == eval_frame.__file__:
            return True
        frame = frame.f_back
    return False
