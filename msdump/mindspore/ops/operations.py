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
from msdump.mindspore.ops.channel_dropout import channels_dropped as _channels_dropped
from msdump.mindspore.ops.primitive import Primitive, functional_classes
from msdump.mindspore.ops.tensor_dump import DumpGradient as _DumpGradient
from msdump.mindspore.ops.tensor_dump import TensorDump as _TensorDump


class RealDiv(Primitive):
    """x / y in the common dtype."""

    def compute(self, x: Any, y: Any) -> Tensor:
        return call(self.name, *promoted(x, y))


class Div(RealDiv):
    """x / y in the common dtype; integers truncate toward zero."""


class _DTypeOf(Primitive):
    """The dtype of a tensor."""

    def compute(self, x: Tensor) -> Type:
        return x.dtype


DType = _DTypeOf


class MatMul(Primitive, transpose_a=False, transpose_b=False):
    """Matrix product, with either operand transposed on the way."""


class BatchMatMul(MatMul):
    """Matrix products of matching matrices."""


class Mod(RealDiv):
    """The remainder with the sign of x."""


class BinaryCrossEntropy(Primitive, reduction="mean"):
    """Cross entropy of probabilities with targets in [0, 1]."""

    def compute(self, logits: Tensor, labels: Tensor, weight: Tensor | None = None) -> Tensor:
        return F.binary_cross_entropy(logits, labels, weight, self.attrs["reduction"])


class BCEWithLogitsLoss(Primitive, reduction="mean"):
    """Cross entropy of sigmoid(predict) with targets in [0, 1]."""

    def compute(
        self, predict: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None
    ) -> Tensor:
        return F.binary_cross_entropy_with_logits(predict, target, weight, pos_weight, self.attrs["reduction"])


class BiasAdd(Primitive):
    """x plus one number per channel."""

    def __init__(self, data_format: str = "NCHW") -> None:
        super().__init__(format=data_format)


class Concat(Primitive, axis=0):
    """Tensors one after another."""

    def compute(self, tensors: Sequence[Tensor]) -> Tensor:
        return F.concat(tensors, self.attrs["axis"])


class Stack(Concat):
    """Tensors along a new axis."""

    def compute(self, tensors: Sequence[Tensor]) -> Tensor:
        return F.stack(tensors, self.attrs["axis"])


class Unstack(Primitive, axis=0, num=None):
    """The tensors along an axis."""

    def compute(self, x: Tensor) -> tuple[Tensor, ...]:
        axis, count = self.attrs["axis"], self.attrs["num"]
        if count not in (None, x.shape[axis]):
            raise ValueError(
                f"For 'Unstack', the 'num' must be {x.shape[axis]}, the size of the axis, but got {count}."
            )
        return F.unstack(x, axis)


class DynamicShape(Primitive, dtype=9):
    """The shape as a tensor of int64, which is the dtype that the number 9 stands for."""

    def compute(self, x: Tensor) -> Tensor:
        return F.dyn_shape(x)


class Split(Primitive, axis=0, output_num=1):
    """Equal parts along an axis."""

    def compute(self, x: Tensor) -> tuple[Tensor, ...]:
        return execute(self.name, [x], self.attrs)


class Squeeze(Primitive):
    """Without axes of size 1."""

    def __init__(self, axis: int | tuple[int, ...] = ()) -> None:
        super().__init__(axis=(axis,) if isinstance(axis, int) else tuple(axis))


class BroadcastTo(Primitive):
    """The tensor repeated to a shape."""

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__(shape=tuple(shape))


class Gather(Primitive, batch_dims=0):
    """Slices along an axis, at the indices."""

    def compute(self, input_params: Tensor, input_indices: Tensor, axis: int) -> Tensor:
        return F.gather(input_params, input_indices, axis, self.attrs["batch_dims"])


class OneHot(Primitive, axis=-1):
    """on_value at the position that each index names."""

    def compute(self, indices: Tensor, depth: int, on_value: Any, off_value: Any) -> Tensor:
        return F.one_hot(indices, depth, on_value, off_value, self.attrs["axis"])


