"""Initializers: the first values of parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from msdump.errors import did_you_mean
from msdump.mindspore.common.declared import Declared
from msdump.mindspore.common.dtype import DType, dtype_name, float32
from msdump.mindspore.common.generator import random_generator
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.located import located
from msdump.mindspore.names import explain_missing
from msdump.mindspore.releases import LAYER_INITIALIZERS
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array


class Initializer(Declared, takes="**kwargs"):
    """Interface: `_initialize(arr)` fills an array in place; or `values(shape)` gives float64 values of that shape."""

    def _set_up(self, kwargs: Any = None) -> None:
        if kwargs is not None:
            self._kwargs = kwargs

    def values(self, shape: tuple[int, ...]) -> Array:
        raise NotImplementedError(f"{type(self).__name__}: expected a method _initialize(self, arr) that fills arr.")

    def _initialize(self, arr: Array) -> None:
        arr[...] = self.values(arr.shape)

    def __call__(self, arr: Array) -> None:
        """Fill `arr` in place."""
        self._initialize(arr)


class Constant(Initializer, takes="value"):
    """Every element is `value`; `value` may be an array of the shape."""

    def values(self, shape: tuple[int, ...]) -> Array:
        return np.broadcast_to(np.asarray(self.value, np.float64), shape)


class Zero(Initializer):
    def values(self, shape: tuple[int, ...]) -> Array:
        return np.zeros(shape)


class One(Initializer):
    def values(self, shape: tuple[int, ...]) -> Array:
        return np.ones(shape)


class Normal(Initializer, takes="sigma=0.01 mean=0.0"):
    """Normal distribution with standard deviation `sigma`."""

    def values(self, shape: tuple[int, ...]) -> Array:
        return random_generator().normal(self.mean, self.sigma, shape)


class TruncatedNormal(Initializer, takes="sigma=0.01 mean=0.0 a=-2.0 b=2.0"):
    """Normal distribution whose values outside of [a, b] are drawn again.

    Source: MindSpore 2.0 and 2.7: the bounds are values, not standard deviations, so that the normal distribution of a
    small `sigma` is not cut off at all.
    Raises: ValueError for bounds so far from the mean that a thousand rounds leave values outside.
    """

    def values(self, shape: tuple[int, ...]) -> Array:
        drawn = random_generator().normal(self.mean, self.sigma, math.prod(shape))
        for _ in range(1000):
            outside = np.flatnonzero((drawn < self.a) | (drawn > self.b))
            if not outside.size:
                return drawn.reshape(shape)
            drawn[outside] = random_generator().normal(self.mean, self.sigma, outside.size)
        raise ValueError(
            f"TruncatedNormal: expected bounds near the mean {self.mean}, got [{self.a}, {self.b}] for a sigma of "
            f"{self.sigma}."
        )


class Uniform(Initializer, takes="scale=0.07"):
    """Uniform in [-scale, scale]."""

    def values(self, shape: tuple[int, ...]) -> Array:
        return random_generator().uniform(-self.scale, self.scale, shape)


class XavierUniform(Initializer, takes="gain=1.0"):
    """Uniform in +-gain * sqrt(6 / (fan_in + fan_out))."""

    def values(self, shape: tuple[int, ...]) -> Array:
        fan_in, fan_out = fans(shape)
        bound = self.gain * math.sqrt(6.0 / (fan_in + fan_out))
        return random_generator().uniform(-bound, bound, shape)


class XavierNormal(Initializer, takes="gain=1.0"):
    """Normal with standard deviation gain * sqrt(2 / (fan_in + fan_out))."""

    def values(self, shape: tuple[int, ...]) -> Array:
        fan_in, fan_out = fans(shape)
        return random_generator().normal(0.0, self.gain * math.sqrt(2.0 / (fan_in + fan_out)), shape)


class HeUniform(Initializer, takes="negative_slope=0 mode='fan_in' nonlinearity='leaky_relu'"):
    """Uniform in +-gain * sqrt(3 / fan)."""

    def values(self, shape: tuple[int, ...]) -> Array:
        bound = math.sqrt(3.0) * _he_deviation(self, shape)
        return random_generator().uniform(-bound, bound, shape)


class HeNormal(Initializer, takes="negative_slope=0 mode='fan_in' nonlinearity='leaky_relu'"):
    """Normal with standard deviation gain / sqrt(fan)."""

    def values(self, shape: tuple[int, ...]) -> Array:
        return random_generator().normal(0.0, _he_deviation(self, shape), shape)


_FANS = ("fan_in", "fan_out", "fan_avg")
_DISTRIBUTIONS = ("uniform", "truncated_normal", "untruncated_normal")


class VarianceScaling(Initializer, takes="scale=1.0 mode='fan_in' distribution='truncated_normal'"):
    """Values whose variance is `scale` over the fan of `mode`.

    Edges:  "truncated_normal" draws from the uniform distribution of that variance.   Source: MindSpore 2.0 and 2.7.
    """

    def _set_up(self, kwargs: Any = None) -> None:
        checks = {
            "scale": (self.scale > 0, "greater than 0"),
            "mode": (self.mode in _FANS, f"one of {', '.join(_FANS)}"),
            "distribution": (self.distribution in _DISTRIBUTIONS, f"one of {', '.join(_DISTRIBUTIONS)}"),
        }
        for name, (is_fine, must) in checks.items():
            if not is_fine:
                raise ValueError(
                    f"For VarianceScaling initializer, the argument '{name}' must be {must}, but got "
                    f"{getattr(self, name)}."
                )

    def values(self, shape: tuple[int, ...]) -> Array:
        fan_in, fan_out = fans(shape)
        fan = {"fan_in": float(fan_in), "fan_out": float(fan_out), "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        if self.distribution == "untruncated_normal":
            return random_generator().normal(0.0, math.sqrt(variance), shape)
        bound = math.sqrt(3 * variance)
        return random_generator().uniform(-bound, bound, shape)


class Identity(Initializer):
    """Ones on the diagonal of a matrix."""

    def values(self, shape: tuple[int, ...]) -> Array:
        _check_axes("Identity", len(shape) == 2, "2", shape)
        return np.eye(shape[0], shape[1])


class Orthogonal(Initializer, takes="gain=1.0"):
    """A matrix with orthonormal rows or columns, times `gain`; axes behind the first count as one."""

    def values(self, shape: tuple[int, ...]) -> Array:
        _check_axes("Orthogonal", len(shape) >= 2, "no less than 2", shape)
        rows, columns = shape[0], math.prod(shape[1:])
        drawn = random_generator().standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(drawn)
        # Each sign is as likely as the other, whatever the factorisation prefers.
        q = q * np.where(np.diag(r) < 0, -1.0, 1.0)
        return (q if rows >= columns else q.T).reshape(shape) * self.gain


class Sparse(Initializer, takes="sparsity sigma=0.01"):
    """A matrix of normal values in which a share `sparsity` of each column is zero."""

    def values(self, shape: tuple[int, ...]) -> Array:
        _check_axes("Sparse", len(shape) == 2, "2", shape)
        generator = random_generator()
        values = generator.normal(0.0, self.sigma, shape)
        count = math.ceil(self.sparsity * shape[0])
        for column in range(shape[1]):
            values[generator.permutation(shape[0])[:count], column] = 0
        return values


class Dirac(Initializer, takes="groups=1"):
    """A convolution that hands its input on: a one at the middle of each kernel from a channel to itself."""

    def values(self, shape: tuple[int, ...]) -> Array:
        _check_axes("Dirac", len(shape) in (3, 4, 5), "3, 4 or 5", shape)
        if shape[0] % self.groups:
            raise ValueError(
                "For Dirac initializer, the first dimension of the initialized tensor must be divisible by groups, "
                f"but got first dimension {shape[0]}, groups {self.groups}."
            )
        values = np.zeros(shape)
        each = shape[0] // self.groups
        middle = tuple(size // 2 for size in shape[2:])
        for group in range(self.groups):
            for channel in range(min(each, shape[1])):
                values[(group * each + channel, channel, *middle)] = 1
        return values


def _check_axes(name: str, is_fitting: bool, expected: str, shape: tuple[int, ...]) -> None:
    if not is_fitting:
        raise ValueError(
            f"For {name} initializer, the dimension of the initialized tensor should be {expected}, but got "
            f"{len(shape)}."
        )


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight.   Raises: ValueError for fewer than two axes."""
    if len(shape) < 2:
        raise ValueError(
            f"For 'initializer', fan_in and fan_out need a weight of 2 or more axes, got shape {shape}. "
            "Use Normal, Uniform or Zero for it."
        )
    area = math.prod(shape[2:])
    return shape[1] * area, shape[0] * area


