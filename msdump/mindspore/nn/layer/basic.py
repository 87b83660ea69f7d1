"""Dense, Flatten, Dropout, Embedding, and small layers of numbers, matrices and pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from msdump.mindspore.common.dtype import DType, float32
from msdump.mindspore.common.initializer import initializer, layer_initializers
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, call
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.declared import as_layer, check_sizes
from msdump.mindspore.nn.layer.activation import get_activation
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops import operations as P
from msdump.mindspore.ops.layer_operators import clip_by_norm_of, extract_image_patches
from msdump.mindspore.ops.primitive import functional_classes


class Dense(Cell):
    """x @ weight.T + bias: (..., in_channels) -> (..., out_channels). `bias` is None without `has_bias`."""

    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Any = None,
        bias_init: Any = None,
        has_bias: bool = True,
        activation: Any = None,
        dtype: DType = float32,
    ) -> None:
        super().__init__()
        check_sizes("Dense", in_channels=in_channels, out_channels=out_channels)
        self.in_channels, self.out_channels, self.has_bias = in_channels, out_channels, has_bias
        weight_init, bias_init = layer_initializers(weight_init, bias_init, in_channels)
        self.weight = Parameter(initializer(weight_init, [out_channels, in_channels], dtype), name="weight")
        self.bias = None
        if has_bias:
            self.bias = Parameter(initializer(bias_init, [out_channels], dtype), name="bias")
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

    def extend_repr(self) -> str:
        return f"input_channels={self.in_channels}, output_channels={self.out_channels}, has_bias={self.has_bias}"


@as_layer()
def Flatten(x: Tensor, *, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """Axes start_dim to end_dim as one; by default all but the first."""
    return F.flatten(x, start_dim=start_dim, end_dim=end_dim)


@as_layer()
def Identity(x: Any) -> Any:
    """x itself."""
    return x


class Dropout(Cell):
    """While training: zeros at random, the rest scaled up. `p` is the part that is dropped."""

    def __init__(self, keep_prob: float = 0.5, p: float | None = None, dtype: DType = float32) -> None:
        super().__init__()
        if p is None and not 0 < keep_prob <= 1:
            raise ValueError(f"For 'Dropout', the 'keep_prob' should be a number in range (0, 1], but got {keep_prob}.")
        if p is not None and not 0 <= p < 1:
            raise ValueError(f"For 'Dropout', the 'p' should be a number in range [0, 1), but got {p}.")
        self.p = 1 - keep_prob if p is None else p

    def construct(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.p, self.training)

    def extend_repr(self) -> str:
        return f"p={self.p}"


class _ChannelDropout(Cell):
    """Base of dropouts of whole channels. `p` is the part that is dropped.   function: of this number of axes"""

    function: Callable[..., Tensor]

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if isinstance(p, bool) or not isinstance(p, float):
            raise TypeError(f"For '{self.cls_name}', the type of 'p' must be float, but got {type(p).__name__}.")
        if not 0 <= p < 1:
            raise ValueError(f"For '{self.cls_name}', the 'p' must be a number in range [0, 1), but got {p}.")
        self.p = p

    def construct(self, x: Tensor) -> Tensor:
        return self.function(x, self.p) if self.training and self.p else x

    def extend_repr(self) -> str:
        return f"p={self.p}"


class Dropout1d(_ChannelDropout):
    """While training: channels of (N, C, L) or (C, L) zero at random."""

    function = staticmethod(F.dropout1d)


class Dropout2d(_ChannelDropout):
    """While training: channels of (N, C, H, W) zero at random."""

    function = staticmethod(F.dropout2d)


class Dropout3d(_ChannelDropout):
    """While training: channels of (N, C, D, H, W) zero at random."""

    function = staticmethod(F.dropout3d)


class OneHot(Cell):
    """Indices as rows with one value at the index."""

    def __init__(
        self, axis: int = -1, depth: int = 1, on_value: float = 1.0, off_value: float = 0.0, dtype: DType = float32
    ) -> None:
        super().__init__()
        self.axis, self.depth, self.dtype = axis, depth, dtype
        self.on_value, self.off_value = Tensor(on_value, dtype), Tensor(off_value, dtype)

    def construct(self, indices: Tensor) -> Tensor:
        return F.one_hot(indices, self.depth, self.on_value, self.off_value, self.axis)


class Pad(Cell):
    """Margins around a tensor: zeros, or mirrored with (SYMMETRIC) or without (REFLECT) the border."""

    def __init__(self, paddings: tuple[tuple[int, int], ...], mode: str = "CONSTANT") -> None:
        super().__init__()
        if mode not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
            raise ValueError(f"For 'Pad', the 'mode' must be CONSTANT, REFLECT or SYMMETRIC, but got {mode}.")
        if not isinstance(paddings, tuple):
            raise TypeError(f"For 'Pad', the type of 'paddings' must be tuple, but got {type(paddings).__name__}.")
        if len(paddings) > 4 or any(len(pair) != 2 for pair in paddings):
            raise ValueError(f"For 'Pad', only up to 4 'paddings' of 2 numbers are supported, but got {paddings}.")
        self.paddings, self.mode = paddings, mode
        self.pad = P.Pad(paddings)

    def construct(self, x: Tensor) -> Any:
        return self.pad(x) if self.mode == "CONSTANT" else F.mirror_pad(x, self.paddings, self.mode)


class Embedding(Cell):
    """One row of a table per index: (...) -> (..., embedding_size)."""

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        use_one_hot: bool = False,
        embedding_table: Any = "normal",
        dtype: DType = float32,
        padding_idx: int | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size, self.embedding_size, self.use_one_hot = vocab_size, embedding_size, use_one_hot
        table = Tensor(initializer(embedding_table, [vocab_size, embedding_size], dtype))
        if padding_idx is not None:
            table[padding_idx] = 0
        self.embedding_table = Parameter(table, name="embedding_table")

    def construct(self, ids: Tensor) -> Tensor:
        if not self.use_one_hot:
            return F.gather(self.embedding_table, ids)
        rows = F.one_hot(F.reshape(ids, (-1,)), self.vocab_size)
        return F.reshape(F.matmul(rows, self.embedding_table), (*ids.shape, self.embedding_size))

    def extend_repr(self) -> str:
        return f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, use_one_hot={self.use_one_hot}"


class EmbeddingLookup(Cell):
    """One row of a table per index; with `max_norm` no row is longer.   target: CPU reads through EmbeddingLookup."""

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        param_init: Any = "normal",
        target: str = "CPU",
        slice_mode: str = "batch_slice",
        manual_shapes: Any = None,
        max_norm: float | None = None,
        sparse: bool = True,
        vocab_cache_size: int = 0,
        dtype: DType = float32,
    ) -> None:
        super().__init__()
        check_sizes(self.cls_name, vocab_size=vocab_size, embedding_size=embedding_size)
        if target not in ("CPU", "DEVICE"):
            raise ValueError(
                f"For '{self.cls_name}', the 'target' must be one of values in ('CPU', 'DEVICE'), but got {target}."
            )
        if max_norm is not None and max_norm <= 0:
            raise ValueError(f"For '{self.cls_name}', the 'max_norm' must be > 0.0, but got {max_norm}.")
        if vocab_cache_size:
            raise ValueError(f"For '{self.cls_name}', 'vocab_cache_size' must be 0 here, but got {vocab_cache_size}.")
        self.vocab_size, self.embedding_size, self.target = vocab_size, embedding_size, target
        self.max_norm, self.sparse = max_norm, sparse
        table = initializer(param_init, [vocab_size, embedding_size], dtype)
        self.embedding_table = Parameter(table, name="embedding_table")

    def construct(self, indices: Tensor) -> Tensor:
        if self.target == "CPU":
            rows = call("EmbeddingLookup", self.embedding_table, indices, offset=0)
        else:
            rows = F.gather(self.embedding_table, indices)
        if self.max_norm is not None:
            axes = tuple(range(indices.ndim, rows.ndim))
            rows = clip_by_norm_of(rows, as_tensor(self.max_norm, rows.type_.dtype), axes)
        return rows


class Range(Cell):
    """A constant: numbers from start to limit (or 0 to start), delta apart; int32 or float32."""

    def __init__(self, start: float, limit: float | None = None, delta: float = 1) -> None:
        super().__init__()
        if delta == 0:
            raise ValueError(f"For 'Range', the 'delta' can not be zero, but got {delta}.")
        numbers = np.arange(start, limit, delta)
        self.result_tensor = Tensor(numbers.astype(np.float32 if numbers.dtype.kind == "f" else np.int32))

    def construct(self) -> Tensor:
        return self.result_tensor


@as_layer()
def LGamma(x: Tensor) -> Any:
    """Logarithm of |gamma(x)|, as one operator."""
    return F.lgamma(x)


@as_layer()
def MatMul(x1: Tensor, x2: Tensor, *, transpose_x1: bool = False, transpose_x2: bool = False) -> Tensor:
    """Matrix product, with either operand transposed on the way; batches broadcast."""
    if x1.ndim == 2 and x2.ndim == 2:
        return call("MatMul", x1, x2, transpose_a=transpose_x1, transpose_b=transpose_x2)
    first = F.swapaxes(x1, -1, -2) if transpose_x1 and x1.ndim > 1 else x1
    second = F.swapaxes(x2, -1, -2) if transpose_x2 and x2.ndim > 1 else x2
    return F.matmul(first, second)


class Norm(Cell):
    """2-norm over axes, by default over all."""

    def __init__(self, axis: Any = (), keep_dims: bool = False) -> None:
        super().__init__()
        if not isinstance(keep_dims, bool):
            raise TypeError(f"For 'Norm', the type of 'keep_dims' must be bool, but got {type(keep_dims).__name__}.")
        self.axis, self.keep_dims = axis, keep_dims

    def construct(self, x: Tensor) -> Tensor:
        axes = self.axis if isinstance(self.axis, int) else tuple(self.axis)
        result = F.sqrt(F.sum(F.square(x), axes, True))
        return result if self.keep_dims else F.squeeze(result, None if axes == () else axes)

    def extend_repr(self) -> str:
        return f"axis={self.axis}, keep_dims={self.keep_dims}"


@as_layer()
def ClipByNorm(x: Tensor, clip_norm: Any, *, axis: Any = None) -> Any:
    """x, scaled down where its 2-norm exceeds a number."""
    return clip_by_norm_of(x, as_tensor(clip_norm, x.type_.dtype), axis)


@as_layer()
def Tril(x: Tensor, k: int = 0) -> Tensor:
    """x at and below diagonal k, 0 above."""
    mask = np.tril(np.ones(x.shape, np.float32), k)
    return F.cast(F.mul(F.cast(x, "float32"), Tensor(mask)), x.dtype)


@as_layer()
def Triu(x: Tensor, k: int = 0) -> Tensor:
    """x at and above diagonal k, 0 below."""
    mask = np.triu(np.ones(x.shape, np.float32), k)
    return F.cast(F.mul(F.cast(x, "float32"), Tensor(mask)), x.dtype)


@as_layer()
def PixelShuffle(input: Tensor, *, upscale_factor: int) -> Tensor:
    """(..., C * r * r, H, W) -> (..., C, H * r, W * r)."""
    return F.pixel_shuffle(input, upscale_factor)


@as_layer()
def PixelUnshuffle(input: Tensor, *, downscale_factor: int) -> Tensor:
    """(..., C, H * r, W * r) -> (..., C * r * r, H, W)."""
    return F.pixel_unshuffle(input, downscale_factor)


class ResizeBilinear(Cell):
    """Pictures of another size, by straight lines between elements; the layer of MindSpore 2.0."""

    def __init__(self, half_pixel_centers: bool = False) -> None:
        super().__init__()
        self.half_pixel_centers = half_pixel_centers

    def construct(
        self, x: Tensor, size: Sequence[int] | None = None, scale_factor: int | None = None, align_corners: bool = False
    ) -> Tensor:
        """Raises: ValueError for neither or both of `size`, (height, width), and `scale_factor`."""
        if (size is None) == (scale_factor is None):
            what = "none" if size is None else "not none"
            raise ValueError(f"For 'ResizeBilinear', the 'size' and 'scale' both {what}.")
        sizes = size or [each * (scale_factor or 1) for each in x.shape[2:]]
        make: Any = functional_classes["ResizeBilinear"]
        result: Tensor = make(sizes, align_corners, self.half_pixel_centers)(x)
        return result


class Unfold(Cell):
    """Patches of (N, C, H, W) as channels; sizes are (1, rows, columns, 1)."""

    def __init__(self, ksizes: Any, strides: Any, rates: Any, padding: str = "valid") -> None:
        super().__init__()
        for name, sizes in (("ksizes", ksizes), ("strides", strides), ("rates", rates)):
            if not isinstance(sizes, tuple | list) or len(sizes) != 4 or sizes[0] != 1 or sizes[3] != 1:
                raise ValueError(f"For 'Unfold', '{name}' must be [1, rows, columns, 1], but got {sizes}.")
        if padding.lower() not in ("valid", "same"):
            raise ValueError(f"For 'Unfold', the 'padding' must be 'valid' or 'same', but got {padding}.")
        self._window = tuple((sizes[0], sizes[3], sizes[1], sizes[2]) for sizes in (ksizes, strides, rates))
        self.padding = padding

    def construct(self, input_x: Tensor) -> Any:
        return extract_image_patches(input_x, *self._window, self.padding)


@as_layer()
def Upsample(
    x: Tensor,
    *,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Any:
    """Pictures of another size: nearest, linear, bilinear, bicubic, trilinear or area."""
    options = (size, scale_factor, mode, align_corners, recompute_scale_factor)
    return F.interpolate(x, *options)


publish(__name__)

__getattr__ = explain_missing(__name__)
