"""One ATen operator as a GE graph: how it is spelled, and what it computes."""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from msdump.torchair.ge.convert import convert
from msdump.torchair.ge.graph import CONST, DATA, NET_OUTPUT, GeGraph
from msdump.torchair.ge.program import runnable

# One for all calls: it remembers the shapes that it has found.
MODE = FakeTensorMode(allow_non_fake_inputs=True)


def graph_of(target: Any, *args: Any, **kwargs: Any) -> tuple[GeGraph, list[Any]]:
    """A GE graph of one call of an operator, and the tensors that it takes."""
    graph = fx.Graph()
    tensors: list[Any] = []

    def placeholder(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        node = graph.placeholder(f"arg{len(tensors)}_1")
        node.meta["val"] = MODE.from_tensor(value)
        tensors.append(value)
        return node

    given, named = pytree.tree_map(placeholder, (args, kwargs))
    call = graph.call_function(target, given, named)
    fakes, fake_names = pytree.tree_map(lambda x: x.meta["val"] if isinstance(x, fx.Node) else x, (given, named))
    with MODE:
        call.meta["val"] = target(*fakes, **fake_names)
    results: Any = [call]
    if isinstance(call.meta["val"], tuple | list):
        results = [graph.call_function(operator.getitem, (call, index)) for index in range(len(call.meta["val"]))]
        for item, val in zip(results, call.meta["val"], strict=True):
            item.meta["val"] = val
    graph.output(tuple(results))
    module: Any = SimpleNamespace(graph=graph)
    return convert(module, 1), tensors


def spelling(graph: GeGraph) -> list[str]:
    """`Conv2D(x,filter,bias?,offset_w?)`: type and inputs of each operator but Data and Const; `?`: unfed."""
    return [
        f"{op.type}({','.join(name if tensor is not None else name + '?' for name, tensor in op.inputs.items())})"
        for op in graph.ops
        if op.type not in (DATA, CONST, NET_OUTPUT)
    ]


def results_of(target: Any, *args: Any, **kwargs: Any) -> tuple[list[str], list[Any]]:
    """Spelling of the graph of one call, and what running it gives."""
    graph, tensors = graph_of(target, *args, **kwargs)
    return spelling(graph), list(runnable(graph)([*tensors]))


def check(target: Any, *args: Any, spelled: str | None = None, **kwargs: Any) -> None:
    """Equal to eager, and spelled as expected. Gradients that an output mask does not ask for are not compared."""
    found, actual = results_of(target, *args, **kwargs)
    expected: Any = target(*args, **kwargs)
    expected = list(expected) if isinstance(expected, tuple | list) else [expected]
    assert len(actual) == len(expected)
    is_masked = str(target).split(".")[1].endswith("_backward") and isinstance(args[-1], list)
    wanted = args[-1] if is_masked else [True] * len(expected)
    for mine, theirs, is_wanted in zip(actual, expected, wanted, strict=True):
        if is_wanted:
            torch.testing.assert_close(mine, theirs, equal_nan=True)
    if spelled is not None:
        assert " ".join(found) == spelled
