"""Functions of `mindspore.mint` that compute element by element, or as those of `mindspore.ops` do it."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.signatures import in_forms
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.ops import function as F

_TABLE = "\n".join(
    f"{name} {parameters}"
    for parameters, names in {
        "input other dim=None": "cross",
        "equation *operands": "einsum",
        "*tensors | indexing='ij'": "meshgrid",
        "input": """abs acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh
            bitwise_not:invert ceil clone:identity cos cosh erf erfc erfinv exp exp2 expm1 floor frac inverse isfinite
            isinf isnan isneginf log log10 log1p log2 logical_not neg negative ravel reciprocal rsqrt sigmoid sign
            sin sinc sinh sqrt square t tan tanh""",
        "input other": """arctan2 atan2 bitwise_and bitwise_or bitwise_xor eq:equal floor_divide:floor_div fmod gcd
            greater greater_equal gt le less less_equal logaddexp logaddexp2 logical_and logical_or logical_xor lt
            matmul maximum minimum mul ne not_equal remainder xlogy""",
        "input other | rounding_mode=None": "div divide",
        "input other rtol=1e-05 atol=1e-08 equal_nan=False": "isclose",
        "input exponent": "float_power pow",
        "input mat2": "bmm mm",
        "input mask": "masked_select",
        "input vec": "mv",
        "input vec2": "outer",
        "abs angle": "polar",
        "input batch1 batch2 | beta=1 alpha=1": "addbmm baddbmm",
        "input mat1 mat2 | beta=1 alpha=1": "addmm",
        "input mat vec | beta=1 alpha=1": "addmv",
        "input nan=None posinf=None neginf=None": "nan_to_num",
        "input | decimals=0": "round",
        "input min=None max=None": "clamp",
        "input end weight": "lerp",
        "input axis0 axis1": "swapaxes",
        "input dim0 dim1": "transpose:swapaxes",
        "input bins=100 min=0 max=0": "histc",
        "input diagonal=0": "tril triu",
        "tensors": "dstack hstack",
        "input shape": "broadcast_to reshape",
        "input dims": "flip permute tile",
        "input shifts dims=None": "roll",
        "input | as_tuple=False": "nonzero",
        "sorted_sequence values | out_int32=False right=False side=None sorter=None": "searchsorted",
        "input return_inverse=False return_counts=False dim=None": "unique_consecutive",
        "input dim=0": "unbind",
        "input dim": "unsqueeze",
        "input dim dtype=None": "cumprod cumsum",
        "input chunks dim=0": "chunk",
        "tensor split_size_or_sections dim=0": "split",
        "tensors dim=0": "cat concat stack",
        "input dim start length": "narrow",
        "input dim index": "index_select",
        "input n=1 dim=-1 prepend=None append=None": "diff",
    }.items()
    for name in names.split()
)

globals().update(in_forms(_TABLE, vars(F), __name__))


def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """input + alpha * other."""
    return F.add(input, other if alpha == 1 else F.mul(other, alpha))


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """input - alpha * other."""
    return F.sub(input, other if alpha == 1 else F.mul(other, alpha))


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """input + value * tensor1 / tensor2."""
    return F.add(input, F.mul(F.div(tensor1, tensor2), value))


def dot(input: Tensor, other: Tensor) -> Tensor:
    """Product of two vectors."""
    if input.ndim != 1 or other.ndim != 1:
        raise ValueError(f"For 'dot', expected two vectors, but got {input.ndim} and {other.ndim} axes.")
    return F.sum(F.mul(input, other))


def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """input where the condition holds, other elsewhere; of the condition alone the places where it holds."""
    if input is None and other is None:
        return F.nonzero(condition, as_tuple=True)
    return F.where(condition, input, other)


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Whether all elements are close."""
    near = F.all(F.isclose(input, other, rtol, atol, equal_nan))
    return bool(near) if near.is_concrete else near


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Any:
    """Distances between the rows of two batches; `compute_mode` chooses between ways to the same values."""
    modes = [
        f"{way}_mm_for_euclid_dist{tail}" for way, tail in (("use", "_if_necessary"), ("use", ""), ("donot_use", ""))
    ]
    if compute_mode not in modes:
        raise ValueError(f"For 'cdist', the 'compute_mode' must be one of {modes}, but got {compute_mode}.")
    return F.cdist(x1, x2, p)


publish(__name__)
