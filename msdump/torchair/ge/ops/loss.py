"""Losses and their gradients."""

from __future__ import annotations

from typing import Any

import torch

from msdump.torchair.ge.builder import Builder, placement_hints
from msdump.torchair.ge.graph import GeTensor, Size
from msdump.torchair.ge.registry import converter, kernel
from msdump.torchair.ge.rows import Attr, choice, row

# ATen's numbers of reductions as GE spells them, and back.
_REDUCTIONS = ("none", "mean", "sum")
_NUMBERS = {name: number for number, name in enumerate(_REDUCTIONS)}
_MEAN = 1

_aten = torch.ops.aten


_REDUCTION, _SIGMA = choice("reduction", _REDUCTIONS), Attr("sigma")  # sigma: where the square turns into a line
_GRAD = "predict label dout sigma reduction"

row("aten.mse_loss.default", "MseLoss", "predict", "label", _REDUCTION, is_cast=True)
row("aten.mse_loss_backward.default", "MseLossGrad", "dout", "predict", "label", _REDUCTION, order=_GRAD)
smooth_l1_loss = row("aten.smooth_l1_loss.default", "SmoothL1LossV2", "predict", "label", _REDUCTION, _SIGMA,
                     order="predict label sigma reduction", is_cast=True, output="loss")  # fmt: skip
smooth_l1_loss_backward = row("aten.smooth_l1_loss_backward.default", "SmoothL1LossGradV2", "dout", "predict", "label",
                              _REDUCTION, _SIGMA, order=_GRAD, output="gradient")  # fmt: skip
row("aten.binary_cross_entropy.default", "BinaryCrossEntropy", "x", "y", "weight", _REDUCTION, output="output")
row("aten.binary_cross_entropy_backward.default", "BinaryCrossEntropyGrad", "grad_output", "x", "y", "weight",
    _REDUCTION, order="x y grad_output weight reduction", output="output")  # fmt: skip
row("aten.binary_cross_entropy_with_logits.default", "SigmoidCrossEntropyWithLogitsV2", "predict", "target", "weight",
    "pos_weight", _REDUCTION, output="loss")  # fmt: skip
row("aten.soft_margin_loss.default", "SoftMarginLoss", "input_x", "input_y", _REDUCTION, output="output_z")
row("aten.soft_margin_loss_backward.default", "SoftMarginLossGrad", "dout", "predict", "label", _REDUCTION,
    order=_GRAD, output="gradient")  # fmt: skip


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
    ge: Builder, x: GeTensor, target: GeTensor, weight: GeTensor | None, reduction: int, ignore_index: Size
) -> tuple[GeTensor, ...]:
    inputs = {"x": x, "target": ge.cast(target, torch.int32), "weight": weight}
    attrs = {"reduction": _REDUCTIONS[reduction], "ignore_index": ignore_index}
    return ge.multi_op("NLLLoss", inputs, ("y", "total_weight"), attrs)


@kernel("NLLLoss")
def nll_loss_kernel(
    x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, *, reduction: str, ignore_index: int
) -> Any:
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
    ignore_index: Size,
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
    x: torch.Tensor,
    y_grad: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor,
    total_weight: torch.Tensor,
    *,
    reduction: str,
    ignore_index: int,
) -> Any:
    function = _aten.nll_loss2d_backward if x.dim() == 4 else _aten.nll_loss_backward
    return function.default(y_grad, x, target.long(), weight, _NUMBERS[reduction], ignore_index, total_weight)
