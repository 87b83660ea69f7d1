"""Random numbers. Seed and offset are constants here: the stream is that of torch's generator, in the order of ATen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from msdump.frontends.torchair.ge import placement
from msdump.frontends.torchair.ge.builder import Builder
from msdump.frontends.torchair.ge.dtypes import ge_number
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.registry import converter

# Philox, the only algorithm that an NPU has.
ALGORITHM = 1


@converter("aten.rand.default")
def rand(ge: Builder, size: Sequence[Any], **_: Any) -> GeTensor:
    return _stateless(ge, "StatelessRandomUniformV2", ge.sizes(size))


@converter("aten.randn.default")
def randn(ge: Builder, size: Sequence[Any], **_: Any) -> GeTensor:
    return _stateless(ge, "StatelessRandomNormalV2", ge.sizes(size))


@converter("aten.rand_like.default")
def rand_like(ge: Builder, x: GeTensor, **_: Any) -> GeTensor:
    return _stateless(ge, "StatelessRandomUniformV2", ge.op("Shape", {"x": x}))


@converter("aten.randn_like.default")
def randn_like(ge: Builder, x: GeTensor, **_: Any) -> GeTensor:
    return _stateless(ge, "StatelessRandomNormalV2", ge.op("Shape", {"x": x}))


@converter("aten.randint.default")
def randint(ge: Builder, high: Any, size: Sequence[Any], **_: Any) -> GeTensor:
    return _stateless_int(ge, ge.sizes(size), 0, high)


@converter("aten.randint.low")
def randint_low(ge: Builder, low: Any, high: Any, size: Sequence[Any], **_: Any) -> GeTensor:
    return _stateless_int(ge, ge.sizes(size), low, high)


@converter("aten.randint_like.default")
def randint_like(ge: Builder, x: GeTensor, high: Any, **_: Any) -> GeTensor:
    return _stateless_int(ge, ge.op("Shape", {"x": x}), 0, high)


@converter("aten.randint_like.low_dtype")
def randint_like_low(ge: Builder, x: GeTensor, low: Any, high: Any, **_: Any) -> GeTensor:
    return _stateless_int(ge, ge.op("Shape", {"x": x}), low, high)


@converter("aten.randperm.default")
def randperm(ge: Builder, n: Any, **_: Any) -> GeTensor:
    attrs = {"dtype": ge_number(ge.result.dtype), "layout": 0}
    return ge.op("StatelessRandperm", {"n": n, "seed": 0, "offset": 0}, attrs, hints=_on(ge))


@converter("aten.uniform.default")
def uniform(ge: Builder, x: GeTensor, low: float = 0.0, high: float = 1.0, generator: Any = None) -> GeTensor:
    return _filled(ge, "Uniform", x, {"from": low, "to": high})


@converter("aten.normal_functional.default")
def normal(ge: Builder, x: GeTensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> GeTensor:
    return _filled(ge, "Normal", x, {"mean": mean, "std": std})


@converter("aten.exponential.default")
def exponential(ge: Builder, x: GeTensor, lambd: float = 1.0, generator: Any = None) -> GeTensor:
    return _filled(ge, "Exponential", x, {"lambda": lambd})


@converter("aten.bernoulli.p")
def bernoulli_p(ge: Builder, x: GeTensor, p: float = 0.5, generator: Any = None) -> GeTensor:
    return _bernoulli(ge, ge.op("Shape", {"x": x}), p)


@converter("aten.bernoulli.default")
def bernoulli(ge: Builder, x: GeTensor, generator: Any = None) -> GeTensor:
    """x   the probability of each element"""
    return _bernoulli(ge, ge.op("Shape", {"x": x}), x)


@converter("aten.multinomial.default")
def multinomial(
    ge: Builder, x: GeTensor, num_samples: int, replacement: bool = False, generator: Any = None
) -> GeTensor:
    attrs = {"num_samples": num_samples, "replacement": replacement}
    return ge.op("MultinomialWithReplacement", {"x": x, "seed": 0, "offset": 0}, attrs)


@converter("aten.native_dropout.default")
def native_dropout(ge: Builder, x: GeTensor, p: float, train: bool | None) -> tuple[GeTensor, GeTensor]:
    """The mask is a BOOL per element, not a bit of a UINT8, so that it is what the FX graph calls the mask."""
    shape = ge.op("Shape", {"x": x})
    if train is False:
        ones = ge.op("Fill", {"dims": shape, "value": ge.const(True)}, hints=_on(ge))
        return ge.op("Identity", {"x": x}), ones
    inputs = {"shape": shape, "prob": 1.0 - p, "seed": 0, "seed1": 0, "offset": _offset(ge)}
    mask = ge.op("StatelessDropOutGenMask", inputs, hints=_drawn_on(ge))
    return ge.op("DropOutDoMask", {"x": x, "mask": mask, "keep_prob": 1.0 - p}), mask


@converter("aten.native_dropout_backward.default")
def native_dropout_backward(ge: Builder, grad: GeTensor, mask: GeTensor, scale: float) -> GeTensor:
    dtype = ge.result.dtype
    kept = ge.op("Mul", {"x1": grad, "x2": ge.cast(mask, dtype)})
    return ge.op("Mul", {"x1": kept, "x2": ge.number(scale, dtype)})


def _stateless(ge: Builder, op_type: str, shape: GeTensor) -> GeTensor:
    inputs = {"shape": shape, "key": [0], "counter": _offset(ge), "alg": ALGORITHM}
    return ge.op(op_type, inputs, {"dtype": ge_number(ge.result.dtype)}, hints=_drawn_on(ge))


def _stateless_int(ge: Builder, shape: GeTensor, low: Any, high: Any) -> GeTensor:
    inputs = {"shape": shape, "key": [0], "counter": _offset(ge), "alg": ALGORITHM, "minval": low, "maxval": high}
    return ge.op("StatelessRandomUniformIntV2", inputs, {"dtype": ge_number(ge.result.dtype)}, hints=_drawn_on(ge))


def _filled(ge: Builder, op_type: str, x: GeTensor, attrs: dict[str, Any]) -> GeTensor:
    return ge.op(f"Stateless{op_type}", {"x": x, "seed": 0, "offset": 0}, attrs)


def _bernoulli(ge: Builder, shape: GeTensor, prob: Any) -> GeTensor:
    inputs = {"shape": shape, "prob": prob, "seed": 0, "offset": _offset(ge)}
    return ge.op("StatelessBernoulliV2", inputs, {"dtype": ge_number(ge.result.dtype)}, hints=_on(ge))


def _offset(ge: Builder) -> GeTensor:
    """Two words: how far the stream has gone is known to torch's generator alone."""
    words = {"x0": ge.const([0], torch.int64), "x1": ge.const([0], torch.int64), "concat_dim": 0}
    return ge.op("ConcatV2", words, {"N": 2})


def _on(ge: Builder) -> dict[str, Any]:
    result = ge.result[0] if isinstance(ge.result, tuple | list) else ge.result
    return placement.hints(None, result.device)


def _drawn_on(ge: Builder) -> dict[str, Any]:
    """Device, and the order of memory where that is not the axes' own: like a transposed tensor."""
    result = ge.result[0] if isinstance(ge.result, tuple | list) else ge.result
    return _on(ge) | ({} if result.is_contiguous() else {"order": list(result.dim_order())})
