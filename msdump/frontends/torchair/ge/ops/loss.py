"""Losses and their gradients."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.builder import Builder, placement_hints
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.registry import converter, kernel

# ATen's numbers of reductions as GE spells them, and back.
_REDUCTIONS = ("none", "mean", "sum")
_NUMBERS = {name: number for number, name in enumerate(_REDUCTIONS)}
_MEAN = 1

_aten = torch.ops.aten


@converter("aten.mse_loss.default")
def mse_loss(ge: Builder, x: GeTensor, target: GeTensor, reduction: int = _MEAN) -> GeTensor:
    predict, label = ge.promoted(x, target, dtype=ge.result.dtype)
    return ge.op("MseLoss", {"predict": predict, "label": label}, {"reduction": _REDUCTIONS[reduction]})


@kernel("MseLoss")
def mse_loss_kernel(predict: Any, label: Any, *, reduction: str) -> Any:
    return _aten.mse_loss.default(predict, label, _NUMBERS[reduction])


@converter("aten.mse_loss_backward.default")
def mse_loss_backward(ge: Builder, grad: GeTensor, x: GeTensor, target: GeTensor, reduction: int) -> GeTensor:
    inputs = {"predict": x, "label": target, "dout": grad}
    return ge.op("MseLossGrad", inputs, {"reduction": _REDUCTIONS[reduction]})


@kernel("MseLossGrad")
def mse_loss_grad_kernel(predict: Any, label: Any, dout: Any, *, reduction: str) -> Any:
    return _aten.mse_loss_backward.default(dout, predict, label, _NUMBERS[reduction])


@converter("aten.smooth_l1_loss.default")
def smooth_l1_loss(ge: Builder, x: GeTensor, target: GeTensor, reduction: int = _MEAN, beta: float = 1.0) -> GeTensor:
    predict, label = ge.promoted(x, target, dtype=ge.result.dtype)
    attrs = {"sigma": beta, "reduction": _REDUCTIONS[reduction]}
    return ge.op("SmoothL1LossV2", {"predict": predict, "label": label}, attrs, output="loss")


@kernel("SmoothL1LossV2")
def smooth_l1_loss_kernel(predict: Any, label: Any, *, sigma: float, reduction: str) -> Any:
    """sigma   where the square turns into a line"""
    return _aten.smooth_l1_loss.default(predict, label, _NUMBERS[reduction], sigma)


@converter("aten.smooth_l1_loss_backward.default")
def smooth_l1_loss_backward(
    ge: Builder, grad: GeTensor, x: GeTensor, target: GeTensor, reduction: int, beta: float
) -> GeTensor:
    inputs = {"predict": x, "label": target, "dout": grad}
    return ge.op("SmoothL1LossGradV2", inputs, {"sigma": beta, "reduction": _REDUCTIONS[reduction]}, output="gradient")


@kernel("SmoothL1LossGradV2")
def smooth_l1_loss_grad_kernel(predict: Any, label: Any, dout: Any, *, sigma: float, reduction: str) -> Any:
    return _aten.smooth_l1_loss_backward.default(dout, predict, label, _NUMBERS[reduction], sigma)


@converter("aten.huber_loss.default")
def huber_loss(ge: Builder, x: GeTensor, target: GeTensor, reduction: int = _MEAN, delta: float = 1.0) -> GeTensor:
    """delta times the smooth L1 loss."""
    loss = smooth_l1_loss(ge, x, target, reduction, delta)
    return ge.op("Mul", {"x1": loss, "x2": ge.number(delta, loss.dtype)})


@converter("aten.huber_loss_backward.default")
def huber_loss_backward(
    ge: Builder, grad: GeTensor, x: GeTensor, target: GeTensor, reduction: int, delta: float
) -> GeTensor:
    scaled = ge.op("Mul", {"x1": grad, "x2": ge.number(delta, grad.dtype)})
    return smooth_l1_loss_backward(ge, scaled, x, target, reduction, delta)


@converter("aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default")
def nll_loss(
    ge: Builder, x: GeTensor, target: GeTensor, weight: GeTensor | None, reduction: int, ignore_index: Any
) -> tuple[GeTensor, ...]:
    inputs = {"x": x, "target": ge.cast(target, torch.int32), "weight": weight}
    attrs = {"reduction": _REDUCTIONS[reduction], "ignore_index": ignore_index}
    return ge.multi_op("NLLLoss", inputs, ("y", "total_weight"), attrs)


@kernel("NLLLoss")
def nll_loss_kernel(x: Any, target: Any, weight: Any, *, reduction: str, ignore_index: int) -> Any:
    """target   of any integer dtype; of x's spatial shape for images"""
    function = _aten.nll_loss2d_forward if x.dim() == 4 else _aten.nll_loss_forward
    return function.default(x, target.long(), weight, _NUMBERS[reduction], ignore_index)


