"""Layers of `mindspore.mint.nn` that keep parameters, under PyTorch's names."""

from __future__ import annotations

import math
from typing import Any

from msdump.mindspore.common.declared import variants
from msdump.mindspore.common.dtype import DType, float32, int64
from msdump.mindspore.common.initializer import HeUniform, Normal, Uniform, initializer
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.mint.nn import functional as F
from msdump.mindspore.names import publish
from msdump.mindspore.nn.declared import Declared
from msdump.mindspore.ops import function as ops
from msdump.mindspore.ops.windows import sizes


def _parameter(init: Any, shape: Any, name: str, dtype: DType | None, requires_grad: bool = True) -> Parameter:
    return Parameter(initializer(init, shape, dtype or float32), name, requires_grad)


class Linear(Declared, takes="in_features out_features bias=True weight_init=None bias_init=None dtype=None"):
    """x @ weight.T + bias."""

    def _set_up(self, bias: bool, weight_init: Any, bias_init: Any, dtype: DType | None) -> None:
        weight_init = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        self.weight = _parameter(weight_init, (self.out_features, self.in_features), "weight", dtype)
        self.bias = None
        if bias:
            bias_init = Uniform(1 / math.sqrt(self.in_features)) if bias_init is None else bias_init
            self.bias = _parameter(bias_init, (self.out_features,), "bias", dtype)

    def construct(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extend_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


_PADDING_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


class _Conv(
    Declared,
    takes="in_channels out_channels kernel_size stride=1 padding=0 dilation=1 groups=1 bias=True padding_mode='zeros' "
    "dtype=None",
):
    """Base of convolutions.   ndim: axes of the window."""

    ndim, is_transposed = 2, False
    padding: Any

    def _set_up(self, bias: bool, dtype: DType | None) -> None:
        inputs, outputs, groups = self.in_channels, self.out_channels, self.groups
        if inputs % groups or outputs % groups:
            raise ValueError(
                f"For '{self.cls_name}', expected channels in {groups} groups, but got {inputs} and {outputs}."
            )
        if self.padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"For '{self.cls_name}', the 'padding_mode' must be one of {list(_PADDING_MODES)}, but got "
                f"{self.padding_mode}."
            )
        for name in ("kernel_size", "stride", "dilation", "padding"):
            size = getattr(self, name)
            setattr(self, name, size if isinstance(size, str) else tuple(sizes(size, self.ndim)))
        shape = (outputs, inputs // groups, *self.kernel_size)
        if self.is_transposed:
            shape = (inputs, outputs // groups, *self.kernel_size)
        self.weight = _parameter(HeUniform(math.sqrt(5)), shape, "weight", dtype)
        self.bias = None
        if bias:
            self.bias = _parameter(Uniform(1 / math.sqrt(math.prod(shape[1:]))), (outputs,), "bias", dtype)

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


_CONVS = variants(
    _Conv,
    __name__,
    Conv1d=("Convolution of (N, C, L).", {"ndim": 1}),
    Conv2d=("Convolution of (N, C, H, W).", {"ndim": 2}),
    Conv3d=("Convolution of (N, C, D, H, W).", {"ndim": 3}),
)


globals().update(_CONVS)


class ConvTranspose2d(
    _Conv,
    takes="in_channels out_channels kernel_size stride=1 padding=0 output_padding=0 groups=1 bias=True dilation=1 "
    "padding_mode='zeros' dtype=None",
):
    """The gradient of a convolution of (N, C, H, W)."""

    is_transposed = True

    def _set_up(self, bias: bool, dtype: DType | None) -> None:
        if self.padding_mode != "zeros":
            raise ValueError(f"For 'ConvTranspose2d', the 'padding_mode' must be 'zeros', but got {self.padding_mode}.")
        super()._set_up(bias, dtype)

    def construct(self, input: Tensor) -> Any:
        settings = (self.stride, self.padding, self.output_padding, self.groups, self.dilation)
        return F.conv_transpose2d(input, self.weight, self.bias, *settings)


_NORM = "num_features eps=1e-05 momentum=0.1 affine=True track_running_stats=True"


class _Norm(Declared, takes=f"{_NORM} dtype=None"):
    """Batch normalisation.   ranks: axes that the input may have."""

    ranks: tuple[int, ...] = (4,)

    def _set_up(self, dtype: DType | None) -> None:
        shape, affine = (self.num_features,), self.affine
        self.weight = _parameter("ones", shape, "weight", dtype) if affine else None
        self.bias = _parameter("zeros", shape, "bias", dtype) if affine else None
        self.running_mean = self.running_var = self.num_batches_tracked = None
        if self.track_running_stats:
            self.running_mean = _parameter("zeros", shape, "running_mean", dtype, False)
            self.running_var = _parameter("ones", shape, "running_var", dtype, False)
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
        settings = ("eps", "momentum", "affine", "track_running_stats")
        return ", ".join([str(self.num_features), *(f"{name}={getattr(self, name)}" for name in settings)])


_NORMS = variants(
    _Norm,
    __name__,
    BatchNorm1d=("Batch normalisation of (N, C) or (N, C, L).", {"ranks": (2, 3)}),
    BatchNorm2d=("Batch normalisation of (N, C, H, W).", {"ranks": (4,)}),
    BatchNorm3d=("Batch normalisation of (N, C, D, H, W).", {"ranks": (5,)}),
)
globals().update(_NORMS)


class GroupNorm(Declared, takes="num_groups num_channels eps=1e-05 affine=True dtype=None"):
    """Normalisation of groups of channels."""

    def _set_up(self, dtype: DType | None) -> None:
        self.weight = _parameter("ones", (self.num_channels,), "weight", dtype, self.affine)
        self.bias = _parameter("zeros", (self.num_channels,), "bias", dtype, self.affine)

    def construct(self, input: Tensor) -> Any:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class LayerNorm(Declared, takes="normalized_shape eps=1e-05 elementwise_affine=True bias=True dtype=None"):
    """Normalisation of the last axes."""

    def _set_up(self, normalized_shape: Any, elementwise_affine: bool, bias: bool, dtype: DType | None) -> None:
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape = shape
        self.weight = _parameter("ones", shape, "weight", dtype) if elementwise_affine else None
        self.bias = _parameter("zeros", shape, "bias", dtype) if elementwise_affine and bias else None

    def construct(self, input: Tensor) -> Any:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


_EMBEDDING = "padding_idx=None max_norm=None norm_type=2.0 scale_grad_by_freq=False"


class Embedding(Declared, takes=f"num_embeddings embedding_dim {_EMBEDDING} _weight=None _freeze=False dtype=None"):
    """Rows of a learned table; that of `padding_idx` begins as zeros."""

    def _set_up(self, _weight: Tensor | None, _freeze: bool, dtype: DType | None) -> None:
        shape, init = (self.num_embeddings, self.embedding_dim), Normal(1.0) if _weight is None else _weight
        self.weight = _parameter(init, shape, "weight", dtype, not _freeze)
        if self.padding_idx is not None and _weight is None:
            self.weight[self.padding_idx] = 0

    def construct(self, input: Tensor) -> Any:
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)


class PReLU(Declared, takes="num_parameters=1 init=0.25 dtype=None"):
    """x above 0, a learned part of it below."""

    def _set_up(self, num_parameters: int, init: float, dtype: DType | None) -> None:
        self.weight = Parameter(ops.full((num_parameters,), float(init), dtype=dtype or float32), "weight")

    def construct(self, input: Tensor) -> Any:
        return F.prelu(input, self.weight)


publish(__name__)
