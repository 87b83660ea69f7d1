"""Random GE operators. All draw from torch's generator what ATen would draw at the same place: seeds and offsets that
come in are not looked at."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.dtypes import dtype_of_number
from msdump.frontends.torchair.ge.registry import kernel


@kernel("StatelessRandomUniformV2", host=("shape",))
def uniform(shape: list[int], key: Any, counter: Any, alg: Any, *, dtype: int, device: str = "cpu") -> Any:
    """[0, 1)"""
    return torch.rand(shape, dtype=dtype_of_number(dtype), device=device)


@kernel("StatelessRandomNormalV2", host=("shape",))
def normal(shape: list[int], key: Any, counter: Any, alg: Any, *, dtype: int, device: str = "cpu") -> Any:
    return torch.randn(shape, dtype=dtype_of_number(dtype), device=device)


@kernel("StatelessRandomUniformIntV2", host=("shape", "minval", "maxval"))
def uniform_int(
    shape: list[int], key: Any, counter: Any, alg: Any, minval: int, maxval: int, *, dtype: int, device: str = "cpu"
) -> Any:
    """[minval, maxval)"""
    return torch.randint(minval, maxval, shape, dtype=dtype_of_number(dtype), device=device)


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
def dropout_mask(shape: list[int], prob: float, seed: Any, seed1: Any, offset: Any, *, device: str = "cpu") -> Any:
    """prob   with which an element is kept"""
    return torch.empty(shape, dtype=torch.bool, device=device).bernoulli_(prob)


@kernel("DropOutDoMask", numbers=("keep_prob",))
def dropout(x: Any, mask: Any, keep_prob: float) -> Any:
    return x.mul(mask).mul_(1.0 / keep_prob if keep_prob else 0.0)
