"""compile_ge: FX graph -> GE graph -> passes -> what runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from torch import fx

from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.ge.convert import convert
from msdump.torchair.ge.graph import GeGraph
from msdump.torchair.ge.passes import GE_PASSES
from msdump.torchair.ge.program import runnable

log = logging.getLogger("msdump")

# Operators without a GE form that a warning has named.
_warned: set[str] = set()
ORIGINAL, OPTIMIZED = "original_ge_graph", "optimized_ge_graph"


class GraphObserver(Protocol):
    """Gets the graphs of a compilation, each under the name of its stage."""

    def fx_graph(self, name: str, module: fx.GraphModule) -> None:
        """An FX graph, after a pass."""

    def ge_graph(self, name: str, graph: GeGraph) -> None:
        """A GE graph, after a pass."""


def compile_ge(
    module: fx.GraphModule,
    example_inputs: Sequence[object],
    graph_id: int,
    config: CompilerConfig,
    observers: Sequence[GraphObserver] = (),
) -> tuple[GeGraph, Callable[[list[object]], object]]:
    """The GE graph of an FX graph that has been through its passes, and what runs it.

    Raises: NoConverterError.
    """
    graph = convert(module, graph_id, bool(config.experimental_config.enable_view_optimize))
    _tell_calls(graph)
    _show(observers, ORIGINAL, graph)
    for name, apply in GE_PASSES:
        apply(graph, config)
        _show(observers, f"graph_after_{name}", graph)
    graph.lint()
    _show(observers, OPTIMIZED, graph)
    return graph, runnable(graph)


def _tell_calls(graph: GeGraph) -> None:
    """Say once of each operator that TorchAir would refuse it."""
    by_target = {str(op.fx_node.target): op.type for op in graph.ops if op.call is not None and op.fx_node is not None}
    news = {target: op_type for target, op_type in by_target.items() if target not in _warned}
    if news:
        _warned.update(news)
        log.warning(
            "%s: the graph engine has no operators for %s. Each runs as PyTorch's operator, and is dumped as one "
            "operator of a type made from its name. TorchAir on an NPU may refuse it.",
            graph.name,
            ", ".join(f"{target} ({op_type})" for target, op_type in news.items()),
        )


def _show(observers: Sequence[GraphObserver], name: str, graph: GeGraph) -> None:
    for observer in observers:
        observer.ge_graph(name, graph)
