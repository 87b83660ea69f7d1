"""Which nodes of an FX graph are dumped, and under which names. Decided once, when the graph is compiled."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, Node

from msdump.errors import ConfigError
from msdump.formats.paths.torchair import safe_target

NodeFilter = Callable[[Node], Any]


@dataclass(frozen=True, slots=True)
class NodePlan:
    """A node that is dumped.

    is_collective  its results are not there before somebody waited for them
    is_wait        it is that wait: its input is not there before it ran
    """

    name: str
    target: str
    is_collective: bool = False
    is_wait: bool = False


def plan_nodes(graph: Graph, node_filter: NodeFilter | None) -> dict[Node, NodePlan]:
    """Plans of the nodes that call an operator and pass the filter.

    The filter sees every node of the graph once.
    Raises: ConfigError that names the node when the filter raises or gives anything but this node or nothing.
    Source: TorchAir eager data dump, `data_dump.filter`.
    """
    chosen = [node for node in graph.nodes if node_filter is None or _passes(node, node_filter)]
    return {node: _plan(node) for node in chosen if node.op == "call_function" and node.target is not operator.getitem}


def target_name(target: Any) -> str:
    """Name of an operator in file names: "aten.add.Tensor"; "_operator.mul" for a Python function."""
    if isinstance(target, torch._ops.OpOverload):
        return safe_target(str(target))
    name = getattr(target, "__name__", None)
    if name is None or isinstance(target, torch._ops.HigherOrderOperator):
        return safe_target(str(target))
    return safe_target(f"{getattr(target, '__module__', None) or 'builtins'}.{name}")


def _passes(node: Node, node_filter: NodeFilter) -> bool:
    where = "config.debug.data_dump.filter"
    try:
        answer = node_filter(node)
    except Exception as error:
        raise ConfigError(
            f"{where}: expected an answer for node {node.name!r} ({node.op} {target_name(node.target)}), got "
            f"{type(error).__name__}: {error}. It sees every node, also inputs (op placeholder) and the output."
        ) from error
    if answer is node:
        return True
    if isinstance(answer, Node):
        raise ConfigError(
            f"{where}: expected node {node.name!r} itself or None, got node {answer.name!r}. Return the function's "
            "argument, not another node."
        )
    if answer:
        raise ConfigError(
            f"{where}: expected node {node.name!r} itself or None, got {answer!r}. Write `n if ... else None`."
        )
    return False


def _plan(node: Node) -> NodePlan:
    target = target_name(node.target)
    is_distributed = target.startswith(("_c10d_functional.", "_c10d_functional_autograd."))
    is_wait = is_distributed and ".wait_tensor." in target
    return NodePlan(node.name, target, is_distributed and not is_wait, is_wait)
