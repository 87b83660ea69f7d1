"""Sequences and constants, what a tensor is, and numbers that name places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.mindspore.common.dtype import Type
from msdump.mindspore.common.dtype import float32 as _float32
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call
from msdump.mindspore.names import publish
from msdump.mindspore.ops.arithmetic import addn, div, maximum, mul, sqrt, square
from msdump.mindspore.ops.arrangement import expand
from msdump.mindspore.ops.array import full
from msdump.mindspore.ops.declaration import FLOAT, operator, plain
from msdump.mindspore.ops.primitive import def_class, functional_classes, operator_class
from msdump.mindspore.ops.reductions import sum as _sum
from msdump.tensors import dtypes

# -- sequences and constants -------------------------------------------------------------------------------------------


@operator("LinSpace", init="", operands=FLOAT)
def _linspace(torch: Any, start: Tensor, stop: Tensor, num: int) -> Any:
    """`num` numbers at equal distances, both ends among them, along a new last axis."""
    steps = torch.arange(num, dtype=start.dtype, device=getattr(start, "device"))  # noqa: B009
    width = torch.divide(torch.subtract(stop, start), max(num - 1, 1))
    return torch.add(torch.unsqueeze(start, -1), torch.multiply(torch.unsqueeze(width, -1), steps))


def linspace(start: Any, end: Any, steps: Any) -> Any:
    """`steps` numbers at equal distances, both ends among them; float32 for numbers."""
    ends = [each if isinstance(each, Tensor) else Tensor(np.float32(each)) for each in (start, end)]
    return _linspace(*ends, plain(steps, "steps"))


@operator("LogSpace", init="steps base dtype", has_gradient=False)
def _logspace(torch: Any, start: Tensor, end: Tensor, steps: int = 10, base: int = 10, dtype: Type = _float32) -> Any:
    """Powers of `base` whose exponents are at equal distances."""
    places = torch.arange(steps, dtype=torch.float64, device=getattr(start, "device"))  # noqa: B009
    first, last = start.double(), end.double()  # type: ignore[attr-defined]
    width = torch.divide(torch.subtract(last, first), max(steps - 1, 1))
    return torch.pow(float(base), torch.add(first, torch.multiply(width, places))).to(dtype)


def logspace(start: Any, end: Any, steps: int, base: int = 10, *, dtype: Type = _float32) -> Any:
    """Powers of `base` whose exponents are at equal distances."""
    ends = [each if isinstance(each, Tensor) else Tensor(np.float32(each)) for each in (start, end)]
    return _logspace(*ends, steps, base, dtype)


def _range(start: Any, end: Any, step: Any) -> Tensor:
    numbers = [plain(each, "range") for each in (start, end, step)]
    given = [each.array.dtype for each in (start, end, step) if isinstance(each, Tensor)]
    kind = given[0] if given else np.int64 if all(isinstance(each, int) for each in numbers) else np.float32
    return Tensor.of_array(np.arange(*numbers).astype(kind))


def range(start: Any, end: Any, step: Any = 1) -> Tensor:
    """Numbers from start up to end, which is not among them, `step` apart."""
    return _range(start, end, step)


def_class(
    "Range", "Numbers from start up to end, which is not among them.", lambda self, *ends: _range(*ends), maxlen=1000000
)
tensor_range = functional_classes["Range"]()


def full_like(input: Tensor, fill_value: Any, *, dtype: Type | None = None) -> Tensor:
    """One value in the shape of a tensor."""
    return full(input.shape, plain(fill_value, "fill_value"), dtype=dtype or input.dtype)


@operator_class("Fills")
def fills(x: Tensor, value: Any) -> Tensor:
    """One value in the shape and dtype of a tensor."""
    return full_like(x, value)


@operator_class("FillV2")
def _fill_v2(shape: Any, value: Tensor) -> Tensor:
    return full(plain(shape, "shape"), value)


# -- the same under another name ---------------------------------------------------------------------------------------


@operator("Identity")
def identity(torch: Any, x: Tensor) -> Any:
    """The same values."""
    return torch.clone(x)


@operator("IdentityN")
def _identity_n(torch: Any, x: Sequence[Tensor]) -> tuple[Any, ...]:
    """The same values of several tensors."""
    return tuple(torch.clone(each) for each in x)


def deepcopy(input_x: Tensor) -> Any:
    """The same values in memory of their own."""
    return identity(input_x)


def positive(input: Tensor) -> Tensor:
    """The input itself.   Raises: TypeError for bools."""
    if input.type_.dtype == "bool":
        raise TypeError("For positive, the type of tensor can not be bool.")
    return input


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.size


def is_tensor(obj: Any) -> bool:
    """Whether something is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is one of floats."""
    return dtypes.dtype(input.type_.dtype).kind == dtypes.FLOAT


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is one of complex numbers."""
    return dtypes.dtype(input.type_.dtype).kind == dtypes.COMPLEX


