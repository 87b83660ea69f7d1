"""Embedding."""

from __future__ import annotations

from typing import Any

from msdump.frontends.mindspore.common.dtype import DType, float32
from msdump.frontends.mindspore.common.initializer import initializer
from msdump.frontends.mindspore.common.parameter import Parameter
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.nn.cell import Cell
from msdump.frontends.mindspore.ops import function as F


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
