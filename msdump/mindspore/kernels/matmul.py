"""MatMul and BatchMatMul: BLAS, straight into the result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msdump.graph.graph import Node, Value
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.blas import product as multiply
from msdump.mindspore.kernels.checks import (
    NUMBERS,
    broadcast_shapes,
    expect,
    expect_count,
    expect_dtype,
    expect_same_dtype,
)
from msdump.mindspore.kernels.workspace import quiet, result_buffer, scratch, store, widened
from msdump.mindspore.program.autodiff import GradBuilder, Grads, def_bprop
from msdump.tensors.arrays import Array

def_primitive("MatMul", ("x1", "x2"), grad_scope="gradMatMul-expand")
def_primitive("BatchMatMul", ("x1", "x2"), grad_scope="gradBatchMatMul-expand")

# A result this many times wider than tall is computed transposed: OpenBLAS is far faster that way.
_WIDE = 4


def _sizes(types: Sequence[TensorType], attrs: Attrs) -> tuple[int, int]:
    """Rows and columns of the result.   Raises: GraphError when the inner sizes differ."""
    a, b = types[0].shape[-2:], types[1].shape[-2:]
    rows, inner = (a[1], a[0]) if attrs.get("transpose_a", False) else (a[0], a[1])
    other, columns = (b[1], b[0]) if attrs.get("transpose_b", False) else (b[0], b[1])
    expect(inner == other, f"x2 with {inner} rows to multiply with the {inner} columns of x1", types[1].shape)
    return rows, columns


@def_infer("MatMul")
def _matmul_type(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: transpose_a, transpose_b."""
    expect_count(types, 2)
    expect_dtype(types[0], NUMBERS, "x1")
    expect_same_dtype(types)
    for name, type in zip(("x1", "x2"), types, strict=True):
        expect(type.ndim == 2, f"{name} with 2 dimensions", type.shape)
    return (TensorType(types[0].dtype, _sizes(types, attrs)),)


@def_infer("BatchMatMul")
def _batch_matmul_type(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: transpose_a, transpose_b. The leading axes broadcast."""
    expect_count(types, 2)
    expect_dtype(types[0], NUMBERS, "x1")
    expect_same_dtype(types)
    for name, type in zip(("x1", "x2"), types, strict=True):
        expect(type.ndim >= 2, f"{name} with 2 or more dimensions", type.shape)
    batch = broadcast_shapes([type.shape[:-2] for type in types])
    return (TensorType(types[0].dtype, (*batch, *_sizes(types, attrs))),)


@def_kernel("MatMul")
@def_kernel("BatchMatMul")
@quiet
def _matmul(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """Edges: an inner size of 0 gives zeros."""
    a, b = widened(inputs[0], "matmul.a"), widened(inputs[1], "matmul.b")
    if attrs.get("transpose_a", False):
        a = a.swapaxes(-1, -2)
    if attrs.get("transpose_b", False):
        b = b.swapaxes(-1, -2)
    result = result_buffer(out[0], "matmul.result")
    rows, columns = result.shape[-2:]
    if result.ndim == 2 and rows > 1 and columns >= _WIDE * rows and result.dtype.kind == "f":
        transposed = scratch("matmul.transposed", (columns, rows), result.dtype)
        multiply(b.T, a.T, transposed)
        np.copyto(result, transposed.T)
    else:
        multiply(a, b, result)
    store(result, out[0])


@def_bprop("MatMul")
@def_bprop("BatchMatMul")
def _matmul_grads(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Source: MindSpore's IR: products of the gradient and the other operand, never a Transpose."""
    (a, b), dy = node.inputs, outer[0]
    if dy is None:
        return (None, None)
    is_a, is_b = (bool(node.primitive.attrs.get(name, False)) for name in ("transpose_a", "transpose_b"))

    def product(left: Value, right: Value, transpose_left: bool, transpose_right: bool, like: Value) -> Value:
        attrs = {"transpose_a": transpose_left, "transpose_b": transpose_right}
        return builder.reduce_to(builder.add(node.op_type, [left, right], attrs), like.type.shape)

    da = db = None
    if builder.wanted[0]:
        da = product(b, dy, is_b, True, a) if is_a else product(dy, b, False, not is_b, a)
    if builder.wanted[1]:
        db = product(dy, a, True, is_a, b) if is_b else product(a, dy, not is_a, False, b)
    return (da, db)
