"""torchair._utils.graph_utils: what a pass of a script took and changed, in the debug log."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable
from typing import Any

__all__ = ["debug_compare_fx_graphs", "debug_time"]

log = logging.getLogger("torchair")


def debug_compare_fx_graphs(pass_fn: Callable[..., Any] | None = None, *, pass_name: str | None = None) -> Any:
    """The pass, which says in the log what it did to the graph; or a decorator that makes one of a pass.

    pass_name  its name in the log; None: that of the function
    Edges:     counts before and after the call, at level DEBUG; at others it is the pass alone. The graph is that of
               the first GraphModule among the arguments, else the one whose method the pass is, such as
               `graph.eliminate_dead_code`; without either a warning says that nothing is compared.
    Source:    TorchAir, debug_compare_fx_graphs.
    """

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def compared(*args: Any, **kwargs: Any) -> Any:
            if not log.isEnabledFor(logging.DEBUG):
                return function(*args, **kwargs)
            from msdump.frontends.torchair.passes.report import NodeCount, report

            name = pass_name or _name(function)
            graph = _graph_of(function, (*args, *kwargs.values()))
            if graph is None:
                log.warning("%s: expected a GraphModule among the arguments, got none; graphs are not compared.", name)
                return function(*args, **kwargs)
            before = NodeCount.of(graph())
            start = time.perf_counter()
            result = function(*args, **kwargs)
            log.debug(report(name, time.perf_counter() - start, before, NodeCount.of(graph())))
            return result

        return compared

    return wrapped if pass_fn is None else wrapped(pass_fn)


def debug_time(func: Callable[..., Any] | None = None, *, phase_name: str | None = None) -> Any:
    """The function, which says in the log how long it took, at level DEBUG; or a decorator that makes one of it.

    phase_name  its name in the log; None: that of the function
    Source:     TorchAir, debug_time.
    """

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            if not log.isEnabledFor(logging.DEBUG):
                return function(*args, **kwargs)
            start = time.perf_counter()
            result = function(*args, **kwargs)
            cost = time.perf_counter() - start
            phase = phase_name or _name(function)
            log.debug("The operation of %s phase (function name: %s) cost %.10fs.", phase, _name(function), cost)
            return result

        return timed

    return wrapped if func is None else wrapped(func)


def _graph_of(function: Callable[..., Any], values: tuple[Any, ...]) -> Callable[[], Any] | None:
    """What gives the graph now: a pass may put another one into its module."""
    from torch.fx import Graph, GraphModule

    for value in values:
        if isinstance(value, GraphModule):
            return functools.partial(getattr, value, "graph")
    owner = getattr(function, "__self__", None)
    return (lambda: owner) if isinstance(owner, Graph) else None


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
