"""Activation functions, softmax among them, and their gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from msdump.frontends.torchair.ge.builder import Builder, real
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.ops.elementwise import unary
from msdump.frontends.torchair.ge.registry import converter, kernel

_aten = torch.ops.aten

unary("hardswish", "HardSwish", _aten.hardswish.default)
unary("mish", "Mish", _aten.mish.default)
unary("relu", "Relu", torch.relu)
unary("sigmoid", "Sigmoid", torch.sigmoid)
unary("silu", "Swish", _aten.silu.default)
unary("tanh", "Tanh", torch.tanh)

kernel("HardSigmoid")(_aten.hardsigmoid.default)
kernel("LogSigmoid")(functional.logsigmoid)
kernel("PRelu")(_aten._prelu_kernel.default)

kernel("SiluGrad")(_aten.silu_backward.default)
kernel("HardSwishGrad")(_aten.hardswish_backward.default)
kernel("HardSigmoidGrad")(_aten.hardsigmoid_backward.default)
kernel("MishGrad")(_aten.mish_backward.default)


@converter("aten.threshold_backward.default")
def threshold_backward(ge: Builder, dy: GeTensor, x: GeTensor, threshold: Any) -> GeTensor:
    inputs = {"gradients": dy, "features": x}
    if threshold == 0:
        return ge.op("ReluGrad", inputs, output="backprops")
    return ge.op("ThresholdGradV2D", inputs, {"threshold": real(threshold)}, output="backprops")


@kernel("ReluGrad")
def relu_grad_kernel(gradients: Any, features: Any) -> Any:
    return _aten.threshold_backward.default(gradients, features, 0)


@kernel("ThresholdGradV2D")
def threshold_grad_kernel(gradients: Any, features: Any, *, threshold: float) -> Any:
    return _aten.threshold_backward.default(gradients, features, threshold)


@converter("aten.threshold.default")
def threshold(ge: Builder, x: GeTensor, threshold: Any, value: Any) -> GeTensor:
    bound, filler = ge.promoted(threshold, value, dtype=x.dtype)
    return ge.op("ThresholdV2", {"x": x, "threshold": bound, "value": filler})


@kernel("ThresholdV2", host=("threshold", "value"))
def threshold_kernel(x: Any, threshold: Any, value: Any) -> Any:
    return torch.threshold(x, threshold, value)


@converter("aten.tanh_backward.default")
def tanh_backward(ge: Builder, dy: GeTensor, y: GeTensor) -> GeTensor:
    return ge.op("TanhGrad", {"y": y, "dy": dy}, output="z")


@kernel("TanhGrad")
def tanh_grad_kernel(y: Any, dy: Any) -> Any:
    return _aten.tanh_backward.default(dy, y)


@converter("aten.sigmoid_backward.default")
def sigmoid_backward(ge: Builder, dy: GeTensor, y: GeTensor) -> GeTensor:
    return ge.op("SigmoidGrad", {"y": y, "dy": dy}, output="z")


@kernel("SigmoidGrad")
def sigmoid_grad_kernel(y: Any, dy: Any) -> Any:
    return _aten.sigmoid_backward.default(dy, y)


@converter("aten.gelu.default")
def gelu(ge: Builder, x: GeTensor, approximate: str = "none") -> GeTensor:
    return ge.op("Gelu", {"x": x}, hints={"approximate": approximate})


@kernel("Gelu")
def gelu_kernel(x: Any, *, approximate: str) -> Any:
    """GE has one Gelu and leaves the formula to the device; `approximate` is torch's argument, as a hint."""
    return _aten.gelu.default(x, approximate=approximate)


@converter("aten.gelu_backward.default")
def gelu_backward(ge: Builder, dy: GeTensor, x: GeTensor, approximate: str = "none") -> GeTensor:
    # The third input is not read; TorchAir feeds dy.
    return ge.op("GeluGrad", {"dy": dy, "x": x, "y": dy}, output="z", hints={"approximate": approximate})


@kernel("GeluGrad")
def gelu_grad_kernel(dy: Any, x: Any, y: Any, *, approximate: str) -> Any:
    return _aten.gelu_backward.default(dy, x, approximate=approximate)


@converter("aten.silu_backward.default")
def silu_backward(ge: Builder, dy: GeTensor, x: GeTensor) -> GeTensor:
    return ge.op("SiluGrad", {"dy": dy, "x": x}, output="dx")


@converter("aten.hardswish_backward.default")
def hardswish_backward(ge: Builder, dy: GeTensor, x: GeTensor) -> GeTensor:
    return ge.op("HardSwishGrad", {"grad": dy, "x": x})