@converter("aten.nll_loss_backward.default", "aten.nll_loss2d_backward.default")
def nll_loss_backward(
    ge: Builder,
    grad: GeTensor,
    x: GeTensor,
    target: GeTensor,
    weight: GeTensor | None,
    reduction: int,
    ignore_index: Any,
    total_weight: GeTensor,
) -> GeTensor:
    """Weights are no option of NLLLossGrad: ones stand for none."""
    if weight is None:
        axis = min(len(x.shape) - 1, 1)
        count = x.shape[axis]
        if not isinstance(count, int):
            count = ge.op("Gather", {"x": ge.op("Shape", {"x": x}), "indices": axis})
        ones = {"dims": ge.sizes([count]), "value": ge.const(1, x.dtype)}
        weight = ge.op("Fill", ones, hints=placement_hints(None, x.fake.device))
    inputs = {
        "x": x,
        "y_grad": grad,
        "target": ge.cast(target, torch.int32),
        "weight": weight,
        "total_weight": total_weight,
    }
    attrs = {"reduction": _REDUCTIONS[reduction], "ignore_index": ignore_index}
    return ge.op("NLLLossGrad", inputs, attrs, output="x_grad")


@kernel("NLLLossGrad")
def nll_loss_grad_kernel(
    x: Any, y_grad: Any, target: Any, weight: Any, total_weight: Any, *, reduction: str, ignore_index: int
) -> Any:
    function = _aten.nll_loss2d_backward if x.dim() == 4 else _aten.nll_loss_backward
    return function.default(y_grad, x, target.long(), weight, _NUMBERS[reduction], ignore_index, total_weight)


@converter("aten.binary_cross_entropy.default")
def binary_cross_entropy(
    ge: Builder, x: GeTensor, target: GeTensor, weight: GeTensor | None = None, reduction: int = _MEAN
) -> GeTensor:
    inputs = {"x": x, "y": target, "weight": weight}
    return ge.op("BinaryCrossEntropy", inputs, {"reduction": _REDUCTIONS[reduction]}, output="output")


@kernel("BinaryCrossEntropy")
def binary_cross_entropy_kernel(x: Any, y: Any, weight: Any, *, reduction: str) -> Any:
    return _aten.binary_cross_entropy.default(x, y, weight, _NUMBERS[reduction])


@converter("aten.binary_cross_entropy_backward.default")
def binary_cross_entropy_backward(
    ge: Builder,
    grad: GeTensor,
    x: GeTensor,
    target: GeTensor,
    weight: GeTensor | None = None,
    reduction: int = _MEAN,
) -> GeTensor:
    inputs = {"x": x, "y": target, "grad_output": grad, "weight": weight}
    return ge.op("BinaryCrossEntropyGrad", inputs, {"reduction": _REDUCTIONS[reduction]}, output="output")


@kernel("BinaryCrossEntropyGrad")
def binary_cross_entropy_grad_kernel(x: Any, y: Any, grad_output: Any, weight: Any, *, reduction: str) -> Any:
    return _aten.binary_cross_entropy_backward.default(grad_output, x, y, weight, _NUMBERS[reduction])


@converter("aten.binary_cross_entropy_with_logits.default")
def binary_cross_entropy_with_logits(
    ge: Builder,
    x: GeTensor,
    target: GeTensor,
    weight: GeTensor | None = None,
    pos_weight: GeTensor | None = None,
    reduction: int = _MEAN,
) -> GeTensor:
    inputs = {"predict": x, "target": target, "weight": weight, "pos_weight": pos_weight}
    return ge.op("SigmoidCrossEntropyWithLogitsV2", inputs, {"reduction": _REDUCTIONS[reduction]}, output="loss")


@kernel("SigmoidCrossEntropyWithLogitsV2")
def sigmoid_cross_entropy_kernel(predict: Any, target: Any, weight: Any, pos_weight: Any, *, reduction: str) -> Any:
    return _aten.binary_cross_entropy_with_logits.default(predict, target, weight, pos_weight, _NUMBERS[reduction])


@converter("aten.soft_margin_loss.default")
def soft_margin_loss(ge: Builder, x: GeTensor, target: GeTensor, reduction: int = _MEAN) -> GeTensor:
    inputs = {"input_x": x, "input_y": target}
    return ge.op("SoftMarginLoss", inputs, {"reduction": _REDUCTIONS[reduction]}, output="output_z")


@kernel("SoftMarginLoss")
def soft_margin_loss_kernel(input_x: Any, input_y: Any, *, reduction: str) -> Any:
    return _aten.soft_margin_loss.default(input_x, input_y, _NUMBERS[reduction])


@converter("aten.soft_margin_loss_backward.default")
def soft_margin_loss_backward(
    ge: Builder, grad: GeTensor, x: GeTensor, target: GeTensor, reduction: int = _MEAN
) -> GeTensor:
    inputs = {"predict": x, "label": target, "dout": grad}
    return ge.op("SoftMarginLossGrad", inputs, {"reduction": _REDUCTIONS[reduction]}, output="gradient")


@kernel("SoftMarginLossGrad")
def soft_margin_loss_grad_kernel(predict: Any, label: Any, dout: Any, *, reduction: str) -> Any:
    return _aten.soft_margin_loss_backward.default(dout, predict, label, _NUMBERS[reduction])
