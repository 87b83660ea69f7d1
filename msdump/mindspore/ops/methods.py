"""Names beside those of the functions of `mindspore.ops`: methods of Tensor that are a function on the tensor,
and other names of parameters, those of MindSpore 2.0 where 2.7 changed them and the other way round."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any
from typing import cast as typed

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import cast
from msdump.mindspore.located import located
from msdump.mindspore.ops import in_place, own_methods

# -- methods -----------------------------------------------------------------------------------------------------------

# Methods of the name of their function.
_SAME = """
    acos acosh add angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh bitwise_and
    bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor bmm broadcast_to ceil clamp clip conj copysign cos
    cosh deg2rad div divide equal erf erfc erfinv expm1 float_power floor fmod frac gather_elements gcd ge
    greater greater_equal gt heaviside hypot i0 igamma igammac invert isfinite isinf isnan isneginf isposinf lcm ldexp
    le less less_equal lgamma log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor
    masked_fill maximum minimum mm mul multiply ne neg negative nextafter not_equal prod rad2deg real reciprocal round
    rsqrt sigmoid sign signbit sin sinc sinh square sub subtract tan tanh tile true_divide trunc unbind xlogy
"""
# The same: of arrangement, padding, selection, scatter, statistics, linear algebra, blending, spectral functions.
_MORE = """
    addbmm addcdiv addcmul addmm addmv addr adjoint amax amin approximate_equal argmin argsort argwhere baddbmm
    bincount cholesky cholesky_inverse cholesky_solve chunk col2im cov cross cummax cummin cumprod det diag diagflat
    diff dot dsplit expand flip fliplr flipud fold gather_nd geqrf ger histc hsplit imag index_fill index_select
    inner inplace_update inv inverse isclose isreal lerp log_matrix_determinant logdet logit logsumexp lstsq lt
    lu_solve masked_scatter masked_select matrix_determinant matrix_power median moveaxis movedim msort mvlgamma
    nan_to_num nansum narrow nonzero norm ormqr ravel remainder renorm repeat_interleave reverse reverse_sequence
    roll rot90 scatter sgn slogdet sort split std svd swapdims t tensor_split top_k topk tril triu unfold
    unique_consecutive unique_with_pad unsorted_segment_max unsorted_segment_min unsorted_segment_prod var vsplit
    xdivy
"""
# Of activations and random draws.
_OTHERS = """
    aminmax bernoulli fmax fmin hardshrink is_complex is_floating_point multinomial orgqr outer positive
    random_categorical
"""
# Methods of another name -> function.
_OTHER = {
    "absolute": "abs", "bitwise_not": "invert", "clone": "identity", "digamma": "digamma", "eq": "equal",
    "floor_divide": "floor_div", "soft_shrink": "softshrink",
}  # fmt: skip

# -- parameters --------------------------------------------------------------------------------------------------------

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
    return typed(Any, value).__init__ if isinstance(value, type) else value


def _accepting(function: Callable[..., Any], aliases: dict[str, str]) -> Callable[..., Any]:
    @functools.wraps(function)
    def accepting(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {aliases.get(name, name): value for name, value in kwargs.items()}
        return function(*args, **kwargs)

    shown: Any = accepting
    shown.other_names = {**other_names(function), **aliases}
    return accepting


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    return method


def add_methods(functions: dict[str, Any]) -> None:
    """Give Tensor the methods that it does not define itself.   Raises: KeyError for one without its function."""
    for name in vars(own_methods)["__all__"]:
        setattr(Tensor, name, _method(getattr(own_methods, name)))
    for name, dtype in own_methods.CASTS.items():
        setattr(Tensor, name, functools.partialmethod(cast, dtype=dtype))
    for name, read in own_methods.PROPERTIES.items():
        setattr(Tensor, name, property(read))
    for name, function_name in {**{name: name for name in " ".join([_SAME, _MORE, _OTHERS]).split()}, **_OTHER}.items():
        if name not in vars(Tensor):
            setattr(Tensor, name, _method(functions[function_name]))
    for name, function in {**{name: functions[each] for name, each in in_place.SAME.items()}, **in_place.OWN}.items():
        setattr(Tensor, name, located(f"Tensor.{name}")(in_place.writing(name, function)))
    for name, function in in_place.PLAIN.items():
        setattr(Tensor, name, located(f"Tensor.{name}")(_method(function)))
    methods = {name: getattr(Tensor, name) for users in OF_TENSOR.values() for name in users.split()}
    accept_other_names(methods, OF_TENSOR)
    for name, method in methods.items():
        setattr(Tensor, name, method)
