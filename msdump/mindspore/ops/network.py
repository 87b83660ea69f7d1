"""Functions of neural networks."""

from __future__ import annotations

import math
from typing import Any

from msdump.mindspore.common.dtype import float32, float_type
from msdump.mindspore.common.generator import random_generator
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, call, execute
from msdump.mindspore.names import publish
from msdump.mindspore.ops.arithmetic import (
    abs,
    add,
    div,
    equal,
    erf,
    masked_fill,
    maximum,
    minimum,
    mul,
    neg,
    square,
    sub,
)
from msdump.mindspore.ops.array import (
    cast,
    expand_dims,
    gather,
    gather_elements,
    ones,
    reshape,
    squeeze,
)
from msdump.mindspore.ops.primitive import operator_class
from msdump.mindspore.ops.reductions import mean, sum
from msdump.mindspore.ops.statistics import logsumexp
from msdump.mindspore.tracer import current_tracer


def softmax(input: Tensor, axis: int = -1, *, dtype: Any = None) -> Tensor:
    return call("Softmax", input if dtype is None else cast(input, dtype), axis=axis)


def log_softmax(logits: Tensor, axis: int = -1) -> Tensor:
    return call("LogSoftmax", logits, axis=axis)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Gauss error linear unit.   Source: `approximate`: "tanh" is MindSpore's GeLU operator, "none" uses erf."""
    if approximate == "tanh":
        return call("GeLU", input)
    return mul(mul(input, 0.5), add(erf(div(input, math.sqrt(2.0))), 1.0))


def leaky_relu(input: Tensor, alpha: float = 0.2) -> Tensor:
    """input above zero, alpha * input below."""
    return maximum(mul(input, alpha), input) if alpha <= 1 else minimum(mul(input, alpha), input)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, seed: int | None = None) -> Tensor:
    """Each element zero with probability p, the others scaled so that the mean stays.

    Raises: ValueError for p outside [0, 1).
    """
    if not 0 <= p < 1:
        raise ValueError(f"For 'dropout', the 'p' should be in range [0, 1), but got {p}.")
    if not training or p == 0:
        return input
    return dropout_with_mask(input, 1.0 - p, seed)[0]


def dropout_with_mask(input: Tensor, keep_prob: float, seed: int | None = None, seed1: int = 0) -> tuple[Tensor, ...]:
    """The result and the mask. In a graph the mask changes with every run, outside of it with every call."""
    first = int(random_generator().integers(1, 2**31)) if seed is None else seed
    attrs = {"keep_prob": keep_prob, "Seed0": first, "Seed1": seed1}
    tracer = current_tracer()
    if tracer is None or tracer.is_recording:
        return execute("Dropout", [input], attrs)
    return execute("Dropout", [input, tracer.draw()], attrs)


def _channels_with_mask(op_type: str, input: Tensor, keep_prob: float) -> tuple[Tensor, ...]:
    """`input` (N, C, ...) with channels zero with probability 1 - keep_prob, and the mask of what stays.

    op_type   Dropout2D for 4 axes, Dropout3D for 5
    """
    attrs = {"keep_prob": keep_prob, "Seed0": int(random_generator().integers(1, 2**31))}
    tracer = current_tracer()
    draws = [] if tracer is None or tracer.is_recording else [tracer.draw()]
    return tuple(execute(op_type, [input, *draws], attrs))


