"""Methods of Tensor that are functions of `mindspore.ops` with the tensor as their first argument."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import cast
from msdump.mindspore.located import located
from msdump.mindspore.ops import in_place, own_methods
from msdump.mindspore.ops.keywords import OF_TENSOR, accept_other_names

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
