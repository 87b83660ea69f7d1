"""GE operators of batch, layer and group normalization, NCHW."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.registry import kernel

aten = torch.ops.aten


@kernel("BNInfer")
def bn_infer(x: Any, scale: Any, offset: Any, mean: Any, variance: Any, *, epsilon: float) -> Any:
    return torch.batch_norm(x, scale, offset, mean, variance, False, 0.0, epsilon, False)


@kernel("BatchNormV3")
def batch_norm(
    x: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    *,
    epsilon: float,
    momentum: float,
    is_training: bool,
) -> Any:
    """-> y, running_mean, running_var, save_mean, save_rstd; the inputs stay as they are."""
    if running_mean is None:
        y, mean, rstd = aten._native_batch_norm_legit.no_stats(x, weight, bias, is_training, momentum, epsilon)
        return y, None, None, mean, rstd
    y, mean, rstd, new_mean, new_var = aten._native_batch_norm_legit_functional.default(
        x, weight, bias, running_mean, running_var, is_training, momentum, epsilon
    )
    return y, new_mean, new_var, mean, rstd


@kernel("BatchNormGradV3")
def batch_norm_grad(
    dy: Any,
    x: Any,
    weight: Any,
    running_mean: Any,
    running_var: Any,
    save_mean: Any,
    save_rstd: Any,
    *,
    is_training: bool,
    epsilon: float,
) -> Any:
    """-> dx, dweight, dbias"""
    wanted = [True, weight is not None, weight is not None]
    return aten.native_batch_norm_backward.default(
        dy, x, weight, running_mean, running_var, save_mean, save_rstd, is_training, epsilon, wanted
    )


@kernel("LayerNormV4", host=("normalized_shape",))
def layer_norm(x: Any, normalized_shape: list[int], gamma: Any, beta: Any, *, epsilon: float) -> Any:
    """-> y, mean, rstd; the latter keep the axes that are normalized, with one element."""
    return torch.native_layer_norm(x, normalized_shape, gamma, beta, epsilon)


@kernel("LayerNormGradV3")
def layer_norm_grad(dy: Any, x: Any, rstd: Any, mean: Any, gamma: Any) -> Any:
    """-> pd_x, pd_gamma, pd_beta. What is normalized has the shape of gamma."""
    # Of beta torch only asks whether there is one.
    return aten.native_layer_norm_backward.default(dy, x, gamma.shape, mean, rstd, gamma, gamma, [True, True, True])


@kernel("GroupNorm")
def group_norm(
    x: Any, gamma: Any, beta: Any, *, num_groups: int, data_format: str, eps: float, is_training: bool
) -> Any:
    """-> y, mean, variance, the latter two (N, num_groups)"""
    n, c = x.shape[:2]
    y, mean, rstd = torch.native_group_norm(x, gamma, beta, n, c, _plane(x), num_groups, eps)
    return y, mean, rstd.pow(-2).sub(eps)


@kernel("GroupNormGrad")
def group_norm_grad(
    dy: Any,
    mean: Any,
    rstd: Any,
    x: Any,
    gamma: Any,
    *,
    num_groups: int,
    data_format: str,
    dx_is_require: bool,
    dgamma_is_require: bool,
    dbeta_is_require: bool,
) -> Any:
    """-> dx, dgamma, dbeta; None for what is not required"""
    n, c = x.shape[:2]
    wanted = [dx_is_require, dgamma_is_require, dbeta_is_require]
    return aten.native_group_norm_backward.default(dy, x, mean, rstd, gamma, n, c, _plane(x), num_groups, wanted)


def _plane(x: Any) -> Any:
    """Elements of one channel."""
    size = 1
    for extent in x.shape[2:]:
        size = size * extent
    return size
