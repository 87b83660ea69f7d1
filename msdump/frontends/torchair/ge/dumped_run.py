"""DumpedGraph: a GE graph that runs while observers look on."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from msdump.frontends.torch.device import copies_for
from msdump.frontends.torch.observed_program import ObservedProgram
from msdump.frontends.torch.program import Program
from msdump.frontends.torch.shapes import has_symbols, sizes_of
from msdump.frontends.torchair.ge.dump_graph import graph_from_ge
from msdump.frontends.torchair.ge.graph import GeGraph
from msdump.frontends.torchair.ge.program import GeModule
from msdump.graph.run import Observer

# Observers know graphs by their number: one for each set of sizes.
_watched_ids = itertools.count()


class DumpedGraph:
    """Called as AOT Autograd calls a graph: with a list of arguments, which it empties.

    Calls are iterations, counted from 0. Every set of sizes is another graph for observers. Any thread may call it;
    runs that are watched wait for each other.
    report   told why tensors cannot be shown, and how many
    """

    def __init__(self, graph: GeGraph, observers: Sequence[Observer], report: Callable[[str, int], None]) -> None:
        self._graph = graph
        self._module = GeModule(graph)
        self._program = Program(self._module)
        self._observers = tuple(observers)
        self._report = report
        self._iterations = itertools.count()
        self._placeholders = [op.fx_node for op in graph.arguments if op.fx_node is not None]
        self._has_symbols = has_symbols(self._placeholders)
        self._seen: dict[frozenset[tuple[Any, int]], ObservedProgram] = {}
        self._lock = threading.RLock()

    def __call__(self, args: list[Any]) -> Any:
        iteration = next(self._iterations)
        with self._lock:
            seen = self._observed(args)
            watched = seen.seen.begin(iteration)
            if watched is not None:
                return seen.run(watched, args, copies_for(args), lambda reason: self._report(reason, 1))
        return self._program.run(args)

    def _observed(self, args: list[Any]) -> ObservedProgram:
        sizes = sizes_of(self._placeholders, args) if self._has_symbols else {}
        signature = frozenset(sizes.items())
        if signature not in self._seen:
            found = graph_from_ge(self._graph, self._module, sizes, next(_watched_ids))
            for reason, count in found.skipped.items():
                self._report(reason, count)
            if any(isinstance(arg, torch.Tensor) and arg.is_cuda for arg in args):
                # What observers get of a device are copies already.
                found.graph.held, found.graph.borrowed = set(found.roots), set()
            self._seen[signature] = ObservedProgram(self._program, found, self._observers)
        return self._seen[signature]