@converter("aten.hardsigmoid.default")
def hardsigmoid(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("HardSigmoid", {"input_x": x}, output="output_y")


@converter("aten.hardsigmoid_backward.default")
def hardsigmoid_backward(ge: Builder, dy: GeTensor, x: GeTensor) -> GeTensor:
    return ge.op("HardSigmoidGrad", {"grads": dy, "input_x": x})


@converter("aten.mish_backward.default")
def mish_backward(ge: Builder, dy: GeTensor, x: GeTensor) -> GeTensor:
    return ge.op("MishGrad", {"grad": dy, "x": x}, output="x_grad")


@converter("aten.log_sigmoid_forward.default")
def log_sigmoid(ge: Builder, x: GeTensor) -> tuple[GeTensor | None, ...]:
    """The second result, which torch keeps for its backward, is exp(-|x|)."""
    y = ge.op("LogSigmoid", {"x": x})
    if not ge.is_read(1):
        return y, None
    return y, ge.op("Exp", {"x": ge.op("Neg", {"x": ge.op("Abs", {"x": x})})})


@converter("aten.log_sigmoid_backward.default")
def log_sigmoid_backward(ge: Builder, dy: GeTensor, x: GeTensor, buffer: Any) -> GeTensor:
    return ge.op("LogSigmoidGrad", {"grads": dy, "features": x}, output="backprops")


@kernel("LogSigmoidGrad")
def log_sigmoid_grad_kernel(grads: Any, features: Any) -> Any:
    _, buffer = _aten.log_sigmoid_forward.default(features)
    return _aten.log_sigmoid_backward.default(grads, features, buffer)


@converter("aten.leaky_relu.default")
def leaky_relu(ge: Builder, x: GeTensor, negative_slope: Any = 0.01) -> GeTensor:
    return ge.op("LeakyRelu", {"x": x}, {"negative_slope": real(negative_slope)})


@kernel("LeakyRelu")
def leaky_relu_kernel(x: Any, *, negative_slope: float) -> Any:
    return functional.leaky_relu(x, negative_slope)


@converter("aten.leaky_relu_backward.default")
def leaky_relu_backward(ge: Builder, dy: GeTensor, x: GeTensor, negative_slope: Any, is_result: bool) -> GeTensor:
    # A slope below zero is refused by torch for results, so that inputs and results have the same sign.
    attrs = {"negative_slope": real(negative_slope)}
    return ge.op("LeakyReluGrad", {"gradients": dy, "features": x}, attrs, output="backprops")


@kernel("LeakyReluGrad")
def leaky_relu_grad_kernel(gradients: Any, features: Any, *, negative_slope: float) -> Any:
    return _aten.leaky_relu_backward.default(gradients, features, negative_slope, False)


@converter("aten._prelu_kernel.default")
def prelu(ge: Builder, x: GeTensor, weight: GeTensor) -> GeTensor:
    return ge.op("PRelu", {"x": x, "weight": weight})


@converter("aten._prelu_kernel_backward.default")
def prelu_backward(ge: Builder, dy: GeTensor, x: GeTensor, weight: GeTensor) -> tuple[GeTensor, ...]:
    return ge.multi_op("PReluGrad", {"grads": dy, "features": x, "weights": weight}, ("dx", "da"))


@kernel("PReluGrad")
def prelu_grad_kernel(grads: Any, features: Any, weights: Any) -> Any:
    dx, da = _aten._prelu_kernel_backward.default(grads, features, weights)
    return dx, da


@converter("aten.elu.default")
def elu(ge: Builder, x: GeTensor, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> GeTensor:
    attrs = {"alpha": real(alpha), "scale": real(scale), "input_scale": real(input_scale)}
    return ge.op("Elu", {"x": x}, attrs)


@kernel("Elu")
def elu_kernel(x: Any, *, alpha: float, scale: float, input_scale: float) -> Any:
    return _aten.elu.default(x, alpha, scale, input_scale)


@converter("aten.celu.default")
def celu(ge: Builder, x: GeTensor, alpha: Any = 1.0) -> GeTensor:
    return ge.op("CeluV2", {"x": x}, {"alpha": real(alpha)})


@kernel("CeluV2")
def celu_kernel(x: Any, *, alpha: float) -> Any:
    return torch.celu(x, alpha)


@converter("aten.elu_backward.default")
def elu_backward(
    ge: Builder, dy: GeTensor, alpha: Any, scale: Any, input_scale: Any, is_result: bool, x: GeTensor
) -> GeTensor:
    attrs = {"alpha": real(alpha), "scale": real(scale), "input_scale": real(input_scale), "is_result": is_result}
    return ge.op("EluGradV2", {"grads": dy, "activations": x}, attrs)


@kernel("EluGradV2")
def elu_grad_kernel(
    grads: Any, activations: Any, *, alpha: float, scale: float, input_scale: float, is_result: bool
) -> Any:
    return _aten.elu_backward.default(grads, alpha, scale, input_scale, is_result, activations)


@converter("aten.hardtanh_backward.default")
def hardtanh_backward(ge: Builder, dy: GeTensor, x: GeTensor, min_val: Any, max_val: Any) -> GeTensor:
    attrs = {"min_val": real(min_val), "max_val": real(max_val)}
    return ge.op("HardtanhGrad", {"result": x, "grad": dy}, attrs)


@kernel("HardtanhGrad")
def hardtanh_grad_kernel(result: Any, grad: Any, *, min_val: float, max_val: float) -> Any:
    return _aten.hardtanh_backward.default(grad, result, min_val, max_val)


@converter("aten.softplus.default")
def softplus(ge: Builder, x: GeTensor, beta: Any = 1, threshold: Any = 20) -> GeTensor:
    return ge.op("SoftplusV2", {"x": x}, {"beta": real(beta), "threshold": real(threshold)})


@kernel("SoftplusV2")
def softplus_kernel(x: Any, *, beta: float, threshold: float) -> Any:
    return functional.softplus(x, beta, threshold)


@converter("aten.softplus_backward.default")
def softplus_backward(ge: Builder, dy: GeTensor, x: GeTensor, beta: Any, threshold: Any) -> GeTensor:
    attrs = {"beta": real(beta), "threshold": real(threshold)}
    return ge.op("SoftplusV2Grad", {"input_gradients": dy, "input_features": x}, attrs, output="output_backprops")


@kernel("SoftplusV2Grad")
def softplus_grad_kernel(input_gradients: Any, input_features: Any, *, beta: float, threshold: float) -> Any:
    return _aten.softplus_backward.default(input_gradients, input_features, beta, threshold)


@converter("aten.glu.default")
def glu(ge: Builder, x: GeTensor, dim: int = -1) -> GeTensor:
    return ge.op("GLU", {"x": x}, {"dim": dim})


@kernel("GLU")
def glu_kernel(x: Any, *, dim: int) -> Any:
    return functional.glu(x, dim)


@converter("aten.glu_backward.default")
def glu_backward(ge: Builder, dy: GeTensor, x: GeTensor, dim: int) -> GeTensor:
    return ge.op("GLUGrad", {"y_grad": dy, "x": x}, {"dim": dim}, output="x_grad")


@kernel("GLUGrad")
def glu_grad_kernel(y_grad: Any, x: Any, *, dim: int) -> Any:
    return _aten.glu_backward.default(y_grad, x, dim)


@converter("aten._softmax.default")
def softmax(ge: Builder, x: GeTensor, dim: int, half_to_float: bool) -> GeTensor:
    return ge.op("SoftmaxV2", {"x": x}, {"axes": [dim], "half_to_float": half_to_float})


@kernel("SoftmaxV2")
def softmax_kernel(x: Any, *, axes: list[int], half_to_float: bool = False) -> Any:
    return torch._softmax(x, axes[0], half_to_float)


@converter("aten._safe_softmax.default")
def safe_softmax(ge: Builder, x: GeTensor, dim: int, dtype: torch.dtype | None = None) -> GeTensor:
    """Zeros, not NaN, where everything is masked out."""
    x = ge.cast(x, ge.result.dtype)
    y = softmax(ge, x, dim, False)
    is_masked = ge.op("Equal", {"x1": x, "x2": ge.const(float("-inf"), x.dtype)})
    is_empty = ge.op("ReduceAll", {"x": is_masked, "axes": [dim]}, {"keep_dims": True})
    return ge.op("SelectV2", {"condition": is_empty, "then": ge.const(0, x.dtype), "else": y}, output="result")


@converter("aten._log_softmax.default")
def log_softmax(ge: Builder, x: GeTensor, dim: int, half_to_float: bool) -> GeTensor:
    return ge.op("LogSoftmaxV2", {"logits": ge.cast(x, ge.result.dtype)}, {"axes": [dim]}, output="logsoftmax")


@kernel("LogSoftmaxV2")
def log_softmax_kernel(logits: Any, *, axes: list[int]) -> Any:
    return torch._log_softmax(logits, axes[0], False)


@converter("aten._softmax_backward_data.default")
def softmax_backward(ge: Builder, dy: GeTensor, y: GeTensor, dim: int, input_dtype: torch.dtype) -> GeTensor:
    return ge.cast(ge.op("SoftmaxGrad", {"y": y, "dy": dy}, {"axes": [dim]}, output="grad_x"), input_dtype)


@kernel("SoftmaxGrad")
def softmax_grad_kernel(y: Any, dy: Any, *, axes: list[int]) -> Any:
    return _aten._softmax_backward_data.default(dy, y, axes[0], y.dtype)


@converter("aten._log_softmax_backward_data.default")
def log_softmax_backward(ge: Builder, dy: GeTensor, y: GeTensor, dim: int, input_dtype: torch.dtype) -> GeTensor:
    return ge.cast(ge.op("LogSoftmaxGrad", {"dy": dy, "y": y}, {"axis": [dim]}, output="grad_x"), input_dtype)


@kernel("LogSoftmaxGrad")
def log_softmax_grad_kernel(dy: Any, y: Any, *, axis: list[int]) -> Any:
    return _aten._log_softmax_backward_data.default(dy, y, axis[0], y.dtype)
