"""Initializers: the first values of parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from msdump import dtypes
from msdump.arrays import Array
from msdump.errors import did_you_mean
from msdump.frontends.mindspore.common.dtype import DType, dtype_name, float32
from msdump.frontends.mindspore.common.seed import random_generator
from msdump.frontends.mindspore.common.tensor import Tensor


class Initializer:
    """Interface: `values(shape)` gives float64 values of that shape."""

    def values(self, shape: tuple[int, ...]) -> Array:
        raise NotImplementedError(f"{type(self).__name__}: expected a values(shape) method.")

    def __call__(self, array: Array) -> None:
        """Fill `array` in place."""
        array[...] = self.values(array.shape)


class Constant(Initializer):
    """Every element is `value`; `value` may be an array of the shape."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def values(self, shape: tuple[int, ...]) -> Array:
        return np.broadcast_to(np.asarray(self.value, np.float64), shape)


class Zero(Initializer):
    def values(self, shape: tuple[int, ...]) -> Array:
        return np.zeros(shape)


class One(Initializer):
    def values(self, shape: tuple[int, ...]) -> Array:
        return np.ones(shape)


class Normal(Initializer):
    """Normal distribution with standard deviation `sigma`."""

    def __init__(self, sigma: float = 0.01, mean: float = 0.0) -> None:
        self.sigma, self.mean = sigma, mean

    def values(self, shape: tuple[int, ...]) -> Array:
        return random_generator().normal(self.mean, self.sigma, shape)


class TruncatedNormal(Initializer):
    """Normal distribution whose values beyond `a` and `b` standard deviations are drawn again."""

    def __init__(self, sigma: float = 0.01, mean: float = 0.0, a: float = -2.0, b: float = 2.0) -> None:
        self.sigma, self.mean, self.a, self.b = sigma, mean, a, b

    def values(self, shape: tuple[int, ...]) -> Array:
        drawn = random_generator().standard_normal(math.prod(shape))
        while (outside := np.flatnonzero((drawn < self.a) | (drawn > self.b))).size:
            drawn[outside] = random_generator().standard_normal(outside.size)
        return drawn.reshape(shape) * self.sigma + self.mean


class Uniform(Initializer):
    """Uniform in [-scale, scale]."""

    def __init__(self, scale: float = 0.07) -> None:
        self.scale = scale

    def values(self, shape: tuple[int, ...]) -> Array:
        return random_generator().uniform(-self.scale, self.scale, shape)


class XavierUniform(Initializer):
    """Uniform in +-gain * sqrt(6 / (fan_in + fan_out))."""

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def values(self, shape: tuple[int, ...]) -> Array:
        fan_in, fan_out = fans(shape)
        bound = self.gain * math.sqrt(6.0 / (fan_in + fan_out))
        return random_generator().uniform(-bound, bound, shape)


class XavierNormal(Initializer):
    """Normal with standard deviation gain * sqrt(2 / (fan_in + fan_out))."""

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def values(self, shape: tuple[int, ...]) -> Array:
        fan_in, fan_out = fans(shape)
        return random_generator().normal(0.0, self.gain * math.sqrt(2.0 / (fan_in + fan_out)), shape)


class HeUniform(Initializer):
    """Uniform in +-gain * sqrt(3 / fan)."""

    def __init__(self, negative_slope: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> None:
        self.negative_slope, self.mode, self.nonlinearity = negative_slope, mode, nonlinearity

    def values(self, shape: tuple[int, ...]) -> Array:
        bound = math.sqrt(3.0) * _he_deviation(self, shape)
        return random_generator().uniform(-bound, bound, shape)


class HeNormal(Initializer):
    """Normal with standard deviation gain / sqrt(fan)."""

    def __init__(self, negative_slope: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> None:
        self.negative_slope, self.mode, self.nonlinearity = negative_slope, mode, nonlinearity

    def values(self, shape: tuple[int, ...]) -> Array:
        return random_generator().normal(0.0, _he_deviation(self, shape), shape)


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight.   Raises: ValueError for fewer than two axes."""
    if len(shape) < 2:
        raise ValueError(
            f"For 'initializer', fan_in and fan_out need a weight of 2 or more axes, got shape {shape}. "
            "Use Normal, Uniform or Zero for it."
        )
    area = math.prod(shape[2:])
    return shape[1] * area, shape[0] * area


def _he_deviation(init: HeUniform | HeNormal, shape: tuple[int, ...]) -> float:
    if init.mode not in ("fan_in", "fan_out"):
        raise ValueError(f"For 'initializer', the argument 'mode' must be 'fan_in' or 'fan_out', but got {init.mode}.")
    gains = {
        "leaky_relu": math.sqrt(2.0 / (1 + init.negative_slope**2)),
        "relu": math.sqrt(2.0),
        "tanh": 5.0 / 3,
        "linear": 1.0,
        "sigmoid": 1.0,
    }
    if init.nonlinearity not in gains:
        raise ValueError(f"For 'initializer', nonlinearity must be one of {list(gains)}, but got {init.nonlinearity}.")
    fan_in, fan_out = fans(shape)
    return gains[init.nonlinearity] / math.sqrt(fan_in if init.mode == "fan_in" else fan_out)


_BY_NAME: dict[str, type[Initializer]] = {
    "zero": Zero,
    "zeros": Zero,
    "one": One,
    "ones": One,
    "normal": Normal,
    "uniform": Uniform,
    "truncatednormal": TruncatedNormal,
    "xavier_uniform": XavierUniform,
    "xavieruniform": XavierUniform,
    "xavier_normal": XavierNormal,
    "xaviernormal": XavierNormal,
    "he_uniform": HeUniform,
    "heuniform": HeUniform,
    "he_normal": HeNormal,
    "henormal": HeNormal,
}


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
    return Tensor.of_array(np.ascontiguousarray(init.values(sizes), numpy_dtype).reshape(sizes))
