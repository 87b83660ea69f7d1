"""mapping_assign_op_to_graph_output: what is assigned to an input becomes an output of the graph."""

from __future__ import annotations

from collections.abc import Iterable

from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.ge.graph import ASSIGN, DATA, NET_OUTPUT, GeGraph, GeOp, GeTensor
from msdump.frontends.torchair.ge.passes.uses import mutated_input, readers_by_tensor, shares_memory


def mapping_assign_op_to_graph_output(graph: GeGraph, config: CompilerConfig) -> None:
    """Assign(Data, value) goes; NetOutput gets the value, and whoever runs the graph writes it back at the end.

    Edges: an Assign stays whose result is read, whose input is read after it, or whose value is written after it.
    """
    readers = readers_by_tensor(graph)
    mapped: list[GeOp] = []
    for place, op in enumerate(graph.ops):
        ref, value = (op.inputs.get("ref"), op.inputs.get("value")) if op.type == ASSIGN else (None, None)
        if ref is None or value is None or ref.op.type != DATA or op.outputs[0] in readers:
            continue
        later = [reader for reader in graph.ops[place + 1 :] if reader.type != NET_OUTPUT]
        if _reads(later, ref) or _writes(later, value):
            continue
        graph.write_backs.append((ref.op, value))
        mapped.append(op)
    if not mapped:
        return
    graph.remove(mapped)
    for op in graph.ops:
        if op.type == NET_OUTPUT:
            distinct = dict.fromkeys((*op.inputs.values(), *(value for _, value in graph.write_backs)))
            op.inputs = {f"input{index}": tensor for index, tensor in enumerate(distinct)}


def _reads(ops: Iterable[GeOp], memory: GeTensor) -> bool:
    read = {tensor for op in ops for tensor in op.inputs.values() if tensor is not None}
    return any(shares_memory(tensor, memory) for tensor in read)


def _writes(ops: Iterable[GeOp], memory: GeTensor) -> bool:
    written = [mutated_input(op) for op in ops]
    return any(tensor is not None and shares_memory(tensor, memory) for tensor in written)
