"""Normalisations of `mindspore.mint.nn.functional`."""

from __future__ import annotations

import math
from typing import Any

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import execute
from msdump.mindspore.names import publish
from msdump.mindspore.ops import function as F


def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Last axes with mean 0 and variance 1, times a weight, plus a bias."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if tuple(input.shape[input.ndim - len(shape) :]) != shape:
        raise ValueError(f"For 'layer_norm', expected 'input' to end with shape {shape}, but got {input.shape}.")
    first = input.ndim - len(shape)
    gamma, beta = _scale_and_shift(input, shape, weight, bias)
    return execute("LayerNorm", [input, gamma, beta], _axes(first, eps))[0]


def _axes(first: int, eps: float) -> dict[str, Any]:
    return {"begin_norm_axis": first, "begin_params_axis": first, "epsilon": eps}


def _scale_and_shift(input: Tensor, shape: Any, weight: Tensor | None, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    gamma = F.ones(shape, input.dtype) if weight is None else weight
    return gamma, F.zeros(shape, input.dtype) if bias is None else bias


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Groups of channels with mean 0 and variance 1, times a weight, plus a bias, of each channel."""
    count, channels = input.shape[:2]
    if channels % num_groups:
        raise ValueError(f"For 'group_norm', expected channels in {num_groups} groups, but got {channels} channels.")
    rows = F.reshape(input, (count, num_groups, -1))
    size = math.prod(input.shape[1:]) // num_groups
    gamma, beta = _scale_and_shift(input, (size,), None, None)
    flat = execute("LayerNorm", [rows, gamma, beta], _axes(2, eps))[0]
    result = F.reshape(flat, input.shape)
    each = (channels, *(1,) * (input.ndim - 2))
    if weight is not None:
        result = F.mul(result, F.reshape(weight, each))
    return result if bias is None else F.add(result, F.reshape(bias, each))


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
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


publish(__name__)
