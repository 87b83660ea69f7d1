"""Dense, Flatten, Dropout, Embedding, and small layers of numbers, matrices and pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from msdump.mindspore.common.declared import KINDS, Kind, variants
from msdump.mindspore.common.initializer import initializer, layer_initializers
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, call
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.declared import Declared, as_layer, layers
from msdump.mindspore.nn.layer.activation import get_activation
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops import operations as P
from msdump.mindspore.ops.layer_operators import clip_by_norm_of, extract_image_patches


class Dense(
    Declared,
    takes="in_channels:size out_channels:size weight_init=None bias_init=None has_bias=True activation=None "
    "dtype=float32",
    shows="input_channels:in_channels output_channels:out_channels has_bias",
):
    """x @ weight.T + bias: (..., in_channels) -> (..., out_channels). `bias` is None without `has_bias`."""

    bias: Parameter | None

    def _set_up(self, weight_init: Any, bias_init: Any, activation: Any, dtype: Any) -> None:
        weight_init, bias_init = layer_initializers(weight_init, bias_init, self.in_channels)
        self.weight = Parameter(initializer(weight_init, [self.out_channels, self.in_channels], dtype), name="weight")
        self.bias = (
            Parameter(initializer(bias_init, [self.out_channels], dtype), name="bias") if self.has_bias else None
        )
        self.matmul = P.MatMul(transpose_b=True)
        self.bias_add = P.BiasAdd()
        self.activation = get_activation(activation) if isinstance(activation, str) else activation

    def construct(self, x: Tensor) -> Tensor:
        shape = x.shape
        if x.ndim != 2:
            x = F.reshape(x, (-1, shape[-1]))
        x = self.matmul(x, self.weight)
        if self.bias is not None:
            x = self.bias_add(x, self.bias)
        if self.activation is not None:
            x = self.activation(x)
        if len(shape) != 2:
            x = F.reshape(x, (*shape[:-1], self.out_channels))
        return x


class BiDense(
    Declared,
    takes="in1_channels:size in2_channels:size out_channels:size weight_init=None bias_init=None has_bias:bool=True "
    "dtype=float32",
    shows="in1_channels in2_channels out_channels has_bias",
):
    """x @ weight @ y + bias of the last axes: (..., in1_channels), (..., in2_channels) -> (..., out_channels)."""

    def _set_up(self, weight_init: Any, bias_init: Any, dtype: Any) -> None:
        weight_init, bias_init = layer_initializers(weight_init, bias_init, self.in1_channels)
        sizes = [self.out_channels, self.in1_channels, self.in2_channels]
        self.weight = Parameter(initializer(weight_init, sizes, dtype), name="weight")
        self.bias = Parameter(initializer(bias_init, sizes[:1], dtype), name="bias") if self.has_bias else None

    def construct(self, input1: Tensor, input2: Tensor) -> Tensor:
        rows = F.matmul(F.reshape(input1, (-1, self.in1_channels)), self.weight)
        sums = F.transpose(F.sum(F.mul(rows, F.reshape(input2, (-1, self.in2_channels))), -1), (1, 0))
        return F.reshape(sums if self.bias is None else F.bias_add(sums, self.bias), (*input1.shape[:-1], -1))


@as_layer()
def Identity(x: Any) -> Any:
    """x itself."""
    return x


class Dropout(Declared, takes="keep_prob=0.5 p=None dtype=float32", shows="p"):
    """While training: zeros at random, the rest scaled up. `p` is the part that is dropped."""

    def _set_up(self, keep_prob: float, p: float | None, dtype: Any) -> None:
        if p is None and not 0 < keep_prob <= 1:
            raise ValueError(f"For 'Dropout', the 'keep_prob' should be a number in range (0, 1], but got {keep_prob}.")
        if p is not None and not 0 <= p < 1:
            raise ValueError(f"For 'Dropout', the 'p' should be a number in range [0, 1), but got {p}.")
        self.p = 1 - keep_prob if p is None else p

    def construct(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.p, self.training)


class _ChannelDropout(Declared, takes="p:part=0.5", shows="p"):
    """Base of dropouts of whole channels. `p` is the part that is dropped.   function: of this number of axes"""

    function: Callable[..., Tensor]

    def construct(self, x: Tensor) -> Tensor:
        return self.function(x, self.p) if self.training and self.p else x


_DROPOUTS = variants(
    _ChannelDropout,
    __name__,
    Dropout1d=("Channels of (N, C, L) or (C, L) zero at random in training.", {"function": staticmethod(F.dropout1d)}),
    Dropout2d=("Channels of (N, C, H, W) zero at random in training.", {"function": staticmethod(F.dropout2d)}),
    Dropout3d=("Channels of (N, C, D, H, W) zero at random in training.", {"function": staticmethod(F.dropout3d)}),
)
globals().update(_DROPOUTS)


class OneHot(Declared, takes="axis=-1 depth=1 on_value=1.0 off_value=0.0 dtype=float32"):
    """Indices as rows with one value at the index."""

    def _set_up(self, on_value: float, off_value: float) -> None:
        self.on_value, self.off_value = Tensor(on_value, self.dtype), Tensor(off_value, self.dtype)

    def construct(self, indices: Tensor) -> Tensor:
        return F.one_hot(indices, self.depth, self.on_value, self.off_value, self.axis)


class Pad(Declared, takes="paddings mode='CONSTANT'"):
    """Margins around a tensor: zeros, or mirrored with (SYMMETRIC) or without (REFLECT) the border."""

    def _set_up(self) -> None:
        paddings, mode = self.paddings, self.mode
        if mode not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
            raise ValueError(f"For 'Pad', the 'mode' must be CONSTANT, REFLECT or SYMMETRIC, but got {mode}.")
        if not isinstance(paddings, tuple):
            raise TypeError(f"For 'Pad', the type of 'paddings' must be tuple, but got {type(paddings).__name__}.")
        if len(paddings) > 4 or any(len(pair) != 2 for pair in paddings):
            raise ValueError(f"For 'Pad', only up to 4 'paddings' of 2 numbers are supported, but got {paddings}.")
        self.pad = P.Pad(paddings)

    def construct(self, x: Tensor) -> Any:
        return self.pad(x) if self.mode == "CONSTANT" else F.mirror_pad(x, self.paddings, self.mode)


class Embedding(
    Declared,
    takes="vocab_size embedding_size use_one_hot=False embedding_table='normal' dtype=float32 padding_idx=None",
    shows="vocab_size embedding_size use_one_hot",
):
    """One row of a table per index: (...) -> (..., embedding_size)."""

    def _set_up(self, embedding_table: Any, dtype: Any, padding_idx: int | None) -> None:
        table = Tensor(initializer(embedding_table, [self.vocab_size, self.embedding_size], dtype))
        if padding_idx is not None:
            table[padding_idx] = 0
        self.embedding_table = Parameter(table, name="embedding_table")

    def construct(self, ids: Tensor) -> Tensor:
        if not self.use_one_hot:
            return F.gather(self.embedding_table, ids)
        rows = F.one_hot(F.reshape(ids, (-1,)), self.vocab_size)
        return F.reshape(F.matmul(rows, self.embedding_table), (*ids.shape, self.embedding_size))


KINDS["axes"] = Kind((tuple, list))


class EmbeddingLookup(
    Declared,
    takes="vocab_size:size embedding_size:size param_init='normal' target='CPU' slice_mode='batch_slice' "
    "manual_shapes=None max_norm=None sparse=True vocab_cache_size=0 dtype=float32",
):
    """One row of a table per index; with `max_norm` no row is longer.   target: CPU reads through EmbeddingLookup."""

    def _set_up(self, param_init: Any, slice_mode: Any, manual_shapes: Any, vocab_cache_size: int, dtype: Any) -> None:
        if self.target not in ("CPU", "DEVICE") or vocab_cache_size:
            raise ValueError(
                f"For '{self.cls_name}', the 'target' must be CPU or DEVICE, and 'vocab_cache_size' 0 here, but got "
                f"{self.target} and {vocab_cache_size}."
            )
        if self.max_norm is not None and self.max_norm <= 0:
            raise ValueError(f"For '{self.cls_name}', the 'max_norm' must be > 0.0, but got {self.max_norm}.")
        table = initializer(param_init, [self.vocab_size, self.embedding_size], dtype)
        self.embedding_table = Parameter(table, name="embedding_table")

    def construct(self, indices: Tensor) -> Tensor:
        if self.target == "CPU":
            rows = call("EmbeddingLookup", self.embedding_table, indices, offset=0)
        else:
            rows = F.gather(self.embedding_table, indices)
        if self.max_norm is None:
            return rows
        return clip_by_norm_of(rows, as_tensor(self.max_norm, rows.type_.dtype), tuple(range(indices.ndim, rows.ndim)))


class Range(Declared, takes="start limit=None delta=1"):
    """A constant: numbers from start to limit (or 0 to start), delta apart; int32 or float32."""

    def _set_up(self, start: float, limit: float | None, delta: float) -> None:
        if delta == 0:
            raise ValueError(f"For 'Range', the 'delta' can not be zero, but got {delta}.")
        numbers = np.arange(start, limit, delta)
        self.result_tensor = Tensor(numbers.astype(np.float32 if numbers.dtype.kind == "f" else np.int32))

    def construct(self) -> Tensor:
        return self.result_tensor


@as_layer()
def ReduceLogSumExp(x: Tensor, *, axis: Any, keep_dims: bool = False) -> Tensor:
    """Logarithm of the sum of e ** x over axes."""
    largest = F.amax(x)
    return F.add(F.log(F.sum(F.exp(F.sub(x, largest)), axis, keep_dims)), largest)


@as_layer()
def Moments(x: Tensor, *, axis: Any = None, keep_dims: bool | None = None) -> tuple[Tensor, Tensor]:
    """(mean, variance) over axes."""
    wide = F.cast(x, "float32") if x.type_.dtype == "float16" else x
    axes = tuple(range(x.ndim)) if axis in (None, (), []) else axis
    mean = F.mean(wide, axes, True)
    variance = F.mean(F.square(F.sub(wide, F.stop_gradient(mean))), axes, True)
    both = (mean, variance) if keep_dims else (F.squeeze(mean, axes), F.squeeze(variance, axes))
    return F.cast(both[0], x.dtype), F.cast(both[1], x.dtype)


@as_layer()
def MatrixDiag(input_x: Tensor) -> Tensor:
    """Matrices with the last axis as their diagonals."""
    return F.mul(F.expand_dims(input_x, -2), F.eye(input_x.shape[-1], input_x.shape[-1], input_x.dtype))


class Unflatten(Declared, takes="axis:epochs unflattened_size:axes"):
    """One axis as several."""

    def construct(self, input_x: Tensor) -> Tensor:
        axis = self.axis % input_x.ndim
        return F.reshape(input_x, (*input_x.shape[:axis], *self.unflattened_size, *input_x.shape[axis + 1 :]))


@as_layer()
def MatMul(x1: Tensor, x2: Tensor, *, transpose_x1: bool = False, transpose_x2: bool = False) -> Tensor:
    """Matrix product, with either operand transposed on the way; batches broadcast."""
    if x1.ndim == 2 and x2.ndim == 2:
        return call("MatMul", x1, x2, transpose_a=transpose_x1, transpose_b=transpose_x2)
    first = F.swapaxes(x1, -1, -2) if transpose_x1 and x1.ndim > 1 else x1
    second = F.swapaxes(x2, -1, -2) if transpose_x2 and x2.ndim > 1 else x2
    return F.matmul(first, second)


class Norm(Declared, takes="axis=() keep_dims:bool=False", shows="axis keep_dims"):
    """2-norm over axes, by default over all."""

    def construct(self, x: Tensor) -> Tensor:
        axes = self.axis if isinstance(self.axis, int) else tuple(self.axis)
        result = F.sqrt(F.sum(F.square(x), axes, True))
        return result if self.keep_dims else F.squeeze(result, None if axes == () else axes)


@as_layer()
def ClipByNorm(x: Tensor, clip_norm: Any, *, axis: Any = None) -> Any:
    """x, scaled down where its 2-norm exceeds a number."""
    return clip_by_norm_of(x, as_tensor(clip_norm, x.type_.dtype), axis)


def _triangle(x: Tensor, k: int, of: Callable[..., Any]) -> Tensor:
    mask = of(np.ones(x.shape, np.float32), k)
    return F.cast(F.mul(F.cast(x, "float32"), Tensor(mask)), x.dtype)


@as_layer()
def Tril(x: Tensor, k: int = 0) -> Tensor:
    """x at and below diagonal k, 0 above."""
    return _triangle(x, k, np.tril)


@as_layer()
def Triu(x: Tensor, k: int = 0) -> Tensor:
    """x at and above diagonal k, 0 below."""
    return _triangle(x, k, np.triu)


class Unfold(Declared, takes="ksizes strides rates padding='valid'"):
    """Patches of (N, C, H, W) as channels; sizes are (1, rows, columns, 1)."""

    def _set_up(self, ksizes: Any, strides: Any, rates: Any) -> None:
        for name, sizes in (("ksizes", ksizes), ("strides", strides), ("rates", rates)):
            if not isinstance(sizes, tuple | list) or len(sizes) != 4 or sizes[0] != 1 or sizes[3] != 1:
                raise ValueError(f"For 'Unfold', '{name}' must be [1, rows, columns, 1], but got {sizes}.")
        if self.padding.lower() not in ("valid", "same"):
            raise ValueError(f"For 'Unfold', the 'padding' must be 'valid' or 'same', but got {self.padding}.")
        self._window = tuple((sizes[0], sizes[3], sizes[1], sizes[2]) for sizes in (ksizes, strides, rates))

    def construct(self, input_x: Tensor) -> Any:
        return extract_image_patches(input_x, *self._window, self.padding)


_TABLE = """
    LRN lrn input_x | depth_radius=5 bias=1.0 alpha=1.0 beta=0.5 norm_region='ACROSS_CHANNELS'
    Flatten flatten x | start_dim=1 end_dim=-1
    LGamma lgamma x
    PixelShuffle pixel_shuffle input | upscale_factor
    PixelUnshuffle pixel_unshuffle input | downscale_factor
    Upsample interpolate x | size=None scale_factor=None mode='nearest' align_corners=None recompute_scale_factor=None
"""

globals().update(layers(_TABLE, vars(F), __name__))

publish(__name__)

__getattr__ = explain_missing(__name__)
