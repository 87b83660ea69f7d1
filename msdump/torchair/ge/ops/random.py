"""Random numbers. All kernels draw from torch's generator what ATen would draw at the same place, in ATen's order.

Seed and offset are constants here; the kernels do not read them.
order   axes from the outermost in memory to the innermost, if that is not the order of the axes: torch draws in it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from msdump.torchair.ge.builder import Builder, Feed, dtype_of_number, ge_number, placement_hints
from msdump.torchair.ge.graph import GeTensor, Size
from msdump.torchair.ge.registry import converter, kernel

# Philox, the only algorithm that an NPU has.
ALGORITHM = 1


def _of_float_distribution(name: str, op_type: str, draw: Callable[..., torch.Tensor]) -> None:
    """`rand` is in [0, 1), `randn` normal."""

    @converter(f"aten.{name}.default")
    def of_shape(ge: Builder, size: Sequence[Size], **_: object) -> GeTensor:
        return _stateless(ge, op_type, ge.sizes(size))

    @converter(f"aten.{name}_like.default")
    def like(ge: Builder, x: GeTensor, **_: object) -> GeTensor:
        return _stateless(ge, op_type, ge.op("Shape", {"x": x}))

    @kernel(op_type, host=("shape",))
    def compute(
        shape: list[int], key: object, counter: object, alg: object, *, dtype: int, device: str = "cpu",
        order: Sequence[int] = (),
    ) -> torch.Tensor:  # fmt: skip
        return _drawn(lambda sizes: draw(sizes, dtype=dtype_of_number(dtype), device=device), shape, order)


_of_float_distribution("rand", "StatelessRandomUniformV2", torch.rand)
_of_float_distribution("randn", "StatelessRandomNormalV2", torch.randn)


def _drawn(draw: Callable[[Sequence[int]], torch.Tensor], shape: Sequence[int], order: Sequence[int]) -> torch.Tensor:
    if not order:
        return draw(shape)
    drawn = draw([shape[axis] for axis in order])
    return drawn.permute(sorted(range(len(order)), key=order.__getitem__))


@converter("aten.randint.default")
def randint(ge: Builder, high: Size, size: Sequence[Size], **_: object) -> GeTensor:
    return _stateless_int(ge, ge.sizes(size), 0, high)


@converter("aten.randint.low")
def randint_low(ge: Builder, low: Size, high: Size, size: Sequence[Size], **_: object) -> GeTensor:
    return _stateless_int(ge, ge.sizes(size), low, high)


@converter("aten.randint_like.default")
def randint_like(ge: Builder, x: GeTensor, high: Size, **_: object) -> GeTensor:
    return _stateless_int(ge, ge.op("Shape", {"x": x}), 0, high)


@converter("aten.randint_like.low_dtype")
def randint_like_low(ge: Builder, x: GeTensor, low: Size, high: Size, **_: object) -> GeTensor:
    return _stateless_int(ge, ge.op("Shape", {"x": x}), low, high)


@converter("aten.randperm.default")
def randperm(ge: Builder, n: Size, **_: object) -> GeTensor:
    attrs = {"dtype": ge_number(ge.result.dtype), "layout": 0}
    return ge.op("StatelessRandperm", {"n": n, "seed": 0, "offset": 0}, attrs, hints=_on(ge))


@kernel("StatelessRandperm", host=("n",))
def randperm_kernel(
    n: int, seed: object, offset: object, *, dtype: int, layout: int, device: str = "cpu"
) -> torch.Tensor:
    return torch.randperm(n, dtype=dtype_of_number(dtype), device=device)


@converter("aten.uniform.default")
def uniform(ge: Builder, x: GeTensor, low: float = 0.0, high: float = 1.0, generator: object = None) -> GeTensor:
    return _filled(ge, "Uniform", x, {"from": low, "to": high})


@converter("aten.normal_functional.default")
def normal(ge: Builder, x: GeTensor, mean: float = 0.0, std: float = 1.0, generator: object = None) -> GeTensor:
    return _filled(ge, "Normal", x, {"mean": mean, "std": std})


@converter("aten.exponential.default")
def exponential(ge: Builder, x: GeTensor, lambd: float = 1.0, generator: object = None) -> GeTensor:
    return _filled(ge, "Exponential", x, {"lambda": lambd})


@converter("aten.bernoulli.p")
def bernoulli_p(ge: Builder, x: GeTensor, p: float = 0.5, generator: object = None) -> GeTensor:
    return _bernoulli(ge, ge.op("Shape", {"x": x}), p)


@converter("aten.bernoulli.default")
def bernoulli(ge: Builder, x: GeTensor, generator: object = None) -> GeTensor:
    """x   the probability of each element"""
    return _bernoulli(ge, ge.op("Shape", {"x": x}), x)


@converter("aten.multinomial.default")
def multinomial(
    ge: Builder, x: GeTensor, num_samples: int, replacement: bool = False, generator: object = None
) -> GeTensor:
    attrs = {"num_samples": num_samples, "replacement": replacement}
    return ge.op("MultinomialWithReplacement", {"x": x, "seed": 0, "offset": 0}, attrs)


@kernel("MultinomialWithReplacement")
def multinomial_kernel(
    x: torch.Tensor, seed: object, offset: object, *, num_samples: int, replacement: bool
) -> torch.Tensor:
    return torch.multinomial(x, num_samples, replacement)


@converter("aten.native_dropout.default")
def native_dropout(ge: Builder, x: GeTensor, p: float, train: bool | None) -> tuple[GeTensor, GeTensor]:
    """The mask is a BOOL per element, not a bit of a UINT8, so that it is what the FX graph calls the mask."""
    shape = ge.op("Shape", {"x": x})
    if train is False:
        ones = ge.op("Fill", {"dims": shape, "value": ge.const(True)}, hints=_on(ge))
        return ge.op("Identity", {"x": x}), ones
    inputs: dict[str, Feed] = {"shape": shape, "prob": 1.0 - p, "seed": 0, "seed1": 0, "offset": _offset(ge)}
    mask = ge.op("StatelessDropOutGenMask", inputs, hints=_drawn_on(ge))
    return ge.op("DropOutDoMask", {"x": x, "mask": mask, "keep_prob": 1.0 - p}), mask


@kernel("StatelessDropOutGenMask", host=("shape",), numbers=("prob",))
def dropout_mask_kernel(
    shape: list[int],
    prob: float,
    seed: object,
    seed1: object,
    offset: object,
    *,
    device: str = "cpu",
    order: Sequence[int] = (),
) -> torch.Tensor:
    """prob   with which an element is kept"""
    return _drawn(lambda sizes: torch.empty(sizes, dtype=torch.bool, device=device).bernoulli_(prob), shape, order)


@kernel("DropOutDoMask", numbers=("keep_prob",))
def dropout_kernel(x: torch.Tensor, mask: torch.Tensor, keep_prob: float) -> torch.Tensor:
    return x.mul(mask).mul_(1.0 / keep_prob if keep_prob else 0.0)


@converter("aten.native_dropout_backward.default")
def native_dropout_backward(ge: Builder, grad: GeTensor, mask: GeTensor, scale: float) -> GeTensor:
    dtype = ge.result.dtype
    masked = ge.op("Mul", {"x1": grad, "x2": ge.cast(mask, dtype)})
    return ge.op("Mul", {"x1": masked, "x2": ge.number(scale, dtype)})


def _stateless(ge: Builder, op_type: str, shape: GeTensor) -> GeTensor:
    inputs: dict[str, Feed] = {"shape": shape, "key": [0], "counter": _offset(ge), "alg": ALGORITHM}
    return ge.op(op_type, inputs, {"dtype": ge_number(ge.result.dtype)}, hints=_drawn_on(ge))


def _stateless_int(ge: Builder, shape: GeTensor, low: Size, high: Size) -> GeTensor:
    inputs: dict[str, Feed] = {
        "shape": shape,
        "key": [0],
        "counter": _offset(ge),
        "alg": ALGORITHM,
        "minval": low,
        "maxval": high,
    }
    return ge.op("StatelessRandomUniformIntV2", inputs, {"dtype": ge_number(ge.result.dtype)}, hints=_drawn_on(ge))


@kernel("StatelessRandomUniformIntV2", host=("shape", "minval", "maxval"))
def uniform_int_kernel(
    shape: list[int],
    key: object,
    counter: object,
    alg: object,
    minval: int,
    maxval: int,
    *,
    dtype: int,
    device: str = "cpu",
    order: Sequence[int] = (),
) -> torch.Tensor:
    """[minval, maxval)"""
    return _drawn(
        lambda sizes: torch.randint(minval, maxval, sizes, dtype=dtype_of_number(dtype), device=device), shape, order
    )


def _filled(ge: Builder, op_type: str, x: GeTensor, attrs: Mapping[str, float]) -> GeTensor:
    return ge.op(f"Stateless{op_type}", {"x": x, "seed": 0, "offset": 0}, attrs)


def _bernoulli(ge: Builder, shape: GeTensor, prob: GeTensor | float) -> GeTensor:
    inputs = {"shape": shape, "prob": prob, "seed": 0, "offset": _offset(ge)}
    return ge.op("StatelessBernoulliV2", inputs, {"dtype": ge_number(ge.result.dtype)}, hints=_on(ge))


@kernel("StatelessBernoulliV2", host=("shape",), numbers=("prob",))
def bernoulli_kernel(
    shape: list[int], prob: torch.Tensor | float, seed: object, offset: object, *, dtype: int, device: str = "cpu"
) -> torch.Tensor:
    """prob   a number, or a tensor of that shape"""
    if isinstance(prob, torch.Tensor):
        return torch.bernoulli(prob)
    return torch.bernoulli(torch.empty(shape, dtype=dtype_of_number(dtype), device=device), prob)


def _offset(ge: Builder) -> GeTensor:
    """Two words: the position in the stream is known only to torch's generator."""
    words: dict[str, Feed] = {"x0": ge.const([0], torch.int64), "x1": ge.const([0], torch.int64), "concat_dim": 0}
    return ge.op("ConcatV2", words, {"N": 2})


def _on(ge: Builder) -> dict[str, str]:
    result = ge.result[0] if isinstance(ge.result, tuple | list) else ge.result
    return placement_hints(None, result.device)


def _drawn_on(ge: Builder) -> dict[str, str | list[int]]:
    """Device, and the order of memory where that is not the axes' own: like a transposed tensor."""
    result = ge.result[0] if isinstance(ge.result, tuple | list) else ge.result
    return _on(ge) | ({} if result.is_contiguous() else {"order": list(result.dim_order())})


@kernel("StatelessUniform")
def fill_uniform_kernel(x: torch.Tensor, seed: object, offset: object, **bounds: float) -> Any:
    """bounds   `from` and `to`"""
    return torch.ops.aten.uniform.default(x, bounds["from"], bounds["to"])


@kernel("StatelessNormal")
def fill_normal_kernel(x: torch.Tensor, seed: object, offset: object, *, mean: float, std: float) -> Any:
    return torch.ops.aten.normal_functional.default(x, mean, std)


@kernel("StatelessExponential")
def fill_exponential_kernel(x: torch.Tensor, seed: object, offset: object, **rate: float) -> Any:
    """rate   `lambda`"""
    return torch.ops.aten.exponential.default(x, rate["lambda"])
