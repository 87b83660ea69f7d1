"""GroupNorm: normalisation over groups of channels of each sample.

float16 and bfloat16 compute in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.graph.graph import Node
from msdump.graph.primitive import Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.mindspore.kernels.checks import FLOATS, expect, expect_count, expect_dtype, expect_shape
from msdump.mindspore.kernels.torch_operator import torch_bprop
from msdump.mindspore.kernels.workspace import compute_type
from msdump.mindspore.program.autodiff import GradBuilder, Grads, def_bprop
from msdump.tensors.arrays import Array

def_primitive("GroupNorm", ("x", "gamma", "beta"), ("y", "mean", "rstd"))
def_primitive("GroupNormGrad", ("dy", "x", "mean", "rstd", "gamma"), ("dx", "dgamma", "dbeta"))


def _statistics(x: TensorType, gamma: TensorType, attrs: Attrs) -> TensorType:
    """Attrs: num_groups, eps (1e-5)."""
    expect_dtype(x, FLOATS, "x")
    expect(x.ndim >= 2, "x of 2 axes or more", x)
    expect_shape(gamma, x.shape[1:2], "gamma")
    expect_dtype(gamma, FLOATS, "gamma")
    groups = attrs["num_groups"]
    expect(groups >= 1 and x.shape[1] % groups == 0, f"a num_groups that divides {x.shape[1]} channels", groups)
    return TensorType(x.dtype, (x.shape[0], groups))


@def_infer("GroupNorm")
def _group_norm_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, 3)
    x, gamma, beta = types
    statistics = _statistics(x, gamma, attrs)
    expect(beta == gamma, f"beta of type {gamma}", beta)
    return x, statistics, statistics


@def_kernel("GroupNorm")
def _group_norm(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """y = (x - mean) * rstd * gamma + beta, rstd = 1 / sqrt(variance + eps).   Edges: no elements -> NaN statistics."""
    x, gamma, beta = inputs
    y, mean, rstd = out
    wide = compute_type(x.dtype)
    with np.errstate(all="ignore"):
        rows = x.reshape(*mean.shape, x.size // max(mean.size, 1)).astype(wide)
        count = wide.type(rows.shape[2])
        center = np.add.reduce(rows, axis=2, keepdims=True) / count
        rows = rows - center
        inverse = 1 / np.sqrt(np.add.reduce(rows * rows, axis=2, keepdims=True) / count + wide.type(attrs["eps"]))
        channels = _channels(x)
        normal = (rows * inverse).reshape(x.shape)
        result = normal * gamma.reshape(channels).astype(wide) + beta.reshape(channels).astype(wide)
        for target, values in ((y, result), (mean, center), (rstd, inverse)):
            np.copyto(target, values.reshape(target.shape), casting="unsafe")


def _channels(x: Any) -> tuple[int, ...]:
    """Shape of gamma beside x."""
    return (1, x.shape[1], *(1,) * (x.ndim - 2))


@def_bprop("GroupNorm")
def _group_norm_bprop(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    """Gradient of y only; mean and rstd are not differentiated, as in MindSpore."""
    if outer[0] is None:
        return [None] * 3
    x, gamma, _ = node.inputs
    _, mean, rstd = node.outputs
    return list(builder.add_all("GroupNormGrad", [outer[0], x, mean, rstd, gamma], node.primitive.attrs))


@def_infer("GroupNormGrad")
def _group_norm_grad_infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    expect_count(types, 5)
    dy, x, mean, rstd, gamma = types
    statistics = _statistics(x, gamma, attrs)
    expect(dy == x, f"dy of type {x}", dy)
    for type, what in ((mean, "mean"), (rstd, "rstd")):
        expect(type == statistics, f"{what} of type {statistics}", type)
    return x, gamma, gamma


@def_kernel("GroupNormGrad")
def _group_norm_grad(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    """dgamma = sum(dy * x_hat), dbeta = sum(dy), dx = (g - mean(g) - x_hat * mean(g * x_hat)) * rstd.

    g is dy * gamma, x_hat the normalised x.
    """
    dy, x, mean, rstd, gamma = inputs
    wide = compute_type(x.dtype)
    rows = (*mean.shape, x.size // max(mean.size, 1))
    others = tuple(axis for axis in range(x.ndim) if axis != 1)
    with np.errstate(all="ignore"):
        inverse = rstd.astype(wide)[..., np.newaxis]
        normal = (x.reshape(rows).astype(wide) - mean.astype(wide)[..., np.newaxis]) * inverse
        outer = dy.astype(wide)
        of_gamma = np.add.reduce(outer * normal.reshape(x.shape), axis=others)
        of_beta = np.add.reduce(outer, axis=others)
        free = (outer * gamma.reshape(_channels(x)).astype(wide)).reshape(rows)
        count = wide.type(rows[2])
        along = np.add.reduce(free * normal, axis=2, keepdims=True) / count
        of_x = (free - np.add.reduce(free, axis=2, keepdims=True) / count - normal * along) * inverse
        for target, values in zip(out, (of_x, of_gamma, of_beta), strict=True):
            np.copyto(target, values.reshape(target.shape), casting="unsafe")


def _of_tensors(tensors: Sequence[Any], attrs: Attrs) -> list[Any]:
    """As the kernel; the statistics are those of x, through which the gradient flows."""
    dy, x, mean, _, gamma = tensors
    others = [axis for axis in range(x.ndim) if axis != 1]
    rows = x.reshape(*mean.shape, -1)
    inverse = (rows.var(2, unbiased=False, keepdim=True) + attrs["eps"]).rsqrt()
    normal = (rows - rows.mean(2, keepdim=True)) * inverse
    free = (dy * gamma.reshape(_channels(x))).reshape(rows.shape)
    of_x = (free - free.mean(2, keepdim=True) - normal * (free * normal).mean(2, keepdim=True)) * inverse
    return [of_x.reshape(x.shape), (dy * normal.reshape(x.shape)).sum(others), dy.sum(others)]


def_bprop("GroupNormGrad")(torch_bprop(_of_tensors))
