"""GE operators of activation functions, softmax among them, and of their gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from msdump.frontends.torchair.ge.registry import kernel

aten = torch.ops.aten

kernel("Relu")(torch.relu)
kernel("Sigmoid")(torch.sigmoid)
kernel("Tanh")(torch.tanh)
kernel("Swish")(aten.silu.default)
kernel("Mish")(aten.mish.default)
kernel("HardSwish")(aten.hardswish.default)
kernel("HardSigmoid")(aten.hardsigmoid.default)
kernel("LogSigmoid")(functional.logsigmoid)
kernel("PRelu")(aten._prelu_kernel.default)


@kernel("Gelu")
def gelu(x: Any, *, approximate: str) -> Any:
    """GE has one Gelu and leaves the formula to the device; `approximate` is the hint of what torch asked for."""
    return aten.gelu.default(x, approximate=approximate)


@kernel("GeluGrad")
def gelu_grad(dy: Any, x: Any, y: Any, *, approximate: str) -> Any:
    return aten.gelu_backward.default(dy, x, approximate=approximate)


@kernel("ThresholdV2", host=("threshold", "value"))
def threshold(x: Any, threshold: Any, value: Any) -> Any:
    return torch.threshold(x, threshold, value)


@kernel("ReluGrad")
def relu_grad(gradients: Any, features: Any) -> Any:
    return aten.threshold_backward.default(gradients, features, 0)


@kernel("ThresholdGradV2D")
def threshold_grad(gradients: Any, features: Any, *, threshold: float) -> Any:
    return aten.threshold_backward.default(gradients, features, threshold)


@kernel("TanhGrad")
def tanh_grad(y: Any, dy: Any) -> Any:
    return aten.tanh_backward.default(dy, y)


@kernel("SigmoidGrad")
def sigmoid_grad(y: Any, dy: Any) -> Any:
    return aten.sigmoid_backward.default(dy, y)


kernel("SiluGrad")(aten.silu_backward.default)
kernel("HardSwishGrad")(aten.hardswish_backward.default)
kernel("HardSigmoidGrad")(aten.hardsigmoid_backward.default)
kernel("MishGrad")(aten.mish_backward.default)


@kernel("LogSigmoidGrad")
def log_sigmoid_grad(grads: Any, features: Any) -> Any:
    _, buffer = aten.log_sigmoid_forward.default(features)
    return aten.log_sigmoid_backward.default(grads, features, buffer)


@kernel("LeakyRelu")
def leaky_relu(x: Any, *, negative_slope: float) -> Any:
    return functional.leaky_relu(x, negative_slope)


@kernel("LeakyReluGrad")
def leaky_relu_grad(gradients: Any, features: Any, *, negative_slope: float) -> Any:
    return aten.leaky_relu_backward.default(gradients, features, negative_slope, False)


@kernel("PReluGrad")
def prelu_grad(grads: Any, features: Any, weights: Any) -> Any:
    dx, da = aten._prelu_kernel_backward.default(grads, features, weights)
    return dx, da


@kernel("Elu")
def elu(x: Any, *, alpha: float, scale: float, input_scale: float) -> Any:
    return aten.elu.default(x, alpha, scale, input_scale)


@kernel("EluGradV2")
def elu_grad(grads: Any, activations: Any, *, alpha: float, scale: float, input_scale: float, is_result: bool) -> Any:
    return aten.elu_backward.default(grads, alpha, scale, input_scale, is_result, activations)


@kernel("HardtanhGrad")
def hardtanh_grad(result: Any, grad: Any, *, min_val: float, max_val: float) -> Any:
    return aten.hardtanh_backward.default(grad, result, min_val, max_val)


@kernel("SoftplusV2")
def softplus(x: Any, *, beta: float, threshold: float) -> Any:
    return functional.softplus(x, beta, threshold)


@kernel("SoftplusV2Grad")
def softplus_grad(input_gradients: Any, input_features: Any, *, beta: float, threshold: float) -> Any:
    return aten.softplus_backward.default(input_gradients, input_features, beta, threshold)


@kernel("GLU")
def glu(x: Any, *, dim: int) -> Any:
    return functional.glu(x, dim)


@kernel("GLUGrad")
def glu_grad(y_grad: Any, x: Any, *, dim: int) -> Any:
    return aten.glu_backward.default(y_grad, x, dim)


@kernel("SoftmaxV2")
def softmax(x: Any, *, axes: list[int], half_to_float: bool = False) -> Any:
    return torch._softmax(x, axes[0], half_to_float)


@kernel("LogSoftmaxV2")
def log_softmax(logits: Any, *, axes: list[int]) -> Any:
    return torch._log_softmax(logits, axes[0], False)


@kernel("SoftmaxGrad")
def softmax_grad(y: Any, dy: Any, *, axes: list[int]) -> Any:
    return aten._softmax_backward_data.default(dy, y, axes[0], y.dtype)


@kernel("LogSoftmaxGrad")
def log_softmax_grad(dy: Any, y: Any, *, axis: list[int]) -> Any:
    return aten._log_softmax_backward_data.default(dy, y, axis[0], y.dtype)


@kernel("CeluV2")
def celu(x: Any, *, alpha: float) -> Any:
    return torch.celu(x, alpha)
