"""Losses."""

from __future__ import annotations

from typing import Any

from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.ops.arithmetic import (
    abs,
    add,
    div,
    exp,
    log,
    maximum,
    mul,
    neg,
    not_equal,
    select,
    square,
    sub,
)
from msdump.frontends.mindspore.ops.creation import zeros_like
from msdump.frontends.mindspore.ops.network import log_softmax
from msdump.frontends.mindspore.ops.reductions import mean, sum
from msdump.frontends.mindspore.ops.shapes import expand_dims, gather, gather_elements, reshape, squeeze
from msdump.frontends.mindspore.promotion import cast as _cast

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "l1_loss",
    "mse_loss",
    "nll_loss",
]


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return mean(loss)
    if reduction == "sum":
        return sum(loss)
    if reduction == "none":
        return loss
    raise ValueError(f"reduction: expected 'mean', 'sum' or 'none', got '{reduction}'.")


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of logits (N, C, ...) with class indices (N, ...) or probabilities (N, C, ...)."""
    axis = 0 if input.ndim == 1 else 1
    logs = log_softmax(input, axis)
    if target.dtype.name in ("float16", "float32", "float64"):
        return _soft_cross_entropy(logs, target, axis, weight, reduction, label_smoothing)
    return nll_loss(logs, target, weight, ignore_index, reduction, label_smoothing)


def _soft_cross_entropy(
    logs: Tensor, target: Tensor, axis: int, weight: Tensor | None, reduction: str, label_smoothing: float
) -> Tensor:
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / logs.shape[axis]
    if weight is not None:
        target = mul(target, reshape(weight, [-1 if at == axis else 1 for at in range(logs.ndim)]))
    loss = neg(sum(mul(logs, target), axis))
    return mean(loss) if reduction == "mean" and loss.ndim else _reduced(loss, reduction)


def nll_loss(
    inputs: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Negative log likelihood: minus the log probability of each target class; "mean" weighs by `weight`."""
    axis = 0 if inputs.ndim == 1 else 1
    is_used = not_equal(target, ignore_index)
    safe = select(is_used, target, zeros_like(target))
    index = expand_dims(safe, axis)
    picked = neg(squeeze(gather_elements(inputs, axis, index), axis))
    factor = _cast(is_used, inputs.type_.dtype)
    if weight is not None:
        factor = mul(factor, gather(weight, safe))
    loss = mul(picked, factor)
    total = sum(factor) if reduction == "mean" else None
    result = div(sum(loss), total) if total is not None else _reduced(loss, reduction)
    if not label_smoothing:
        return result
    spread = neg(mean(inputs, axis))
    smooth = mul(spread, _cast(is_used, inputs.type_.dtype))
    smooth = div(sum(smooth), total) if total is not None else _reduced(smooth, reduction)
    return add(mul(result, 1 - label_smoothing), mul(smooth, label_smoothing))


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    return _reduced(square(sub(input, target)), reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    return _reduced(abs(sub(input, target)), reduction)


def binary_cross_entropy(logits: Tensor, labels: Tensor, weight: Any = None, reduction: str = "mean") -> Tensor:
    """Cross entropy of probabilities with targets in [0, 1]; logarithms are cut at -100."""
    positive = mul(labels, maximum(log(logits), -100.0))
    negative_part = mul(sub(1.0, labels), maximum(log(sub(1.0, logits)), -100.0))
    loss = neg(add(positive, negative_part))
    return _reduced(loss if weight is None else mul(loss, weight), reduction)


def binary_cross_entropy_with_logits(
    logits: Tensor, label: Tensor, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """Cross entropy of sigmoid(logits) with targets in [0, 1], computed without overflow."""
    # log(1 + e**-|x|) + max(-x, 0) is log(1 + e**-x) for both signs.
    soft = add(log(add(exp(neg(abs(logits))), 1.0)), maximum(neg(logits), 0.0))
    factor: Any = 1.0 if pos_weight is None else add(mul(label, sub(pos_weight, 1.0)), 1.0)
    loss = add(mul(sub(1.0, label), logits), mul(soft, factor))
    return _reduced(loss if weight is None else mul(loss, weight), reduction)
