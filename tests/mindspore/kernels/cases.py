"""One small call, at least, of every primitive: what the contract tests go through.

A new primitive gets its line here, or in another `cases_*.py` of this folder with a `CASES` table of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from msdump.tensors.arrays import Array

_RNG = np.random.default_rng(3)


@dataclass(frozen=True)
class Case:
    """Operands and attributes of one call."""

    inputs: tuple[Array, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)


def case(*inputs: Any, **attrs: Any) -> Case:
    return Case(tuple(np.asarray(array) for array in inputs), attrs)


def reals(*shape: int, dtype: Any = np.float32) -> Array:
    array: Array = _RNG.standard_normal(shape).astype(dtype)
    return array


def positive(*shape: int, dtype: Any = np.float32) -> Array:
    array: Array = (_RNG.random(shape) + 0.5).astype(dtype)
    return array


def bools(*shape: int) -> Array:
    return np.asarray(_RNG.random(shape) < 0.5)


def ints(low: int, high: int, *shape: int, dtype: Any = np.int32) -> Array:
    array: Array = _RNG.integers(low, high, shape).astype(dtype)
    return array


def scalar(value: float, dtype: Any = np.float32) -> Array:
    return np.asarray(value, dtype)


BF16 = ml_dtypes.bfloat16
HOSTILE = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e38, -1e-38, 2.5], np.float32)

CASES: dict[str, Sequence[Case]] = {}

for _op in ("Add", "Sub", "Mul", "Div", "RealDiv", "FloorDiv", "Mod", "FloorMod", "Pow", "Maximum", "Minimum"):
    CASES[_op] = [
        case(reals(2, 3), reals(3)),
        case(reals(), reals(2, 1)),
        case(reals(0, 3), reals(1)),
        case(HOSTILE, HOSTILE[::-1].copy()),
        case(reals(4, dtype=BF16), reals(4, dtype=BF16)),
        case(reals(4, dtype=np.float16), reals(4, dtype=np.float16)),
        case(ints(-5, 5, 3, 4), ints(-3, 3, 4)),
        case(ints(0, 5, 6, dtype=np.uint8), ints(0, 3, 6, dtype=np.uint8)),
    ]
for _op in ("Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual"):
    CASES[_op] = [
        case(HOSTILE, HOSTILE),
        case(ints(0, 2, 2, 3), ints(0, 2, 3)),
        case(reals(dtype=BF16), reals(0, dtype=BF16)),
    ]
for _op in ("LogicalAnd", "LogicalOr"):
    CASES[_op] = [case(bools(2, 3), bools(3)), case(bools(), bools(0))]
CASES["LogicalNot"] = [case(bools(2, 3)), case(bools())]
for _op in ("Neg", "Abs", "Square", "Sign", "Round"):
    CASES[_op] = [case(HOSTILE), case(ints(-5, 5, 4)), case(reals(2, 2, dtype=BF16)), case(reals()), case(reals(0))]
for _op in (
    "Floor",
    "Ceil",
    "Exp",
    "Log",
    "Sqrt",
    "Rsqrt",
    "Reciprocal",
    "Sin",
    "Cos",
    "Erf",
    "IsNan",
    "IsInf",
    "IsFinite",
):
    CASES[_op] = [
        case(HOSTILE),
        case(positive(2, 3)),
        case(reals(3, dtype=np.float16)),
        case(reals(3, dtype=BF16)),
        case(reals(3, dtype=np.float64)),
        case(positive()),
        case(reals(0, 2)),
    ]
for _op in ("SqrtGrad", "RsqrtGrad", "ReciprocalGrad"):
    CASES[_op] = [
        case(positive(2, 3), reals(2, 3)),
        case(HOSTILE, HOSTILE),
        case(positive(dtype=BF16), reals(dtype=BF16)),
    ]
for _op in ("MaximumGrad", "MinimumGrad"):
    CASES[_op] = [
        case(reals(2, 3), reals(3), reals(2, 3)),
        case(reals(), reals(2), reals(2)),
        case(reals(0), reals(1), reals(0)),
    ]
CASES["Select"] = [
    case(bools(2, 3), reals(2, 3), reals(3)),
    case(bools(), reals(), reals()),
    case(bools(0), reals(0), reals()),
]
CASES["MaskedFill"] = [
    case(reals(2, 3), bools(3), reals()),
    case(reals(3), bools(2, 1), reals()),
    case(reals(), bools(), reals()),
    case(reals(0), bools(0), reals()),
    case(HOSTILE, HOSTILE > 0, reals()),
]
CASES["AddN"] = [
    case(reals(2, 3), reals(2, 3), reals(2, 3)),
    case(reals()),
    case(reals(0), reals(0)),
    case(HOSTILE, HOSTILE),
]
CASES["Cast"] = [
    case(HOSTILE, dtype=name) for name in ("float16", "bfloat16", "float64", "int32", "uint8", "bool", "float32")
] + [case(ints(0, 2, 2, 2), dtype="bool"), case(bools(3), dtype="bfloat16"), case(reals(0, dtype=BF16), dtype="int8")]

for _op in ("ReduceSum", "ReduceMean", "ReduceProd"):
    CASES[_op] = [
        case(reals(2, 3, 4), axis=1),
        case(reals(2, 3, 4), axis=(0, -1), keep_dims=True),
        case(reals(2, 3), axis=()),
        case(reals(), axis=()),
        case(reals(0, 3), axis=0),
        case(reals(3, 0), axis=0, keep_dims=True),
        case(HOSTILE),
        case(reals(5, 2, dtype=BF16), axis=0),
        case(reals(5, 2, dtype=np.float16), axis=1),
        case(ints(-9, 9, 5), axis=0),
        case(ints(0, 9, 0), axis=0),
    ]
for _op in ("ReduceMax", "ReduceMin"):
    CASES[_op] = [
        case(reals(2, 3, 4), axis=1),
        case(reals(2, 3), axis=(), keep_dims=True),
        case(reals()),
        case(reals(3, 0), axis=0),
        case(HOSTILE),
        case(reals(5, 2, dtype=BF16), axis=0),
        case(ints(-9, 9, 5)),
    ]
for _op in ("ReduceAll", "ReduceAny"):
    CASES[_op] = [case(bools(2, 3), axis=1), case(bools(2, 3), keep_dims=True), case(bools()), case(bools(0))]
for _op in ("Argmax", "Argmin"):
    CASES[_op] = [
        case(reals(2, 3)),
        case(reals(2, 3), axis=0, output_type="int64"),
        case(HOSTILE),
        case(reals(3, dtype=BF16)),
    ]
for _op in ("ArgMaxWithValue", "ArgMinWithValue"):
    CASES[_op] = [
        case(reals(2, 3)),
        case(reals(2, 3), axis=-1, keep_dims=True),
        case(HOSTILE),
        case(reals(3, dtype=BF16)),
    ]
CASES["CumSum"] = [
    case(reals(2, 3), axis=1),
    case(reals(2, 3), axis=0, exclusive=True),
    case(reals(4), axis=0, reverse=True),
    case(reals(4, dtype=BF16), axis=0, reverse=True, exclusive=True),
    case(reals(0, 2), axis=0, exclusive=True),
    case(ints(0, 9, 3), axis=0),
]

CASES["CumProd"] = [
    case(reals(0, 3), axis=0, exclusive=True),
    case(reals(2, 3), axis=1),
    case(reals(2, 3), axis=0, exclusive=True),
    case(reals(4), axis=0, reverse=True),
    case(reals(2, 3), axis=-1, reverse=True, exclusive=True),
    case(ints(0, 3, 3), axis=0),
]

CASES["Reshape"] = [case(reals(2, 3), shape=(3, -1)), case(reals(1), shape=()), case(bools(0, 2), shape=(4, 0))]
CASES["Flatten"] = [case(reals(2, 3, 4)), case(reals(3)), case(reals()), case(reals(0, 2))]
CASES["ExpandDims"] = [case(reals(2), axis=0), case(reals(2, 3), axis=-1), case(reals(), axis=0)]
CASES["Squeeze"] = [case(reals(1, 2, 1)), case(reals(1, 2, 1), axis=(0,)), case(reals(1), axis=0), case(reals())]
CASES["Transpose"] = [case(reals(2, 3, 4), perm=(2, 0, 1)), case(reals(), perm=()), case(bools(0, 2), perm=(1, 0))]
CASES["Concat"] = [case(reals(2, 3), reals(1, 3)), case(reals(2, 1), reals(2, 0), axis=-1), case(reals(2, dtype=BF16))]
CASES["Stack"] = [case(reals(2), reals(2)), case(reals(2, 3), reals(2, 3), axis=-1), case(reals(), reals())]
CASES["Unstack"] = [case(reals(2, 3)), case(reals(2, 3), axis=-1), case(reals(2))]
CASES["Split"] = [
    case(reals(4, 2), output_num=2),
    case(reals(2, 3), axis=1, output_num=3),
    case(reals(0), output_num=2),
]
CASES["Tile"] = [case(reals(2, 3), multiples=(2, 1)), case(reals(2), multiples=(3, 1, 2)), case(reals(), multiples=())]
CASES["BroadcastTo"] = [case(reals(3), shape=(2, 3)), case(reals(2, 1), shape=(-1, 3)), case(reals(), shape=(2,))]
CASES["Fill"] = [case(dtype="bfloat16", shape=(2, 3), value=1.5), case(dtype="int32", shape=(), value=7)]
CASES["Zeros"] = [case(dtype="float32", shape=(2, 0)), case(dtype="bool", shape=(2,))]
CASES["Ones"] = [case(dtype="float16", shape=(2,)), case(dtype="bfloat16", shape=())]
CASES["ZerosLike"] = [case(HOSTILE), case(bools(2)), case(reals())]
CASES["OnesLike"] = [case(HOSTILE), case(bools(2)), case(reals(dtype=BF16))]

CASES["Slice"] = [
    case(reals(4, 3), begin=(1, 0), size=(2, -1)),
    case(reals(), begin=(), size=()),
    case(reals(2), begin=(2,), size=(0,)),
]
CASES["SliceGrad"] = [case(reals(2, 3), reals(4, 3), begin=(1, 0), size=(2, 3))]
CASES["Pad"] = [
    case(reals(2, 3), paddings=((1, 0), (0, 2))),
    case(reals(0), paddings=((1, 1),)),
    case(reals(), paddings=()),
]
CASES["StridedSlice"] = [
    case(reals(5, 4), begin=(1, 0), end=(4, 4), strides=(2, 1)),
    case(reals(5), begin=(-1,), end=(0,), strides=(-2,)),
    case(reals(5, 4), begin=(2, 0), end=(3, 0), strides=(1, 1), shrink_axis_mask=1, end_mask=2),
    case(reals(2, 3, 4), begin=(0, 0, 1), end=(0, 0, 2), strides=(1, 1, 1), ellipsis_mask=1, new_axis_mask=2),
]
CASES["StridedSliceGrad"] = [
    case(reals(2, 4), begin=(1, 0), end=(4, 4), strides=(2, 1), shape=(5, 4)),
    case(reals(4), begin=(2,), end=(3,), shrink_axis_mask=1, shape=(5, 4)),
]
CASES["Gather"] = [
    case(reals(4, 3), ints(-4, 4, 2, 2)),
    case(reals(2, 4, 3), ints(0, 4, 5), axis=1),
    case(reals(4), scalar(2, np.int64), axis=0),
    case(reals(4, 3), ints(0, 4, 0)),
]
CASES["UnsortedSegmentSum"] = [
    case(reals(5, 2), ints(0, 3, 5), num_segments=4),
    case(reals(2, 2, dtype=BF16), ints(0, 2, 2, 2), num_segments=2),
    case(reals(0, 2), ints(0, 1, 0), num_segments=3),
]
CASES["GatherD"] = [case(reals(3, 4), ints(-4, 4, 3, 2), dim=1), case(reals(3, 4), ints(0, 3, 5, 4), dim=0)]
CASES["GatherDGradV2"] = [
    case(reals(3, 4), ints(-4, 4, 3, 2), reals(3, 2), dim=1),
    case(reals(3, 4, dtype=BF16), ints(0, 3, 5, 4), reals(5, 4, dtype=BF16), dim=0),
]
CASES["OneHot"] = [
    case(ints(-1, 5, 2, 3), scalar(1), scalar(0), depth=4),
    case(ints(0, 4, 3), scalar(2, BF16), scalar(-1, BF16), depth=4, axis=0),
    case(ints(0, 4, 0), scalar(1), scalar(0), depth=4),
]

for _op in ("Assign", "AssignAdd", "AssignSub"):
    CASES[_op] = [
        case(reals(2, 3), reals(2, 3)),
        case(reals(), reals()),
        case(reals(3), reals()),
        case(ints(0, 5, 1), ints(0, 5, 1)),
        case(reals(0), reals(0)),
    ]
CASES["Assign"] = [*CASES["Assign"], case(bools(2), bools(2))]


def optimizer_cases(make: Any) -> list[Case]:
    """One weight per shape and dtype; `make` orders the operands."""
    return [make(shape, dtype) for shape in ((2, 3), (), (0,)) for dtype in (np.float32, np.float16, BF16)]


CASES["ApplyMomentum"] = optimizer_cases(
    lambda s, d: case(reals(*s, dtype=d), reals(*s, dtype=d), scalar(0.1), reals(*s, dtype=d), scalar(0.9))
) + [
    case(reals(3), reals(3), scalar(0.1), reals(3), scalar(0.9), use_nesterov=True, gradient_scale=0.5),
    case(HOSTILE, HOSTILE, scalar(0.1), HOSTILE, scalar(0.9)),
]
CASES["SGD"] = optimizer_cases(
    lambda s, d: case(
        reals(*s, dtype=d),
        reals(*s, dtype=d),
        scalar(0.1),
        reals(*s, dtype=d),
        scalar(0.9),
        np.ones(s, d),
        dampening=0.1,
        weight_decay=0.01,
        nesterov=False,
    )
) + [
    case(reals(3), reals(3), scalar(0.1), reals(3), scalar(0.0), np.zeros(3, np.float32)),
    case(reals(3), reals(3), scalar(0.1), reals(3), scalar(0.9), np.zeros(3, np.float32), nesterov=True),
]
_ADAM = (scalar(0.9), scalar(0.999), scalar(0.1), scalar(0.9), scalar(0.999), scalar(1e-8))
CASES["Adam"] = optimizer_cases(
    lambda s, d: case(reals(*s, dtype=d), reals(*s, dtype=d), positive(*s, dtype=d), *_ADAM, reals(*s, dtype=d))
) + [case(reals(3), reals(3), positive(3), *_ADAM, reals(3), use_nesterov=True)]
CASES["AdamWeightDecay"] = optimizer_cases(
    lambda s, d: case(
        reals(*s, dtype=d),
        reals(*s, dtype=d),
        positive(*s, dtype=d),
        scalar(0.1),
        scalar(0.9),
        scalar(0.999),
        scalar(1e-6),
        scalar(0.01),
        reals(*s, dtype=d),
    )
)


def batch_norm(shape: tuple[int, ...], channels: int, dtype: Any = np.float32, **attrs: Any) -> Case:
    small = [positive(channels) for _ in range(4)]
    return case(reals(*shape, dtype=dtype), *small, **attrs)


CASES["BatchNorm"] = [
    batch_norm((4, 3, 2, 2), 3, is_training=True),
    batch_norm((4, 3, 2, 2), 3),
    batch_norm((4, 2, 2, 3), 3, is_training=True, format="NHWC"),
    batch_norm((4, 3), 3, np.float16, is_training=True, momentum=0.3),
    batch_norm((4, 3, 5), 3, BF16, is_training=True),
    batch_norm((0, 3), 3, is_training=True),
]
CASES["BatchNormGrad"] = [
    Case(
        (reals(*c.inputs[0].shape).astype(c.inputs[0].dtype), *c.inputs[:2], reals(3), positive(3), positive(3)),
        c.attrs,
    )
    for c in CASES["BatchNorm"]
]
CASES["LayerNorm"] = [
    case(reals(4, 5), positive(5), reals(5)),
    case(reals(2, 3, 4), positive(4), reals(4), begin_norm_axis=-1, begin_params_axis=-1, epsilon=1e-5),
    case(reals(2, 3, 4, dtype=BF16), positive(3, 4), reals(3, 4)),
    case(reals(0, 4), positive(4), reals(4)),
]
CASES["GroupNorm"] = [
    case(reals(2, 4, 3), positive(4), reals(4), num_groups=2, eps=1e-5),
    case(reals(2, 4), positive(4), reals(4), num_groups=4, eps=1e-5),
    case(reals(1, 2, 3, 2, dtype=BF16), positive(2), reals(2), num_groups=1, eps=1e-3),
    case(reals(0, 4, 2), positive(4), reals(4), num_groups=2, eps=1e-5),
]
CASES["GroupNormGrad"] = [
    case(reals(2, 4, 3), reals(2, 4, 3), reals(2, 2), positive(2, 2), positive(4), num_groups=2, eps=1e-5),
    case(
        *(reals(1, 2, 3, dtype=np.float16) for _ in range(2)),
        *(positive(1, 1, dtype=np.float16) for _ in range(2)),
        positive(2),
        num_groups=1,
        eps=1e-5,
    ),
]
CASES["LayerNormGrad"] = [
    case(reals(4, 5), reals(4, 5), positive(4, 1), reals(4, 1), positive(5)),
    case(
        reals(2, 3, 4, dtype=np.float16),
        reals(2, 3, 4, dtype=np.float16),
        positive(2, 3, 1),
        reals(2, 3, 1),
        positive(4),
        begin_norm_axis=2,
        begin_params_axis=2,
    ),
]
CASES["Dropout"] = [
    case(reals(3, 5), keep_prob=0.7, Seed0=1),
    case(reals(7, dtype=BF16), ints(0, 9, 1), keep_prob=0.5, Seed1=-4),
    case(reals(), keep_prob=1.0),
    case(reals(0), scalar(1, np.int64)),
]
CASES["DropoutGrad"] = [case(reals(3, 5), bools(3, 5).astype(np.float32), keep_prob=0.7), case(reals(0), reals(0))]
CASES["Print"] = [
    case(reals(2, 2), strings=("x", None)),
    case(reals(3, dtype=BF16), bools()),
    case(strings=("only text",)),
]
CASES["Depend"] = [case(reals(2), bools()), case(reals())]
CASES["StopGradient"] = [case(reals(2, 2)), case(reals()), case(reals(0))]
CASES["TensorMove"] = [case(reals(2, 2)), case(reals()), case(reals(0))]
CASES["AllReduce"] = [case(reals(2, 2), op="sum"), case(ints(0, 4, 3), op="max")]

for _path in sorted(Path(__file__).parent.glob("cases_*.py")):
    _more = importlib.import_module(f"{__package__}.{_path.stem}").CASES
    assert not _more.keys() & CASES.keys(), f"{_path.name} repeats {sorted(_more.keys() & CASES.keys())}"
    CASES.update(_more)
