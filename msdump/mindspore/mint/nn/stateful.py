"""Layers of `mindspore.mint.nn` that keep parameters, under PyTorch's names."""

from __future__ import annotations

import math
from typing import Any

from msdump.mindspore.common.dtype import DType, float32, int64
from msdump.mindspore.common.initializer import HeUniform, Normal, Uniform, initializer
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.mint.nn import functional as F
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.ops import function as ops
from msdump.mindspore.ops.windows import sizes


def _parameter(init: Any, shape: Any, name: str, dtype: DType | None, requires_grad: bool = True) -> Parameter:
    return Parameter(initializer(init, shape, dtype or float32), name, requires_grad)


class Linear(Cell):
    """x @ weight.T + bias."""

    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        weight_init = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        self.weight = _parameter(weight_init, (out_features, in_features), "weight", dtype)
        self.bias = None
        if bias:
            bias_init = Uniform(1 / math.sqrt(in_features)) if bias_init is None else bias_init
            self.bias = _parameter(bias_init, (out_features,), "bias", dtype)

    def construct(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extend_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


_PADDING_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


class _Conv(Cell):
    """What convolutions share.   ndim: axes of the window."""

    ndim, is_transposed = 2, False
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"For '{type(self).__name__}', expected channels in {groups} groups, but got {in_channels} and "
                f"{out_channels}."
            )
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"For '{type(self).__name__}', the 'padding_mode' must be one of {list(_PADDING_MODES)}, but got "
                f"{padding_mode}."
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = tuple(sizes(kernel_size, self.ndim))
        self.stride, self.dilation = tuple(sizes(stride, self.ndim)), tuple(sizes(dilation, self.ndim))
        self.padding = padding if isinstance(padding, str) else tuple(sizes(padding, self.ndim))
        self.padding_mode = padding_mode
        channels = (in_channels, out_channels) if self.is_transposed else (out_channels, in_channels)
        shape = (channels[0], channels[1] // groups, *self.kernel_size)
        self.weight = _parameter(HeUniform(math.sqrt(5)), shape, "weight", dtype)
        self.bias = None
        if bias:
            self.bias = _parameter(Uniform(1 / math.sqrt(math.prod(shape[1:]))), (out_channels,), "bias", dtype)

    def construct(self, input: Tensor) -> Any:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._ends(), _PADDING_MODES[self.padding_mode]), 0
        function = (F.conv1d, F.conv2d, F.conv3d)[self.ndim - 1]
        return function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _ends(self) -> tuple[int, ...]:
        """Elements before and after each axis, the last axis first."""
        pads: list[int] = []
        for axis, kernel in enumerate(self.kernel_size):
            total = self.dilation[axis] * (kernel - 1) if self.padding == "same" else 0
            both = (total // 2, total - total // 2) if isinstance(self.padding, str) else (self.padding[axis],) * 2
            pads = [*both, *pads]
        return tuple(pads)

    def extend_repr(self) -> str:
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}, dilation={self.dilation}, groups={self.groups}, bias={self.bias is not None}"
        )


class Conv1d(_Conv):
    """Convolution of (N, C, L)."""

    ndim = 1


class Conv2d(_Conv):
    """Convolution of (N, C, H, W)."""


class Conv3d(_Conv):
    """Convolution of (N, C, D, H, W)."""

    ndim = 3


class _Norm(Cell):
    """Batch normalisation.   ranks: axes that the input may have."""

    ranks: tuple[int, ...] = (4,)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight = _parameter("ones", (num_features,), "weight", dtype) if affine else None
        self.bias = _parameter("zeros", (num_features,), "bias", dtype) if affine else None
        self.running_mean = self.running_var = self.num_batches_tracked = None
        if track_running_stats:
            self.running_mean = _parameter("zeros", (num_features,), "running_mean", dtype, False)
            self.running_var = _parameter("ones", (num_features,), "running_var", dtype, False)
            self.num_batches_tracked = Parameter(Tensor(0, int64), "num_batches_tracked", requires_grad=False)

    def construct(self, input: Tensor) -> Any:
        if input.ndim not in self.ranks:
            expected = " or ".join(map(str, self.ranks))
            raise ValueError(f"For '{self.cls_name}', expected 'input' of {expected} axes, but got {input.ndim}.")
        is_of_batch = self.training or self.running_mean is None
        if self.training and self.num_batches_tracked is not None:
            ops.assign_add(self.num_batches_tracked, Tensor(1, int64))
        statistics = (self.running_mean, self.running_var)
        return F.batch_norm(input, *statistics, self.weight, self.bias, is_of_batch, self.momentum, self.eps)

    def extend_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_Norm):
    """Batch normalisation of (N, C) or (N, C, L)."""

    ranks = (2, 3)


class BatchNorm2d(_Norm):
    """Batch normalisation of (N, C, H, W)."""


class BatchNorm3d(_Norm):
    """Batch normalisation of (N, C, D, H, W)."""

    ranks = (5,)


class SyncBatchNorm(_Norm):
    """Batch normalisation with the statistics of all devices: on one device those of its batch.

    Raises: RuntimeError for a group: its statistics would have to be gathered.
    """

    ranks = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: str | None = None,
        dtype: DType | None = None,
    ) -> None:
        if process_group is not None:
            raise RuntimeError(
                f"mint.nn.SyncBatchNorm: expected process_group=None, got {process_group!r}. Use BatchNorm2d, whose "
                "statistics are those of each device."
            )
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)


class GroupNorm(Cell):
    """Normalisation of groups of channels."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.weight = _parameter("ones", (num_channels,), "weight", dtype, affine)
        self.bias = _parameter("zeros", (num_channels,), "bias", dtype, affine)

    def construct(self, input: Tensor) -> Any:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class LayerNorm(Cell):
    """Normalisation of the last axes."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.weight = _parameter("ones", self.normalized_shape, "weight", dtype) if elementwise_affine else None
        has_bias = elementwise_affine and bias
        self.bias = _parameter("zeros", self.normalized_shape, "bias", dtype) if has_bias else None

    def construct(self, input: Tensor) -> Any:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class PReLU(Cell):
    """x above 0, a learned part of it below."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: DType | None = None) -> None:
        super().__init__()
        self.weight = Parameter(ops.full((num_parameters,), float(init), dtype=dtype or float32), "weight")

    def construct(self, input: Tensor) -> Any:
        return F.prelu(input, self.weight)


class Embedding(Cell):
    """Rows of a learned table."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.options = (max_norm, norm_type, scale_grad_by_freq)
        init: Any = Normal(1.0) if _weight is None else _weight
        self.weight = Parameter(initializer(init, (num_embeddings, embedding_dim), dtype or float32), "weight")
        self.weight.requires_grad = not _freeze
        if padding_idx is not None and _weight is None:
            self.weight[padding_idx] = 0

    def construct(self, input: Tensor) -> Any:
        return F.embedding(input, self.weight, self.padding_idx, *self.options)


publish(__name__)
