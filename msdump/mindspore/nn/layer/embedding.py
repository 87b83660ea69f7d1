"""Embeddings: rows of a table by their indices."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.dtype import DType, float32
from msdump.mindspore.common.initializer import initializer
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, call
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.nn.checks import check_sizes
from msdump.mindspore.ops import function as F
from msdump.mindspore.ops.layer_operators import clip_by_norm_of


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


publish(__name__)

__getattr__ = explain_missing(__name__)
