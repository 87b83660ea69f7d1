"""torchair._utils.graph_utils: what a pass took and changed, in the debug log."""

from __future__ import annotations

import functools
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from torch.fx import Graph

__all__ = ["debug_compare_fx_graphs", "debug_time"]

log = logging.getLogger("torchair")

# What a pass takes and gives, which its wrapper does too.
Given = ParamSpec("Given")
Result = TypeVar("Result")


def debug_compare_fx_graphs(pass_fn: Callable[..., object] | None = None, *, pass_name: str | None = None) -> Any:
    """The pass, which says in the log what it did to the graph; or a decorator that makes one of a pass.

    pass_name  its name in the log; None: that of the function
    Edges:     counts before and after the call, at level DEBUG; at others it is the pass alone. The graph is that of
               the first GraphModule among the arguments, else the one whose method the pass is, such as
               `graph.eliminate_dead_code`; without either a warning says that nothing is compared.
    Source:    TorchAir, debug_compare_fx_graphs.
    """

    def wrapped(function: Callable[Given, Result]) -> Callable[Given, Result]:
        @functools.wraps(function)
        def compared(*args: Given.args, **kwargs: Given.kwargs) -> Result:
            if not log.isEnabledFor(logging.DEBUG):
                return function(*args, **kwargs)

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


def debug_time(func: Callable[..., object] | None = None, *, phase_name: str | None = None) -> Any:
    """The function, which says in the log how long it took, at level DEBUG; or a decorator that makes one of it.

    phase_name  its name in the log; None: that of the function
    Source:     TorchAir, debug_time.
    """

    def wrapped(function: Callable[Given, Result]) -> Callable[Given, Result]:
        @functools.wraps(function)
        def timed(*args: Given.args, **kwargs: Given.kwargs) -> Result:
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


def _graph_of(function: Callable[..., object], values: tuple[object, ...]) -> Callable[[], Graph] | None:
    """What gives the graph now: a pass may put another one into its module."""
    from torch.fx import Graph, GraphModule

    for value in values:
        if isinstance(value, GraphModule):
            return functools.partial(getattr, value, "graph")
    owner = getattr(function, "__self__", None)
    return (lambda: owner) if isinstance(owner, Graph) else None


def _name(function: Callable[..., object]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


_COLUMNS = ("name", "cnt(before)", "cnt(after)", "diff")


@dataclass(frozen=True)
class NodeCount:
    """Nodes of a graph at one moment, by name, kind and target."""

    names: tuple[str, ...]
    operations: Counter[str]
    targets: Counter[str]

    @staticmethod
    def of(graph: Graph) -> NodeCount:
        """Count the nodes of a graph."""
        nodes = list(graph.nodes)
        return NodeCount(
            tuple(node.name for node in nodes),
            Counter(node.op for node in nodes),
            Counter(str(node.target) for node in nodes if node.op == "call_function"),
        )


def report(name: str, cost_s: float, before: NodeCount, after: NodeCount) -> str:
    """One message: what the pass took, what went and came, and two aligned tables of how many there are of each.

    Source: TorchAir, its debug log. Nodes stand in the order of the graph, rows in that of the alphabet.
    """
    return "\n".join(
        (
            f"After fx graph pass({name}) optimization:",
            f"    cost {cost_s:.10f}s,",
            f"    before {len(before.names)} nodes, after {len(after.names)} nodes,",
            f"    removed nodes: {_missing(before.names, after.names)},",
            f"    added nodes: {_missing(after.names, before.names)},",
            "    operations statistics:",
            *_table(before.operations, after.operations),
            "    targets statistics:",
            *_table(before.targets, after.targets),
        )
    )


def _missing(names: tuple[str, ...], others: tuple[str, ...]) -> list[str]:
    present = set(others)
    return [name for name in names if name not in present]


def _table(before: Counter[str], after: Counter[str]) -> Iterator[str]:
    counts = [("total", before.total(), after.total())]
    counts += [(kind, before[kind], after[kind]) for kind in sorted({*before, *after})]
    rows: list[tuple[str, ...]] = [_COLUMNS, *((kind, str(old), str(new), str(new - old)) for kind, old, new in counts)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))
    for row in rows:
        first, *others = (f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        yield "  ".join((f"    {row[0]:<{len(first)}}", *others))
