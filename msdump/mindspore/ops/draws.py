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
from msdump.mindspore.ops.arithmetic import add, div, greater_equal, log, mul, neg, select, sub
from msdump.mindspore.ops.array import one_hot, zeros
from msdump.mindspore.ops.declaration import plain
from msdump.mindspore.ops.network import softmax
from msdump.mindspore.ops.primitive import Primitive, def_class, operator_class
from msdump.mindspore.ops.program import stop_gradient
from msdump.mindspore.tracer import current_tracer


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


# -- continuous distributions ------------------------------------------------------------------------------------------


def standard_normal(shape: Any, seed: int | None = None) -> Tensor:
    """Mean 0, standard deviation 1."""
    return _draw("StandardNormal", seed=seed, shape=_sizes(shape))[0]


def normal(shape: Any, mean: Any, stddev: Any, seed: int | None = None) -> Tensor:
    """Normal distribution; the result has `shape` broadcast with both parameters."""
    return add(mul(standard_normal(shape, seed), stddev), mean)


def uniform(shape: Any, minval: Any, maxval: Any, seed: int | None = None, dtype: Type = float32) -> Tensor:
    """In [minval, maxval); whole numbers for an integer dtype."""
    if dtype == int32:
        return _draw("UniformInt", [_whole(minval), _whole(maxval)], seed, shape=_sizes(shape))[0]
    between = sub(maxval, minval) if isinstance(maxval, Tensor) or isinstance(minval, Tensor) else maxval - minval
    return add(mul(_draw("UniformReal", seed=seed, shape=_sizes(shape))[0], between), minval)


def _whole(bound: Any) -> Tensor:
    return _cast(as_tensor(bound), "int32")


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


def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, dim: int = -1) -> Tensor:
    """softmax((logits + noise) / tau); with `hard` one-hot forward and the gradient of the soft one."""
    if tau <= 0:
        raise ValueError(f"For 'gumbel_softmax', the 'tau' should be greater than 0, but got {tau}.")
    # The smallest number above zero keeps both logarithms finite.
    noise = neg(log(neg(log(uniform(logits.shape, 1e-7, 1.0)))))
    soft = softmax(div(add(logits, _cast(noise, logits.type_.dtype)), tau), dim)
    if not hard:
        return soft
    sharp = _cast(one_hot(soft.argmax(dim), soft.shape[dim], 1.0, 0.0, dim % soft.ndim), soft.type_.dtype)
    return add(sub(sharp, stop_gradient(soft)), soft)


def _real(value: Any) -> Tensor:
    tensor = as_tensor(value)
    return tensor if tensor.type_.dtype.startswith("float") else _cast(tensor, "float32")


# -- whole numbers -----------------------------------------------------------------------------------------------------


def randint(low: Any, high: Any, size: Any, seed: int | None = None, *, dtype: Type | None = None) -> Tensor:
    """In [low, high)."""
    drawn = _draw("UniformInt", [_whole(low), _whole(high)], seed, shape=_sizes(size))[0]
    return _cast(drawn, dtype_name(dtype or int64))


def randint_like(input: Tensor, low: Any, high: Any, seed: int | None = None, *, dtype: Type | None = None) -> Tensor:
    """`randint` of the shape and dtype of a tensor."""
    return randint(low, high, input.shape, seed, dtype=dtype or input.dtype)


def bernoulli(input: Tensor, p: Any = 0.5, seed: int | None = None) -> Tensor:
    """1 with probability p, else 0, in the dtype and shape of input."""
    if isinstance(p, int | float) and not 0 <= p <= 1:
        raise ValueError(f"For 'bernoulli', the 'p' should be in range [0, 1], but got {p}.")
    return _draw("Bernoulli", [input, _real(p)], None if seed == -1 else seed)[0]


def random_poisson(shape: Any, rate: Any, seed: int | None = None, dtype: Type = float32) -> Tensor:
    """Counts of a Poisson distribution for each mean in `rate`; the result has the sizes of `shape` before its own."""
    return _draw("RandomPoisson", [rate], seed, shape=_sizes(shape), dtype=dtype)[0]


# -- choices -----------------------------------------------------------------------------------------------------------


@operator_class("RandpermV2", init="seed offset dtype")
def randperm(n: int, seed: int = 0, offset: int = 0, dtype: Type = int64) -> Tensor:
    """The numbers 0 to n - 1 in a random order."""
    return _draw("RandpermV2", seed=seed, seed2=offset, shape=_sizes(n), dtype=dtype)[0]


def shuffle(x: Tensor, seed: int | None = None) -> Tensor:
    """The parts along the first axis in a random order."""
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


@operator_class("RandomCategorical", init="dtype")
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


# -- operator classes --------------------------------------------------------------------------------------------------

_SEEDS: dict[str, Any] = {"seed": 0, "seed2": 0}


def _class(op_type: str, prepare: Callable[[Any], Any] = _real, has_shape: bool = True, **made: Any) -> None:
    """The class of an operator whose call takes a shape, unless `has_shape` is False, and the operands."""

    def compute(self: Primitive, *inputs: Any) -> Any:
        attrs = {name: self.attrs[name] for name in made}
        if has_shape:
            attrs["shape"] = _sizes(inputs[0])
        results = _draw(op_type, [prepare(each) for each in inputs[has_shape:]], **attrs)
        return results[0] if len(results) == 1 else results

    def_class(op_type, f"Random operator {op_type}.", compute, **made)


for _name in ("StandardNormal", "UniformReal"):
    _class(_name, **_SEEDS)
_class("UniformInt", _whole, **_SEEDS)
_class("TruncatedNormal", dtype=float32, **_SEEDS)
_class("RandomChoiceWithMask", as_tensor, False, count=256, **_SEEDS)


def _chosen(self: Primitive, x: Any, num_samples: int) -> Any:
    attrs = {name: self.attrs[name] for name in (*_SEEDS, "dtype")}
    return _draw("Multinomial", [_real(x)], num_samples=num_samples, **attrs)[0]


def _chosen_with_replacement(self: Primitive, x: Any, seed: Any, offset: Any) -> Any:
    return multinomial_with_replacement(
        x, plain(seed, "seed"), plain(offset, "offset"), self.attrs["numsamples"], self.attrs["replacement"]
    )


_ONE_OR_ZERO = "1 with probability p, else 0, in the dtype and shape of x."
def_class("Bernoulli", _ONE_OR_ZERO, lambda self, x, p: bernoulli(x, p, self.attrs["seed"]), seed=-1, offset=0)
def_class("Multinomial", "Indices drawn by weight along the last axis.", _chosen, **_SEEDS, dtype=int32)
def_class(
    "MultinomialWithReplacement", "Indices drawn by weight.", _chosen_with_replacement, numsamples=1, replacement=False
)

publish(__name__)
