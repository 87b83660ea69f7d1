"""Losses, and what flows back from them."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.registry import kernel

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
_aten = torch.ops.aten


@kernel("MseLoss")
def mse_loss(predict: Any, label: Any, *, reduction: str) -> Any:
    return _aten.mse_loss.default(predict, label, _REDUCTIONS[reduction])


@kernel("MseLossGrad")
def mse_loss_grad(predict: Any, label: Any, dout: Any, *, reduction: str) -> Any:
    return _aten.mse_loss_backward.default(dout, predict, label, _REDUCTIONS[reduction])


@kernel("SmoothL1LossV2")
def smooth_l1_loss(predict: Any, label: Any, *, sigma: float, reduction: str) -> Any:
    """sigma   where the square turns into a line"""
    return _aten.smooth_l1_loss.default(predict, label, _REDUCTIONS[reduction], sigma)


@kernel("SmoothL1LossGradV2")
def smooth_l1_loss_grad(predict: Any, label: Any, dout: Any, *, sigma: float, reduction: str) -> Any:
    return _aten.smooth_l1_loss_backward.default(dout, predict, label, _REDUCTIONS[reduction], sigma)


@kernel("NLLLoss")
def nll_loss(x: Any, target: Any, weight: Any, *, reduction: str, ignore_index: int) -> Any:
    """target   of any integer dtype; of x's spatial shape for images"""
    function = _aten.nll_loss2d_forward if x.dim() == 4 else _aten.nll_loss_forward
    return function.default(x, target.long(), weight, _REDUCTIONS[reduction], ignore_index)


@kernel("NLLLossGrad")
def nll_loss_grad(
    x: Any, y_grad: Any, target: Any, weight: Any, total_weight: Any, *, reduction: str, ignore_index: int
) -> Any:
    function = _aten.nll_loss2d_backward if x.dim() == 4 else _aten.nll_loss_backward
    return function.default(y_grad, x, target.long(), weight, _REDUCTIONS[reduction], ignore_index, total_weight)


@kernel("BinaryCrossEntropy")
def binary_cross_entropy(x: Any, y: Any, weight: Any, *, reduction: str) -> Any:
    return _aten.binary_cross_entropy.default(x, y, weight, _REDUCTIONS[reduction])


@kernel("BinaryCrossEntropyGrad")
def binary_cross_entropy_grad(x: Any, y: Any, grad_output: Any, weight: Any, *, reduction: str) -> Any:
    return _aten.binary_cross_entropy_backward.default(grad_output, x, y, weight, _REDUCTIONS[reduction])


@kernel("SigmoidCrossEntropyWithLogitsV2")
def sigmoid_cross_entropy(predict: Any, target: Any, weight: Any, pos_weight: Any, *, reduction: str) -> Any:
    return _aten.binary_cross_entropy_with_logits.default(predict, target, weight, pos_weight, _REDUCTIONS[reduction])


@kernel("SoftMarginLoss")
def soft_margin_loss(input_x: Any, input_y: Any, *, reduction: str) -> Any:
    return _aten.soft_margin_loss.default(input_x, input_y, _REDUCTIONS[reduction])


@kernel("SoftMarginLossGrad")
def soft_margin_loss_grad(predict: Any, label: Any, dout: Any, *, reduction: str) -> Any:
    return _aten.soft_margin_loss_backward.default(dout, predict, label, _REDUCTIONS[reduction])
