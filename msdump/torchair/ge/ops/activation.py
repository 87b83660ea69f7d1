"""Activation functions, softmax among them, and their gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from msdump.torchair.ge.builder import Builder, real
from msdump.torchair.ge.graph import GeTensor, Operand
from msdump.torchair.ge.ops.elementwise import unary
from msdump.torchair.ge.registry import converter, kernel
from msdump.torchair.ge.rows import Attr, Fixed, axis, numbers, row

_aten = torch.ops.aten

unary("hardswish", "HardSwish", _aten.hardswish.default)
unary("mish", "Mish", _aten.mish.default)
unary("relu", "Relu", torch.relu)
unary("sigmoid", "Sigmoid", torch.sigmoid)
unary("silu", "Swish", _aten.silu.default)
unary("tanh", "Tanh", torch.tanh)

kernel("LogSigmoid")(functional.logsigmoid)


@converter("aten.threshold_backward.default")
def threshold_backward(ge: Builder, dy: GeTensor, x: GeTensor, threshold: GeTensor | float) -> GeTensor:
    inputs = {"gradients": dy, "features": x}
    if threshold == 0:
        return ge.op("ReluGrad", inputs, output="backprops")
    return ge.op("ThresholdGradV2D", inputs, {"threshold": real(threshold)}, output="backprops")


@kernel("ReluGrad")
def relu_grad_kernel(gradients: torch.Tensor, features: torch.Tensor) -> Any:
    return _aten.threshold_backward.default(gradients, features, 0)


@kernel("ThresholdGradV2D")
def threshold_grad_kernel(gradients: torch.Tensor, features: torch.Tensor, *, threshold: float) -> Any:
    return _aten.threshold_backward.default(gradients, features, threshold)


@converter("aten.threshold.default")
def threshold(ge: Builder, x: GeTensor, threshold: Operand, value: Operand) -> GeTensor:
    bound, filler = ge.promoted(threshold, value, dtype=x.dtype)
    return ge.op("ThresholdV2", {"x": x, "threshold": bound, "value": filler})


kernel("ThresholdV2", host=("threshold", "value"))(torch.threshold)


_ELU = numbers("alpha", "scale", "input_scale")
_SOFTPLUS = numbers("beta", "threshold")

row("aten.tanh_backward.default", "TanhGrad", "dy", "y", order="y dy", output="z")
row("aten.sigmoid_backward.default", "SigmoidGrad", "dy", "y", order="y dy", output="z")
row("aten.silu_backward.default", "SiluGrad", "dy", "x", output="dx")
row("aten.hardswish_backward.default", "HardSwishGrad", "grad", "x")
row("aten.hardsigmoid.default", "HardSigmoid", "input_x", output="output_y")
row("aten.hardsigmoid_backward.default", "HardSigmoidGrad", "grads", "input_x")
row("aten.mish_backward.default", "MishGrad", "grad", "x", output="x_grad")
row("aten.leaky_relu.default", "LeakyRelu", "x", *numbers("negative_slope"))
# A slope below zero is refused by torch for results, so that inputs and results have the same sign.
row("aten.leaky_relu_backward.default", "LeakyReluGrad", "gradients", "features", *numbers("negative_slope"),
    Fixed(False), output="backprops")  # fmt: skip
row("aten._prelu_kernel.default", "PRelu", "x", "weight")
row("aten._prelu_kernel_backward.default", "PReluGrad", "grads", "features", "weights", output="dx da")
row("aten.elu.default", "Elu", "x", *_ELU)
row("aten.elu_backward.default", "EluGradV2", "grads", *_ELU, Attr("is_result"), "activations")
row("aten.celu.default", "CeluV2", "x", *numbers("alpha"))
row("aten.hardtanh_backward.default", "HardtanhGrad", "grad", "result", *numbers("min_val", "max_val"),
    order="result grad min_val max_val")  # fmt: skip
row("aten.softplus.default", "SoftplusV2", "x", *_SOFTPLUS)
row("aten.softplus_backward.default", "SoftplusV2Grad", "input_gradients", "input_features", *_SOFTPLUS,
    output="output_backprops")  # fmt: skip
row("aten.glu.default", "GLU", "x", Attr("dim"))
row("aten.glu_backward.default", "GLUGrad", "y_grad", "x", Attr("dim"), output="x_grad")
softmax = row("aten._softmax.default", "SoftmaxV2", "x", axis("axes"), Attr("half_to_float"))
row("aten._log_softmax.default", "LogSoftmaxV2", "logits", axis("axes"), Fixed(False), is_cast=True,
    output="logsoftmax")  # fmt: skip


@converter("aten.gelu.default")
def gelu(ge: Builder, x: GeTensor, approximate: str = "none") -> GeTensor:
    return ge.op("Gelu", {"x": x}, hints={"approximate": approximate})


@kernel("Gelu")
def gelu_kernel(x: torch.Tensor, *, approximate: str) -> Any:
    """GE has one Gelu and leaves the formula to the device; `approximate` is torch's argument, as a hint."""
    return _aten.gelu.default(x, approximate=approximate)


