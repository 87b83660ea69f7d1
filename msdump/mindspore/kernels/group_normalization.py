"""GroupNorm: normalisation over groups of channels of each sample.

float16 and bfloat16 compute in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msdump.graph.graph import Node
from msdump.graph.primitive import Attrs
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import FLOATS, expect, expect_count, expect_dtype, expect_shape
from msdump.mindspore.kernels.torch_operator import torch_operator
from msdump.mindspore.program.autodiff import GradBuilder, Grads


def _statistics(x: TensorType, gamma: TensorType, attrs: Attrs) -> TensorType:
    """Attrs: num_groups, eps (1e-5)."""
    expect_dtype(x, FLOATS, "x")
    expect(x.ndim >= 2, "x of 2 axes or more", x)
    expect_shape(gamma, x.shape[1:2], "gamma")
    expect_dtype(gamma, FLOATS, "gamma")
    groups = attrs["num_groups"]
    expect(groups >= 1 and x.shape[1] % groups == 0, f"a num_groups that divides {x.shape[1]} channels", groups)
    return TensorType(x.dtype, (x.shape[0], groups))


def _group_norm_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, 3)
    x, gamma, beta = types
    statistics = _statistics(x, gamma, attrs)
    expect(beta == gamma, f"beta of type {gamma}", beta)
    return x, statistics, statistics


def _group_norm_bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Gradient of y only; mean and rstd are not differentiated, as in MindSpore."""
    if outer[0] is None:
        return [None] * 3
    x, gamma, _ = node.inputs
    _, mean, rstd = node.outputs
    return list(builder.add_all("GroupNormGrad", [outer[0], x, mean, rstd, gamma], node.primitive.attrs))


def _group_norm_grad_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, 5)
    dy, x, mean, rstd, gamma = types
    statistics = _statistics(x, gamma, attrs)
    expect(dy == x, f"dy of type {x}", dy)
    for type, what in ((mean, "mean"), (rstd, "rstd")):
        expect(type == statistics, f"{what} of type {statistics}", type)
    return x, gamma, gamma


def _shown(values: Any, x: Any) -> Any:
    """A number per channel, beside x."""
    return values.reshape(1, -1, *(1,) * (x.ndim - 2))


def _normal(x: Any, num_groups: int, eps: float) -> Any:
    """x by groups, normalised: (N, groups, elements), with the mean and the inverse of the deviation of each."""
    rows = x.reshape(x.shape[0], num_groups, math.prod(x.shape[1:]) // num_groups)
    mean = rows.mean(2, keepdim=True)
    centered = rows - mean
    inverse = ((centered * centered).mean(2, keepdim=True) + eps).rsqrt()
    return centered * inverse, mean, inverse


@torch_operator("GroupNorm", "x gamma beta", "y mean rstd", infer=_group_norm_infer, gradient=_group_norm_bprop)
def _group_norm(torch: Any, x: Any, gamma: Any, beta: Any, *, num_groups: int, eps: float) -> Any:
    """y = (x - mean) * rstd * gamma + beta, rstd = 1 / sqrt(variance + eps).   Edges: no elements -> NaN statistics."""
    normal, mean, inverse = _normal(x, num_groups, eps)
    return normal.reshape(x.shape) * _shown(gamma, x) + _shown(beta, x), mean[..., 0], inverse[..., 0]


@torch_operator("GroupNormGrad", "dy x mean rstd gamma", "dx dgamma dbeta", infer=_group_norm_grad_infer)
def _group_norm_grad(
    torch: Any, dy: Any, x: Any, mean: Any, rstd: Any, gamma: Any, *, num_groups: int, eps: float
) -> Any:
    """dgamma = sum(dy * x_hat), dbeta = sum(dy), dx = (g - mean(g) - x_hat * mean(g * x_hat)) * rstd.

    g is dy * gamma, x_hat the normalised x. The statistics are those of x, through which the gradient flows.
    """
    others = [axis for axis in range(x.ndim) if axis != 1]
    normal, _, inverse = _normal(x, num_groups, eps)
    free = (dy * _shown(gamma, x)).reshape(normal.shape)
    of_x = (free - free.mean(2, keepdim=True) - normal * (free * normal).mean(2, keepdim=True)) * inverse
    return of_x.reshape(x.shape), (dy * normal.reshape(x.shape)).sum(others), dy.sum(others)