def correct_fan(shape: tuple[int, ...], mode: str) -> int:
    """fan_in or fan_out of a weight.   Raises: ValueError for another mode."""
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"For 'initializer', the argument 'mode' must be 'fan_in' or 'fan_out', but got {mode}.")
    return fans(shape)[mode == "fan_out"]


def gain(nonlinearity: str, param: float | None = None) -> float:
    """What a layer's deviation is multiplied by before an activation.

    param  the negative slope of leaky_relu; None: 0.01
    Raises: ValueError for an unknown name.
    """
    slope = 0.01 if param is None else param
    gains = {
        "leaky_relu": math.sqrt(2.0 / (1 + slope**2)),
        "relu": math.sqrt(2.0),
        "tanh": 5.0 / 3,
        "linear": 1.0,
        "sigmoid": 1.0,
    }
    if nonlinearity not in gains:
        raise ValueError(f"For 'initializer', nonlinearity must be one of {list(gains)}, but got {nonlinearity}.")
    return gains[nonlinearity]


# Scripts that initialize weights as other frameworks do import these names of MindSpore.
_calculate_fan_in_and_fan_out, _calculate_correct_fan, _calculate_gain = fans, correct_fan, gain


def _he_deviation(init: HeUniform | HeNormal, shape: tuple[int, ...]) -> float:
    return gain(init.nonlinearity, init.negative_slope) / math.sqrt(correct_fan(shape, init.mode))


