"""More names of functions, as MindSpore's own code spells them: `tensor_add`, `scalar_add`, `tuple_len`, and what runs
while a graph is traced."""

from __future__ import annotations

import functools
import math
import operator as python
from collections.abc import Callable
from typing import Any

import numpy as np

from msdump.mindspore.common.dtype import DType as _DType
from msdump.mindspore.common.dtype import Type, dtype_name
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


# -- Python's numbers, texts and sequences -----------------------------------------------------------------------------


def _of_number(function: Callable[[Any], Any]) -> Callable[..., Any]:
    def of_number(x: Any) -> Any:
        return function(x)

    of_number.__doc__ = function.__doc__
    return of_number


def _of_numbers(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def of_numbers(x: Any, y: Any) -> Any:
        return function(x, y)

    of_numbers.__doc__ = function.__doc__
    return of_numbers


scalar_add, scalar_sub, scalar_mul = _of_numbers(python.add), _of_numbers(python.sub), _of_numbers(python.mul)
scalar_div, scalar_floordiv = _of_numbers(python.truediv), _of_numbers(python.floordiv)
scalar_mod, scalar_pow = _of_numbers(python.mod), _of_numbers(python.pow)
scalar_eq, scalar_ne = _of_numbers(python.eq), _of_numbers(python.ne)
scalar_lt, scalar_le = _of_numbers(python.lt), _of_numbers(python.le)
scalar_gt, scalar_ge = _of_numbers(python.gt), _of_numbers(python.ge)
scalar_uadd, scalar_usub = _of_number(python.pos), _of_number(python.neg)
scalar_log = _of_number(math.log)
bool_not, bool_eq = python.not_, python.eq
string_eq, string_concat = python.eq, python.add
is_, is_not = python.is_, python.is_not
tuple_len = list_len = len
tuple_equal = list_equal = python.eq
tuple_getitem = list_getitem = dict_getitem = python.getitem


def bool_and(x: Any, y: Any) -> Any:
    """x and y."""
    return x and y


def bool_or(x: Any, y: Any) -> Any:
    """x or y."""
    return x or y


def in_dict(x: Any, y: Any) -> bool:
    """Whether a key is in a dict."""
    return x in y


def not_in_dict(x: Any, y: Any) -> bool:
    """Whether a key is not in a dict."""
    return x not in y


def make_tuple(*items: Any) -> tuple[Any, ...]:
    """The arguments as a tuple."""
    return items


def make_list(*items: Any) -> list[Any]:
    """The arguments as a list."""
    return list(items)


def make_dict(keys: Any, values: Any) -> dict[Any, Any]:
    """A dict of keys and values."""
    return dict(zip(keys, values, strict=True))


def make_range(*bounds: int) -> tuple[int, ...]:
    """Numbers of a range as a tuple."""
    return tuple(range(*bounds))


make_slice = slice


def tuple_reversed(x: Any) -> Any:
    """A tuple from its end."""
    return tuple(reversed(x))


def _replaced(data: Any, place: Any, value: Any) -> Any:
    items = dict(data) if isinstance(data, dict) else list(data)
    items[place] = value
    return tuple(items) if isinstance(data, tuple) else items


def tuple_setitem(data: Any, number: int, value: Any) -> Any:
    """A copy of a tuple with another item."""
    return _replaced(data, number, value)


def list_setitem(data: Any, number: int, value: Any) -> Any:
    """A copy of a list with another item."""
    return _replaced(data, number, value)


def dict_setitem(data: Any, key: Any, value: Any) -> Any:
    """A copy of a dict with another item."""
    return _replaced(data, key, value)


@operator_class("ScalarToTensor")
def scalar_to_tensor(input_x: Any, dtype: Type = _float32) -> Tensor:
    """A number as a tensor."""
    return array.full((), input_x, dtype=dtype)


@operator_class("ScalarToArray")
def scalar_to_array(input_x: Any) -> Tensor:
    """A number as a tensor."""
    return Tensor(input_x)


@operator_class("ScalarCast")
def scalar_cast(input_x: Any, input_y: Type) -> Any:
    """A number as one of a dtype."""
    return Tensor(np.asarray(input_x)).astype(input_y).item() if dtype_name(input_y) else input_x


@operator_class("TupleToArray")
def tuple_to_array(input_x: Any) -> Tensor:
    """A tuple of numbers as a tensor; whole numbers are int32."""
    is_whole = all(isinstance(each, int) for each in input_x)
    return Tensor(np.array(input_x, np.int32 if is_whole else np.float32))


def array_to_scalar(x: Tensor) -> Any:
    """The only element of a tensor as a number."""
    return x.item()


@operator_class("Partial")
def partial(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """A function whose first arguments are given."""
    return functools.partial(func, *args, **kwargs)


def shape_mul(input_data: tuple[int, ...]) -> int:
    """How many elements a shape has."""
    return math.prod(input_data)


def typeof(x: Any) -> Any:
    """The dtype of a tensor, the type of anything else."""
    return x.dtype if isinstance(x, Tensor) else type(x)


def hastype(x: Any, t: Any) -> bool:
    """Whether a value is of a type, a tensor of a dtype."""
    return bool(x.dtype == t) if isinstance(x, Tensor) and isinstance(t, _DType) else isinstance(x, t)


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
    bool_eq bool_not dict_getitem floordiv floormod hyper_add is_ is_not list_equal list_getitem list_len make_slice
    pows reduce_max reduce_mean reduce_min reduce_sum reshape_ scalar_add scalar_div scalar_eq scalar_floordiv scalar_ge
    scalar_gt scalar_le scalar_log scalar_lt scalar_mod scalar_mul scalar_ne scalar_pow scalar_sub scalar_uadd
    scalar_usub shape_ string_concat string_eq tensor_div tensor_exp tensor_expm1 tensor_floordiv tensor_ge
    tensor_gt tensor_le tensor_lt tensor_mod tensor_mul tensor_pow tensor_slice tensor_sub tuple_equal tuple_getitem
    tuple_len
"""

publish(__name__, *_NAMES.split())
