"""Names for what Python does with numbers, texts, tuples, lists and dictionaries while a graph is traced."""

from __future__ import annotations

import math
import operator as _operator
from collections.abc import Callable
from typing import Any

import numpy as np

from msdump.frontends.mindspore.common.dtype import DType as _DType
from msdump.frontends.mindspore.common.dtype import dtype_name
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.names import publish
from msdump.frontends.mindspore.ops import arithmetic as _arithmetic
from msdump.frontends.mindspore.ops.array import reshape
from msdump.frontends.mindspore.ops.primitive import Primitive, functional_classes


def _plain(name: str, function: Callable[..., Any], doc: str) -> Callable[..., Any]:
    def value(*args: Any) -> Any:
        return function(*args)

    value.__name__ = value.__qualname__ = name
    value.__doc__ = doc
    return value


_SCALARS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**", "eq": "==", "ne": "!=",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
_FUNCTIONS = {"div": "truediv"}
globals().update(
    {
        f"scalar_{name}": _plain(
            f"scalar_{name}", getattr(_operator, _FUNCTIONS.get(name, name)), f"x {sign} y of two numbers."
        )
        for name, sign in _SCALARS.items()
    }
)
scalar_uadd = _plain("scalar_uadd", _operator.pos, "+x of a number.")
scalar_usub = _plain("scalar_usub", _operator.neg, "-x of a number.")
scalar_log = _plain("scalar_log", math.log, "Natural logarithm of a number.")
bool_not = _plain("bool_not", _operator.not_, "not x.")
bool_and = _plain("bool_and", lambda x, y: x and y, "x and y.")
bool_or = _plain("bool_or", lambda x, y: x or y, "x or y.")
bool_eq = _plain("bool_eq", _operator.eq, "Whether two truth values are equal.")
string_eq = _plain("string_eq", _operator.eq, "Whether two texts are equal.")
string_concat = _plain("string_concat", _operator.add, "Two texts one after the other.")
is_ = _plain("is_", _operator.is_, "x is y.")
is_not = _plain("is_not", _operator.is_not, "x is not y.")
in_dict = _plain("in_dict", lambda x, y: x in y, "Whether a dictionary has a key.")
not_in_dict = _plain("not_in_dict", lambda x, y: x not in y, "Whether a dictionary lacks a key.")
tuple_getitem = _plain("tuple_getitem", _operator.getitem, "An item of a tuple.")
list_getitem = _plain("list_getitem", _operator.getitem, "An item of a list.")
dict_getitem = _plain("dict_getitem", _operator.getitem, "A value of a dictionary.")
tuple_len = _plain("tuple_len", len, "How many items a tuple has.")
list_len = _plain("list_len", len, "How many items a list has.")
tuple_equal = _plain("tuple_equal", _operator.eq, "Whether two tuples are equal.")
list_equal = _plain("list_equal", _operator.eq, "Whether two lists are equal.")
tuple_reversed = _plain("tuple_reversed", lambda items: tuple(reversed(items)), "The items in reverse order.")
make_tuple = _plain("make_tuple", lambda *items: items, "A tuple of the arguments.")
make_list = _plain("make_list", lambda *items: list(items), "A list of the arguments.")
make_dict = _plain("make_dict", lambda keys, values: dict(zip(keys, values, strict=True)), "A dictionary.")
make_range = _plain("make_range", lambda *bounds: tuple(range(*bounds)), "Numbers of a range as a tuple.")
make_slice = _plain("make_slice", slice, "A slice.")
tensor_sub, tensor_mul, tensor_pow = _arithmetic.sub, _arithmetic.mul, _arithmetic.pow
tensor_div, tensor_floordiv, tensor_mod = _arithmetic.div, _arithmetic.floor_div, _arithmetic.floor_mod
tensor_exp = _arithmetic.exp
tensor_lt, tensor_le = _arithmetic.less, _arithmetic.less_equal
tensor_gt, tensor_ge = _arithmetic.greater, _arithmetic.greater_equal
lt, floordiv, floormod = _arithmetic.less, _arithmetic.floor_div, _arithmetic.floor_mod
reshape_ = reshape


def shape_mul(shape: tuple[int, ...]) -> int:
    """How many elements a shape has."""
    return math.prod(shape)


def scalar_cast(input_x: Any, input_y: Any) -> Any:
    """A number as another kind of number."""
    name = dtype_name(input_y)
    if name == "bool":
        return bool(input_x)
    return float(np.dtype(np.float32).type(input_x)) if name == "float32" else _whole_or_float(input_x, name)


def _whole_or_float(value: Any, name: str) -> Any:
    return float(value) if name.startswith(("float", "bfloat")) else int(value)


def scalar_to_tensor(input_x: Any, dtype: Any = None) -> Tensor:
    """A number as a tensor of shape ().   Edges: without a dtype a whole number is int64, another float32."""
    if not isinstance(input_x, bool | int | float):
        raise TypeError(f"For 'ScalarToTensor', the 'input_x' should be a number, but got {type(input_x).__name__}.")
    return Tensor(input_x, dtype) if dtype is not None else Tensor(input_x)


def scalar_to_array(input_x: Any) -> Tensor:
    """A number as a tensor of shape ()."""
    return scalar_to_tensor(input_x)


def tuple_to_array(input_x: tuple[Any, ...]) -> Tensor:
    """A tuple of numbers as a tensor."""
    return Tensor(list(input_x))


def typeof(x: Any) -> Any:
    """The dtype of a tensor, the type of anything else."""
    return x.dtype if isinstance(x, Tensor) else type(x)


def hastype(x: Any, t: Any) -> bool:
    """Whether a value is of a type, a tensor of a dtype."""
    return bool(x.dtype == t) if isinstance(x, Tensor) and isinstance(t, _DType) else isinstance(x, t)


def is_tensor(obj: Any) -> bool:
    """Whether it is a tensor."""
    return isinstance(obj, Tensor)


def constexpr(fn: Callable[..., Any] | None = None, *, get_instance: bool = True, name: str | None = None,
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


def _class_of(name: str, function: Callable[..., Any]) -> None:
    class Plain(Primitive):
        def compute(self, *inputs: Any) -> Any:
            return function(*inputs)

    Plain.__name__ = Plain.__qualname__ = name
    Plain.__doc__ = function.__doc__
    functional_classes[name] = Plain


_class_of("ScalarCast", scalar_cast)
_class_of("ScalarToTensor", scalar_to_tensor)
_class_of("ScalarToArray", scalar_to_array)
_class_of("TupleToArray", tuple_to_array)

publish(__name__, *(f"scalar_{name}" for name in _SCALARS), *(name for name in globals() if name.startswith("tensor_")),
        "lt", "floordiv", "floormod", "reshape_")  # fmt: skip