@operator_class("TensorShape")
def dyn_shape(input_x: Tensor) -> Tensor:
    """The shape as a tensor of int64."""
    return Tensor.of_array(np.array(input_x.shape, np.int64))


def slice(input_x: Tensor, begin: Any, size: Any) -> Tensor:
    """A box of a tensor; a size of -1 goes to the end."""
    first, sizes = plain(begin, "begin"), plain(size, "size")
    ends = [input_x.shape[axis] - first[axis] if each == -1 else each for axis, each in enumerate(sizes)]
    return call("Slice", input_x, begin=first, size=tuple(ends))


@operator_class("Expand")
def _expand(x: Tensor, shape: Any) -> Tensor:
    return expand(x, shape)


@operator_class("AccumulateNV2")
def accumulate_n(x: Sequence[Tensor]) -> Tensor:
    """The sum of tensors of one shape."""
    return addn(x)


# -- places ------------------------------------------------------------------------------------------------------------


@operator("UnravelIndex")
def _unravel_index(torch: Any, indices: Tensor, dims: Tensor) -> Any:
    """Coordinates, one row per axis, of places in a flattened tensor with the sizes `dims`."""
    if indices.ndim > 1 or dims.ndim != 1:
        raise ValueError(
            f"expected one index or a row of them and a row of dims, got {indices.ndim} and {dims.ndim} axes."
        )
    sizes = torch.flip(torch.cumprod(torch.flip(dims, (0,)), 0), (0,))
    if indices.device.type != "meta":  # type: ignore[attr-defined]
        count = int(torch.prod(dims))
        if bool(((indices < 0) | (indices >= count)).any()):
            raise ValueError(f"expected places in the tensor, 0 to {count - 1}, got one outside of it.")
    strides = torch.cat([sizes[1:], torch.ones_like(sizes[:1])])
    places = torch.remainder(torch.floor_divide(torch.reshape(indices, (1, -1)), strides[:, None]), dims[:, None])
    return torch.reshape(places, (dims.shape[0], *indices.shape)).to(dims.dtype)


@operator_class("InvertPermutation")
def _invert_permutation(input_x: Any) -> Any:
    """Where each number from 0 on stands: a tuple of a tuple."""
    if not isinstance(input_x, tuple | list):
        raise TypeError(f"For 'InvertPermutation', expected a tuple of int, got {type(input_x).__name__}.")
    return tuple(int(place) for place in np.argsort(plain(input_x, "input_x")))


def clip_by_global_norm(x: Any, clip_norm: float = 1.0, use_norm: Any = None) -> Any:
    """Tensors scaled down so that the root of the sum of all their squares is at most clip_norm."""
    if use_norm is not None:
        raise ValueError("For 'clip_by_global_norm', the argument 'use_norm' must be None.")
    if isinstance(x, Tensor):
        return clip_by_global_norm([x], clip_norm)[0]
    squares = [_sum(square(each)) for each in x]
    length = sqrt(addn(squares))
    scale = maximum(length, float(clip_norm))
    return type(x)(div(mul(each, float(clip_norm)), scale) for each in x)


publish(__name__, "tensor_range")
