"""Normalisations."""

from __future__ import annotations

import math
from typing import Any

from msdump.mindspore.common.dtype import DType, float32
from msdump.mindspore.common.initializer import initializer
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call, execute
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops.layer_operators import instance_norm_of
from msdump.mindspore.ops.primitive import Primitive
from msdump.mindspore.releases import GROUP_NORM


class _BatchNorm(Cell):
    """What the batch normalisations share. `momentum` is the part of the running statistics that stays."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros",
        moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        if num_features < 1:
            raise ValueError(f"For '{self.cls_name}', the 'num_features' must be at least 1, but got {num_features}.")
        if not 0 <= momentum <= 1:
            raise ValueError(f"For '{self.cls_name}', the 'momentum' must be in range [0, 1], but got {momentum}.")
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.use_batch_statistics, self.format = use_batch_statistics, data_format
        self.moving_mean = Parameter(initializer(moving_mean_init, num_features), "mean", requires_grad=False)
        self.moving_variance = Parameter(initializer(moving_var_init, num_features), "variance", requires_grad=False)
        self.gamma = Parameter(initializer(gamma_init, num_features), "gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, num_features), "beta", requires_grad=affine)

    def construct(self, x: Tensor) -> Tensor:
        is_training = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        attrs = {"is_training": is_training, "epsilon": self.eps, "format": self.format}
        if is_training:
            attrs["momentum"] = 1.0 - self.momentum
        return execute("BatchNorm", [x, self.gamma, self.beta, self.moving_mean, self.moving_variance], attrs)[0]

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={1.0 - self.momentum}, gamma={self.gamma}, "
            f"beta={self.beta}, moving_mean={self.moving_mean}, moving_variance={self.moving_variance}"
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C)."""


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W)."""


class BatchNorm3d(Cell):
    """Batch normalisation of (N, C, D, H, W), through that of four axes."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros",
        moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None,
    ) -> None:
        super().__init__()
        moving = (moving_mean_init, moving_var_init, use_batch_statistics)
        self.bn2d = BatchNorm2d(num_features, eps, momentum, affine, gamma_init, beta_init, *moving)

    def construct(self, x: Tensor) -> Tensor:
        if x.ndim != 5:
            raise ValueError(f"For 'BatchNorm3d', the dimension of 'x' must be 5d, but got {x.ndim}d.")
        shape = x.shape
        flat = F.reshape(x, (shape[0], shape[1], shape[2] * shape[3], shape[4]))
        return F.reshape(self.bn2d(flat), shape)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation with the statistics of all devices: on one device those of its batch.

    Raises: RuntimeError where several processes train together: their statistics would have to be gathered.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros",
        moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None,
        process_groups: Any = None,
    ) -> None:
        if process_groups is not None and any(len(group) > 1 for group in process_groups):
            raise RuntimeError(
                f"SyncBatchNorm: expected groups of one device, got {process_groups}. Use BatchNorm2d, whose "
                "statistics are those of each device."
            )
        inits = (gamma_init, beta_init, moving_mean_init, moving_var_init)
        super().__init__(num_features, eps, momentum, affine, *inits, use_batch_statistics)
        self.process_groups = process_groups


class _InstanceNorm(Cell):
    """Base of normalisations of each channel of each sample.   ndim: axes of the data."""

    ndim = 4

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
    ) -> None:
        super().__init__()
        if isinstance(num_features, bool) or not isinstance(num_features, int):
            raise TypeError(f"For '{self.cls_name}', the type of 'num_features' must be int, got {num_features!r}.")
        if num_features < 1:
            raise ValueError(f"For '{self.cls_name}', the 'num_features' must be at least 1, but got {num_features}.")
        if not 0 <= momentum <= 1:
            raise ValueError(f"For '{self.cls_name}', the 'momentum' must be in range [0, 1], but got {momentum}.")
        self.num_features, self.eps, self.momentum, self.affine = num_features, eps, momentum, affine
        self.moving_mean = Parameter(initializer("zeros", num_features), "mean", requires_grad=False)
        self.moving_variance = Parameter(initializer("ones", num_features), "variance", requires_grad=False)
        self.gamma = Parameter(initializer(gamma_init, num_features), "gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, num_features), "beta", requires_grad=affine)

    def construct(self, x: Tensor) -> Any:
        if x.ndim != self.ndim:
            raise ValueError(f"For '{self.cls_name}', the dimension of 'x' must be {self.ndim}d, but got {x.ndim}d.")
        statistics = (self.moving_mean, self.moving_variance)
        return instance_norm_of(x, self.gamma, self.beta, *statistics, self.eps, self.momentum)[0]

    def extend_repr(self) -> str:
        return f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}"


class InstanceNorm1d(_InstanceNorm):
    """Normalisation of each channel of each sample of (N, C, L)."""

    ndim = 3


class InstanceNorm2d(_InstanceNorm):
    """Normalisation of each channel of each sample of (N, C, H, W)."""


class InstanceNorm3d(_InstanceNorm):
    """Normalisation of each channel of each sample of (N, C, D, H, W)."""

    ndim = 5


class LayerNorm(Cell):
    """Normalisation over the last axes of each sample."""

    def __init__(
        self,
        normalized_shape: tuple[int, ...] | list[int],
        begin_norm_axis: int = -1,
        begin_params_axis: int = -1,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        epsilon: float = 1e-7,
        dtype: DType = float32,
    ) -> None:
        super().__init__()
        shape = tuple(normalized_shape)
        self.normalized_shape, self.epsilon = shape, epsilon
        self.begin_norm_axis, self.begin_params_axis = begin_norm_axis, begin_params_axis
        self.gamma = Parameter(initializer(gamma_init, shape, dtype), "gamma")
        self.beta = Parameter(initializer(beta_init, shape, dtype), "beta")
        axes = {"begin_norm_axis": begin_norm_axis, "begin_params_axis": begin_params_axis}
        self.layer_norm = Primitive("LayerNorm", **axes, epsilon=epsilon)

    def construct(self, input_x: Tensor) -> Tensor:
        return self.layer_norm(input_x, self.gamma, self.beta)[0]


class GroupNorm(Cell):
    """Normalisation over groups of channels of each sample."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(
                f"For 'GroupNorm', the 'num_channels' must be divided by the 'num_groups', "
                f"got {num_channels}, {num_groups}."
            )
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.gamma = Parameter(initializer(gamma_init, num_channels), "gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta_init, num_channels), "beta", requires_grad=affine)

    def construct(self, x: Tensor) -> Tensor:
        if GROUP_NORM.is_in_force:
            return call("GroupNorm", x, self.gamma, self.beta, num_groups=self.num_groups, eps=self.eps)
        shape = x.shape
        grouped = F.reshape(x, (shape[0], self.num_groups, math.prod(shape[1:]) // self.num_groups))
        centred = F.sub(grouped, F.mean(grouped, 2, True))
        # Source: MindSpore divides a sum here, it does not take a mean.
        variance = F.div(F.sum(F.square(centred), 2, True), float(grouped.shape[2]))
        normal = F.reshape(F.div(centred, F.sqrt(F.add(variance, self.eps))), shape)
        per_channel = (1, self.num_channels, *(1,) * (len(shape) - 2))
        return F.add(F.mul(normal, F.reshape(self.gamma, per_channel)), F.reshape(self.beta, per_channel))


publish(__name__)