@converter("aten.gelu_backward.default")
def gelu_backward(ge: Builder, dy: GeTensor, x: GeTensor, approximate: str = "none") -> GeTensor:
    # The third input is not read; TorchAir feeds dy.
    return ge.op("GeluGrad", {"dy": dy, "x": x, "y": dy}, output="z", hints={"approximate": approximate})


@kernel("GeluGrad")
def gelu_grad_kernel(dy: torch.Tensor, x: torch.Tensor, y: torch.Tensor, *, approximate: str) -> Any:
    return _aten.gelu_backward.default(dy, x, approximate=approximate)


@converter("aten.log_sigmoid_forward.default")
def log_sigmoid(ge: Builder, x: GeTensor) -> tuple[GeTensor | None, ...]:
    """The second result, which torch keeps for its backward, is exp(-|x|)."""
    y = ge.op("LogSigmoid", {"x": x})
    if not ge.is_read(1):
        return y, None
    return y, ge.op("Exp", {"x": ge.op("Neg", {"x": ge.op("Abs", {"x": x})})})


@converter("aten.log_sigmoid_backward.default")
def log_sigmoid_backward(ge: Builder, dy: GeTensor, x: GeTensor, buffer: GeTensor) -> GeTensor:
    return ge.op("LogSigmoidGrad", {"grads": dy, "features": x}, output="backprops")


@kernel("LogSigmoidGrad")
def log_sigmoid_grad_kernel(grads: torch.Tensor, features: torch.Tensor) -> Any:
    _, buffer = _aten.log_sigmoid_forward.default(features)
    return _aten.log_sigmoid_backward.default(grads, features, buffer)


@converter("aten._safe_softmax.default")
def safe_softmax(ge: Builder, x: GeTensor, dim: int, dtype: torch.dtype | None = None) -> GeTensor:
    """Zeros, not NaN, where everything is masked out."""
    x = ge.cast(x, ge.result.dtype)
    y = softmax(ge, x, dim, False)
    is_masked = ge.op("Equal", {"x1": x, "x2": ge.const(float("-inf"), x.dtype)})
    is_empty = ge.op("ReduceAll", {"x": is_masked, "axes": [dim]}, {"keep_dims": True})
    return ge.op("SelectV2", {"condition": is_empty, "then": ge.const(0, x.dtype), "else": y}, output="result")


@converter("aten._softmax_backward_data.default")
def softmax_backward(ge: Builder, dy: GeTensor, y: GeTensor, dim: int, input_dtype: torch.dtype) -> GeTensor:
    return ge.cast(ge.op("SoftmaxGrad", {"y": y, "dy": dy}, {"axes": [dim]}, output="grad_x"), input_dtype)


@kernel("SoftmaxGrad")
def softmax_grad_kernel(y: torch.Tensor, dy: torch.Tensor, *, axes: list[int]) -> Any:
    return _aten._softmax_backward_data.default(dy, y, axes[0], y.dtype)


@converter("aten._log_softmax_backward_data.default")
def log_softmax_backward(ge: Builder, dy: GeTensor, y: GeTensor, dim: int, input_dtype: torch.dtype) -> GeTensor:
    return ge.cast(ge.op("LogSoftmaxGrad", {"dy": dy, "y": y}, {"axis": [dim]}, output="grad_x"), input_dtype)


@kernel("LogSoftmaxGrad")
def log_softmax_grad_kernel(dy: torch.Tensor, y: torch.Tensor, *, axis: list[int]) -> Any:
    return _aten._log_softmax_backward_data.default(dy, y, axis[0], y.dtype)
