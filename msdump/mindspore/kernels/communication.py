"""Collective operators: what the processes of a job compute together. In a job of one, each gives its operand back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msdump.graph.graph import Node
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import BOOLS, NUMBERS, expect, expect_count, expect_dtype
from msdump.mindspore.kernels.transport import transport
from msdump.mindspore.program.autodiff import GradBuilder, Grads, def_bprop, one_operator, outer_gradient
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

_OPERATIONS = ("sum", "max", "min", "prod")
_DONE = TensorType("int32", (1,))


for _name in ("AllReduce", "Reduce", "ReduceScatter", "AllGather", "AlltoAll"):
    def_primitive(_name, ("x",))
def_primitive("Broadcast", ("x",))
def_primitive("Barrier", (), has_side_effect=True)
def_primitive("Send", ("x",), has_side_effect=True)
def_primitive("Receive", ("after",), has_side_effect=True)


def _group(attrs: Attrs) -> str:
    return str(attrs.get("group", ""))


def _size(attrs: Attrs) -> int:
    return int(attrs.get("rank_size", 1))


def _check(types: Sequence[TensorType], attrs: Attrs) -> TensorType:
    expect_count(types, 1)
    expect_dtype(types[0], NUMBERS | BOOLS, "x")
    if "op" in attrs:
        expect_dtype(types[0], NUMBERS, "x")
        expect(attrs["op"] in _OPERATIONS, f"op to be one of {', '.join(_OPERATIONS)}", repr(attrs["op"]))
    return types[0]


def _check_rows(x: TensorType) -> None:
    expect(len(x.shape) > 0, "x of at least one axis", x.shape)


@def_infer("AllReduce", "Reduce", "Broadcast")
def _same_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: group; op ("sum") of AllReduce and Reduce; root_rank, dest_rank."""
    return (_check(types, attrs),)


@def_infer("AllGather")
def _gather_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: group, rank_size (1)."""
    x = _check(types, attrs)
    _check_rows(x)
    return (TensorType(x.dtype, (x.shape[0] * _size(attrs), *x.shape[1:])),)


@def_infer("ReduceScatter")
def _scatter_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: group, rank_size (1); op ("sum") of ReduceScatter."""
    x, size = _check(types, attrs), _size(attrs)
    _check_rows(x)
    expect(x.shape[0] % size == 0, f"axis 0 of x to be a multiple of the {size} ranks", x.shape[0])
    return (TensorType(x.dtype, (x.shape[0] // size, *x.shape[1:])),)


@def_infer("AlltoAll")
def _all_to_all_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: split_count, split_dim, concat_dim, group."""
    x, count = _check(types, attrs), int(attrs["split_count"])
    shape = list(x.shape)
    expect(shape[attrs["split_dim"]] % count == 0, f"the split axis to be a multiple of {count}", x.shape)
    shape[attrs["split_dim"]] //= count
    shape[attrs["concat_dim"]] *= count
    return (TensorType(x.dtype, tuple(shape)),)


@def_infer("Barrier")
def _barrier_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: group. The result is a 0."""
    expect_count(types, 0)
    return (_DONE,)


@def_infer("Send")
def _send_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: sr_tag, dest_rank, group. The result is the operand."""
    return (_check(types, attrs),)


@def_infer("Receive")
def _receive_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: sr_tag, src_rank, shape, dtype, group. Operands only have to come before."""
    return (TensorType(attrs["dtype"], tuple(attrs["shape"])),)


@def_kernel("AllReduce")
def _all_reduce(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    np.copyto(out[0], transport().all_reduce(inputs[0], attrs.get("op", "sum"), _group(attrs)))


@def_kernel("Reduce")
def _reduce(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """MindSpore leaves open what ranks other than dest_rank get; here all have the result."""
    np.copyto(out[0], transport().all_reduce(inputs[0], attrs.get("op", "sum"), _group(attrs)))


@def_kernel("Broadcast")
def _broadcast(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    np.copyto(out[0], transport().broadcast(inputs[0], int(attrs.get("root_rank", 0)), _group(attrs)))


def _gather(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    np.concatenate(transport().all_gather(inputs[0], _group(attrs)), axis=0, out=out[0])


def_kernel("AllGather")(_gather)


def _own_part(whole: Array, attrs: Attrs) -> Array:
    """The rows of this process."""
    place = transport().place_of(-1, _group(attrs))
    return np.split(whole, _size(attrs))[place]


@def_kernel("ReduceScatter")
def _reduce_scatter(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    whole = transport().all_reduce(inputs[0], attrs.get("op", "sum"), _group(attrs))
    np.copyto(out[0], _own_part(whole, attrs))


@def_kernel("AlltoAll")
def _all_to_all(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    parts = np.split(inputs[0], attrs["split_count"], axis=attrs["split_dim"])
    received = transport().all_to_all([np.ascontiguousarray(part) for part in parts], _group(attrs))
    np.concatenate(received, axis=attrs["concat_dim"], out=out[0])


@def_kernel("Barrier")
def _barrier(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    transport().barrier(_group(attrs))
    out[0][...] = 0


@def_kernel("Send")
def _send(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    transport().send(inputs[0], attrs["dest_rank"], attrs["sr_tag"], _group(attrs))
    np.copyto(out[0], inputs[0])


@def_kernel("Receive")
def _receive(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    like = np.empty(tuple(attrs["shape"]), dtypes.dtype(attrs["dtype"]).numpy)
    np.copyto(out[0], transport().receive(like, attrs["src_rank"], attrs["sr_tag"], _group(attrs)))


# -- gradients ---------------------------------------------------------------------------------------------------------


@def_bprop("AllReduce")
def _all_reduce_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """The gradient of a sum is the sum of the gradients; that of a maximum goes to whom it came from."""
    attrs = dict(node.primitive.attrs)
    total = builder.add("AllReduce", [outer_gradient(outer)], {**attrs, "op": "sum"})
    if attrs.get("op", "sum") not in ("max", "min"):
        return [total]
    is_it = builder.add("Equal", [node.inputs[0], node.outputs[0]], {})
    mask = builder.add("Cast", [is_it], {"dtype": node.inputs[0].type.dtype})
    return [builder.add("Mul", [total, mask], {})]


# Each process gets the sum of the gradients of its rows; and of a sum the rows of all processes.
def_bprop("AllGather")(one_operator("ReduceScatter", attrs=lambda node: {**node.primitive.attrs, "op": "sum"}))
def_bprop("ReduceScatter")(
    one_operator(
        "AllGather", attrs=lambda node: {name: each for name, each in node.primitive.attrs.items() if name != "op"}
    )
)


@def_bprop("Broadcast")
def _broadcast_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Source: MindSpore hands the gradient on."""
    return [outer[0]]


def _exchanged_back(node: Node) -> Attrs:
    attrs = node.primitive.attrs
    return {**attrs, "split_dim": attrs["concat_dim"], "concat_dim": attrs["split_dim"]}


def_bprop("AlltoAll")(one_operator("AlltoAll", attrs=_exchanged_back))
