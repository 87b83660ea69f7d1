"""`mindspore.mint.nn.functional`: what layers compute, with PyTorch's parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from msdump.mindspore.common.dtype import Type
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.signatures import in_forms
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call, execute
from msdump.mindspore.mint import shapes
from msdump.mindspore.mint.nn import windows
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops.resizing import _bicubic_of_torch, _target


def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Last axes with mean 0 and variance 1, times a weight, plus a bias."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if tuple(input.shape[input.ndim - len(shape) :]) != shape:
        raise ValueError(f"For 'layer_norm', expected 'input' to end with shape {shape}, but got {input.shape}.")
    axes = dict.fromkeys(("begin_norm_axis", "begin_params_axis"), input.ndim - len(shape))
    return call("LayerNorm", input, *_scale_and_shift(input, shape, weight, bias), **axes, epsilon=eps)


def _scale_and_shift(input: Tensor, shape: Any, weight: Tensor | None, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    gamma = F.ones(shape, input.dtype) if weight is None else weight
    return gamma, F.zeros(shape, input.dtype) if bias is None else bias


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Groups of channels with mean 0 and variance 1, times a weight, plus a bias, of each channel."""
    scale_and_shift = _scale_and_shift(input, input.shape[1:2], weight, bias)
    return call("GroupNorm", input, *scale_and_shift, num_groups=num_groups, eps=eps)


def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Channels with mean 0 and variance 1, times a weight, plus a bias.

    training  the statistics are those of the batch; running ones that are Parameters move towards them by `momentum`
    """
    channels = input.shape[1]
    flat = F.reshape(input, (input.shape[0], channels, -1, 1))
    gamma, beta = _scale_and_shift(input, (channels,), weight, bias)
    if training:
        return F.reshape(_of_batch(flat, gamma, beta, eps, momentum, (running_mean, running_var)), input.shape)
    if running_mean is None or running_var is None:
        raise ValueError("For 'batch_norm', expected running_mean and running_var where 'training' is False.")
    attrs = {"is_training": False, "epsilon": eps, "format": "NCHW"}
    output = execute("BatchNorm", [flat, gamma, beta, running_mean, running_var], attrs)[0]
    return F.reshape(output, input.shape)


def _of_batch(flat: Tensor, gamma: Tensor, beta: Tensor, eps: float, momentum: float, running: Any) -> Tensor:
    """By the statistics of the batch; the running ones take the variance over n - 1, which MindSpore's BatchNorm
    does not."""
    mean = F.mean(flat, (0, 2, 3), True)
    centred = F.sub(flat, mean)
    variance = F.mean(F.square(centred), (0, 2, 3), True)
    count = flat.size // flat.shape[1]
    for statistic, value, scale in zip(running, (mean, variance), (1.0, count / max(count - 1, 1)), strict=True):
        if statistic is not None:
            step = F.mul(F.reshape(value, statistic.shape), momentum * scale)
            _write(statistic, F.stop_gradient(F.add(F.mul(statistic, 1 - momentum), step)))
    scaled = F.div(centred, F.sqrt(F.add(variance, eps)))
    each = (1, flat.shape[1], 1, 1)
    return F.add(F.mul(scaled, F.reshape(gamma, each)), F.reshape(beta, each))


def _write(statistic: Tensor, value: Tensor) -> None:
    if isinstance(statistic, Parameter):
        F.assign(statistic, value)
    else:
        statistic[...] = value


def _embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None, max_norm: Any, norm_type: float, scale_grad_by_freq: bool
) -> Tensor:
    """Rows of a table; that of `padding_idx` has no gradient.

    Raises: ValueError for `max_norm` and `scale_grad_by_freq`, which would write the table or rescale its gradient.
    """
    if max_norm is not None or scale_grad_by_freq:
        given = f"max_norm={max_norm}, scale_grad_by_freq={scale_grad_by_freq}"
        raise ValueError(f"mint.nn.functional.embedding: expected neither, got {given}. Rescale the table yourself.")
    rows = F.gather(weight, input, 0)
    if padding_idx is None:
        return rows
    is_padding = F.expand_dims(F.equal(input, padding_idx % weight.shape[0]), -1)
    return F.where(F.broadcast_to(is_padding, rows.shape), F.stop_gradient(rows), rows)


_TABLE = """
    adaptive_avg_pool1d input output_size
    adaptive_avg_pool2d input output_size
    adaptive_avg_pool3d input output_size
    binary_cross_entropy input target weight=None reduction='mean'
    cross_entropy input target weight=None ignore_index=-100 reduction='mean' label_smoothing=0.0
    dropout input p=0.5 training=True inplace=False
    dropout2d input p=0.5 training=True
    elu input alpha=1.0 inplace=False
    elu_ input alpha=1.0
    embedding input weight padding_idx=None max_norm=None norm_type=2.0 scale_grad_by_freq=False
    fold input output_size kernel_size dilation=1 padding=0 stride=1
    gelu input | approximate='none'
    glu input dim=-1
    grid_sample input grid mode='bilinear' padding_mode='zeros' align_corners=None
    hardshrink input lambd=0.5
    hardsigmoid input
    hardswish input
    hardtanh input min_val=-1.0 max_val=1.0 inplace=False
    hardtanh_ input min_val=-1 max_val=1
    interpolate input size=None scale_factor=None mode='nearest' align_corners=None recompute_scale_factor=None
    l1_loss input target reduction='mean'
    leaky_relu input negative_slope=0.01
    linear:dense input weight bias=None
    logsigmoid input
    mish input
    mse_loss input target reduction='mean'
    nll_loss input target weight=None ignore_index=-100 reduction='mean'
    pad input pad mode='constant' value=None
    pixel_shuffle input upscale_factor
    prelu input weight
    relu input inplace=False
    relu_ input
    relu6 input inplace=False
    selu input
    sigmoid input
    silu input inplace=False
    soft_margin_loss input target reduction='mean'
    softshrink input lambd=0.5
    tanh input
    threshold input threshold value inplace=False
    threshold_ input threshold value
    unfold input kernel_size dilation=1 padding=0 stride=1
    upsample input size=None scale_factor=None mode='nearest' align_corners=None
