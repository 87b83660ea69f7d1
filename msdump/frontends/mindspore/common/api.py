"""`jit`: a function that runs as a graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from msdump.frontends.mindspore.compiler import GraphCache, compiled_call
from msdump.frontends.mindspore.context import check_jit_level
from msdump.frontends.mindspore.tracer import current_tracer


class JitConfig:
    """How a graph is compiled. Kept for scripts: there is one way here.   Raises: ValueError for an unknown level."""

    def __init__(self, jit_level: str = "O1", exc_mode: str = "auto", **kwargs: Any) -> None:
        if jit_level:
            check_jit_level(jit_level)
        if exc_mode not in ("auto", "sink", "no_sink"):
            raise ValueError(f"For 'JitConfig', 'exc_mode' must be one of ['auto', 'sink', 'no_sink'], got {exc_mode}.")
        self.jit_config_dict = {"jit_level": jit_level, "exc_mode": exc_mode, **kwargs}


def jit(
    fn: Callable[..., Any] | None = None,
    input_signature: Any = None,
    hash_args: Any = None,
    jit_config: JitConfig | None = None,
    **options: Any,
) -> Any:
    """Make `fn` run as a graph, compiled once per input signature. With or without arguments as a decorator.

    Edges: inside another graph it becomes part of that graph; a method takes its object along.
    """
    if fn is None:
        return functools.partial(jit, input_signature=input_signature, hash_args=hash_args, jit_config=jit_config)
    function = fn
    cache = GraphCache()

    @functools.wraps(function)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        if current_tracer() is not None:
            return function(*args, **kwargs)
        return compiled_call(function, cache, args, kwargs)

    return compiled


ms_function = jit


def ms_memory_recycle() -> None:
    """Nothing is kept that could be recycled."""
