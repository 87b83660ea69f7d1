"""GE graphs that are dumped, and FX graphs of the eager dump, keep the contract of watched runs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from msdump.graph.run import Observer
from msdump.torchair.eager_graph import EagerGraph, plan_nodes
from msdump.torchair.ge.convert import convert
from msdump.torchair.ge.dumped_run import DumpedGeGraph
from tests.contracts.run_contract import Play, RunContract


def reads_twice(x: Any) -> Any:
    y = x.exp()
    return (y * -y).reshape(3, 2), y


def fails(table: Any, index: Any) -> Any:
    return ((-table).index_select(0, index).exp(),)


class TestGeGraph(RunContract):
    def program(self, observers: Sequence[Observer]) -> Play:
        return self._play(observers, reads_twice, torch.linspace(-1, 1, 6).reshape(2, 3))

    def failing_program(self, observers: Sequence[Observer]) -> Play:
        return self._play(observers, fails, torch.ones(3), torch.tensor([7]))

    def _play(self, observers: Sequence[Observer], function: Any, *args: Any) -> Play:
        module = make_fx(function, tracing_mode="fake")(*args)
        graph = DumpedGeGraph(convert(module, 1), observers, lambda skipped: None)
        return lambda: b"".join(result.numpy().tobytes() for result in graph([*args]))


class TestEager(RunContract):
    """The eager dump runs what functionalization leaves: only inputs are written in place."""

    def program(self, observers: Sequence[Observer]) -> Play:
        return self._play(observers, reads_twice, torch.linspace(-1, 1, 6).reshape(2, 3))

    def failing_program(self, observers: Sequence[Observer]) -> Play:
        return self._play(observers, fails, torch.ones(3), torch.tensor([7]))

    def _play(self, observers: Sequence[Observer], function: Any, *args: Any) -> Play:
        module = make_fx(function, tracing_mode="fake")(*args)
        graph = EagerGraph(module, plan_nodes(module.graph, None), 1, observers)
        steps = itertools.count()
        return lambda: b"".join(result.numpy().tobytes() for result in graph.run(next(steps), [*args]))
