"""More names of functions, as MindSpore's own code spells them, and what runs while a graph is traced."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from msdump.mindspore.common.dtype import Type
from msdump.mindspore.common.dtype import float32 as _float32
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops import arithmetic, array, elementary, reductions
from msdump.mindspore.ops.creation import slice as _slice
from msdump.mindspore.ops.primitive import Primitive, operator_class

# -- tensors -----------------------------------------------------------------------------------------------------------

hyper_add = arithmetic.add
tensor_sub, tensor_mul, tensor_div = arithmetic.sub, arithmetic.mul, arithmetic.div
tensor_pow = pows = arithmetic.pow
tensor_mod = floormod = arithmetic.floor_mod
tensor_floordiv = floordiv = arithmetic.floor_div
tensor_exp, tensor_expm1 = arithmetic.exp, elementary.expm1
tensor_lt, tensor_le = arithmetic.less, arithmetic.less_equal
tensor_gt, tensor_ge = arithmetic.greater, arithmetic.greater_equal
tensor_slice = _slice
shape_, reshape_ = array.shape, array.reshape


def _reduction(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    def reduced(x: Tensor, axis: Any = ()) -> Tensor:
        return function(x, None if axis == () else axis)

    reduced.__doc__ = f"The {name} over axes, of all elements without axes."
    return reduced


reduce_sum, reduce_mean = _reduction(reductions.sum, "sum"), _reduction(reductions.mean, "mean")
reduce_max, reduce_min = _reduction(reductions.amax, "maximum"), _reduction(reductions.amin, "minimum")


def dtype(x: Tensor) -> Type:
    """The dtype of a tensor."""
    return x.dtype


# -- numbers and tuples ------------------------------------------------------------------------------------------------


def make_range(*bounds: int) -> tuple[int, ...]:
    """Numbers of a range as a tuple."""
    return tuple(range(*bounds))


@operator_class("ScalarToTensor")
def scalar_to_tensor(input_x: Any, dtype: Type = _float32) -> Tensor:
    """A number as a tensor."""
    return array.full((), input_x, dtype=dtype)


@operator_class("ScalarToArray")
def scalar_to_array(input_x: Any) -> Tensor:
    """A number as a tensor."""
    return Tensor(input_x)


@operator_class("TupleToArray")
def tuple_to_array(input_x: Any) -> Tensor:
    """A tuple of numbers as a tensor; whole numbers are int32."""
    is_whole = all(isinstance(each, int) for each in input_x)
    return Tensor(np.array(input_x, np.int32 if is_whole else np.float32))


@operator_class("Partial")
def partial(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """A function whose first arguments are given."""
    return functools.partial(func, *args, **kwargs)


@operator_class("ScalarCast")
def scalar_cast(input_x: Any, input_y: Type) -> Any:
    """A number as one of a dtype."""
    return Tensor(np.asarray(input_x)).astype(input_y).item()


def constexpr(fn: Callable[..., Any] | None = None, get_instance: bool = True, name: str | None = None,
              reuse_result: bool = True, check: bool = True) -> Any:  # fmt: skip
    """A function that runs while the graph is traced, on values that are known then. With `get_instance` False: a class
    whose objects are such functions."""

    def declare(function: Callable[..., Any]) -> Any:
        class CompileTime(Primitive):
            def __init__(self) -> None:
                super().__init__(name or function.__name__)

            def compute(self, *args: Any, **kwargs: Any) -> Any:
                return function(*args, **kwargs)

        CompileTime.__doc__ = function.__doc__
        return CompileTime() if get_instance else CompileTime

    return declare if fn is None else declare(fn)


_NAMES = """
    floordiv floormod hyper_add pows reduce_max reduce_mean reduce_min reduce_sum reshape_ shape_ tensor_div tensor_exp
    tensor_expm1 tensor_floordiv tensor_ge tensor_gt tensor_le tensor_lt tensor_mod tensor_mul tensor_pow tensor_slice
    tensor_sub
"""

publish(__name__, *_NAMES.split())
