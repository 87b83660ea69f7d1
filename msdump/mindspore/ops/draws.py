"""Random numbers: `set_seed` makes a script repeat them; a compiled graph draws anew at every run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.mindspore.common.dtype import Type, dtype_name, float32, int32, int64
from msdump.mindspore.common.generator import random_generator
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, execute
from msdump.mindspore.dispatch import cast as _cast
from msdump.mindspore.names import publish
from msdump.mindspore.ops.arithmetic import add, greater_equal, mul, select, sub
from msdump.mindspore.ops.array import zeros
from msdump.mindspore.ops.declaration import plain
from msdump.mindspore.ops.primitive import Primitive, functional_classes
from msdump.mindspore.tracer import current_tracer

# Constructor of most operator classes.
_SEEDS: dict[str, Any] = {"seed": 0, "seed2": 0}


def _draw(op_type: str, operands: Sequence[Any] = (), seed: Any = None, **attrs: Any) -> tuple[Tensor, ...]:
    """All outputs of a random operator. Without a seed, or with zero, the global generator gives one."""
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer)):
        raise TypeError(f"For '{op_type}', the type of 'seed' should be int, but got {type(seed).__name__}.")
    if not seed and not attrs.get("seed2"):
        seed = int(random_generator().integers(1, 2**31))
    tracer = current_tracer()
    counter = [] if tracer is None or tracer.is_recording else [tracer.draw()]
    given = {name: plain(value, name) for name, value in attrs.items()}
    return execute(
        op_type, [*(as_tensor(operand) for operand in operands), *counter], {**given, "seed": int(seed or 0)}
    )


def _sizes(shape: Any) -> tuple[int, ...]:
    sizes = plain(shape, "shape")
    return tuple(int(size) for size in sizes) if isinstance(sizes, tuple) else (int(sizes),)


def _flat(size: tuple[Any, ...]) -> tuple[int, ...]:
    """`rand(2, 3)` and `rand((2, 3))` mean the same."""
    return _sizes(size[0]) if len(size) == 1 else _sizes(size)


def _class(op_type: str, made: dict[str, Any], compute: Callable[..., Any]) -> None:
    """Operator class: `made` are the constructor's parameters; `compute` takes them by name, and the call's inputs."""

    class Draw(Primitive, name=op_type, **made):
        def compute(self, *inputs: Any) -> Any:
            return compute(*inputs, **{name: self.attrs[name] for name in made})

    Draw.__doc__ = f"Random operator {op_type}."
    functional_classes[op_type] = Draw


# -- continuous distributions ------------------------------------------------------------------------------------------


def standard_normal(shape: Any, seed: int | None = None) -> Tensor:
    """Mean 0, standard deviation 1."""
    return _draw("StandardNormal", seed=seed, shape=_sizes(shape))[0]


def standard_laplace(shape: Any, seed: int | None = None) -> Tensor:
    """Laplace distribution of mean 0 and scale 1."""
    return _draw("StandardLaplace", seed=seed, shape=_sizes(shape))[0]


def normal(shape: Any, mean: Any, stddev: Any, seed: int | None = None) -> Tensor:
    """Normal distribution; the result has `shape` broadcast with both parameters."""
    return add(mul(standard_normal(shape, seed), stddev), mean)


def laplace(shape: Any, mean: Any, lambda_param: Any, seed: int | None = None) -> Tensor:
    """Laplace distribution around `mean`, of scale `lambda_param`."""
    return add(mul(standard_laplace(shape, seed), lambda_param), mean)


def uniform(shape: Any, minval: Any, maxval: Any, seed: int | None = None, dtype: Type = float32) -> Tensor:
    """In [minval, maxval); whole numbers for an integer dtype."""
    if dtype == int32:
        return _draw("UniformInt", _bounds(minval, maxval), seed, shape=_sizes(shape))[0]
    between = sub(maxval, minval) if isinstance(maxval, Tensor) or isinstance(minval, Tensor) else maxval - minval
    return add(mul(_draw("UniformReal", seed=seed, shape=_sizes(shape))[0], between), minval)


def _bounds(low: Any, high: Any) -> list[Tensor]:
    return [_cast(as_tensor(low), "int32"), _cast(as_tensor(high), "int32")]


def rand(*size: Any, dtype: Type | None = None, seed: int | None = None) -> Tensor:
    """In [0, 1)."""
    return _cast(_draw("UniformReal", seed=seed, shape=_flat(size))[0], dtype_name(dtype or float32))


def rand_like(input: Tensor, seed: int | None = None, *, dtype: Type | None = None) -> Tensor:
    """`rand` of the shape and dtype of a tensor."""
    return rand(input.shape, dtype=dtype or input.dtype, seed=seed)


def randn(*size: Any, dtype: Type | None = None, seed: int | None = None) -> Tensor:
    """Mean 0, standard deviation 1."""
    return _cast(standard_normal(_flat(size), seed), dtype_name(dtype or float32))


def randn_like(input: Tensor, seed: int | None = None, *, dtype: Type | None = None) -> Tensor:
    """`randn` of the shape and dtype of a tensor."""
    return randn(input.shape, dtype=dtype or input.dtype, seed=seed)


def gamma(shape: Any, alpha: Any, beta: Any, seed: int | None = None) -> Tensor:
    """Gamma distribution of shape alpha and rate beta: `shape`, then what both broadcast to."""
    return _draw("Gamma", [_real(alpha), _real(beta)], seed, shape=_sizes(shape))[0]


def random_gamma(shape: Any, alpha: Any, seed: int | None = None) -> Tensor:
    """Gamma distribution of rate 1, in the dtype of alpha: `shape`, then the shape of alpha."""
    operand = _real(alpha)
    return _draw("RandomGamma", [operand], seed, shape=_sizes(shape), dtype=operand.type_.dtype)[0]


def _real(value: Any) -> Tensor:
    tensor = as_tensor(value)
    return tensor if tensor.type_.dtype.startswith("float") else _cast(tensor, "float32")


# -- whole numbers -----------------------------------------------------------------------------------------------------


def randint(low: Any, high: Any, size: Any, seed: int | None = None, *, dtype: Type | None = None) -> Tensor:
    """In [low, high)."""
    drawn = _draw("UniformInt", _bounds(low, high), seed, shape=_sizes(size))[0]
    return _cast(drawn, dtype_name(dtype or int64))


def randint_like(input: Tensor, low: Any, high: Any, seed: int | None = None, *, dtype: Type | None = None) -> Tensor:
    """`randint` of the shape and dtype of a tensor."""
    return randint(low, high, input.shape, seed, dtype=dtype or input.dtype)


def poisson(shape: Any, mean: Any, seed: int | None = None) -> Tensor:
    """Poisson distribution: `shape`, then the shape of the mean."""
    return _cast(_draw("Poisson", [_real(mean)], seed, shape=_sizes(shape))[0], "float32")


def random_poisson(shape: Any, rate: Any, seed: int | None = None, dtype: Type = float32) -> Tensor:
    """Poisson distribution in a dtype: `shape`, then the shape of the rate."""
    return _draw("RandomPoisson", [_real(rate)], seed, shape=_sizes(shape), dtype=dtype)[0]


def bernoulli(input: Tensor, p: Any = 0.5, seed: int | None = None) -> Tensor:
    """1 with probability p, else 0, in the dtype and shape of input."""
    if isinstance(p, int | float) and not 0 <= p <= 1:
        raise ValueError(f"For 'bernoulli', the 'p' should be in range [0, 1], but got {p}.")
    return _draw("Bernoulli", [input, _real(p)], None if seed == -1 else seed)[0]


# -- choices -----------------------------------------------------------------------------------------------------------


def randperm(n: int, seed: int = 0, offset: int = 0, dtype: Type = int64) -> Tensor:
    """The numbers 0 to n - 1 in a random order."""
    return _draw("RandpermV2", seed=seed, seed2=offset, shape=_sizes(n), dtype=dtype)[0]


def shuffle(x: Tensor, seed: int | None = None) -> Tensor:
    """Elements of the first axis in a random order."""
    return _draw("RandomShuffle", [x], seed)[0]


def multinomial(input: Tensor, num_samples: int, replacement: bool = True, seed: int | None = None) -> Tensor:
    """Indices drawn by weight along the last axis."""
    return _draw("Multinomial", [_real(input)], seed, num_samples=num_samples, replacement=bool(replacement))[0]


def multinomial_with_replacement(
    x: Tensor, seed: int, offset: int, numsamples: int, replacement: bool = False
) -> Tensor:
    """Indices drawn by weight; seed and offset choose the numbers."""
    drawn = _draw("Multinomial", [_real(x)], seed, seed2=offset, num_samples=numsamples, replacement=bool(replacement))
    return _cast(drawn[0], "int64")


def random_categorical(logits: Tensor, num_sample: int, seed: int = 0, dtype: Type = int64) -> Tensor:
    """Indices drawn with probability softmax(logits) along the last axis."""
    return _draw("RandomCategorical", [logits], seed, num_samples=num_sample, dtype=dtype)[0]


def choice_with_mask(input_x: Tensor, count: int = 256, seed: int | None = None) -> tuple[Tensor, ...]:
    """Places of `count` true elements in a random order, and which rows are places."""
    return _draw("RandomChoiceWithMask", [input_x], seed, count=count)


# -- in networks -------------------------------------------------------------------------------------------------------


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3) -> Tensor:
    """input above zero; below, input times a slope drawn from [lower, upper)."""
    if not 0 <= lower <= upper <= 1:
        raise ValueError(f"For 'rrelu', expected 0 <= lower <= upper <= 1, but got {lower} and {upper}.")
    slope = _cast(uniform(input.shape, lower, upper), input.type_.dtype)
    return select(greater_equal(input, zeros((), input.dtype)), input, mul(input, slope))


def _truncated(shape: Any, dtype: Type, seed: int, seed2: int) -> Tensor:
    return _draw("TruncatedNormal", seed=seed, seed2=seed2, shape=_sizes(shape), dtype=dtype)[0]


_class("StandardNormal", _SEEDS, lambda shape, **seeds: _draw("StandardNormal", shape=_sizes(shape), **seeds)[0])
_class("StandardLaplace", _SEEDS, lambda shape, **seeds: _draw("StandardLaplace", shape=_sizes(shape), **seeds)[0])
_class("UniformReal", _SEEDS, lambda shape, **seeds: _draw("UniformReal", shape=_sizes(shape), **seeds)[0])
_class(
    "UniformInt",
    _SEEDS,
    lambda shape, low, high, **seeds: _draw("UniformInt", _bounds(low, high), shape=_sizes(shape), **seeds)[0],
)
_class(
    "Gamma",
    _SEEDS,
    lambda shape, alpha, beta, **seeds: _draw("Gamma", [_real(alpha), _real(beta)], shape=_sizes(shape), **seeds)[0],
)
_class(
    "RandomGamma",
    _SEEDS,
    lambda shape, alpha, **seeds: _draw("RandomGamma", [_real(alpha)], shape=_sizes(shape), **seeds)[0],
)
_class("Poisson", _SEEDS, lambda shape, mean, **seeds: _draw("Poisson", [_real(mean)], shape=_sizes(shape), **seeds)[0])
_class(
    "RandomPoisson",
    {**_SEEDS, "dtype": int64},
    lambda shape, rate, **given: _draw("RandomPoisson", [_real(rate)], shape=_sizes(shape), **given)[0],
)
_class("TruncatedNormal", {"dtype": float32, **_SEEDS}, _truncated)
_class("Bernoulli", {"seed": -1, "offset": 0}, lambda x, p, seed, offset: bernoulli(x, p, seed))
_class(
    "Multinomial",
    {**_SEEDS, "dtype": int32},
    lambda x, num_samples, **given: _draw("Multinomial", [_real(x)], num_samples=num_samples, **given)[0],
)
_class(
    "MultinomialWithReplacement",
    {"numsamples": 1, "replacement": False},
    lambda x, seed, offset, numsamples, replacement: multinomial_with_replacement(
        x, plain(seed, "seed"), plain(offset, "offset"), numsamples, replacement
    ),
)
_class(
    "RandomCategorical",
    {"dtype": int64},
    lambda logits, num_sample, seed=0, *, dtype: random_categorical(logits, num_sample, seed, dtype),
)
_class(
    "RandomChoiceWithMask",
    {"count": 256, **_SEEDS},
    lambda x, **given: _draw("RandomChoiceWithMask", [x], **given),
)
_class("RandomShuffle", _SEEDS, lambda x, **seeds: _draw("RandomShuffle", [x], **seeds)[0])
_class(
    "RandpermV2",
    {"seed": 0, "offset": 0, "dtype": int64},
    lambda n, seed, offset, dtype: randperm(plain(n, "n"), seed, offset, dtype),
)
_class(
    "Cauchy",
    {"size": (), "median": 0.0, "sigma": 1.0},
    lambda size, median, sigma: _draw("Cauchy", shape=_sizes(size), median=median, sigma=sigma)[0],
)
_class(
    "LogNormalReverse",
    {"mean": 1.0, "std": 2.0},
    lambda x, mean, std: _draw("LogNormalReverse", [x], mean=mean, std=std)[0],
)

publish(__name__)