"""

_SHAPES = ("flatten", "one_hot")
_OTHERS = {
    name: vars(family)[name]
    for family, names in ((windows, vars(windows)["__all__"]), (shapes, _SHAPES))
    for name in names
}


def _interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", *options: Any
) -> Any:
    """Data (N, C, ...) of another size, given as sizes or as factors; "bicubic" as PyTorch has it."""
    if mode == "bicubic" and input.ndim == 4:
        return _bicubic_of_torch(input, _target(input.shape[2:], size, scale_factor), bool(options and options[0]))
    return F.interpolate(input, size, scale_factor, mode, *options)


def _in_place(name: str, compute: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """The function whose last argument says whether the result goes into its operand, and the one that always does."""

    @functools.wraps(compute)
    def chosen(input: Tensor, *settings: Any) -> Tensor:
        *own, inplace = settings
        return always(input, *own) if inplace else compute(input, *own)

    def always(input: Tensor, *settings: Any) -> Tensor:
        input[...] = compute(input, *settings)
        return input

    always.__doc__ = f"`{name}` into its operand."
    return {name: chosen, f"{name}_": always}


def _elu(input: Tensor, alpha: float) -> Tensor:
    """x above 0, alpha * (exp(x) - 1) below."""
    below = F.mul(F.expm1(F.minimum(input, 0)), alpha)
    return F.elu(input) if alpha == 1 else F.where(F.greater(input, 0), input, below)


_COMPUTING = {**vars(F), "embedding": _embedding, "interpolate": _interpolate, "upsample": _interpolate}
for _name in ("relu", "relu6", "silu", "elu", "hardtanh", "threshold", "dropout"):
    _COMPUTING |= _in_place(_name, {**vars(F), "elu": _elu}[_name])

globals().update({**in_forms(_TABLE, _COMPUTING, __name__), **_OTHERS})


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + exp(beta x)) / beta, x itself above the threshold."""
    scaled = F.mul(input, beta)
    smooth = F.div(F.log1p(F.exp(F.minimum(scaled, threshold))), beta)
    return F.where(F.greater(scaled, threshold), input, smooth)


def _chosen(input: Tensor, dim: int | None) -> int:
    """The axis of a softmax that names none, as PyTorch chooses it."""
    return dim if dim is not None else (0 if input.ndim in (0, 1, 3) else 1)


def softmax(input: Tensor, dim: int | None = None, dtype: Type | None = None) -> Tensor:
    """exp(x) over its sum along an axis."""
    return F.softmax(input if dtype is None else F.cast(input, dtype), _chosen(input, dim))


def log_softmax(input: Tensor, dim: int | None = None, *, dtype: Type | None = None) -> Tensor:
    """Logarithm of `softmax`."""
    return F.log_softmax(input if dtype is None else F.cast(input, dtype), _chosen(input, dim))


# -- losses ------------------------------------------------------------------------------------------------------------


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return loss
    return F.mean(loss) if reduction == "mean" else F.sum(loss)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
) -> Tensor:
    """Cross entropy of the sigmoid of logits."""
    return F.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Divergence of log probabilities from probabilities, or from their logarithms."""
    likely = F.exp(target) if log_target else target
    logarithm = target if log_target else F.log(F.maximum(target, 1e-38))
    loss = F.mul(likely, F.sub(logarithm, input))
    if reduction == "batchmean":
        return F.div(F.sum(loss), input.shape[0])
    return _reduced(loss, reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Any:
    """Squared below beta, linear above."""
    return F.smooth_l1_loss(input, target, beta, reduction)


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """x over its norm along an axis, or over eps where that is greater."""
    return F.div(input, F.maximum(F.norm(input, p, dim, True), eps))


publish(__name__, *_OTHERS)

__getattr__ = explain_missing(__name__)
