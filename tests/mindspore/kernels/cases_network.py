"""Calls of the operators that networks are made of: convolution, pooling, products, activations, losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.mindspore.kernels.cases import BF16, HOSTILE, Case, case, ints, positive, reals, scalar

UNIT = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
BITS = (np.arange(12) % 3 == 0).astype(np.float32).reshape(3, 4)
_SAME = {"kernel_size": (3, 2), "stride": (1, 1, 2, 1), "pad_mode": "same", "pad": (0, 0, 0, 0)}
_GROUPS = {"kernel_size": (2, 2), "pad_mode": "pad", "pad": (1, 0, 0, 1), "dilation": (1, 1, 2, 1), "group": 2}
_POOL = {"kernel_size": (1, 1, 3, 2), "strides": (1, 1, 2, 2), "pad_mode": "SAME", "format": "NCHW"}


def _shape(*sizes: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(sizes, np.int64)


def _elementwise(count: int) -> Sequence[Case]:
    return (
        case(*(reals(3, 5) for _ in range(count))),
        case(*(HOSTILE for _ in range(count))),
        case(*(reals(7, dtype=np.float16) for _ in range(count))),
        case(*(reals(2, 2, dtype=BF16) for _ in range(count))),
        case(*(reals(0, 4) for _ in range(count))),
        case(*(reals(dtype=np.float64) for _ in range(count))),
    )


_ELEMENTWISE = {
    "ReLU": 1,
    "ReluGrad": 2,
    "ReLU6": 1,
    "ReLU6Grad": 2,
    "Sigmoid": 1,
    "SigmoidGrad": 2,
    "Tanh": 1,
    "TanhGrad": 2,
    "GeLU": 1,
    "GeLUGrad": 3,
}

CASES: dict[str, Sequence[Case]] = {
    **{op_type: _elementwise(count) for op_type, count in _ELEMENTWISE.items()},
    "Conv2D": (
        case(reals(2, 3, 5, 6), reals(4, 3, 3, 2), **_SAME),
        case(reals(2, 4, 5, 6, dtype=np.float16), reals(6, 2, 2, 2, dtype=np.float16), **_GROUPS),
        case(reals(0, 3, 5, 6), reals(4, 3, 3, 2), **_SAME),
        case(reals(1, 3, 4, 4, dtype=BF16), reals(4, 3, 1, 1, dtype=BF16), kernel_size=(1, 1), pad_mode="valid"),
    ),
    "Conv2DBackpropFilter": (
        case(reals(2, 4, 3, 6), reals(2, 3, 5, 6), _shape(4, 3, 3, 2), filter_sizes=(4, 3, 3, 2), **_SAME),
        case(reals(2, 6, 4, 6), reals(2, 4, 5, 6), _shape(6, 2, 2, 2), filter_sizes=(6, 2, 2, 2), **_GROUPS),
        case(reals(0, 4, 3, 6), reals(0, 3, 5, 6), _shape(4, 3, 3, 2), filter_sizes=(4, 3, 3, 2), **_SAME),
    ),
    "Conv2DBackpropInput": (
        case(reals(2, 4, 3, 6), reals(4, 3, 3, 2), _shape(2, 3, 5, 6), input_sizes=(2, 3, 5, 6), **_SAME),
        case(reals(2, 6, 4, 6), reals(6, 2, 2, 2), _shape(2, 4, 5, 6), input_sizes=(2, 4, 5, 6), **_GROUPS),
        case(reals(0, 4, 3, 6), reals(4, 3, 3, 2), _shape(0, 3, 5, 6), input_sizes=(0, 3, 5, 6), **_SAME),
    ),
    **{
        op_type: (
            case(reals(2, 3, 5, 6), **_POOL),
            case(HOSTILE.reshape(1, 1, 2, 4), **_POOL),
            case(reals(2, 3, 5, 6, dtype=np.float16), **_POOL),
            case(reals(0, 3, 5, 6), **_POOL),
        )
        for op_type in ("MaxPool", "AvgPool")
    },
    **{
        op_type: (
            case(reals(2, 3, 5, 6), reals(2, 3, 3, 3), reals(2, 3, 3, 3), **_POOL),
            case(reals(2, 3, 5, 6, dtype=BF16), reals(2, 3, 3, 3, dtype=BF16), reals(2, 3, 3, 3, dtype=BF16), **_POOL),
            case(reals(0, 3, 5, 6), reals(0, 3, 3, 3), reals(0, 3, 3, 3), **_POOL),
        )
        for op_type in ("MaxPoolGrad", "AvgPoolGrad")
    },
    "MatMul": (
        case(reals(3, 4), reals(4, 40)),
        case(reals(4, 3), reals(5, 4), transpose_a=True, transpose_b=True),
        case(reals(2, 4, dtype=np.float16), reals(40, 4, dtype=np.float16), transpose_b=True),
        case(reals(2, 0), reals(0, 3)),
        case(reals(0, 2), reals(2, 3)),
        case(ints(-9, 9, 2, 3), ints(-9, 9, 3, 4)),
    ),
    "BatchMatMul": (
        case(reals(2, 3, 4), reals(2, 4, 5)),
        case(reals(2, 1, 4, 3), reals(5, 6, 4), transpose_a=True, transpose_b=True),
        case(reals(0, 3, 4), reals(0, 4, 5)),
    ),
    "BiasAdd": (
        case(reals(3, 4), reals(4), format="NCHW"),
        case(reals(2, 3, 4, 5), reals(3), format="NCHW"),
        case(reals(0, 3, 4, 5), reals(3)),
        case(reals(2, 3, 2, 2, dtype=BF16), reals(3, dtype=BF16)),
    ),
    "BiasAddGrad": (
        case(reals(3, 4), format="NCHW"),
        case(reals(2, 3, 4, 5), format="NCHW"),
        case(reals(0, 3)),
        case(reals(0, 3, 4, 5)),
        case(reals(2, 3, 4, 0)),
        case(reals(2, 3, 4, 5, dtype=np.float16)),
    ),
    **{
        op_type: (
            case(reals(3, 4), axis=-1),
            case(reals(3, 4, 5), axis=(1,)),
            case(HOSTILE.reshape(2, 4), axis=0),
            case(reals(3, 4, dtype=BF16), axis=-1),
            case(reals(0, 4), axis=-1),
        )
        for op_type in ("Softmax", "LogSoftmax")
    },
    "LogSoftmaxGrad": (
        case(reals(3, 4), reals(3, 4), axis=-1),
        case(reals(3, 4, 5, dtype=np.float16), reals(3, 4, 5, dtype=np.float16), axis=0),
        case(reals(0, 4), reals(0, 4), axis=-1),
    ),
    "SparseSoftmaxCrossEntropyWithLogits": (
        case(reals(3, 4), ints(0, 4, 3), is_grad=False, sens=1.0),
        case(reals(3, 4), ints(0, 4, 3, dtype=np.int64), is_grad=True, sens=1.0),
        case(HOSTILE.reshape(2, 4), ints(0, 4, 2), is_grad=False),
        case(reals(0, 4), ints(0, 4, 0), is_grad=True),
        case(reals(0, 4), ints(0, 4, 0), is_grad=False),
        case(reals(3, 4, dtype=np.float16), ints(0, 4, 3), is_grad=True),
    ),
    "BinaryCrossEntropy": (
        case(UNIT, BITS),
        case(UNIT, BITS, positive(4), reduction="none"),
        case(np.array([0, 1, 0, 1, np.nan], np.float32), np.array([0, 1, 1, 0, 0], np.float32), reduction="sum"),
        case(UNIT.astype(BF16), BITS.astype(BF16)),
        case(UNIT[:0], BITS[:0]),
    ),
    "BinaryCrossEntropyGrad": (
        case(UNIT, BITS, scalar(2.0)),
        case(UNIT, BITS, reals(3, 4), positive(4), reduction="none"),
        case(np.array([0, 1, 0, 1], np.float32), np.array([0, 1, 1, 0], np.float32), scalar(1.0), reduction="sum"),
        case(UNIT.astype(np.float16), BITS.astype(np.float16), scalar(1.0, np.float16)),
        case(UNIT[:0], BITS[:0], scalar(1.0)),
    ),
    "BCEWithLogitsLoss": (
        case(reals(3, 4), UNIT, absent=("weight", "pos_weight")),
        case(reals(3, 4), UNIT, positive(4), positive(3, 1), reduction="none"),
        case(reals(3, 4), UNIT, positive(4), absent=("weight",), reduction="sum"),
        case(HOSTILE, BITS.ravel()[:8], absent=("weight", "pos_weight"), reduction="none"),
        case(reals(3, 4, dtype=BF16), UNIT.astype(BF16), absent=("weight", "pos_weight")),
        case(reals(0, 4), UNIT[:0], absent=("weight", "pos_weight")),
    ),
    "SoftmaxCrossEntropyWithLogits": (
        case(reals(3, 4), np.eye(4, dtype=np.float32)[:3]),
        case(reals(3, 4, dtype=BF16), np.eye(4)[:3].astype(BF16)),
        case(HOSTILE.reshape(2, 4), np.eye(4, dtype=np.float32)[:2]),
        case(reals(0, 4), reals(0, 4)),
    ),
}
