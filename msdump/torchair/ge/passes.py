"""Passes over the GE graph, in TorchAir's order and under its names; then what they ask about a graph.

A pass never changes what the graph computes: dtypes, shapes and bits of the results stay, and inputs that the model
writes are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.ge.builder import const_op
from msdump.torchair.ge.graph import ASSIGN, CONST, DATA, NET_OUTPUT, GeGraph, GeOp, GeTensor
from msdump.torchair.ge.registry import kernel_for


def optimize_sym_pack(graph: GeGraph, config: CompilerConfig) -> None:
    """A Pack of sizes becomes a Const, an earlier Pack of the same sizes, or the Shape that they were taken from."""
    packs: dict[tuple[object, ...], GeTensor] = {}
    done: list[GeOp] = []
    for op in list(graph.ops):
        if op.type != "Pack" or not op.outputs[0].is_host:
            continue
        # Numbers are the same whichever Const holds them.
        sizes = (_known(tensor) if _known(tensor) is not None else tensor for tensor in op.inputs.values())
        key = (*sizes, *op.attrs.items())
        new = packs.get(key) or _shape_of(op) or _constant_of(graph, op)
        if new is None:
            packs[key] = op.outputs[0]
        else:
            graph.replace_uses(op.outputs[0], new)
            done.append(op)
    remove_unread(graph, done)


def _shape_of(pack: GeOp) -> GeTensor | None:
    """The Shape whose elements are packed, all of them and in order."""
    shape: GeTensor | None = None
    for position, tensor in enumerate(pack.inputs.values()):
        if tensor is None or tensor.op.type != "Gather":
            return None
        source, index = (tensor.op.inputs.get(name) for name in ("x", "indices"))
        if source is None or index is None or source.op.type != "Shape" or index.value not in (position, [position]):
            return None
        if shape is not None and source is not shape:
            return None
        shape = source
    if shape is None or not isinstance(shape.value, list) or len(shape.value) != len(pack.inputs):
        return None
    return shape


def _constant_of(graph: GeGraph, pack: GeOp) -> GeTensor | None:
    """A Const in front of the Pack when all sizes are known."""
    sizes = [_known(tensor) for tensor in pack.inputs.values()]
    values = [size for size in sizes if size is not None]
    if len(values) != len(sizes):
        return None
    op = const_op(values, torch.int64, FakeTensorMode(), is_inline=True, node=pack.fx_node)
    graph.insert_after(pack, op)
    return op.outputs[0]


def _known(tensor: GeTensor | None) -> int | None:
    return tensor.value if tensor is not None and type(tensor.value) is int else None


def remove_dead_data_and_reorder_data_index(graph: GeGraph, config: CompilerConfig) -> None:
    """Take unread Data out and number the rest from 0. `graph.arguments` still knows which argument is which."""
    readers = readers_by_tensor(graph)
    written_back = {id(op) for op, _ in graph.write_backs}
    graph.remove(op for op in graph.inputs if op.outputs[0] not in readers and id(op) not in written_back)
    for index, op in enumerate(graph.inputs):
        op.attrs["index"] = index


def optimize_reference_op_redundant_copy(graph: GeGraph, config: CompilerConfig) -> None:
    """Identity -> Assign.value, and Identity -> what a reference operator writes, where nothing else reads the copy."""
    readers = readers_by_tensor(graph)
    copies: list[GeOp] = []
    for op_index, op in enumerate(graph.ops):
        written = mutated_input(op)
        if written is None:
            continue
        for name, copy in _copies(op):
            source = copy.op.inputs["x"]
            if source is None or readers[copy] != [op]:
                continue
            if copy is written:
                is_redundant = _is_free(graph, source, op_index)
            else:
                # A copy that reads the memory that it writes needs the detour.
                is_redundant = op.type == ASSIGN and not shares_memory(source, written)
                is_redundant = is_redundant and not _is_written_between(graph, source, copy.op, op_index)
            if is_redundant:
                op.inputs[name] = source
                copies.append(copy.op)
    remove_unread(graph, copies)


def _copies(op: GeOp) -> Iterator[tuple[str, GeTensor]]:
    for name, tensor in list(op.inputs.items()):
        if tensor is not None and tensor.op.type == "Identity":
            yield name, tensor


def _is_free(graph: GeGraph, source: GeTensor, op_index: int) -> bool:
    """Whether the memory is the graph's own and nothing reads it from here on."""
    if source.is_host:
        return False
    later = {tensor for op in graph.ops[op_index + 1 :] for tensor in op.inputs.values() if tensor is not None}
    owners = [tensor for op in graph.ops if op.type in (DATA, CONST) for tensor in op.outputs]
    return not any(shares_memory(tensor, source) for tensor in (*later, *owners))


