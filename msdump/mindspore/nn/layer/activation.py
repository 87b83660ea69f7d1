"""Activations."""

from __future__ import annotations

from typing import Any

import numpy as np

from msdump.errors import did_you_mean
from msdump.mindspore.common.declared import KINDS
from msdump.mindspore.common.dtype import float16, float32, int_type
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.declared import Declared, as_layer, layers
from msdump.mindspore.ops import function as F

_TABLE = """
    CELU celu x | alpha:slope=1.0
    ELU elu x | alpha:number=1.0
    FastGelu fast_gelu x
    GLU glu x | axis=-1
    HShrink hardshrink input_x | lambd:number=0.5
    HSigmoid hardsigmoid x
    HSwish hardswish x
    LogSoftmax log_softmax x | axis=-1
    Mish mish x
    ReLU relu x
    ReLU6 relu6 x
    SeLU selu x
    SiLU silu x
    Sigmoid sigmoid x
    Softmax softmax x | axis=-1
    Softmin softmin x | axis=-1
    Softsign softsign x
    SoftShrink softshrink input_x | lambd:width=0.5
    Tanh tanh x
    Tanhshrink tanhshrink x
    Threshold _threshold input_x | threshold:number value:number
"""


def _check_slope(where: str, name: str, value: Any) -> None:
    KINDS["number"]("CeLU", name, value)
    if value == 0:
        raise ValueError(f"For 'CeLU', the '{name}' must not be 0.0.")


def _threshold(x: Tensor, threshold: float, value: float) -> Tensor:
    """x above the threshold, `value` elsewhere."""
    return F.threshold(x, threshold, value)


KINDS["slope"] = _check_slope
globals().update(layers(_TABLE, {**vars(F), "_threshold": _threshold}, __name__))


@as_layer()
def GELU(x: Tensor, *, approximate: bool = True) -> Tensor:
    """Gauss error linear unit; with `approximate` through tanh."""
    return F.gelu(x, "tanh" if approximate else "none")


@as_layer()
def LeakyReLU(x: Tensor, *, alpha: float = 0.2) -> Tensor:
    """x above zero, alpha * x below."""
    # Source: MindSpore casts alpha to the dtype of x, which integers keep.
    return F.leaky_relu(x, int(alpha) if x.dtype in int_type else alpha)


def _check_hardtanh(min_val: float, max_val: float) -> None:
    KINDS["number"]("Hardtanh", "min_val", min_val)
    KINDS["number"]("Hardtanh", "max_val", max_val)
    if min_val >= max_val:
        raise ValueError(
            f"For 'Hardtanh', min_val should be less than max_val, but got min_val: {min_val}, max_val: {max_val}."
        )


@as_layer(_check_hardtanh)
def Hardtanh(x: Tensor, *, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x kept between two bounds."""
    return F.hardtanh(x, min_val, max_val)


class Softmax2d(Cell):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def construct(self, x: Tensor) -> Tensor:
        if x.ndim not in (3, 4):
            raise ValueError(f"For '{self.cls_name}', the in_shape must have 3 or 4 dims, but got {x.ndim}.")
        return F.softmax(x, -3)


@as_layer()
def LogSigmoid(input_x: Tensor) -> Tensor:
    """Logarithm of sigmoid(x), through the operators that MindSpore takes."""
    return F.log(F.reciprocal(F.add(F.exp(F.mul(input_x, -1)), 1)))


class PReLU(Declared, takes="channel:size=1 w=0.25"):
    """x above zero, w * x below; w is trained, one for all or one per channel."""

    def _set_up(self, channel: int, w: Any) -> None:
        if isinstance(w, float | np.floating):
            values = np.full(channel, w, np.float32)
        elif isinstance(w, list | Tensor):
            if isinstance(w, Tensor) and w.dtype not in (float16, float32):
                raise ValueError(f"For 'PReLU', the dtype of 'w' must be float16 or float32, but got {w.dtype}.")
            values = w.asnumpy() if isinstance(w, Tensor) else np.array(w, np.float32)
        else:
            raise TypeError(f"For 'PReLU', the 'w' only supported float, list and tensor, but got {type(w)}.")
        if values.shape != (channel,):
            raise ValueError(f"For 'PReLU', the 'w' must have {channel} elements, but got shape {values.shape}.")
        self.w = Parameter(Tensor(values), name="a")

    def construct(self, x: Tensor) -> Any:
        return F.prelu(x, F.cast(self.w, x.dtype))


_NAMES = """Softmin Softmax Softmax2d LogSoftmax ReLU ReLU6 SiLU Tanh Tanhshrink Hardtanh GELU FastGelu ELU
    Sigmoid Softsign PReLU LeakyReLU HSwish HSigmoid LogSigmoid SoftShrink HShrink Mish"""
_BY_NAME = {{"FastGelu": "fast_gelu"}.get(name, name.lower()): name for name in _NAMES.split()}


def get_activation(name: str | None, prim_name: str | None = None) -> Any:
    """Activation cell of a name; None stays None.   Raises: KeyError with the nearest name."""
    if name is None:
        return None
    if name not in _BY_NAME:
        raise KeyError(f"activation: expected one of {list(_BY_NAME)}, got {name!r}. {did_you_mean(name, _BY_NAME)}")
    return globals()[_BY_NAME[name]]()


publish(__name__)

__getattr__ = explain_missing(__name__)
