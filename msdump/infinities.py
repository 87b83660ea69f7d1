"""Which operators put an Inf into a tensor, and which stop one: by type, in the words of every library.

An Inf is not a fault as such: a mask of -Inf before a softmax is a usual way to leave elements out.
"""

from __future__ import annotations

import functools
import re

# What an operator does with an Inf that it reads. NEUTRAL: it looks, and says nothing of whether the Inf was meant.
STOPS, NEUTRAL, PASSES = "stops", "neutral", "passes"

_PLACERS = frozenset(
    {
        "maskedfill", "where", "full", "fulllike", "newfull", "fill", "fills", "filltensor", "scalartensor",
        "constant", "const", "constantofshape", "constantfill", "pad", "constantpad", "maskedscatter", "indexfill",
        "scatter", "slicescatter", "selectscatter", "tensorscatterupdate",
    }
)  # fmt: skip
# Scatters that add up, which may overflow.
_REDUCTIONS = frozenset({"add", "sub", "mul", "div", "reduce"})
_ADDS_UP = frozenset({"scatternd", "scatterelements"})
# Softmax and what contains one; what chooses elements; extremes; functions that end at a finite value.
_STOPPERS = frozenset(
    {
        "softmax", "logsumexp", "reducelogsumexp", "sparsesoftmaxcrossentropywithlogits",
        "softmaxcrossentropywithlogits", "scaleddotproduct", "flashattention", "promptflashattention",
        "incrementalflashattention", "fusedinferattention", "fusedinferattentionscore", "attention",
        "multiheadattention", "scaledmaskedsoftmax", "maskedsoftmax", "where", "select", "maskedselect",
        "maskedfill", "gather", "gathernd", "index", "slice", "stridedslice", "narrow", "nantonum", "nllloss",
        "nllloss2d", "max", "maximum", "amax", "fmax", "reducemax", "cummax", "maxpool", "adaptivemaxpool",
        "min", "minimum", "amin", "fmin", "reducemin", "cummin", "clamp", "clip", "clipbyvalue", "hardtanh",
        "relu", "threshold", "topk", "sigmoid", "hardsigmoid", "hsigmoid", "tanh", "erf", "atan", "softsign",
    }
)  # fmt: skip
_LOOKS = frozenset(
    {
        "isnan", "isinf", "isfinite", "eq", "ne", "lt", "le", "gt", "ge", "equal", "notequal", "less",
        "lessequal", "lessorequal", "greater", "greaterequal", "greaterorequal", "logicaland", "logicalor",
        "logicalnot", "logicalxor", "sign", "argmax", "argmin", "argmaxwithvalue", "argminwithvalue",
        "floatstatus", "npuallocfloatstatus", "npugetfloatstatus", "npuclearfloatstatus",
    }
)  # fmt: skip
# Of minus Inf they make 0.
_STOPS_NEGATIVE = frozenset({"exp", "exp2", "elu", "softplus"})

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LIBRARY = re.compile(r"^(?:aten|prims|torch|npu)[._]+")
_VERSION = re.compile(r"V[0-9]+$")


def places_constant(op_type: str) -> bool:
    """True when an Inf that no input has can only be a constant that the script chose: such an operator copies values
    and computes none."""
    beginnings = _beginnings(op_type)
    return (
        any(name in _PLACERS for name in beginnings)
        and not any(name in _ADDS_UP for name in beginnings)
        and _REDUCTIONS.isdisjoint(_words(op_type))
    )


def effect_on_inf(op_type: str, has_positive: bool) -> str:
    """STOPS, NEUTRAL or PASSES.

    has_positive  the Inf has a plus sign: exp stops a minus alone
    """
    if _matches(op_type, _LOOKS):
        return NEUTRAL
    if _matches(op_type, _STOPPERS) or (not has_positive and _matches(op_type, _STOPS_NEGATIVE)):
        return STOPS
    return PASSES


def _matches(op_type: str, names: frozenset[str]) -> bool:
    """Whether the first words of a type are one of the names: overloads (`aten.max.dim`) and versions follow them."""
    return any(name in names for name in _beginnings(op_type))


@functools.lru_cache(maxsize=4096)
def _beginnings(op_type: str) -> tuple[str, ...]:
    words = _words(op_type)
    return tuple("".join(words[:count]) for count in range(1, len(words) + 1))


def _words(op_type: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(_VERSION.sub("", _LIBRARY.sub("", op_type)))]