def layer_initializers(weight_init: Any, bias_init: Any, fan_in: int) -> tuple[Any, Any]:
    """What fills weight and bias of a dense layer or a convolution; None stands for the release's default.

    fan_in  inputs that each element of the result has
    """
    defaults: tuple[Any, Any] = ("normal", "zeros")
    if LAYER_INITIALIZERS.is_in_force:
        defaults = (HeUniform(math.sqrt(5)), Uniform(1 / math.sqrt(fan_in)))
    return (defaults[0] if weight_init is None else weight_init, defaults[1] if bias_init is None else bias_init)


_CLASSES = (Zero, One, Normal, Uniform, TruncatedNormal, XavierUniform, XavierNormal, HeUniform, HeNormal,
            VarianceScaling, Identity, Orthogonal, Sparse, Dirac)  # fmt: skip
_BY_NAME: dict[str, type[Initializer]] = {
    **{each.__name__.lower(): each for each in _CLASSES},
    "zeros": Zero,
    "ones": One,
    "xavier_uniform": XavierUniform,
    "xavier_normal": XavierNormal,
    "he_uniform": HeUniform,
    "he_normal": HeNormal,
}


@located()
def initializer(init: Any, shape: Any = None, dtype: DType = float32) -> Tensor:
    """Tensor of first values. `init`: a name, a number, an Initializer, or a Tensor, which is taken as it is.

    Raises: ValueError for an unknown name or a Tensor of another shape, TypeError for anything else.
    """
    sizes = () if shape is None else (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
    if isinstance(init, Tensor):
        if shape is not None and init.shape != sizes:
            raise ValueError(
                f"For 'initializer', the shape of the 'init' argument should be {sizes}, but got {init.shape}."
            )
        return init
    numpy_dtype = dtypes.dtype(dtype_name(dtype)).numpy
    if isinstance(init, str):
        kind = _BY_NAME.get(init.lower())
        if kind is None:
            raise ValueError(
                f"The class corresponding to '{init}' was not found. {did_you_mean(init, _BY_NAME)}".rstrip()
            )
        init = kind()
    elif isinstance(init, int | float):
        init = Constant(init)
    if not isinstance(init, Initializer):
        raise TypeError(
            "For 'initializer', the type of the 'init' argument should be 'Tensor', 'number', 'string' or "
            f"'initializer', but got {type(init).__name__}."
        )
    array = np.zeros(sizes, numpy_dtype)
    init(array)
    return Tensor.of_array(array)


__getattr__ = explain_missing(__name__)
