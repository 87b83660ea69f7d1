"""Normalisations."""

from __future__ import annotations

import math
from typing import Any

from msdump.mindspore.common.declared import variants
from msdump.mindspore.common.initializer import initializer
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call, execute
from msdump.mindspore.names import publish
from msdump.mindspore.nn.declared import Declared
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops.layer_operators import instance_norm_of
from msdump.mindspore.ops.primitive import Primitive
from msdump.mindspore.releases import GROUP_NORM


class _Statistics(Declared):
    """Base of normalisations with running statistics: makes them, and what scales and shifts the result."""

    def _make(self, affine: bool, gamma: Any, beta: Any, mean: Any = "zeros", variance: Any = "ones") -> None:
        count = self.num_features
        self.moving_mean = Parameter(initializer(mean, count), "mean", requires_grad=False)
        self.moving_variance = Parameter(initializer(variance, count), "variance", requires_grad=False)
        self.gamma = Parameter(initializer(gamma, count), "gamma", requires_grad=affine)
        self.beta = Parameter(initializer(beta, count), "beta", requires_grad=affine)


_SETTINGS = """num_features:features eps=1e-05 momentum:share=0.9 affine=True gamma_init='ones' beta_init='zeros'
    moving_mean_init='zeros' moving_var_init='ones' use_batch_statistics=None"""


class _BatchNorm(_Statistics, takes=f"{_SETTINGS} data_format='NCHW'"):
    """What the batch normalisations share. `momentum` is the part of the running statistics that stays."""

    def _set_up(
        self, affine: bool, gamma_init: Any, beta_init: Any, moving_mean_init: Any, moving_var_init: Any,
        data_format: str = "NCHW",
    ) -> None:  # fmt: skip
        self.format = data_format
        self._make(affine, gamma_init, beta_init, moving_mean_init, moving_var_init)

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


class BatchNorm3d(Declared, takes=_SETTINGS):
    """Batch normalisation of (N, C, D, H, W), through that of four axes."""

    def _set_up(self, **settings: Any) -> None:
        self.bn2d = BatchNorm2d(**settings)

    def construct(self, x: Tensor) -> Tensor:
        if x.ndim != 5:
            raise ValueError(f"For 'BatchNorm3d', the dimension of 'x' must be 5d, but got {x.ndim}d.")
        shape = x.shape
        flat = F.reshape(x, (shape[0], shape[1], shape[2] * shape[3], shape[4]))
        return F.reshape(self.bn2d(flat), shape)


class SyncBatchNorm(_BatchNorm, takes=f"{_SETTINGS} process_groups=None"):
    """Batch normalisation with the statistics of all devices: on one device those of its batch.

    Raises: RuntimeError where several processes train together: their statistics would have to be gathered.
    """

    def _begin(self, settings: dict[str, Any]) -> None:
        process_groups = settings["process_groups"]
        if process_groups is not None and any(len(group) > 1 for group in process_groups):
            raise RuntimeError(
                f"SyncBatchNorm: expected groups of one device, got {process_groups}. Use BatchNorm2d, whose "
                "statistics are those of each device."
            )
        super()._begin(settings)


class _InstanceNorm(
    _Statistics,
    takes="num_features:channels eps=1e-05 momentum:share=0.1 affine=True gamma_init='ones' beta_init='zeros'",
    shows="num_features eps momentum",
):
    """Base of normalisations of each channel of each sample.   ndim: axes of the data."""

    ndim = 4

    def _set_up(self, gamma_init: Any, beta_init: Any) -> None:
        self._make(self.affine, gamma_init, beta_init)

    def construct(self, x: Tensor) -> Any:
        if x.ndim != self.ndim:
            raise ValueError(f"For '{self.cls_name}', the dimension of 'x' must be {self.ndim}d, but got {x.ndim}d.")
        statistics = (self.moving_mean, self.moving_variance)
        return instance_norm_of(x, self.gamma, self.beta, *statistics, self.eps, self.momentum)[0]


_INSTANCES = variants(
    _InstanceNorm,
    __name__,
    InstanceNorm1d=("Normalisation of each channel of each sample of (N, C, L).", {"ndim": 3}),
    InstanceNorm2d=("Normalisation of each channel of each sample of (N, C, H, W).", {"ndim": 4}),
    InstanceNorm3d=("Normalisation of each channel of each sample of (N, C, D, H, W).", {"ndim": 5}),
)
globals().update(_INSTANCES)


class LayerNorm(
    Declared,
    takes="normalized_shape begin_norm_axis=-1 begin_params_axis=-1 gamma_init='ones' beta_init='zeros' epsilon=1e-07 "
    "dtype=float32",
):
    """Normalisation over the last axes of each sample."""

    normalized_shape: Any

    def _set_up(self, gamma_init: Any, beta_init: Any, dtype: Any) -> None:
        self.normalized_shape = shape = tuple(self.normalized_shape)
        self.gamma = Parameter(initializer(gamma_init, shape, dtype), "gamma")
        self.beta = Parameter(initializer(beta_init, shape, dtype), "beta")
        attrs = {name: getattr(self, name) for name in ("begin_norm_axis", "begin_params_axis", "epsilon")}
        self.layer_norm = Primitive("LayerNorm", **attrs)

    def construct(self, input_x: Tensor) -> Tensor:
        return self.layer_norm(input_x, self.gamma, self.beta)[0]


class GroupNorm(Declared, takes="num_groups num_channels eps=1e-05 affine=True gamma_init='ones' beta_init='zeros'"):
    """Normalisation over groups of channels of each sample."""

    def _set_up(self, affine: bool, gamma_init: Any, beta_init: Any) -> None:
        num_groups, num_channels = self.num_groups, self.num_channels
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(
                f"For 'GroupNorm', the 'num_channels' must be divided by the 'num_groups', "
                f"got {num_channels}, {num_groups}."
            )
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
