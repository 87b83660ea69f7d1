"""`mindspore.numpy`: the part of numpy's names that scripts use, on tensors."""

from __future__ import annotations

from typing import Any

import numpy as _np

from msdump.frontends.mindspore.common.dtype import DType, float16, float32, float64, int32, int64
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.names import explain_missing, publish_all
from msdump.frontends.mindspore.ops.function import (
    abs,
    add,
    arange,
    argmax,
    cos,
    exp,
    expand_dims,
    eye,
    full,
    log,
    matmul,
    maximum,
    mean,
    minimum,
    multiply,
    ones,
    ones_like,
    reshape,
    sin,
    sqrt,
    square,
    squeeze,
    stack,
    subtract,
    sum,
    tanh,
    tile,
    transpose,
    where,
    zeros,
    zeros_like,
)
from msdump.frontends.mindspore.ops.function import concat as concatenate

pi = float(_np.pi)


def array(obj: Any, dtype: DType | None = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """A tensor of data."""
    tensor = Tensor(obj, dtype)
    while tensor.ndim < ndmin:
        tensor = expand_dims(tensor, 0)
    return tensor


asarray = array


def linspace(start: float, stop: float, num: int = 50, dtype: DType | None = None) -> Tensor:
    """Evenly spaced numbers."""
    return Tensor(_np.linspace(start, stop, num), dtype or float32)


publish_all(__name__)

__getattr__ = explain_missing(__name__)