def _is_written_between(graph: GeGraph, source: GeTensor, copy: GeOp, op_index: int) -> bool:
    """Whether the copy keeps a value that is overwritten before it is read."""
    for op in graph.ops[graph.ops.index(copy) : op_index]:
        written = mutated_input(op)
        if written is not None and shares_memory(written, source):
            return True
    return False


def mapping_assign_op_to_graph_output(graph: GeGraph, config: CompilerConfig) -> None:
    """Assign(Data, value) goes; NetOutput gets the value, and the caller of the graph writes it back at the end.

    Edges: an Assign stays whose result is read, whose input is read after it, or whose value is written after it.
    """
    readers = readers_by_tensor(graph)
    mapped: list[GeOp] = []
    for op_index, op in enumerate(graph.ops):
        ref, value = (op.inputs.get("ref"), op.inputs.get("value")) if op.type == ASSIGN else (None, None)
        if ref is None or value is None or ref.op.type != DATA or op.outputs[0] in readers:
            continue
        later = [reader for reader in graph.ops[op_index + 1 :] if reader.type != NET_OUTPUT]
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


_COLLECTIVE, _OTHERS = "Hcom", ("Print", "PrintV2", "Assert")


def explicit_order_for_side_effect_nodes(graph: GeGraph, config: CompilerConfig) -> None:
    """A control edge from each of them to the next, and to NetOutput from a last one that is not read.

    Source: TorchAir. The order of execution here is that of `graph.ops` anyway; the edges tell it to a reader of
    the graph.
    """
    readers = readers_by_tensor(graph)
    last: GeOp | None = None
    for op in graph.ops:
        if op.type == NET_OUTPUT:
            is_unread = last is not None and not any(tensor in readers for tensor in last.outputs)
            _order(last if is_unread else None, op)
        elif _has_side_effect(op):
            _order(last, op)
            last = op


def _has_side_effect(op: GeOp) -> bool:
    return op.type.startswith(_COLLECTIVE) or op.type in _OTHERS or mutated_input(op) is not None


def _order(first: GeOp | None, second: GeOp) -> None:
    """Say that one comes after the other, unless it reads it."""
    if first is not None and first not in second.producers and first not in second.controls:
        second.controls.append(first)


# Operator -> what its attributes are called, by operand.
_TRANSPOSES = {
    "MatMul": {"x1": "transpose_x1", "x2": "transpose_x2"},
    "MatMulV2": {"x1": "transpose_x1", "x2": "transpose_x2"},
    "BatchMatMul": {"x1": "adj_x1", "x2": "adj_x2"},
    "BatchMatMulV2": {"x1": "adj_x1", "x2": "adj_x2"},
}


