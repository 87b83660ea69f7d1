"""What passes ask about a graph: who reads a tensor, which tensors share memory, what an operator changes."""

from __future__ import annotations

from collections.abc import Iterable

from msdump.frontends.torchair.ge.graph import CONST, DATA, NET_OUTPUT, GeGraph, GeOp, GeTensor
from msdump.frontends.torchair.ge.registry import kernel_for

Readers = dict[GeTensor, list[GeOp]]


def readers_by_tensor(graph: GeGraph) -> Readers:
    """Tensor -> the operators that read it, in execution order; NetOutput is one of them."""
    readers: Readers = {}
    for op in graph.ops:
        for tensor in dict.fromkeys(op.inputs.values()):
            if tensor is not None:
                readers.setdefault(tensor, []).append(op)
    return readers


def shares_memory(one: GeTensor, other: GeTensor) -> bool:
    """Whether one is a view of the other, or both are views of a third."""
    return _owner(one) is _owner(other)


def mutated_input(op: GeOp) -> GeTensor | None:
    """The tensor that the operator writes, or None."""
    if op.type in (CONST, DATA, NET_OUTPUT) or not op.inputs:
        return None
    name = kernel_for(op).mutates
    return op.inputs.get(name) if name else None


def swaps_last_two(op: GeOp) -> bool:
    """Whether it is a Transpose of the last two axes, and of nothing else."""
    perm_input = op.inputs.get("perm") if op.type == "Transpose" else None
    perm = None if perm_input is None else perm_input.value
    if not isinstance(perm, list) or len(perm) < 2:
        return False
    rank = len(perm)
    return perm == [*range(rank - 2), rank - 1, rank - 2]


def remove_unread(graph: GeGraph, candidates: Iterable[GeOp]) -> None:
    """Take out those that nobody reads any more, and constants that fed nothing else."""
    readers = readers_by_tensor(graph)
    gone = [op for op in dict.fromkeys(candidates) if not any(tensor in readers for tensor in op.outputs)]
    if not gone:
        return
    graph.remove(gone)
    constants = [op for gone_op in gone for op in gone_op.producers if op.type == CONST]
    left = readers_by_tensor(graph)
    graph.remove(op for op in constants if op.outputs[0] not in left)


def _owner(tensor: GeTensor) -> GeTensor:
    while tensor.view_of is not None:
        tensor = tensor.view_of
    return tensor
