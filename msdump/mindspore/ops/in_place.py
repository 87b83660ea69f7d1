"""Methods of Tensor that write their result to the tensor itself, `add_` and its like, and give it back.

Source: Tensor of MindSpore 2.7. In a graph, and where gradients are taken, the tensor stands for its new value from
there on; a Parameter is assigned to.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.mindspore.common.generator import refuse_generator
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import cast
from msdump.mindspore.ops import draws, own_methods, scatter, triangles
from msdump.mindspore.ops.arithmetic import add, div, exp, log, mul, neg, sub
from msdump.mindspore.ops.array import broadcast_to, full, reshape, zeros
from msdump.mindspore.ops.elementary import tan
from msdump.mindspore.ops.products import addmm
from msdump.tensors import dtypes

# Method -> function of `mindspore.ops` whose result it writes.
SAME = {
    "clamp_": "clamp", "div_": "div", "erfinv_": "erfinv", "exp_": "exp", "floor_": "floor",
    "floor_divide_": "floor_div", "log_": "log", "masked_fill_": "masked_fill", "mul_": "mul",
    "remainder_": "remainder", "tanh_": "tanh",
}  # fmt: skip
_RANK = {dtypes.BOOL: 0, dtypes.UINT: 1, dtypes.INT: 1, dtypes.FLOAT: 2, dtypes.COMPLEX: 3}
_MAX_RANDOM = {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24}


def writing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that writes what `function` gives for the tensor and the other arguments.

    Raises: TypeError for a result of a kind that the tensor's dtype cannot hold, ValueError for another shape.
    """

    @functools.wraps(function)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        result = function(self, *args, **kwargs)
        ours, theirs = dtypes.dtype(self.type_.dtype), dtypes.dtype(result.type_.dtype)
        if _RANK[theirs.kind] > _RANK[ours.kind]:
            raise TypeError(f"Tensor.{name}: expected a result that {ours.name} can hold, got {theirs.name}.")
        if result.shape != self.shape:
            raise ValueError(f"Tensor.{name}: expected a result of shape {self.shape}, got {result.shape}.")
        self[...] = cast(result, ours.name)
        return self

    method.__name__ = method.__qualname__ = name
    return method


