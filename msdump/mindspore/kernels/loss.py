"""Cross entropy of logits (N, C) against class numbers or against distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.errors import ExecutionError, GraphError
from msdump.graph.graph import Node
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import FLOATS, INDICES, expect, expect_count, expect_dtype, expect_shape
from msdump.mindspore.kernels.softmax import log_softmax, softmax
from msdump.mindspore.kernels.torch_operator import torch_operator
from msdump.mindspore.kernels.workspace import quiet, result_buffer, scratch, store, widened
from msdump.mindspore.program.autodiff import GradBuilder, Grads, def_bprop, outer_gradient
from msdump.tensors.arrays import Array

def_primitive(
    "SparseSoftmaxCrossEntropyWithLogits", ("features", "labels"), grad_scope="gradSparseSoftmaxCrossEntropyWithLogits"
)


def _expect_logits(type: TensorType) -> None:
    expect_dtype(type, FLOATS, "features")
    expect(type.ndim == 2 and type.shape[1] > 0, "features of shape (N, C)", type.shape)


# -- class numbers ------------------------------------------------------------------------------------


@def_infer("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_type(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    """Attrs: is_grad, sens."""
    expect_count(types, 2)
    _expect_logits(types[0])
    expect_dtype(types[1], INDICES, "labels")
    expect_shape(types[1], types[0].shape[:1], "labels")
    return (types[0] if attrs.get("is_grad", False) else TensorType(types[0].dtype, ()),)


def _check_labels(labels: Array, classes: int) -> None:
    is_wrong = (labels < 0) | (labels >= classes)
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise ExecutionError(
            f"labels[{row}]: expected a class in [0, {classes}), got {int(labels[row])}. "
            f"The network has {classes} outputs: is that the number of classes of the dataset?"
        )


@def_kernel("SparseSoftmaxCrossEntropyWithLogits")
@quiet
def _sparse(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """The mean loss, or with `is_grad` the gradient of the mean times `sens`.

    Edges:  no rows -> a loss of NaN.
    Raises: ExecutionError for a label outside the classes.
    """
    logits, labels = widened(inputs[0], "loss.logits"), inputs[1]
    _check_labels(labels, logits.shape[1])
    rows = np.arange(len(labels))
    if not attrs.get("is_grad", False):
        logs = scratch("loss.logs", logits.shape, logits.dtype)
        log_softmax(logits, logs, axis=1)
        total = np.add.reduce(-logs[rows, labels], dtype=np.float64)
        out[0][...] = np.divide(total, len(labels))
        return
    gradient = result_buffer(out[0], "loss.result")
    softmax(logits, gradient, axis=1)
    gradient[rows, labels] -= 1
    np.multiply(gradient, attrs.get("sens", 1) / max(1, len(labels)), out=gradient)
    store(gradient, out[0])


@def_bprop("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Source: MindSpore: the gradient is the same operator with is_grad."""
    attrs = node.primitive.attrs
    if attrs.get("is_grad", False):
        raise GraphError(f"{node.where}: the gradient of a gradient is not defined for {node.op_type}.")
    gradient = builder.add(node.op_type, node.inputs, {**attrs, "is_grad": True})
    return (builder.scale(gradient, outer_gradient(outer)), None)


# -- distributions ------------------------------------------------------------------------------------


def _dense_type(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, 2)
    _expect_logits(types[0])
    expect_dtype(types[1], (types[0].dtype,), "labels")
    expect(types[1] == types[0], f"labels {types[0]}", types[1])
    return (TensorType(types[0].dtype, types[0].shape[:1]), types[0])


def _dense_grad(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Source: MindSpore: dlogits times the gradient of the loss; labels and the second output carry none."""
    column = builder.add("ExpandDims", [outer_gradient(outer)], {"axis": -1})
    return (builder.add("Mul", [node.outputs[1], column]), None)


@torch_operator(
    "SoftmaxCrossEntropyWithLogits", "features labels", "loss dlogits", infer=_dense_type, gradient=_dense_grad
)
def _dense(torch: Any, logits: Any, labels: Any) -> Any:
    """loss[n] = -sum(labels * log softmax), dlogits = softmax - labels.

    Edges:  a class of weight 0 adds nothing to the loss, however unlikely it is.
    """
    weighed = torch.where(labels == 0, 0.0, labels * torch.log_softmax(logits, 1))
    return 0 - weighed.sum(1), torch.softmax(logits, 1) - labels
