"""ATen operators as GE graphs that have to give what eager gives, bit for bit."""

from __future__ import annotations

from typing import Any

import torch
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from msdump.torchair.ge.convert import convert
from msdump.torchair.ge.graph import GeGraph
from msdump.torchair.ge.program import runnable
from tests.torchair.ge_calls import results_of, spelling


def equal(actual: Any, expected: Any) -> None:
    """Same bits, dtype, shape; NaN equals NaN."""
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


def check_exactly(target: Any, args: Any, spelled: str, **kwargs: Any) -> None:
    """spelled   operators of the graph, with a blank between them"""
    found, actual = results_of(target, *args, **kwargs)
    expected = target(*args, **kwargs)
    expected = list(expected) if isinstance(expected, tuple | list) else [expected]
    assert len(actual) == len(expected)
    for mine, theirs in zip(actual, expected, strict=True):
        equal(mine, theirs)
    assert " ".join(found) == spelled


def check_traced(function: Any, *args: Any, also: Any = (), symbolic: bool = False) -> GeGraph:
    """The function, traced with these tensors, run as a GE graph on them and on each of `also`."""
    traced = make_fx(functionalize(function), tracing_mode="symbolic" if symbolic else "fake")(*args)
    graph = convert(traced, 1)
    run = runnable(graph)
    for tensors in (args, *also):
        leaves = pytree.tree_leaves(run(list(tensors)))
        expected = pytree.tree_leaves(function(*tensors))
        assert len(leaves) == len(expected)
        for mine, theirs in zip(leaves, expected, strict=True):
            equal(mine, theirs)
    return graph


def types(graph: GeGraph) -> list[str]:
    """Types of the operators but Data, Const and NetOutput."""
    return [each.partition("(")[0] for each in spelling(graph)]
