"""The heavy operators as PyTorch computes them: the second provider of kernels, beside numpy's.

They keep to the rules of numpy's kernels: the same operands and attributes, every element of `out` written, nothing
else touched. Where PyTorch has no form for a case (integers, uneven padding of an average), numpy's kernel computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msdump.graph.primitive import Attrs, Bind, Kernel, def_bind, def_kernel, definition_of
from msdump.mindspore.kernels.checks import normal_axis
from msdump.mindspore.kernels.reduction import reduced_axes
from msdump.mindspore.kernels.torch_operator import tensors_of, torch_of, unbound
from msdump.mindspore.kernels.window import Geometry, Padding, Window, geometry, pair, window_of
from msdump.tensors.arrays import Array
from msdump.tensors.unseen import hidden

# (PyTorch, tensors of the operands, attributes, tensors to write) -> False: this case is numpy's.
TorchKernel = Callable[[Any, Sequence[Any], Attrs, Sequence[Any]], "bool | None"]


def def_torch_kernel(*op_types: str) -> Callable[[TorchKernel], TorchKernel]:
    """Decorator: the kernel of the provider "torch" for operators that numpy computes as well."""

    def register(compute: TorchKernel) -> TorchKernel:
        for op_type in op_types:
            bind = _bind(op_type, compute)
            def_kernel(op_type, "torch")(unbound(bind))
            def_bind(op_type, "torch")(bind)
        return compute

    return register


def _bind(op_type: str, compute: TorchKernel) -> Bind:
    by_numpy = definition_of(op_type).kernels["numpy"]

    def bind(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> Kernel:
        torch = torch_of(op_type)
        # Empty tensors and integers have rules of their own, which numpy's kernels hold.
        for array in (*inputs[:1], *out):
            if array.dtype.kind in "iub" or not array.size:
                return by_numpy
        # None of these tensors requires gradients, so that PyTorch remembers nothing of what it computes.
        operands, results = tensors_of(inputs), tensors_of(out)

        def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
            if hidden(compute, torch, operands, attrs, results) is False:
                by_numpy(inputs, attrs, out)

        return kernel

    return bind


# -- element by element ------------------------------------------------------------------------------------------------

_BY_NAME = """
    Abs Add Ceil Cos Div Erf Exp Floor Log Maximum Minimum Mul Neg Pow Reciprocal Rsqrt Sin Sqrt Square Sub