def move_transpose_into_mm(graph: GeGraph, config: CompilerConfig) -> None:
    """Transpose of the last two axes -> MatMul: the product reads what is transposed, and says so.

    Edges: a Transpose that others read stays for them.
    """
    moved: list[GeOp] = []
    for op in graph.ops:
        for operand, attr in _TRANSPOSES.get(op.type, {}).items():
            tensor = op.inputs[operand]
            while tensor is not None and swaps_last_two(tensor.op):
                moved.append(tensor.op)
                op.attrs[attr] = not op.attrs.get(attr, False)
                tensor = op.inputs[operand] = tensor.op.inputs["x"]
    # Of two in a row, the one nearer to the product came first in the list: once it is removed, the other is unread.
    for transpose in moved:
        remove_unread(graph, [transpose])


def move_mm_weight_transpose_after_bitcast(graph: GeGraph, config: CompilerConfig) -> None:
    """Transpose -> Bitcast -> MatMul becomes Bitcast -> MatMul(transpose).

    Edges: only between dtypes of one width. Between others a Bitcast takes the last axis apart or together, and what is
    transposed before it is not what is transposed after it.
    """
    readers = readers_by_tensor(graph)
    for op in list(graph.ops):
        source = op.inputs.get("x") if op.type == "Bitcast" else None
        if source is None or not swaps_last_two(source.op) or source.dtype.itemsize != op.outputs[0].dtype.itemsize:
            continue
        result = op.outputs[0]
        products = readers.get(result, [])
        if not products or any(product.type not in _TRANSPOSES for product in products):
            continue
        op.inputs["x"] = source.op.inputs["x"]
        result.fake = result.fake.transpose(-1, -2)
        for product in products:
            for operand, attr in _TRANSPOSES[product.type].items():
                if product.inputs[operand] is result:
                    product.attrs[attr] = not product.attrs.get(attr, False)
        remove_unread(graph, [source.op])


GePass = Callable[[GeGraph, CompilerConfig], None]


def _unchanged(graph: GeGraph, config: CompilerConfig) -> None:
    """What runs as a pass that has nothing to do on this machine. It leaves its file, as in TorchAir."""


# What each pass is called in the files of a compilation, in the order in which they run.
GE_PASSES: tuple[tuple[str, GePass], ...] = (
    ("optimize_sym_pack", optimize_sym_pack),
    ("remove_dead_data_and_reorder_data_index", remove_dead_data_and_reorder_data_index),
    ("optimize_reference_op_redundant_copy", optimize_reference_op_redundant_copy),
    ("mapping_assign_op_to_graph_output", mapping_assign_op_to_graph_output),
    ("explicit_order_for_side_effect_nodes", explicit_order_for_side_effect_nodes),
    # TorchAir orders prefetches into the L2 cache of an NPU. No graph here holds such operators.
    ("explicit_order_for_cmo", _unchanged),
    ("move_transpose_into_mm", move_transpose_into_mm),
    ("move_mm_weight_transpose_after_bitcast", move_mm_weight_transpose_after_bitcast),
)


Readers = dict[GeTensor, list[GeOp]]


def readers_by_tensor(graph: GeGraph) -> Readers:
    """Tensor -> the operators that read it, in execution order; NetOutput is one of them."""
    readers: Readers = {}
    for op in graph.ops:
        for tensor in dict.fromkeys(op.inputs.values()):
            if tensor is not None:
                readers.setdefault(tensor, []).append(op)
    return readers


def shares_memory(left: GeTensor, right: GeTensor) -> bool:
    """Whether one is a view of the other, or both are views of a third."""
    return _owner(left) is _owner(right)


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
    """Take out those that are not read any more, and constants that fed nothing else."""
    readers = readers_by_tensor(graph)
    gone = [op for op in dict.fromkeys(candidates) if not any(tensor in readers for tensor in op.outputs)]
    if not gone:
        return
    graph.remove(gone)
    constants = [op for gone_op in gone for op in gone_op.producers if op.type == CONST]
    remaining = readers_by_tensor(graph)
    graph.remove(op for op in constants if op.outputs[0] not in remaining)


def _owner(tensor: GeTensor) -> GeTensor:
    while tensor.view_of is not None:
        tensor = tensor.view_of
    return tensor
