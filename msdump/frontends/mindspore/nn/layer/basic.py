"""Dense, Flatten, Dropout, and small companions."""

from __future__ import annotations

import math
from typing import Any

from msdump.frontends.mindspore.common.dtype import DType, float32
from msdump.frontends.mindspore.common.initializer import HeUniform, Uniform, initializer
from msdump.frontends.mindspore.common.parameter import Parameter
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.names import publish
from msdump.frontends.mindspore.nn.cell import Cell
from msdump.frontends.mindspore.nn.layer.activation import get_activation
from msdump.frontends.mindspore.ops import function as F
from msdump.frontends.mindspore.ops import operations as P


class Dense(Cell):
    """x @ weight.T + bias: (..., in_channels) -> (..., out_channels). `bias` is None without `has_bias`."""

    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Any = "normal",
        bias_init: Any = "zeros",
        has_bias: bool = True,
        activation: Any = None,
    ) -> None:
        super().__init__()
        for name, number in (("in_channels", in_channels), ("out_channels", out_channels)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ValueError(f"For 'Dense', the '{name}' must be int and must > 0, but got {number!r}.")
        self.in_channels, self.out_channels, self.has_bias = in_channels, out_channels, has_bias
        if weight_init is None:
            weight_init = HeUniform(math.sqrt(5))
        self.weight = Parameter(initializer(weight_init, [out_channels, in_channels]), name="weight")
        self.bias = None
        if has_bias:
            if bias_init is None:
                bias_init = Uniform(1 / math.sqrt(in_channels))
            self.bias = Parameter(initializer(bias_init, [out_channels]), name="bias")
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


class Flatten(Cell):
    """Axes start_dim to end_dim as one; by default all but the first."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def construct(self, x: Tensor) -> Tensor:
        return F.flatten(x, start_dim=self.start_dim, end_dim=self.end_dim)


class Identity(Cell):
    """x itself."""

    def construct(self, x: Any) -> Any:
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
    """Zeros around a tensor."""

    def __init__(self, paddings: tuple[tuple[int, int], ...], mode: str = "CONSTANT") -> None:
        super().__init__()
        if mode != "CONSTANT":
            raise ValueError(f"For 'Pad', the 'mode' must be 'CONSTANT' here, but got {mode}.")
        self.pad = P.Pad(paddings)

    def construct(self, x: Tensor) -> Any:
        return self.pad(x)


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


publish(__name__)