class _Reduce(Primitive, keep_dims=False):
    """Base of reductions: the axis comes with the call."""

    def compute(self, x: Tensor, axis: Any = ()) -> Tensor:
        axes = int(axis) if isinstance(axis, int) else tuple(axis)
        return call(self.name, x, axis=axes, **self.attrs)


class ReduceSum(_Reduce, keep_dims=False, skip_mode=False):
    """Sum over axes; with skip_mode no axes means no reduction."""


class ReduceMean(_Reduce):
    """Mean over axes."""


class ReduceMax(_Reduce):
    """Largest over axes."""


class ReduceMin(_Reduce):
    """Smallest over axes."""


class ReduceProd(_Reduce):
    """Product over axes."""


class ReduceAll(_Reduce):
    """All true over axes."""


class ReduceAny(_Reduce):
    """Any true over axes."""


class Argmax(Primitive):
    """Index of the largest element."""

    def __init__(self, axis: int = -1, output_type: Type = _int32) -> None:
        super().__init__(axis=axis, output_type=dtype_name(output_type))


class Argmin(Argmax):
    """Index of the smallest element."""


class ArgMaxWithValue(Primitive, axis=0, keep_dims=False):
    """Index and value of the largest element."""


class ArgMinWithValue(ArgMaxWithValue):
    """Index and value of the smallest element."""


class CumSum(Primitive, exclusive=False, reverse=False):
    """Running sum along an axis."""

    def compute(self, x: Tensor, axis: int) -> Tensor:
        return call(self.name, x, axis=axis, **self.attrs)


class CumProd(CumSum, exclusive=False, reverse=False):
    """Running product along an axis."""


class StridedSlice(Primitive, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0):
    """A slice with a begin, an end and a stride per axis, and five bit masks."""

    def compute(self, x: Tensor, begin: Sequence[int], end: Sequence[int], strides: Sequence[int]) -> Tensor:
        return call(self.name, x, begin=tuple(begin), end=tuple(end), strides=tuple(strides), **self.attrs)


class Slice(Primitive):
    """A box of a tensor."""

    def compute(self, x: Tensor, begin: Sequence[int], size: Sequence[int]) -> Tensor:
        return call(self.name, x, begin=tuple(begin), size=tuple(size))


class Pad(Primitive):
    """Zeros around a tensor."""

    def __init__(self, paddings: Sequence[Sequence[int]]) -> None:
        super().__init__(paddings=tuple((int(before), int(after)) for before, after in paddings))


class Softmax(Primitive, axis=-1):
    """e ** x, scaled to sum 1 along an axis."""


class LogSoftmax(Softmax):
    """Logarithm of Softmax."""


class GeLU(Primitive):
    """Gauss error linear unit, with tanh."""


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
        return _channels_dropped(self.name, x, float(keep_prob))


class Dropout3D(Dropout2D):
    """Whole channels of (N, C, D, H, W) zero at random; returns the result and the mask."""


class Conv2D(Primitive):
    """2-D convolution of (N, C, H, W) with (O, C / group, kh, kw).   Source: attributes as in MindSpore's IR."""

    def __init__(
        self,
        out_channel: int,
        kernel_size: int | tuple[int, int],
        mode: int = 1,
        pad_mode: str = "valid",
        pad: int | tuple[int, ...] = 0,
        stride: int | tuple[int, ...] = 1,
        dilation: int | tuple[int, ...] = 1,
        group: int = 1,
        data_format: str = "NCHW",
    ) -> None:
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
        self,
        kernel_size: int | tuple[int, ...] = 1,
        strides: int | tuple[int, ...] = 1,
        pad_mode: str = "valid",
        data_format: str = "NCHW",
        pad: tuple[int, int, int, int] | None = None,
    ) -> None:
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


class SoftmaxCrossEntropyWithLogits(Primitive):
    """Losses per row, and the gradient of the logits."""


class SparseSoftmaxCrossEntropyWithLogits(Primitive, is_grad=False):
    """Mean loss for class indices, or with is_grad its gradient."""


class ApplyMomentum(Primitive, use_nesterov=False, use_locking=False, gradient_scale=1.0):
    """Momentum update in place."""


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