def _channels_dropped(op_type: str, input: Tensor, p: float) -> Tensor:
    """Whole channels zero with probability p."""
    if isinstance(p, bool) or not isinstance(p, float):
        raise TypeError(f"For '{op_type}', the p should be float, but got {type(p).__name__}.")
    if not 0 <= p < 1:
        raise ValueError(f"For '{op_type}', the 'p' must be in range [0, 1), but got {p}.")
    return _channels_with_mask(op_type, input, 1.0 - p)[0]


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Channels of (N, C, L) or (C, L) zero with probability p."""
    if not training:
        return input
    if input.ndim not in (2, 3):
        raise ValueError(f"For 'dropout1d', input must be a 2D or 3D tensor, but got {input.ndim}D.")
    batched = input if input.ndim == 3 else expand_dims(input, 0)
    result = squeeze(_channels_dropped("Dropout2D", expand_dims(batched, -1), p), -1)
    return result if input.ndim == 3 else squeeze(result, 0)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Channels of (N, C, H, W) zero with probability p."""
    return _channels_dropped("Dropout2D", input, p) if training else input


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Channels of (N, C, D, H, W) zero with probability p."""
    return _channels_dropped("Dropout3D", input, p) if training else input


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return mean(loss)
    if reduction == "sum":
        return sum(loss)
    _checked(reduction)
    return loss


def _checked(reduction: str) -> str:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"reduction: expected 'mean', 'sum' or 'none', got '{reduction}'.")
    return reduction


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """Cross entropy of logits (N, C, ...) with class indices (N, ...) or probabilities (N, C, ...)."""
    axis = 0 if input.ndim == 1 else 1
    if target.dtype in float_type and target.ndim != input.ndim:
        raise TypeError(
            f"cross_entropy: expected a target of int32 classes, or of probabilities of shape {input.shape}, got "
            f"{target.type_}. Cast the classes with target.astype(mindspore.int32)."
        )
    logs = sub(input, logsumexp(input, axis, True))
    if target.dtype in float_type:
        return _soft_cross_entropy(logs, target, axis, weight, reduction, label_smoothing)
    return nll_loss(logs, target, weight, ignore_index, reduction, label_smoothing)


def _soft_cross_entropy(
    logs: Tensor, target: Tensor, axis: int, weight: Tensor | None, reduction: str, label_smoothing: float
) -> Tensor:
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / logs.shape[axis]
    weighed = _weighed(mul(logs, target), axis, weight)
    if reduction == "none":
        return neg(sum(weighed, axis))
    loss = neg(sum(weighed))
    count = logs.size // logs.shape[axis]
    return div(loss, float(count)) if reduction == "mean" and count != 1 else _reduced(loss, "none")


def _weighed(values: Tensor, axis: int, weight: Tensor | None) -> Tensor:
    """What stands for each class along `axis`, times the weight of the class."""
    if weight is None:
        return values
    return mul(values, reshape(weight, [-1 if index == axis else 1 for index in range(values.ndim)]))


def nll_loss(
    inputs: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """Negative log likelihood: minus the log probability of each target class; "mean" weighs by `weight`.

    Edges: the sum over all classes counts with label_smoothing / classes, also with 0, so that an infinite log
           probability makes NaN.   Source: MindSpore 2.0 and 2.7.
    """
    axis = 0 if inputs.ndim == 1 else 1
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"reduction: expected 'mean', 'sum' or 'none', got '{reduction}'.")
    target = expand_dims(target, axis)
    is_ignored = equal(target, ignore_index)
    target = masked_fill(target, is_ignored, 0)
    values = inputs
    if weight is not None:
        values = mul(inputs, weight) if inputs.ndim <= 2 else _weighed_lines(inputs, weight)
    parts = [neg(gather_elements(values, axis, target)), neg(sum(values, axis, True))]
    parts = [squeeze(masked_fill(part, is_ignored, 0.0), axis) for part in parts]
    if reduction != "none":
        parts = [sum(part) for part in parts]
    if reduction == "mean":
        counts = ones(target.shape, inputs.dtype) if weight is None else gather(weight, target)
        total = sum(masked_fill(counts, is_ignored, 0.0))
        parts = [div(part, total) for part in parts]
    loss, smooth = parts
    if label_smoothing:
        loss = mul(loss, 1 - label_smoothing)
    return add(loss, mul(smooth, label_smoothing / inputs.shape[axis]))


def _weighed_lines(inputs: Tensor, weight: Tensor) -> Tensor:
    """Inputs (N, C, ...) times the weight of each class.   Source: operators of MindSpore 2.7."""
    lines = mul(reshape(inputs, (*inputs.shape[:2], -1)), reshape(weight, (-1, 1)))
    return reshape(lines, inputs.shape)


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Squared differences; of integers in float32."""
    difference = sub(input, target)
    return _reduced(square(difference if difference.dtype in float_type else cast(difference, float32)), reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    return _reduced(abs(sub(input, target)), reduction)


@operator_class("BinaryCrossEntropy", init="reduction")
def binary_cross_entropy(logits: Tensor, labels: Tensor, weight: Any = None, reduction: str = "mean") -> Tensor:
    """Cross entropy of probabilities with targets in [0, 1]; logarithms are cut at -100."""
    if labels.dtype != logits.dtype:
        raise TypeError(f"BinaryCrossEntropy: expected labels of dtype {logits.dtype}, got {labels.dtype}. Cast them.")
    weights = [] if weight is None else [as_tensor(weight, logits.type_.dtype)]
    return execute("BinaryCrossEntropy", [logits, labels, *weights], {"reduction": _checked(reduction)})[0]


@operator_class("BCEWithLogitsLoss", init="reduction")
def binary_cross_entropy_with_logits(
    logits: Tensor, label: Tensor, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """Cross entropy of sigmoid(logits) with targets in [0, 1], computed without overflow."""
    weights = {"weight": weight, "pos_weight": pos_weight}
    attrs: dict[str, Any] = {"reduction": _checked(reduction)}
    absent = tuple(name for name, each in weights.items() if each is None)
    if absent:
        attrs["absent"] = absent
    given = [as_tensor(each, logits.type_.dtype) for each in weights.values() if each is not None]
    return execute("BCEWithLogitsLoss", [logits, as_tensor(label), *given], attrs)[0]


publish(__name__)
