"""optimize_reference_op_redundant_copy: what an operator writes in place, or copies itself, is not copied before."""

from __future__ import annotations

from collections.abc import Iterator

from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.ge.graph import ASSIGN, CONST, DATA, GeGraph, GeOp, GeTensor
from msdump.frontends.torchair.ge.passes.uses import mutated_input, readers_by_tensor, remove_unread, shares_memory

COPY = "Identity"


def optimize_reference_op_redundant_copy(graph: GeGraph, config: CompilerConfig) -> None:
    """Identity -> Assign.value, and Identity -> what a reference operator writes, where nobody else sees the copy."""
    readers = readers_by_tensor(graph)
    copies: list[GeOp] = []
    for place, op in enumerate(graph.ops):
        written = mutated_input(op)
        if written is None:
            continue
        for name, copy in _copies(op):
            source = copy.op.inputs["x"]
            if source is None or readers[copy] != [op]:
                continue
            if copy is written:
                is_redundant = _is_free(graph, source, place)
            else:
                # A copy that reads the memory that it writes needs the detour.
                is_redundant = op.type == ASSIGN and not shares_memory(source, written)
                is_redundant = is_redundant and not _is_written_between(graph, source, copy.op, place)
            if is_redundant:
                op.inputs[name] = source
                copies.append(copy.op)
    remove_unread(graph, copies)


def _copies(op: GeOp) -> Iterator[tuple[str, GeTensor]]:
    for name, tensor in list(op.inputs.items()):
        if tensor is not None and tensor.op.type == COPY:
            yield name, tensor


def _is_free(graph: GeGraph, source: GeTensor, place: int) -> bool:
    """Whether the memory is the graph's own and nobody reads it from here on."""
    if source.is_host:
        return False
    later = {tensor for op in graph.ops[place + 1 :] for tensor in op.inputs.values() if tensor is not None}
    owners = [tensor for op in graph.ops if op.type in (DATA, CONST) for tensor in op.outputs]
    return not any(shares_memory(tensor, source) for tensor in (*later, *owners))


def _is_written_between(graph: GeGraph, source: GeTensor, copy: GeOp, place: int) -> bool:
    """Whether the copy keeps a value that is overwritten before it is read."""
    for op in graph.ops[graph.ops.index(copy) : place]:
        written = mutated_input(op)
        if written is not None and shares_memory(written, source):
            return True
    return False
