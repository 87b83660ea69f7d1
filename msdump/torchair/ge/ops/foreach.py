"""Operators over lists of tensors, which optimizers are made of: the plain operator, tensor by tensor."""

from __future__ import annotations

from collections.abc import Callable

from msdump.torchair.ge.builder import Builder
from msdump.torchair.ge.graph import GeTensor
from msdump.torchair.ge.registry import converter, converter_of

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor lgamma log log10 log1p log2 neg reciprocal round rsqrt "
    "sigmoid sign sin sinh sqrt tan tanh trunc zero"
)

# Overload of a list operator -> the plain operator that it is for each tensor.
_PLAIN = {f"{name}.default": f"{name}.default" for name in _UNARY.split()}
for _name in ("add", "sub", "mul", "div"):
    _PLAIN |= {f"{_name}.{kind}": f"{_name}.Tensor" for kind in ("List", "Tensor")}
    _PLAIN |= {f"{_name}.{kind}": f"{_name}.Scalar" for kind in ("Scalar", "ScalarList")}
for _name, _clamp in (("maximum", "clamp_min"), ("minimum", "clamp_max")):
    for _synonym in (_name, _clamp):
        _PLAIN |= {f"{_synonym}.List": f"{_name}.default"}
        _PLAIN |= {f"{_synonym}.{kind}": f"{_clamp}.default" for kind in ("Scalar", "ScalarList")}
for _name in ("addcmul", "addcdiv"):
    _PLAIN |= {f"{_name}.{kind}": f"{_name}.default" for kind in ("Scalar", "ScalarList")}
_PLAIN |= {"lerp.List": "lerp.Tensor", "lerp.Scalar": "lerp.Scalar", "lerp.ScalarList": "lerp.Scalar"}
_PLAIN |= {"pow.List": "pow.Tensor_Tensor", "pow.Scalar": "pow.Tensor_Scalar", "pow.ScalarList": "pow.Tensor_Scalar"}
_PLAIN |= {"pow.ScalarAndTensor": "pow.Scalar"}
_PLAIN |= {"copy.default": "copy.default", "norm.Scalar": "linalg_vector_norm.default"}


def _converter_of_each(plain: str) -> Callable[..., list[GeTensor]]:
    def convert(ge: Builder, *args: object, **named: object) -> list[GeTensor]:
        function, results = converter_of(plain), []
        if "addc" in plain and len(args) > 3:
            # The factor has its place in a list of arguments here, and a name there.
            args, named = args[:3], {"value": args[3]}
        count = next(len(arg) for arg in args if isinstance(arg, list | tuple))
        for index in range(count):
            ge.item = index
            keywords = {name: _item(value, index) for name, value in named.items()}
            results.append(function(ge, *(_item(arg, index) for arg in args), **keywords))
        ge.item = None
        return results

    return convert


def _item(value: object, index: int) -> object:
    return value[index] if isinstance(value, list | tuple) else value


for _overload, _target in _PLAIN.items():
    converter(f"aten._foreach_{_overload}")(_converter_of_each(f"aten.{_target}"))
