"""`mindspore.ops.operations`: operator classes. Those with attributes stand here, the others beside their functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msdump.mindspore.common.dtype import Type, dtype_name
from msdump.mindspore.common.dtype import int32 as _int32
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import call, execute, promoted
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.ops import collectives as _collectives
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops import gradient_hooks as _hooks
from msdump.mindspore.ops.network import _channels_with_mask
from msdump.mindspore.ops.primitive import Primitive, def_class, functional_classes
from msdump.mindspore.ops.tensor_dump import DumpGradient as _DumpGradient
from msdump.mindspore.ops.tensor_dump import TensorDump as _TensorDump


def _promoted(self: Primitive, x: Any, y: Any) -> Tensor:
    return call(self.name, *promoted(x, y))


def _reduced(self: Primitive, x: Tensor, axis: Any = ()) -> Tensor:
    """The axis comes with the call."""
    axes = int(axis) if isinstance(axis, int) else tuple(axis)
    return call(self.name, x, axis=axes, **self.attrs)


def _running(self: Primitive, x: Tensor, axis: int) -> Tensor:
    return call(self.name, x, axis=axis, **self.attrs)


def _parts(self: Primitive, x: Tensor) -> tuple[Tensor, ...]:
    return execute(self.name, [x], self.attrs)


def _box(self: Primitive, x: Tensor, begin: Sequence[int], size: Sequence[int]) -> Tensor:
    return call(self.name, x, begin=tuple(begin), size=tuple(size))


def _strided(self: Primitive, x: Tensor, begin: Sequence[int], end: Sequence[int], strides: Sequence[int]) -> Tensor:
    return call(self.name, x, begin=tuple(begin), end=tuple(end), strides=tuple(strides), **self.attrs)


_TRANSPOSED = {"transpose_a": False, "transpose_b": False}
_KEPT = {"keep_dims": False}
_DIRECTION = {"exclusive": False, "reverse": False}
_BITS = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)

def_class("RealDiv", "x / y in the common dtype.", _promoted)
def_class("Div", "x / y in the common dtype; integers truncate toward zero.", _promoted)
def_class("Mod", "The remainder with the sign of x.", _promoted)
def_class("MatMul", "Matrix product, with either operand transposed on the way.", **_TRANSPOSED)
def_class("BatchMatMul", "Matrix products of matching matrices.", **_TRANSPOSED)
def_class("DynamicShape", "The shape as int64, the dtype of number 9.", lambda self, x: F.dyn_shape(x), dtype=9)
def_class("Split", "Equal parts along an axis.", _parts, axis=0, output_num=1)
def_class("ReduceSum", "Sum over axes; with skip_mode no axes means no reduction.", _reduced, **_KEPT, skip_mode=False)
def_class("ReduceMean", "Mean over axes.", _reduced, **_KEPT)
def_class("ReduceMax", "Largest over axes.", _reduced, **_KEPT)
def_class("ReduceMin", "Smallest over axes.", _reduced, **_KEPT)
def_class("ReduceProd", "Product over axes.", _reduced, **_KEPT)
def_class("ReduceAll", "All true over axes.", _reduced, **_KEPT)
def_class("ReduceAny", "Any true over axes.", _reduced, **_KEPT)
def_class("ArgMaxWithValue", "Index and value of the largest element.", axis=0, **_KEPT)
def_class("ArgMinWithValue", "Index and value of the smallest element.", axis=0, **_KEPT)
def_class("CumSum", "Running sum along an axis.", _running, **_DIRECTION)
def_class("CumProd", "Running product along an axis.", _running, **_DIRECTION)
def_class("Slice", "A box of a tensor.", _box)
def_class("StridedSlice", "A slice with begin, end and stride per axis, and five bit masks.", _strided, **_BITS)
def_class("Softmax", "e ** x, scaled to sum 1 along an axis.", axis=-1)
def_class("LogSoftmax", "Logarithm of Softmax.", axis=-1)
def_class("GeLU", "Gauss error linear unit, with tanh.")
def_class("SoftmaxCrossEntropyWithLogits", "Losses per row, and the gradient of the logits.")
def_class("SparseSoftmaxCrossEntropyWithLogits", "Mean loss for class indices, or its gradient.", is_grad=False)
def_class("ApplyMomentum", "Momentum update in place.", use_nesterov=False, use_locking=False, gradient_scale=1.0)


class _DTypeOf(Primitive):
    """The dtype of a tensor."""

    def compute(self, x: Tensor) -> Type:
        return x.dtype


DType = _DTypeOf


class BiasAdd(Primitive):
    """x plus one number per channel."""

    def __init__(self, data_format: str = "NCHW") -> None:
        super().__init__(format=data_format)


class Unstack(Primitive, axis=0, num=None):
    """The tensors along an axis."""

    def compute(self, x: Tensor) -> tuple[Tensor, ...]:
        axis, count = self.attrs["axis"], self.attrs["num"]
        if count not in (None, x.shape[axis]):
            raise ValueError(
                f"For 'Unstack', the 'num' must be {x.shape[axis]}, the size of the axis, but got {count}."
            )
        return F.unstack(x, axis)


class Squeeze(Primitive):
    """Without axes of size 1."""

    def __init__(self, axis: int | tuple[int, ...] = ()) -> None:
        super().__init__(axis=(axis,) if isinstance(axis, int) else tuple(axis))


class BroadcastTo(Primitive):
    """The tensor repeated to a shape."""

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__(shape=tuple(shape))


class Argmax(Primitive):
    """Index of the largest element."""

    def __init__(self, axis: int = -1, output_type: Type = _int32) -> None:
        super().__init__(axis=axis, output_type=dtype_name(output_type))


class Argmin(Argmax):
    """Index of the smallest element."""


class Pad(Primitive):
    """Zeros around a tensor."""

    def __init__(self, paddings: Sequence[Sequence[int]]) -> None:
        super().__init__(paddings=tuple((int(before), int(after)) for before, after in paddings))


class Dropout(Primitive, keep_prob=0.5, Seed0=0, Seed1=0):
    """Zeros at random; returns the result and the mask."""

    def compute(self, x: Tensor) -> tuple[Tensor, ...]:
        seeds = self.attrs["Seed0"], self.attrs["Seed1"]
        return F.dropout_with_mask(x, self.attrs["keep_prob"], seeds[0] if any(seeds) else None, seeds[1])


class Dropout2D(Primitive, keep_prob=0.5):
    """Whole channels of (N, C, H, W) zero at random; returns the result and the mask."""

    def compute(self, x: Tensor) -> tuple[Tensor, ...]:
        keep_prob = self.attrs["keep_prob"]
        if isinstance(keep_prob, bool) or not isinstance(keep_prob, float | int) or not 0 <= keep_prob <= 1:
            raise ValueError(f"For '{self.name}', the 'keep_prob' must be in range [0, 1], but got {keep_prob!r}.")
        return _channels_with_mask(self.name, x, float(keep_prob))


class Dropout3D(Dropout2D):
    """Whole channels of (N, C, D, H, W) zero at random; returns the result and the mask."""


class Conv2D(Primitive):
    """2-D convolution of (N, C, H, W) with (O, C / group, kh, kw).   Source: attributes as in MindSpore's IR."""

    def __init__(
        self, out_channel: int, kernel_size: int | tuple[int, int], mode: int = 1, pad_mode: str = "valid",
        pad: int | tuple[int, ...] = 0, stride: int | tuple[int, ...] = 1, dilation: int | tuple[int, ...] = 1,
        group: int = 1, data_format: str = "NCHW",
    ) -> None:  # fmt: skip
        if mode != 1:
            raise ValueError(f"For 'Conv2D', the 'mode' must be 1, but got {mode!r}.")
        super().__init__(
            out_channel=out_channel,
            kernel_size=pair(kernel_size),
            mode=mode,
            pad_mode=pad_mode.lower(),
            pad=(pad,) * 4 if isinstance(pad, int) else tuple(pad),
            stride=(1, 1, *pair(stride)),
            dilation=(1, 1, *pair(dilation)),
            group=group,
            format=data_format,
        )