"""


def _define_by_name(op_type: str, name: str) -> None:
    @def_torch_kernel(op_type)
    def compute(torch: Any, inputs: Sequence[Any], attrs: Attrs, out: Sequence[Any]) -> None:
        getattr(torch, name)(*inputs, out=out[0])


for _op_type in _BY_NAME.split():
    _define_by_name(_op_type, _op_type.lower())
_define_by_name("RealDiv", "div")


@def_torch_kernel("ReLU")
def _relu(torch: Any, inputs: Sequence[Any], attrs: Attrs, out: Sequence[Any]) -> None:
    torch.clamp_min(inputs[0], 0, out=out[0])


@def_torch_kernel("ReluGrad")
def _relu_grad(torch: Any, inputs: Sequence[Any], attrs: Attrs, out: Sequence[Any]) -> None:
    dy, y = inputs
    if y.amax().isnan():
        torch.where(y > 0, dy, dy.new_zeros(()), out=out[0])
    else:
        # Several times faster, but it lets a gradient pass where y is NaN.
        torch.ops.aten.threshold_backward.grad_input(dy, y, 0, grad_input=out[0])


@def_torch_kernel("BiasAdd")
def _bias_add(torch: Any, inputs: Sequence[Any], attrs: Attrs, out: Sequence[Any]) -> None:
    x, bias = inputs
    torch.add(x, bias.reshape(-1, *(1,) * (x.ndim - 2)), out=out[0])


@def_torch_kernel("BiasAddGrad")
def _bias_add_grad(torch: Any, inputs: Sequence[Any], attrs: Attrs, out: Sequence[Any]) -> None:
    torch.sum(inputs[0], dim=[axis for axis in range(inputs[0].ndim) if axis != 1], out=out[0])


# -- products ----------------------------------------------------------------------------------------------------------


@def_torch_kernel("MatMul", "BatchMatMul")
def _matmul(torch: Any, inputs: Sequence[Any], attrs: Attrs, out: Sequence[Any]) -> None:
    a = inputs[0].mT if attrs.get("transpose_a", False) else inputs[0]
    b = inputs[1].mT if attrs.get("transpose_b", False) else inputs[1]
    torch.matmul(a, b, out=out[0])


# -- convolution -------------------------------------------------------------------------------------------------------


def _is_even(padding: Padding) -> bool:
    top, bottom, left, right = padding
    return top == bottom and left == right


def _padded(torch: Any, x: Any, padding: Padding, fill: float = 0.0) -> Any:
    top, bottom, left, right = padding
    return torch.nn.functional.pad(x, (left, right, top, bottom), value=fill)


def _even(torch: Any, x: Any, window: Window) -> tuple[Any, list[int]]:
    """An image, and the padding that is left to PyTorch, which knows the same on both sides only."""
    if _is_even(window.padding):
        return x, [window.padding[0], window.padding[2]]
    return _padded(torch, x, window.padding), [0, 0]


def _convolution_grads(
    torch: Any, dy: Any, x: Any, weight: Any, padding: Sequence[int], g: Geometry, mask: Sequence[bool]
) -> Any:
    window = g.window
    settings = (list(window.stride), list(padding), list(window.dilation), False, [0, 0], g.groups)
    return torch.ops.aten.convolution_backward(dy, x, weight, None, *settings, list(mask))


@def_torch_kernel("Conv2D")
def _conv(torch: Any, inputs: Sequence[Any], attrs: Attrs, out: Sequence[Any]) -> None:
    x, weight = inputs
    g = geometry(tuple(x.shape), tuple(weight.shape), attrs)
    x, padding = _even(torch, x, g.window)
    out[0].copy_(torch.conv2d(x, weight, None, g.window.stride, padding, g.window.dilation, g.groups))


@def_torch_kernel("Conv2DBackpropFilter")
def _conv_filter_grad(torch: Any, inputs: Sequence[Any], attrs: Attrs, out: Sequence[Any]) -> None:
    dy, x = inputs[:2]
    g = geometry(tuple(x.shape), tuple(out[0].shape), attrs)
    x, padding = _even(torch, x, g.window)
    out[0].copy_(_convolution_grads(torch, dy, x, out[0], padding, g, (False, True, False))[1])


@def_torch_kernel("Conv2DBackpropInput")
def _conv_input_grad(torch: Any, inputs: Sequence[Any], attrs: Attrs, out: Sequence[Any]) -> None:
    dy, weight = inputs[:2]
    g = geometry(tuple(out[0].shape), tuple(weight.shape), attrs)
    x, padding = _even(torch, out[0], g.window)
    dx = _convolution_grads(torch, dy, x, weight, padding, g, (True, False, False))[0]
    if not _is_even(g.window.padding):
        (top, _, left, _), (height, width) = g.window.padding, g.size
        dx = dx[:, :, top : top + height, left : left + width]
    out[0].copy_(dx)


# -- pooling -----------------------------------------------------------------------------------------------------------


def _pooling(x: Any, attrs: Attrs) -> Window:
    return window_of(attrs, (x.shape[2], x.shape[3]), pair(attrs, "kernel_size"), pair(attrs, "strides", 1))


def _is_half(window: Window) -> bool:
    """PyTorch pads by half of the kernel at most."""
    return window.padding[0] <= window.kernel[0] // 2 and window.padding[2] <= window.kernel[1] // 2


@def_torch_kernel("MaxPool")
def _max_pool(torch: Any, inputs: Sequence[Any], attrs: Attrs, out: Sequence[Any]) -> None:
    window, x = _pooling(inputs[0], attrs), inputs[0]
    padding = [window.padding[0], window.padding[2]]
    if not (_is_even(window.padding) and _is_half(window)):
        x, padding = _padded(torch, x, window.padding, float("-inf")), [0, 0]
    out[0].copy_(torch.max_pool2d(x, window.kernel, window.stride, padding))


@def_torch_kernel("MaxPoolGrad")
def _max_pool_grad(torch: Any, inputs: Sequence[Any], attrs: Attrs, out: Sequence[Any]) -> bool | None:
    x, y, dy = inputs
    window = _pooling(x, attrs)
    # NaN and -Inf choose their place by rules of their own.
    if not (_is_even(window.padding) and _is_half(window)) or not torch.isfinite(y).all():
        return False
    settings = (list(window.kernel), list(window.stride), [window.padding[0], window.padding[2]], [1, 1], False)
    _, indices = torch.ops.aten.max_pool2d_with_indices(x, *settings)
    torch.ops.aten.max_pool2d_with_indices_backward.grad_input(dy, x, *settings, indices, grad_input=out[0])
    return None


# -- normalization -----------------------------------------------------------------------------------------------------


def _is_one_float(tensors: Sequence[Any]) -> bool:
    """PyTorch's fused kernels take float32 or float64, the same for all."""
    return len({tensor.dtype for tensor in tensors}) == 1 and tensors[0].itemsize >= 4


