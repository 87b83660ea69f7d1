"""PyTorch as a tool: what msdump computes with it is no operator of the script, and no observer sees it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

_Result = TypeVar("_Result")

is_anyone_watching = False
"""Whether eager PyTorch has been watched in this process: set once, by what watches it. Nothing is hidden before."""


class _Here(threading.local):
    """Of one thread: how many blocks are open, what ends the outermost one, and the trace that it has suspended."""

    depth = 0
    guards: tuple[Any, ...] = ()
    trace: Any = None


_here = _Here()


class _Unseen:
    """While it is open, who records the program sees nothing of what this thread runs: neither dispatch modes and modes
    of functions, such as those of `make_fx` and `torch.export`, nor the tracer of `torch.jit`, nor the profiler and
    compiled observers, which are told by record functions. The stacks of modes stay as they are.
    """

    def __enter__(self) -> None:
        import torch

        _here.depth += 1
        if _here.depth > 1:
            return
        torch._C._autograd._enable_record_function(False)
        trace = _here.trace = torch._C._get_tracing_state()
        if trace is not None:
            _set_trace(None)
        guards = _here.guards = torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction()
        for guard in guards:
            guard.__enter__()

    def __exit__(self, *error: object) -> None:
        import torch

        _here.depth -= 1
        if _here.depth:
            return
        for guard in reversed(_here.guards):
            guard.__exit__(*error)
        _here.guards = ()
        if _here.trace is not None:
            _set_trace(_here.trace)
            _here.trace = None
        torch._C._autograd._enable_record_function(True)


unseen = _Unseen()
_seen = nullcontext()


def beside_operator() -> AbstractContextManager[None]:
    """As `unseen`, for what runs before and after each operator: it costs next to nothing where nothing is recorded."""
    import torch

    native = torch._C
    is_recorded = (
        native._len_torch_function_stack()
        or native._len_torch_dispatch_stack()
        or native._get_tracing_state() is not None
        or torch.autograd.profiler._is_profiler_enabled
    )
    return unseen if is_recorded else _seen


def is_unseen() -> bool:
    """Whether this thread computes for msdump itself."""
    return _here.depth > 0


def hidden(compute: Callable[..., _Result], *args: object) -> _Result:
    """What a function gives that computes with PyTorch, unseen."""
    if not is_anyone_watching:
        return compute(*args)
    with unseen:
        return compute(*args)


def _set_trace(trace: Any) -> None:
    import torch

    library: Any = torch._C
    library._set_tracing_state(trace)
