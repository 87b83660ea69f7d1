"""`jit`: a function that runs as a graph; and decorators that change nothing of what a graph computes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from msdump.mindspore.compiler import GraphCache
from msdump.mindspore.context import JitConfig, check_jit_level
from msdump.mindspore.located import located
from msdump.mindspore.names import publish
from msdump.mindspore.pynative import call_in_graph_mode
from msdump.mindspore.tracer import current_tracer


def jit(
    fn: Callable[..., Any] | None = None, input_signature: Any = None, hash_args: Any = None,
    jit_config: JitConfig | None = None, *, function: Callable[..., Any] | None = None, **options: Any,
) -> Any:  # fmt: skip
    """Make `fn` run as a graph, compiled once per input signature. With or without arguments as a decorator.

    function     what MindSpore 2.7 calls fn
    jit_config   or `jit_level` alone: O0 decides on the folders of a dump through ACL
    Edges:  inside another graph it becomes part of that graph; a method takes its object along.
    Raises: ValueError for a level that does not exist.
    """
    function = fn if function is None else function
    if function is None:
        return functools.partial(
            jit, input_signature=input_signature, hash_args=hash_args, jit_config=jit_config, **options
        )
    level = str(options.get("jit_level", "")) if jit_config is None else jit_config.jit_level
    if level:
        check_jit_level(level)
    cache = GraphCache()

    @located(getattr(function, "__name__", "jit"))
    @functools.wraps(function)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        tracer = current_tracer()
        if tracer is not None and tracer.is_binding:
            return function(*args, **kwargs)
        return call_in_graph_mode(function, cache, args, kwargs, jit_level=level)

    return compiled


ms_function = jit


def jit_class(cls: type[Any]) -> type[Any]:
    """Decorator: objects of the class may be used in graphs, which they may here anyway.   Raises: TypeError."""
    if not isinstance(cls, type):
        raise TypeError(f"Decorator jit_class can only be used for class type, but got {cls}.")
    if any(base.__name__ == "Cell" for base in cls.__mro__):
        raise TypeError(f"Decorator jit_class is used for user-defined classes and cannot be used for nn.Cell: {cls}.")
    cls.__ms_class__ = True
    return cls


ms_class = jit_class


def ms_memory_recycle() -> None:
    """Nothing is kept that could be recycled."""


def lazy_inline(fn: Any = None, attrs: Any = None, policy: str | None = None) -> Any:
    """Decorator of a cell's `__init__`, with or without arguments.   Raises: ValueError for an unknown policy."""
    if policy not in (None, "front"):
        raise ValueError(f"For 'lazy_inline', 'policy' must be None or 'front', but got {policy!r}.")
    return no_inline(fn)


def no_inline(fn: Any = None) -> Any:
    """Decorator of a function, with or without arguments."""
    return fn if fn is not None else no_inline


def recompute(block: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`block(*args, **kwargs)`: nothing is computed twice here."""
    return block(*args, **kwargs)


publish(__name__, "JitConfig")
