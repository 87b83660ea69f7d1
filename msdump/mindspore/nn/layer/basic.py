"""Dense, Flatten, Dropout, and small companions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msdump.mindspore.common.dtype import DType, float32
from msdump.mindspore.common.initializer import initializer, layer_initializers
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.checks import check_sizes
from msdump.mindspore.nn.declared import as_layer
from msdump.mindspore.nn.layer.activation import get_activation
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops import operations as P


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


publish(__name__)

__getattr__ = explain_missing(__name__)