class _Pool(Primitive):
    """Base of poolings. `pad`: (top, bottom, left, right) for pad_mode "pad".

    Source: attributes as in MindSpore's IR; there only 3-D poolings take `pad`.
    """

    def __init__(
        self, kernel_size: int | tuple[int, ...] = 1, strides: int | tuple[int, ...] = 1, pad_mode: str = "valid",
        data_format: str = "NCHW", pad: tuple[int, int, int, int] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            kernel_size=(1, 1, *pair(kernel_size)),
            strides=(1, 1, *pair(strides)),
            pad_mode=pad_mode.upper(),
            format=data_format,
        )
        if pad is not None:
            self.attrs["pad"] = pad


class MaxPool(_Pool):
    """Largest element under a window."""


class AvgPool(_Pool):
    """Mean under a window."""


class BatchNorm(Primitive):
    """Normalisation per channel: x, scale, bias, mean, variance -> y and four statistics."""

    def __init__(
        self, is_training: bool = False, epsilon: float = 1e-5, momentum: float = 0.1, data_format: str = "NCHW"
    ) -> None:
        super().__init__(is_training=is_training, epsilon=epsilon, momentum=momentum, format=data_format)


def pair(value: Any) -> tuple[int, int]:
    """(h, w) of an int, a pair, or (1, 1, h, w)."""
    sizes = (value, value) if isinstance(value, int) else tuple(value)
    return int(sizes[-2]), int(sizes[-1])


_dumps = {each.__name__: each for each in (_TensorDump, _DumpGradient)}
_others = (
    functional_classes | _dumps | {name: vars(each)[name] for each in (_collectives, _hooks) for name in each.__all__}
)
globals().update(_others)
publish(__name__, *_others)

__getattr__ = explain_missing(__name__)
