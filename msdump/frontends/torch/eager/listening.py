"""What eager programs hear of their process: modules, optimizers, backward passes, and what `torch.compile` made.

PyTorch has hooks for some of this, but Dynamo sees hooks: it guards on their number, traces into them, and compiles
other graphs than without. So functions of PyTorch are replaced while a program listens, each by one that calls it.
Dynamo compiles none of these; where it traces into one, it finds the call of the function itself and nothing else.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Protocol

import torch
from torch._dynamo.variables import nn_module

from msdump.frontends.torch.eager.regions import Region
from msdump.frontends.torch.operators import results_in
from msdump.process import sessions
from msdump.tensors import unseen

unseen.is_anyone_watching = True

# Source: PyTorch, `torch.optim.Optimizer.profile_hook_step`, which names each step after the class.
_STEP = "Optimizer.step#"
# Source: PyTorch, `OutputGraph.compile_and_call_fx_graph`: the code that Dynamo makes calls its graphs by such globals.
_COMPILED = "__compiled_fn_"
# Source: PyTorch, `AOTDispatchAutograd`: one class for each graph, whose `backward` runs the graph of its gradients.
_AOT_FUNCTION = "CompiledFunction"
# Source: PyTorch 2.6 and later, where Dynamo looks up whether the calls of modules are PyTorch's own.
_UNPATCHED = "unpatched_nn_module_call"


class StepListener(Protocol):
    """What hears of backward passes and optimizers alone. What other threads than its own do is not told to it."""

    def is_concerned(self) -> bool:
        """Whether what runs in this thread is part of it."""

    def enter_optimizer(self, name: str, optimizer: object) -> None:
        """name: of its class; optimizer: itself, or anything else where it is not known"""

    def leave_optimizer(self) -> None: ...

    def enter_scaler(self) -> None:
        """A scaler of the loss begins a step, or changes its scale."""

    def leave_scaler(self, optimizer: object) -> None:
        """optimizer: which it has let make its step, or whose step it has skipped; None where its scale has changed"""

    def enter_backward(self, accumulates: bool) -> None:
        """accumulates: whether it leaves gradients in parameters"""

    def leave_backward(self) -> None: ...


class Listener(StepListener, Protocol):
    """A program, which hears of all that is in this file."""

    def enter_module(self, module: torch.nn.Module) -> None: ...

    def leave_module(self) -> None: ...

    def note_compiler(self, is_at_work: bool) -> None:
        """Dynamo begins to compile, or has ended."""

    def leave_compiled(self) -> None:
        """What `torch.compile` made has run, and PyTorch has restored what it had noted when that began."""

    def leave_guard(self) -> None:
        """As `torch.inference_mode` ends: PyTorch has restored the keys that it had noted when that began."""

    def around_trace(self) -> AbstractContextManager[None]:
        """For while `torch.jit` records what this thread runs."""

    def run_region(
        self, region: Region, function: Callable[..., object], args: Sequence[object], keywords: Mapping[str, object]
    ) -> object:
        """Run what `torch.compile` made of a region, forward or backward.   Returns: what it returns."""


class _Replacement:
    """A function of PyTorch's and the one in its place. `make` makes that from the function that it calls.

    Who replaces it too, later, keeps it where it is: then it stays, and calls what it always called.
    """

    def __init__(
        self,
        owner: object,
        name: str,
        make: Callable[[Callable[..., object]], Callable[..., object]],
        is_static: bool = False,
    ) -> None:
        self._owner, self._name, self._make, self._is_static = owner, name, make, is_static
        self._original: Any = None
        self._own: Any = None

    def install(self) -> None:
        if self._own is not None:
            return
        self._original = getattr(self._owner, self._name)
        self._own = functools.wraps(self._original)(self._make(self._original))
        torch._dynamo.eval_frame.skip_code(self._own.__code__)
        self._set(self._own)

    def remove(self) -> None:
        if getattr(self._owner, self._name) is self._own:
            self._set(self._original)
            self._own = None

    def _set(self, function: Callable[..., object]) -> None:
        setattr(self._owner, self._name, staticmethod(function) if self._is_static else function)


class Listening:
    """Of one process: who listens, and the functions that are replaced meanwhile."""

    def __init__(self) -> None:
        self.listeners: tuple[Listener, ...] = ()
        # In which calls of modules are not told of; 0: in none.
        self.quiet_thread = 0
        self._step_listeners: tuple[StepListener, ...] = ()
        # Those that tell of steps, and those that tell of all else.
        self._of_steps: tuple[_Replacement, ...] = ()
        self._of_programs: tuple[_Replacement, ...] = ()
        self._of_compiler: tuple[_Replacement, ...] = ()
        self._unpatched: object = None

    def begin(self, listener: Listener) -> None:
        with sessions.lock:
            self._install_steps()
            if not self.listeners:
                self._install()
            self.listeners = (*self.listeners, listener)
            self.quiet_thread = 0

    def end(self, listener: Listener) -> None:
        """Idempotent."""
        with sessions.lock:
            had = bool(self.listeners)
            self.listeners = tuple(each for each in self.listeners if each is not listener)
            if had and not self.listeners:
                for replacement in (*self._of_programs, *self._of_compiler):
                    replacement.remove()
                if self._unpatched is not None:
                    setattr(nn_module, _UNPATCHED, self._unpatched)
                    self._unpatched = None
                for scope, name, value in _compiled_globals():
                    scope[name] = getattr(value, "msdump_compiled", value)
            self._remove_steps()

    def begin_steps(self, listener: StepListener) -> None:
        """Tell it of steps alone: what calls of modules and compiled graphs run stays as it is."""
        with sessions.lock:
            self._install_steps()
            self._step_listeners = (*self._step_listeners, listener)

    def end_steps(self, listener: StepListener) -> None:
        """Idempotent."""
        with sessions.lock:
            self._step_listeners = tuple(each for each in self._step_listeners if each is not listener)
            self._remove_steps()

    def forget(self) -> None:
        """End all who listen, also those of sessions that were not closed."""
        for listener in self.listeners:
            self.end(listener)
        for each in self._step_listeners:
            self.end_steps(each)

    def hear_compiler(self) -> None:
        """Tell listeners of the compiler as well, until the last of them has ended."""
        with sessions.lock:
            self._of_compiler = self._of_compiler or _replacements_of_compiler()
            for replacement in self._of_compiler:
                replacement.install()

    def hush(self, listener: Listener) -> None:
        """The listener wants to be told of no module that is called inside of the one that it was just told of, in this
        thread; until `speak`, which is for where that ends. Others that listen are told."""
        if self.listeners == (listener,):
            self.quiet_thread = threading.get_ident()

    def speak(self) -> None:
        """In this thread modules are told of."""
        if self.quiet_thread == threading.get_ident():
            self.quiet_thread = 0

    def concerned(self) -> tuple[Listener, ...]:
        return tuple([listener for listener in self.listeners if listener.is_concerned()])

    def concerned_with_steps(self) -> tuple[StepListener, ...]:
        return tuple([each for each in (*self.listeners, *self._step_listeners) if each.is_concerned()])

    def _install_steps(self) -> None:
        if not self._of_steps:
            self._of_steps = _replacements_of_steps()
        for replacement in self._of_steps:
            replacement.install()

    def _remove_steps(self) -> None:
        if not self.listeners and not self._step_listeners:
            for replacement in self._of_steps:
                replacement.remove()

    def _install(self) -> None:
        if not self._of_programs:
            self._of_programs = _replacements_of_programs()
        is_plain = torch.nn.Module.__call__ is getattr(nn_module, _UNPATCHED, None)
        for replacement in self._of_programs:
            replacement.install()
        if is_plain:
            # Then Dynamo takes its short way to `forward`, as where the function is in its place.
            self._unpatched = getattr(nn_module, _UNPATCHED)
            setattr(nn_module, _UNPATCHED, torch.nn.Module.__call__)
        for scope, name, value in _compiled_globals():
            scope[name] = _listened(value)


listening = Listening()
sessions.call_at_reset(listening.forget)


def _replacements_of_programs() -> tuple[_Replacement, ...]:
    import torch._dynamo.utils

    enter_module, leave_module, leave_guard = _enter_module, _leave_module, _leave_guard
    # For where Dynamo looks at what is called.
    quiet_enter_module, quiet_leave_module, quiet_leave_guard = map(
        torch._dynamo.disable, (enter_module, leave_module, leave_guard)
    )
    looks, compiles, thread = _dynamo_callback(), _compiles_here, threading.get_ident

    def call_of(original: Callable[..., object]) -> Callable[..., object]:
        def call(self: torch.nn.Module, *args: object, **keywords: object) -> object:
            if torch.compiler.is_dynamo_compiling() or (torch.compiler.is_compiling() and compiles()):
                return original(self, *args, **keywords)
            if listening.quiet_thread == thread():
                return original(self, *args, **keywords)
            listeners = (enter_module if looks() is None else quiet_enter_module)(self)
            if not listeners:
                return original(self, *args, **keywords)
            try:
                return original(self, *args, **keywords)
            finally:
                (leave_module if looks() is None else quiet_leave_module)(listeners)

        return call

    def create_of(original: Callable[..., object]) -> Callable[..., object]:
        def create(scope: dict[str, object], name: str, val: Any) -> object:
            return original(scope, name, _listened(val) if name.startswith(_COMPILED) else val)

        return create

    def exit_of(original: Callable[..., object]) -> Callable[..., object]:
        def leave(self: object, *error: object) -> object:
            try:
                return original(self, *error)
            finally:
                (leave_guard if looks() is None else quiet_leave_guard)()

        return leave

    def trace_of(original: Callable[..., object]) -> Callable[..., object]:
        def trace(*args: object, **keywords: object) -> object:
            with ExitStack() as stack:
                for listener in listening.concerned():
                    stack.enter_context(listener.around_trace())
                return original(*args, **keywords)

        return trace

    return (
        _Replacement(torch.nn.Module, "__call__", call_of),
        *(_Replacement(owner, name, trace_of) for owner, name in _tracers()),
        *(_Replacement(guard, "__exit__", exit_of) for guard in _guards()),
        _Replacement(torch._dynamo.utils.CleanupHook, "create", create_of, is_static=True),
    )


def _guards() -> list[type]:
    """Guards of C++ that Python enters, as `torch.inference_mode` does, and that restore all keys of dispatch."""
    names = ("_InferenceMode", "_ForceDispatchKeyGuard")
    return [getattr(torch._C, name) for name in names if hasattr(torch._C, name)]


def _tracers() -> list[tuple[object, str]]:
    """What records in C++, of `torch.jit.trace` and of `torch.onnx.export`."""
    function, method = "_create_function_from_trace", "_create_method_from_trace"
    library = torch._C
    return [
        (library, "_create_graph_by_tracing"),
        *((library, name) for name in (function, f"{function}_with_dict") if hasattr(library, name)),
        *(
            (library.ScriptModule, name)
            for name in (method, f"{method}_with_dict")
            if hasattr(library.ScriptModule, name)
        ),
    ]


def _replacements_of_compiler() -> tuple[_Replacement, ...]:
    """For `msdump_native`, which sees what the compiler runs; PyTorch hides it from a dispatch mode."""
    leave_compiled = _leave_compiled

    def install_of(original: Callable[..., Any]) -> Callable[..., object]:
        def install(*args: object, **keywords: object) -> object:
            return _compiling(original(*args, **keywords))

        return install

    def restore_of(original: Callable[..., object]) -> Callable[..., object]:
        def restore(*args: object, **keywords: object) -> object:
            leave_compiled()
            return original(*args, **keywords)

        return restore

    handler = type(torch._dynamo.callback.callback_handler)
    return (
        _Replacement(handler, "install_callbacks", install_of),  # what compiles runs inside of this
        # It is the last that a compiled function calls, and the first, when Dynamo looks at no frame.
        _Replacement(torch._dynamo.eval_frame, "_maybe_set_eval_frame", restore_of),
    )


def tells_of_compiling() -> bool:
    """Whether this PyTorch has the functions that it calls where it compiles, and where compiled code ends."""
    import torch._dynamo.eval_frame

    handler = getattr(getattr(torch._dynamo, "callback", None), "callback_handler", None)
    return hasattr(type(handler), "install_callbacks") and hasattr(torch._dynamo.eval_frame, "_maybe_set_eval_frame")


def _replacements_of_steps() -> tuple[_Replacement, ...]:
    enter_backward, leave_backward = _enter_backward, _leave_backward
    enter_optimizer, leave_optimizer = _enter_optimizer, _leave_optimizer
    enter_scaler, leave_scaler = _enter_scaler, _leave_scaler
    quiet_enter_backward, quiet_leave_backward = map(torch._dynamo.disable, (enter_backward, leave_backward))
    quiet_enter_optimizer, quiet_leave_optimizer = map(torch._dynamo.disable, (enter_optimizer, leave_optimizer))
    quiet_enter_scaler, quiet_leave_scaler = map(torch._dynamo.disable, (enter_scaler, leave_scaler))
    looks, compiles = _dynamo_callback(), _compiles_here

    def backward_of(original: Callable[..., object]) -> Callable[..., object]:
        def backward(*args: object, **keywords: object) -> object:
            if torch.compiler.is_dynamo_compiling() or (torch.compiler.is_compiling() and compiles()):
                return original(*args, **keywords)
            if unseen.is_unseen():
                return original(*args, **keywords)
            accumulates = bool(keywords.get("accumulate_grad", True))
            listeners = (enter_backward if looks() is None else quiet_enter_backward)(accumulates)
            try:
                return original(*args, **keywords)
            finally:
                (leave_backward if looks() is None else quiet_leave_backward)(listeners)

        return backward

    def enter_of(original: Callable[..., object]) -> Callable[..., object]:
        def enter(self: torch.autograd.profiler.record_function) -> object:
            if self.name.startswith(_STEP) and not (
                torch.compiler.is_dynamo_compiling() or (torch.compiler.is_compiling() and compiles())
            ):
                # The frame that has made this is of a method of the optimizer's.
                optimizer = sys._getframe(1).f_locals.get("self")
                (enter_optimizer if looks() is None else quiet_enter_optimizer)(self.name, optimizer)
            return original(self)

        return enter

    def exit_of(original: Callable[..., object]) -> Callable[..., object]:
        def leave(self: torch.autograd.profiler.record_function, *error: object) -> object:
            if self.name.startswith(_STEP) and not (
                torch.compiler.is_dynamo_compiling() or (torch.compiler.is_compiling() and compiles())
            ):
                (leave_optimizer if looks() is None else quiet_leave_optimizer)()
            return original(self, *error)

        return leave

    def scaled_of(original: Callable[..., object]) -> Callable[..., object]:
        is_step = original.__name__ == "step"

        def scaled(self: torch.amp.GradScaler, *args: object, **keywords: object) -> object:
            if torch.compiler.is_dynamo_compiling() or (torch.compiler.is_compiling() and compiles()):
                return original(self, *args, **keywords)
            (enter_scaler if looks() is None else quiet_enter_scaler)()
            try:
                return original(self, *args, **keywords)
            finally:
                optimizer = next(iter((*args, *keywords.values())), None) if is_step else None
                (leave_scaler if looks() is None else quiet_leave_scaler)(optimizer)

        return scaled

    record = torch.autograd.profiler.record_function
    return (
        _Replacement(torch.autograd, "_engine_run_backward", backward_of),
        _Replacement(record, "__enter__", enter_of),
        _Replacement(record, "__exit__", exit_of),
        _Replacement(torch.amp.GradScaler, "step", scaled_of),
        _Replacement(torch.amp.GradScaler, "update", scaled_of),
    )


def _dynamo_callback() -> Callable[[], object]:
    """A function of C that tells what Dynamo looks at frames with; None: it does not. Older versions cannot tell."""
    return getattr(torch._C._dynamo.eval_frame, "get_eval_frame_callback", bool)


def _compiles_here() -> bool:
    """Whether this thread compiles: `is_compiling` tells of all threads, and Dynamo need not ask more than its own."""
    guards = torch._guards
    is_traced = guards.CompileContext.try_get() is not None or guards.TracingContext.try_get() is not None
    return is_traced or guards.detect_fake_mode() is not None


# -- what the replaced functions tell ----------------------------------------------------------------------------------


def _enter_module(module: torch.nn.Module) -> tuple[Listener, ...]:
    listeners = listening.concerned()
    for listener in listeners:
        listener.enter_module(module)
    return listeners


def _leave_module(listeners: tuple[Listener, ...]) -> None:
    for listener in listeners:
        listener.leave_module()


@contextmanager
def _compiling(callbacks: AbstractContextManager[None]) -> Iterator[None]:
    listeners = listening.concerned()
    for listener in listeners:
        listener.note_compiler(True)
    try:
        with callbacks:
            yield
    finally:
        for listener in listeners:
            listener.note_compiler(False)


def _leave_guard() -> None:
    for listener in listening.concerned():
        listener.leave_guard()


def _leave_compiled() -> None:
    for listener in listening.concerned():
        listener.leave_compiled()


def _enter_backward(accumulates: bool) -> tuple[StepListener, ...]:
    # What AOT Autograd derives while it compiles is no backward pass.
    listeners = () if torch._guards.detect_fake_mode() is not None else listening.concerned_with_steps()
    for listener in listeners:
        listener.enter_backward(accumulates)
    return listeners


def _leave_backward(listeners: tuple[StepListener, ...]) -> None:
    for listener in listeners:
        listener.leave_backward()


def _enter_optimizer(step: str, optimizer: object) -> None:
    name = step.removeprefix(_STEP).removesuffix(".step")
    for listener in listening.concerned_with_steps():
        listener.enter_optimizer(name, optimizer)


def _leave_optimizer() -> None:
    for listener in listening.concerned_with_steps():
        listener.leave_optimizer()


def _enter_scaler() -> None:
    for listener in listening.concerned_with_steps():
        listener.enter_scaler()


def _leave_scaler(optimizer: object) -> None:
    for listener in listening.concerned_with_steps():
        listener.leave_scaler(optimizer)


# -- what torch.compile made -------------------------------------------------------------------------------------------


def _compiled_globals() -> list[tuple[dict[str, object], str, Any]]:
    """Namespace, name and value of all graphs that Dynamo has compiled.

    Source: PyTorch, `CleanupManager`: what is to be removed with a code that Dynamo made.
    """
    hooks = [hook for hooks in list(torch._dynamo.utils.CleanupManager.instance.values.values()) for hook in hooks]
    return [
        (hook.scope, hook.name, hook.scope[hook.name])
        for hook in hooks
        if hook.name.startswith(_COMPILED) and hook.name in hook.scope
    ]


def _listened(function: Callable[..., object]) -> Any:
    """A graph that Dynamo has compiled, as one that listeners run."""
    if hasattr(function, "msdump_compiled"):
        return function
    region = Region(shows_operators=getattr(function, "msdump_shows_operators", False))

    def run(*args: object, **keywords: object) -> object:
        for listener in listening.concerned():
            region.find_place(sys._getframe(1))
            results = listener.run_region(region, function, args, keywords)
            _listen_to_backward(region, results)
            return results
        return function(*args, **keywords)

    return _unseen(run, function)


def _listen_to_backward(region: Region, results: object) -> None:
    """The graph of its gradients, which the engine calls: a function of a class of its own."""
    for _, tensor in results_in(results):
        own = getattr(type(tensor.grad_fn), "_forward_cls", None)
        if own is not None and own.__name__ == _AOT_FUNCTION and not hasattr(own.backward, "msdump_compiled"):
            own.backward = staticmethod(_listened_backward(region, own.backward))


def _listened_backward(region: Region, function: Callable[..., object]) -> Any:
    def run(*args: object) -> object:
        for listener in listening.concerned():
            return listener.run_region(region, function, args, {})
        return function(*args)

    return _unseen(run, function)


def _unseen(run: Any, function: Callable[..., object]) -> Any:
    """What stands for a compiled function, in a form that Dynamo never looks into."""
    run.__name__ = getattr(function, "__name__", _COMPILED)
    disabled: Any = torch._dynamo.disable(run)  # type: ignore[no-untyped-call]
    disabled.msdump_compiled = function
    return disabled


def is_compiled_node(node: object) -> bool:
    """Whether a node of autograd runs a graph that AOT Autograd made."""
    own = getattr(type(node), "_forward_cls", None)
    return own is not None and own.__name__ == _AOT_FUNCTION
