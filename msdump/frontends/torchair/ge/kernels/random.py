"""Random GE operators. All draw from torch's generator what ATen would draw at the same place: seeds and offsets that
come in are not looked at.

order   axes from the outermost in memory to the innermost, where it is not that of the axes: torch draws in it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from msdump.frontends.torchair.ge.dtypes import dtype_of_number
from msdump.frontends.torchair.ge.registry import kernel


@kernel("StatelessRandomUniformV2", host=("shape",))
def uniform(
    shape: list[int], key: Any, counter: Any, alg: Any, *, dtype: int, device: str = "cpu", order: Sequence[int] = ()
) -> Any:
    """[0, 1)"""
    return _drawn(lambda sizes: torch.rand(sizes, dtype=dtype_of_number(dtype), device=device), shape, order)


@kernel("StatelessRandomNormalV2", host=("shape",))
def normal(
    shape: list[int], key: Any, counter: Any, alg: Any, *, dtype: int, device: str = "cpu", order: Sequence[int] = ()
) -> Any:
    return _drawn(lambda sizes: torch.randn(sizes, dtype=dtype_of_number(dtype), device=device), shape, order)


@kernel("StatelessRandomUniformIntV2", host=("shape", "minval", "maxval"))
def uniform_int(
    shape: list[int],
    key: Any,
    counter: Any,
    alg: Any,
    minval: int,
    maxval: int,
    *,
    dtype: int,
    device: str = "cpu",
    order: Sequence[int] = (),
) -> Any:
    """[minval, maxval)"""
    return _drawn(
        lambda sizes: torch.randint(minval, maxval, sizes, dtype=dtype_of_number(dtype), device=device), shape, order
    )


@kernel("StatelessRandperm", host=("n",))
def randperm(n: int, seed: Any, offset: Any, *, dtype: int, layout: int, device: str = "cpu") -> Any:
    return torch.randperm(n, dtype=dtype_of_number(dtype), device=device)


@kernel("StatelessUniform")
def fill_uniform(x: Any, seed: Any, offset: Any, **bounds: float) -> Any:
    """bounds   `from` and `to`"""
    return torch.ops.aten.uniform.default(x, bounds["from"], bounds["to"])


@kernel("StatelessNormal")
def fill_normal(x: Any, seed: Any, offset: Any, *, mean: float, std: float) -> Any:
    return torch.ops.aten.normal_functional.default(x, mean, std)


@kernel("StatelessExponential")
def fill_exponential(x: Any, seed: Any, offset: Any, **rate: float) -> Any:
    """rate   `lambda`"""
    return torch.ops.aten.exponential.default(x, rate["lambda"])


@kernel("StatelessBernoulliV2", host=("shape",), numbers=("prob",))
def bernoulli(shape: list[int], prob: Any, seed: Any, offset: Any, *, dtype: int, device: str = "cpu") -> Any:
    """prob   a number, or a tensor of that shape"""
    if isinstance(prob, torch.Tensor):
        return torch.bernoulli(prob)
    return torch.bernoulli(torch.empty(shape, dtype=dtype_of_number(dtype), device=device), prob)


@kernel("MultinomialWithReplacement")
def multinomial(x: Any, seed: Any, offset: Any, *, num_samples: int, replacement: bool) -> Any:
    return torch.multinomial(x, num_samples, replacement)


@kernel("StatelessDropOutGenMask", host=("shape",), numbers=("prob",))
def dropout_mask(
    shape: list[int], prob: float, seed: Any, seed1: Any, offset: Any, *, device: str = "cpu", order: Sequence[int] = ()
) -> Any:
    """prob   with which an element is kept"""
    return _drawn(lambda sizes: torch.empty(sizes, dtype=torch.bool, device=device).bernoulli_(prob), shape, order)


@kernel("DropOutDoMask", numbers=("keep_prob",))
def dropout(x: Any, mask: Any, keep_prob: float) -> Any:
    return x.mul(mask).mul_(1.0 / keep_prob if keep_prob else 0.0)


def _drawn(draw: Callable[[Sequence[int]], Any], shape: Sequence[int], order: Sequence[int]) -> Any:
    if not order:
        return draw(shape)
    drawn = draw([shape[axis] for axis in order])
    return drawn.permute(sorted(range(len(order)), key=order.__getitem__))