def _add(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """Add `alpha * other`."""
    return add(self, other if alpha == 1 else mul(other, alpha))


def _sub(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """Subtract `alpha * other`."""
    return sub(self, other if alpha == 1 else mul(other, alpha))


def _addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * self + alpha * mat1 @ mat2`."""
    return addmm(self, mat1, mat2, beta=beta, alpha=alpha)


def _zero(self: Tensor) -> Tensor:
    """Zeros."""
    return zeros(self.shape, self.dtype)


def _fill(self: Tensor, value: Any) -> Tensor:
    """One value, a number or a tensor without axes."""
    if isinstance(value, Tensor):
        if value.ndim:
            raise ValueError(f"Tensor.fill_: expected a value without axes, got shape {value.shape}.")
        return broadcast_to(cast(value, self.type_.dtype), self.shape)
    return full(self.shape, value, dtype=self.dtype)


def _copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Elements of another tensor, broadcast and in the dtype of this one."""
    return broadcast_to(cast(src, self.type_.dtype), self.shape)


def _fill_diagonal(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """One value on the main diagonal; with `wrap` it begins again below in a tall matrix."""
    return triangles._fill_diagonal(self, fill_value, wrap)


def _put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Elements at places of all elements in a row, replaced or added to."""
    flat = own_methods.index_put(
        reshape(self, (-1,)), (reshape(index, (-1,)),), reshape(cast(source, self.type_.dtype), (-1,)), accumulate
    )
    return reshape(flat, self.shape)


def _index_put(self: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Any:
    """Elements at `self[indices]`, replaced or added to."""
    return own_methods.index_put(self, indices, values, accumulate)


def _index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Any:
    """Add `alpha * source` to slices along an axis."""
    return own_methods.index_add(self, dim, index, source, alpha=alpha)


def _scatter(self: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str = "none") -> Any:
    """Write one element per index along an axis; `reduce` "add" or "multiply" combines it with what is there."""
    hows = {"none": "none", "add": "add", "multiply": "mul"}
    if reduce not in hows:
        raise ValueError(f"Tensor.scatter_: expected 'reduce' to be one of {list(hows)}, got {reduce!r}.")
    given = value if src is None else src
    updates = given if isinstance(given, Tensor) else full(index.shape, given, dtype=self.dtype)
    return scatter.tensor_scatter_elements(self, index, cast(updates, self.type_.dtype), dim, hows[reduce])


def _scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Any:
    """Add one element per index along an axis."""
    return scatter.tensor_scatter_elements(self, index, cast(src, self.type_.dtype), dim, "add")


# -- random numbers ----------------------------------------------------------------------------------------------------


def _uniform(self: Tensor, from_: float = 0, to: float = 1, *, generator: Any = None) -> Tensor:
    """In [from_, to)."""
    refuse_generator("Tensor.uniform_", generator)
    return cast(draws.uniform(self.shape, float(from_), float(to)), self.type_.dtype)


def _normal(self: Tensor, mean: float = 0, std: float = 1, *, generator: Any = None) -> Tensor:
    """Normal distribution."""
    refuse_generator("Tensor.normal_", generator)
    return cast(draws.normal(self.shape, float(mean), float(std)), self.type_.dtype)


def _random(self: Tensor, from_: int = 0, to: int | None = None, *, generator: Any = None) -> Tensor:
    """Whole numbers in [from_, to); of one bound alone, in [0, bound); without any, as many as the dtype holds."""
    refuse_generator("Tensor.random_", generator)
    row = dtypes.dtype(self.type_.dtype)
    if to is None and from_ == 0:
        limit = _MAX_RANDOM.get(row.name, 2**31 - 1) if row.is_float else 2 if row.kind == dtypes.BOOL else None
        to = min(int(np.iinfo(row.numpy).max), 2**31 - 1) if limit is None else limit
    elif to is None:
        from_, to = 0, from_
    return cast(draws.randint(int(from_), int(to), self.shape), row.name)


def _exponential(self: Tensor, lambd: float = 1, *, generator: Any = None) -> Tensor:
    """Exponential distribution of rate `lambd`."""
    refuse_generator("Tensor.exponential_", generator)
    # 1 - u is in (0, 1]: no logarithm of zero.
    return cast(div(neg(log(sub(1.0, draws.uniform(self.shape, 0.0, 1.0)))), float(lambd)), self.type_.dtype)


def _bernoulli(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """1 with probability p, else 0."""
    refuse_generator("Tensor.bernoulli_", generator)
    return draws.bernoulli(self, p)


OWN = {
    "add_": _add, "addmm_": _addmm, "bernoulli_": _bernoulli, "copy_": _copy, "exponential_": _exponential,
    "fill_": _fill, "fill_diagonal_": _fill_diagonal, "index_add_": _index_add, "index_put_": _index_put,
    "normal_": _normal, "put_": _put, "random_": _random, "scatter_": _scatter, "scatter_add_": _scatter_add,
    "sub_": _sub, "uniform_": _uniform, "zero_": _zero,
}  # fmt: skip


# Source: of MindSpore 2.7, these give a new tensor.
def _cauchy(self: Tensor, median: float = 0.0, sigma: float = 1.0) -> Tensor:
    """Numbers of a Cauchy distribution, in the shape and dtype of this tensor."""
    turned = mul(sub(draws.uniform(self.shape, 0.0, 1.0), 0.5), np.pi)
    return cast(add(mul(tan(turned), float(sigma)), float(median)), self.type_.dtype)


def _log_normal(self: Tensor, mean: float = 1.0, std: float = 2.0) -> Tensor:
    """Numbers whose logarithm is normal, in the shape and dtype of this tensor."""
    return cast(exp(draws.normal(self.shape, float(mean), float(std))), self.type_.dtype)


def _uniform_like(self: Tensor, from_: float = 0.0, to: float = 1.0, generator: Any = None) -> Tensor:
    """Numbers in [from_, to), in the shape and dtype of this tensor."""
    return _uniform(self, from_, to, generator=generator)


# Methods that write nothing.
PLAIN = {"cauchy": _cauchy, "log_normal": _log_normal, "uniform": _uniform_like}
