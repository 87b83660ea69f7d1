"""Functions of `mindspore.mint` that make tensors, of numbers and of random draws."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.dtype import Type, float32, int64
from msdump.mindspore.common.generator import refuse_generator
from msdump.mindspore.common.signatures import in_forms
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops import function as F

_TABLE = """
    arange start=0 end=None step=1 | dtype=None
    full size fill_value | dtype=None
    full_like input fill_value | dtype=None
    ones size | dtype=None
    ones_like input | dtype=None
    zeros size | dtype=None
    zeros_like input | dtype=None
    rand_like input | dtype=None
    randn_like input | dtype=None
"""

globals().update(in_forms(_TABLE, vars(F), __name__))


def _shape(size: Any) -> tuple[int, ...]:
    given = size[0] if len(size) == 1 and isinstance(size[0], tuple | list) else size
    return tuple(int(each) for each in given)


def eye(n: int, m: int | None = None, dtype: Type | None = None) -> Tensor:
    """Ones on the diagonal, zeros elsewhere."""
    return F.eye(n, m, dtype or float32)


def empty(*size: Any, dtype: Type | None = None, device: Any = None) -> Tensor:
    """A tensor whose values nobody should read; they are 0 here, so that a run can be repeated."""
    return F.zeros(_shape(size), dtype)


def empty_like(input: Tensor, *, dtype: Type | None = None, device: Any = None) -> Tensor:
    """`empty` of a tensor's shape and dtype."""
    return F.zeros_like(input, dtype=dtype)


def rand(*size: Any, generator: Any = None, dtype: Type | None = None) -> Tensor:
    """Evenly spread over [0, 1)."""
    refuse_generator("mint.rand", generator)
    return F.rand(*_shape(size), dtype=dtype)


def randn(*size: Any, generator: Any = None, dtype: Type | None = None) -> Tensor:
    """Normally distributed."""
    refuse_generator("mint.randn", generator)
    return F.randn(*_shape(size), dtype=dtype)


def randint(*args: Any, generator: Any = None, dtype: Type | None = None) -> Tensor:
    """`randint(low=0, high, size)`: whole numbers of [low, high)."""
    refuse_generator("mint.randint", generator)
    low, high, size = args if len(args) == 3 else (0, *args)
    return F.randint(low, high, tuple(size), dtype=dtype or int64)


def randint_like(*args: Any, dtype: Type | None = None) -> Tensor:
    """`randint_like(input, low=0, high)`: whole numbers of [low, high) in a tensor's shape."""
    input, *bounds = args
    low, high = bounds if len(bounds) == 2 else (0, *bounds)
    return F.cast(F.randint(low, high, input.shape, dtype=int64), dtype or input.dtype)


def randperm(n: int, *, generator: Any = None, dtype: Type = int64) -> Tensor:
    """0 to n - 1 in a random order."""
    refuse_generator("mint.randperm", generator)
    return F.cast(F.randperm(n), dtype)


def bernoulli(input: Tensor, *, generator: Any = None) -> Tensor:
    """1 with the probability that each element gives, else 0."""
    refuse_generator("mint.bernoulli", generator)
    return F.bernoulli(input, input)


def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """Places drawn with weights."""
    refuse_generator("mint.multinomial", generator)
    return F.cast(F.multinomial(input, num_samples, replacement), int64)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, generator: Any = None) -> Tensor:
    """Normally distributed about a mean; the shape is `size`, or that of the tensors."""
    refuse_generator("mint.normal", generator)
    if size is None:
        size = F.add(mean, std).shape
    return F.add(F.mul(F.randn(*tuple(size)), std), mean)


publish(__name__)
