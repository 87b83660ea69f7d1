"""Batch, layer and group normalization, and their gradients. NCHW."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from msdump.torchair.ge.builder import Builder
from msdump.torchair.ge.graph import GeTensor, Size
from msdump.torchair.ge.registry import converter, kernel
from msdump.torchair.ge.rows import Attr, Sizes, row

Results = tuple[GeTensor | None, ...]

_aten = torch.ops.aten


@converter("aten._native_batch_norm_legit_no_training.default")
def batch_norm_infer(
    ge: Builder,
    x: GeTensor,
    weight: GeTensor | None,
    bias: GeTensor | None,
    running_mean: GeTensor,
    running_var: GeTensor,
    momentum: float,
    eps: float,
) -> Results:
    """Without training there are no statistics of the batch: empty constants where a reader needs them."""
    scale = _ones(ge, weight, running_mean)
    offset = _zeros(ge, bias, running_mean)
    inputs = {"x": x, "scale": scale, "offset": offset, "mean": running_mean, "variance": running_var}
    y = ge.op("BNInfer", inputs, {"epsilon": eps})
    rest = [ge.const([], ge.result[i].dtype) if ge.is_read(i) else None for i in (1, 2)]
    return y, *rest


@kernel("BNInfer")
def bn_infer_kernel(
    x: torch.Tensor,
    scale: torch.Tensor,
    offset: torch.Tensor,
    mean: torch.Tensor,
    variance: torch.Tensor,
    *,
    epsilon: float,
) -> torch.Tensor:
    return torch.batch_norm(x, scale, offset, mean, variance, False, 0.0, epsilon, False)


@converter("aten._native_batch_norm_legit_functional.default")
def batch_norm_functional(
    ge: Builder,
    x: GeTensor,
    weight: GeTensor | None,
    bias: GeTensor | None,
    running_mean: GeTensor,
    running_var: GeTensor,
    training: bool,
    momentum: float,
    eps: float,
) -> Results:
    if not training:
        results = batch_norm_infer(ge, x, weight, bias, running_mean, running_var, momentum, eps)
        return *results, running_mean, running_var
    y, new_mean, new_var, mean, rstd = _batch_norm(ge, x, weight, bias, running_mean, running_var, momentum, eps)
    return y, mean, rstd, new_mean, new_var


@converter("aten._native_batch_norm_legit.no_stats")
def batch_norm_no_stats(
    ge: Builder,
    x: GeTensor,
    weight: GeTensor | None,
    bias: GeTensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Results:
    y, _, _, mean, rstd = _batch_norm(ge, x, weight, bias, None, None, momentum, eps)
    return y, mean, rstd


def _batch_norm(
    ge: Builder,
    x: GeTensor,
    weight: GeTensor | None,
    bias: GeTensor | None,
    running_mean: GeTensor | None,
    running_var: GeTensor | None,
    momentum: float,
    eps: float,
) -> tuple[GeTensor, ...]:
    inputs = {"x": x, "weight": weight, "bias": bias, "running_mean": running_mean, "running_var": running_var}
    attrs = {"epsilon": eps, "momentum": momentum, "is_training": True}
    return ge.multi_op("BatchNormV3", inputs, ("y", "running_mean", "running_var", "save_mean", "save_rstd"), attrs)


@kernel("BatchNormV3")
def batch_norm_kernel(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    *,
    epsilon: float,
    momentum: float,
    is_training: bool,
) -> tuple[torch.Tensor | None, ...]:
    """-> y, running_mean, running_var, save_mean, save_rstd; the inputs stay as they are."""
    if running_mean is None:
        y, mean, rstd = _aten._native_batch_norm_legit.no_stats(x, weight, bias, is_training, momentum, epsilon)
        return y, None, None, mean, rstd
    y, mean, rstd, new_mean, new_var = _aten._native_batch_norm_legit_functional.default(
        x, weight, bias, running_mean, running_var, is_training, momentum, epsilon
    )
    return y, new_mean, new_var, mean, rstd


@converter("aten.native_batch_norm_backward.default")
def batch_norm_backward(
    ge: Builder,
    dy: GeTensor,
    x: GeTensor,
    weight: GeTensor | None,
    running_mean: GeTensor | None,
    running_var: GeTensor | None,
    save_mean: GeTensor | None,
    save_invstd: GeTensor | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> Results:
    inputs = {
        "dy": dy,
        "x": x,
        "weight": weight,
        "running_mean": running_mean,
        "running_var": running_var,
        "save_mean": save_mean,
        "save_rstd": save_invstd,
    }
    attrs = {"is_training": train, "epsilon": eps}
    return _wanted(ge.multi_op("BatchNormGradV3", inputs, ("dx", "dweight", "dbias"), attrs), output_mask)


@kernel("BatchNormGradV3")
def batch_norm_grad_kernel(
    dy: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor | None,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    save_mean: torch.Tensor | None,
    save_rstd: torch.Tensor | None,
    *,
    is_training: bool,
    epsilon: float,
) -> Any:
    """-> dx, dweight, dbias"""
    output_mask = [True, weight is not None, weight is not None]
    return _aten.native_batch_norm_backward.default(
        dy, x, weight, running_mean, running_var, save_mean, save_rstd, is_training, epsilon, output_mask
    )


# -> y, mean, rstd; the latter keep the axes that are normalized, with one element.
row("aten.native_layer_norm.default", "LayerNormV4", "x", Sizes("normalized_shape"), "gamma", "beta", Attr("epsilon"),
    output="y mean rstd")  # fmt: skip


@converter("aten.native_layer_norm_backward.default")
def layer_norm_backward(
    ge: Builder,
    dy: GeTensor,
    x: GeTensor,
    normalized_shape: Sequence[Size],
    mean: GeTensor,
    rstd: GeTensor,
    weight: GeTensor | None,
    bias: GeTensor | None,
    output_mask: Sequence[bool],
) -> Results:
    """The operator wants a gamma: ones where the layer has none."""
    if weight is None:
        weight = ge.op("Fill", {"dims": ge.sizes(normalized_shape), "value": ge.const(1, x.dtype)})
    inputs = {"dy": dy, "x": x, "rstd": rstd, "mean": mean, "gamma": weight}
    return _wanted(ge.multi_op("LayerNormGradV3", inputs, ("pd_x", "pd_gamma", "pd_beta")), output_mask)


@kernel("LayerNormGradV3")
def layer_norm_grad_kernel(
    dy: torch.Tensor, x: torch.Tensor, rstd: torch.Tensor, mean: torch.Tensor, gamma: torch.Tensor
) -> Any:
    """-> pd_x, pd_gamma, pd_beta. What is normalized has the shape of gamma."""
    # Of beta torch only asks whether there is one.
    return _aten.native_layer_norm_backward.default(dy, x, gamma.shape, mean, rstd, gamma, gamma, [True, True, True])


@converter("aten.native_group_norm.default")
def group_norm(
    ge: Builder,
    x: GeTensor,
    weight: GeTensor | None,
    bias: GeTensor | None,
    n: Size,
    c: Size,
    plane: Size,
    group: int,
    eps: float,
) -> Results:
    """GE gives the variance where torch gives 1 / sqrt(variance + eps)."""
    attrs = {"num_groups": group, "data_format": "NCHW", "eps": eps, "is_training": True}
    inputs = {"x": x, "gamma": weight, "beta": bias}
    y, mean, variance = ge.multi_op("GroupNorm", inputs, ("y", "mean", "variance"), attrs)
    shifted = ge.op("Add", {"x1": variance, "x2": ge.const(eps, variance.dtype)})
    return y, mean, ge.op("Rsqrt", {"x": shifted})


@kernel("GroupNorm")
def group_norm_kernel(
    x: torch.Tensor,
    gamma: torch.Tensor | None,
    beta: torch.Tensor | None,
    *,
    num_groups: int,
    data_format: str,
    eps: float,
    is_training: bool,
) -> tuple[torch.Tensor, ...]:
    """-> y, mean, variance, the latter two (N, num_groups)"""
    n, c = x.shape[:2]
    y, mean, rstd = torch.native_group_norm(x, gamma, beta, n, c, _plane(x), num_groups, eps)
    return y, mean, rstd.pow(-2).sub(eps)


def _plane(x: torch.Tensor) -> int:
    """Elements of one channel."""
    size = 1
    for extent in x.shape[2:]:
        size = size * extent
    return size


@converter("aten.native_group_norm_backward.default")
def group_norm_backward(
    ge: Builder,
    dy: GeTensor,
    x: GeTensor,
    mean: GeTensor,
    rstd: GeTensor,
    weight: GeTensor | None,
    n: Size,
    c: Size,
    plane: Size,
    group: int,
    output_mask: Sequence[bool],
) -> Results:
    attrs = {
        "num_groups": group,
        "data_format": "NCHW",
        "dx_is_require": output_mask[0],
        "dgamma_is_require": output_mask[1],
        "dbeta_is_require": output_mask[2],
    }
    inputs = {"dy": dy, "mean": mean, "rstd": rstd, "x": x, "gamma": weight}
    return _wanted(ge.multi_op("GroupNormGrad", inputs, ("dx", "dgamma", "dbeta"), attrs), output_mask)


@kernel("GroupNormGrad")
def group_norm_grad_kernel(
    dy: torch.Tensor,
    mean: torch.Tensor,
    rstd: torch.Tensor,
    x: torch.Tensor,
    gamma: torch.Tensor | None,
    *,
    num_groups: int,
    data_format: str,
    dx_is_require: bool,
    dgamma_is_require: bool,
    dbeta_is_require: bool,
) -> Any:
    """-> dx, dgamma, dbeta; None for what is not required"""
    n, c = x.shape[:2]
    output_mask = [dx_is_require, dgamma_is_require, dbeta_is_require]
    return _aten.native_group_norm_backward.default(dy, x, mean, rstd, gamma, n, c, _plane(x), num_groups, output_mask)


@converter("aten._weight_norm_interface.default")
def weight_norm(ge: Builder, v: GeTensor, g: GeTensor, dim: int = 0) -> tuple[GeTensor, GeTensor]:
    """g v / |v|, and |v|, which is FLOAT for shorter floats."""
    attrs = {"p": 2.0, "axes": _others(v, dim), "keepdim": True, "epsilon": 0.0}
    length = ge.op("LpNormV2", {"x": v}, attrs)
    w = ge.op("Mul", {"x1": v, "x2": ge.op("RealDiv", {"x1": g, "x2": length})})
    return w, ge.cast(length, ge.result[1].dtype)


@converter("aten._weight_norm_interface_backward.default")
def weight_norm_backward(
    ge: Builder, dw: GeTensor, v: GeTensor, g: GeTensor, length: GeTensor, dim: int
) -> tuple[GeTensor, GeTensor]:
    """Of dw, what points along v goes to g, the rest to v."""
    length = ge.cast(length, v.dtype)
    along = ge.op("ReduceSum", {"x": ge.op("Mul", {"x1": dw, "x2": v}), "axes": _others(v, dim)}, {"keep_dims": True})
    dg = ge.op("RealDiv", {"x1": along, "x2": length})
    unit = ge.op("RealDiv", {"x1": v, "x2": length})
    across = ge.op("Sub", {"x1": dw, "x2": ge.op("Mul", {"x1": unit, "x2": dg})})
    return ge.op("Mul", {"x1": across, "x2": ge.op("RealDiv", {"x1": g, "x2": length})}), dg


def _others(x: GeTensor, dim: int) -> list[int]:
    return [axis for axis in range(len(x.shape)) if axis != dim % len(x.shape)]


def _wanted(results: Sequence[GeTensor], mask: Sequence[bool]) -> Results:
    return tuple(result if is_wanted else None for result, is_wanted in zip(results, mask, strict=True))


def _ones(ge: Builder, weight: GeTensor | None, like: GeTensor) -> GeTensor:
    return ge.op("OnesLike", {"x": like}) if weight is None else weight


def _zeros(ge: Builder, bias: GeTensor | None, like: GeTensor) -> GeTensor:
    return ge.op("ZerosLike", {"x": like}) if bias is None else bias