@def_torch_kernel("BatchNorm")
def _batch_norm(torch: Any, inputs: Sequence[Any], attrs: Attrs, out: Sequence[Any]) -> bool | None:
    x, scale, offset, running_mean, running_variance = inputs
    if attrs.get("format", "NCHW") != "NCHW" or not _is_one_float(inputs):
        return False
    epsilon, momentum = float(attrs.get("epsilon", 1e-5)), float(attrs.get("momentum", 0.1))
    if attrs.get("is_training", False):
        mean, variance = torch.batch_norm_update_stats(x, None, None, momentum)
        running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
        running_variance.mul_(1 - momentum).add_(variance, alpha=momentum)
    else:
        mean, variance = running_mean, running_variance
    for target, values in zip(out[1:], (mean, variance, mean, variance), strict=True):
        target.copy_(values)
    statistics = (scale, offset, mean, variance)
    out[0].copy_(torch.native_batch_norm(x, *statistics, False, 0.0, epsilon)[0])
    return None


@def_torch_kernel("BatchNormGrad")
def _batch_norm_grad(torch: Any, inputs: Sequence[Any], attrs: Attrs, out: Sequence[Any]) -> bool | None:
    dy, x, scale, mean, variance = inputs[:5]
    if attrs.get("format", "NCHW") != "NCHW" or not _is_one_float(inputs[:5]):
        return False
    epsilon, is_training = float(attrs.get("epsilon", 1e-5)), bool(attrs.get("is_training", False))
    saved = (mean, (variance + epsilon).rsqrt())
    settings = (is_training, epsilon, [True, True, True])
    grads = torch.ops.aten.native_batch_norm_backward(dy, x, scale, mean, variance, *saved, *settings)
    for target, gradient in zip(out, grads, strict=True):
        target.copy_(gradient)
    return None


def _layer_begin(x: Any, attrs: Attrs) -> int | None:
    """The axis where LayerNorm begins; None where gamma begins at another one."""
    begin = normal_axis(attrs.get("begin_norm_axis", 1), x.ndim, "begin_norm_axis")
    return begin if begin == normal_axis(attrs.get("begin_params_axis", 1), x.ndim, "begin_params_axis") else None


@def_torch_kernel("LayerNorm")
def _layer_norm(torch: Any, inputs: Sequence[Any], attrs: Attrs, out: Sequence[Any]) -> bool | None:
    x, gamma, beta = inputs
    begin = _layer_begin(x, attrs)
    if begin is None or not _is_one_float(inputs):
        return False
    epsilon = float(attrs.get("epsilon", 1e-7))
    y, mean, _ = torch.native_layer_norm(x, list(x.shape[begin:]), gamma, beta, epsilon)
    # PyTorch has only the inverse of the deviation, and its var_mean takes seven times as long as this.
    centered = (x - mean).flatten(begin)
    variance = torch.linalg.vecdot(centered, centered).div_(centered.shape[-1]).reshape(mean.shape)
    for target, values in zip(out, (y, mean, variance), strict=True):
        target.copy_(values)
    return None


@def_torch_kernel("LayerNormGrad")
def _layer_norm_grad(torch: Any, inputs: Sequence[Any], attrs: Attrs, out: Sequence[Any]) -> bool | None:
    x, dy, variance, mean, gamma = inputs
    begin = _layer_begin(x, attrs)
    if begin is None or not _is_one_float(inputs):
        return False
    inverse = (variance + float(attrs.get("epsilon", 1e-7))).rsqrt()
    settings = (list(x.shape[begin:]), mean, inverse, gamma, torch.zeros_like(gamma), [True, True, True])
    for target, gradient in zip(out, torch.ops.aten.native_layer_norm_backward(dy, x, *settings), strict=True):
        target.copy_(gradient)
    return None


# -- softmax and reductions --------------------------------------------------------------------------------------------


def _softmax_axis(attrs: Attrs, ndim: int) -> int:
    axis = attrs.get("axis", -1)
    return normal_axis(axis[0] if isinstance(axis, tuple) else axis, ndim)


@def_torch_kernel("Softmax")
def _softmax(torch: Any, inputs: Sequence[Any], attrs: Attrs, out: Sequence[Any]) -> None:
    torch.ops.aten._softmax.out(inputs[0], _softmax_axis(attrs, inputs[0].ndim), False, out=out[0])


def _define_reduction(op_type: str, name: str) -> None:
    @def_torch_kernel(op_type)
    def compute(torch: Any, inputs: Sequence[Any], attrs: Attrs, out: Sequence[Any]) -> bool | None:
        axes = list(reduced_axes(attrs, inputs[0].ndim))
        if not axes:
            return False  # of a scalar, or of nothing under skip_mode
        getattr(torch, name)(inputs[0], dim=axes, keepdim=bool(attrs.get("keep_dims", False)), out=out[0])
        return None


_define_reduction("ReduceSum", "sum")
_define_reduction("ReduceMean", "mean")
