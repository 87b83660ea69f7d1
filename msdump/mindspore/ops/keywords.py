"""Other names of parameters: those of MindSpore 2.0 where 2.7 changed them, and the other way round."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, cast

# Names of the first parameters in their order: functions of `mindspore.ops` that take them, too.
OF_OPS = {
    "abs angle": "polar",
    "condition input other": "select where",
    "dividend divisor": "true_divide",
    "input": "cast hardshrink slice softshrink tensor_slice unique",
    "input axis keep_dims": "logsumexp",
    "input dim": "unbind unsqueeze",
    "input dims": "tile",
    "input exponent": "float_power",
    "input mat2": "mm",
    "input repeats dim": "repeat_interleave",
    "input return_idx return_counts axis": "unique_consecutive",
    "input target": "binary_cross_entropy_with_logits",
    "input values": "heaviside",
    "input_x": "gelu mirror_pad selu",
    "input_x mat2": "bmm",
    "inputs": "dstack",
    "n m dtype": "eye",
    "x": """addmv arcsin asinh atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e
            clamp clip combinations deg2rad frac gather_d hardswish invert
            isfinite isnan mish prelu rad2deg relu6 shape_ silu softmax softsign sqrt""",
    "x other": "copysign ldexp",
    "x y": "floor_div floor_mod floormod ge gt kron le less lt maximum minimum ne tensor_div tensor_mod",
    "x1 x2": "isclose",
}
# The same of operator classes.
OF_CLASSES = {"self return_idx return_counts axis": "UniqueConsecutive", "self shift axis": "Roll"}
# The same of methods of Tensor.
OF_TENSOR = {
    "self axis keepdims": "logsumexp",
    "self chunks dim": "chunk",
    "self condition other": "where",
    "self dim": "argsort cumsum index_select narrow scatter sort unbind unsqueeze",
    "self dim correction keepdim": "std var",
    "self dim dtype keepdim": "sum",
    "self dim keepdim": "all any argmax argmin mean median nansum prod",
    "self divisor": "remainder",
    "self input2 input3": "ormqr",
    "self mask tensor": "masked_scatter",
    "self mat2": "bmm mm",
    "self other": "approximate_equal expand_as",
    "self reps": "tile",
    "self split_size dim": "split",
    "self tensor2": "matmul",
    "self value": "div divide mul multiply true_divide",
    "self values": "heaviside",
    "self x": "ge gt",
    "self x2": "isclose",
    "self y": "logical_and logical_or sub xlogy",
}
# The same of `mindspore.numpy`.
OF_NUMPY = {"a": "logical_not negative positive", "input": "arccos"}


def accept_other_names(callables: MutableMapping[str, Any], table: Mapping[str, str]) -> None:
    """Let functions, methods and constructors of classes take the names of a table.

    callables    what it changes, by name
    Raises:      KeyError for a name that is not there
    """
    aliases: dict[str, dict[str, str]] = {}
    for others, users in table.items():
        for user in users.split():
            own = list(inspect.signature(_called(callables[user])).parameters)
            pairs = {
                other: name for other, name in zip(others.split(), own, strict=False) if other not in (*own, "self")
            }
            aliases.setdefault(user, {}).update(pairs)
    for user, names in aliases.items():
        own = callables[user]
        accepting = _accepting(_called(own), names)
        if isinstance(own, type):
            type.__setattr__(own, "__init__", accepting)
        else:
            callables[user] = accepting


def other_names(value: Any) -> Mapping[str, str]:
    """More names that keywords of a function or class may have -> the parameter."""
    return getattr(_called(value), "other_names", {})


def _called(value: Any) -> Any:
    return cast(Any, value).__init__ if isinstance(value, type) else value


def _accepting(function: Callable[..., Any], aliases: dict[str, str]) -> Callable[..., Any]:
    @functools.wraps(function)
    def accepting(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {aliases.get(name, name): value for name, value in kwargs.items()}
        return function(*args, **kwargs)

    shown: Any = accepting
    shown.other_names = {**other_names(function), **aliases}
    return accepting
