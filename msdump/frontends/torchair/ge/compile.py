"""compile_ge: FX graph -> GE graph -> passes -> what runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from torch import fx

from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.ge.convert import convert
from msdump.frontends.torchair.ge.graph import GeGraph
from msdump.frontends.torchair.ge.passes import GE_PASSES
from msdump.frontends.torchair.ge.program import runnable

ORIGINAL, OPTIMIZED = "original_ge_graph", "optimized_ge_graph"


class GraphObserver(Protocol):
    """Who wants to see the graphs of a compilation, each under the name of its stage."""

    def fx_graph(self, name: str, module: fx.GraphModule) -> None: ...

    def ge_graph(self, name: str, graph: GeGraph) -> None: ...


def compile_ge(
    module: fx.GraphModule,
    example_inputs: Sequence[Any],
    graph_id: int,
    config: CompilerConfig,
    observers: Sequence[GraphObserver] = (),
) -> tuple[GeGraph, Callable[[list[Any]], Any]]:
    """The GE graph of an FX graph that has been through its passes, and what runs it.

    Raises: NoConverterError.
    """
    graph = convert(module, graph_id)
    _show(observers, ORIGINAL, graph)
    for name, apply in GE_PASSES:
        apply(graph, config)
        _show(observers, f"graph_after_{name}", graph)
    graph.lint()
    _show(observers, OPTIMIZED, graph)
    return graph, runnable(graph)


def _show(observers: Sequence[GraphObserver], name: str, graph: GeGraph) -> None:
    for observer in observers:
        observer.ge_graph(name, graph)
