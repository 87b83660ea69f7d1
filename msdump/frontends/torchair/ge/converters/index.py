"""Elements fetched, written and added by index or mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msdump.frontends.torchair.ge import placement
from msdump.frontends.torchair.ge.builder import Builder
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.registry import NoConverterError, converter

_REDUCTIONS = {"sum": "add", "prod": "mul", "amin": "min", "amax": "max", "add": "add", "multiply": "mul"}


@converter("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(ge: Builder, x: GeTensor, indices: Sequence[GeTensor | None]) -> GeTensor:
    return ge.op("IndexByTensor", {"x": x, **_given(indices)}, {"indices_mask": _mask(indices)})


@converter("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(
    ge: Builder, x: GeTensor, indices: Sequence[GeTensor | None], values: GeTensor, accumulate: bool = False
) -> GeTensor:
    mask = _mask(indices)
    inputs = {"x": x, "value": values, "indexed_sizes": mask, "indexed_strides": mask, **_given(indices)}
    return ge.op("IndexPutV2", inputs, {"accumulate": accumulate})


def _mask(indices: Sequence[GeTensor | None]) -> list[int]:
    """1 for an axis that an index stands for."""
    return [int(each is not None) for each in indices]


def _given(indices: Sequence[GeTensor | None]) -> dict[str, GeTensor]:
    given = [each for each in indices if each is not None]
    return {f"indices{number}": each for number, each in enumerate(given)}


@converter("aten.index_select.default")
def index_select(ge: Builder, x: GeTensor, dim: int, index: GeTensor) -> GeTensor:
    return ge.op("GatherV2", {"x": x, "indices": index, "axis": dim})


@converter("aten.embedding.default")
def embedding(
    ge: Builder,
    weight: GeTensor,
    indices: GeTensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> GeTensor:
    return ge.op("GatherV2", {"x": weight, "indices": indices, "axis": 0})


@converter("aten.embedding_dense_backward.default")
def embedding_dense_backward(
    ge: Builder, grad: GeTensor, indices: GeTensor, num_weights: Any, padding_idx: int, scale_grad_by_freq: bool
) -> GeTensor:
    attrs = {"num_weights": num_weights, "padding_idx": padding_idx, "scale_grad_by_freq": scale_grad_by_freq}
    return ge.op("EmbeddingDenseGrad", {"grad": grad, "indices": indices}, attrs)


@converter("aten.gather.default")
def gather(ge: Builder, x: GeTensor, dim: int, index: GeTensor, sparse_grad: bool = False) -> GeTensor:
    return ge.op("GatherElements", {"x": x, "index": index}, {"dim": dim})


@converter("aten.scatter.src", "aten.scatter.reduce")
def scatter(ge: Builder, x: GeTensor, dim: int, index: GeTensor, src: GeTensor, reduce: str = "none") -> GeTensor:
    return _scatter(ge, x, dim, index, src, reduce)


@converter("aten.scatter.value", "aten.scatter.value_reduce")
def scatter_value(ge: Builder, x: GeTensor, dim: int, index: GeTensor, value: Any, reduce: str = "none") -> GeTensor:
    shape = ge.op("Shape", {"x": index})
    if isinstance(value, GeTensor) and value.is_host:
        filled = ge.op("Fill", {"dims": shape, "value": value}, hints=placement.hints(None, x.fake.device))
        return _scatter(ge, x, dim, index, ge.cast(filled, x.dtype), reduce)
    updates = ge.op("BroadcastTo", {"x": ge.number(value, x.dtype), "shape": shape})
    return _scatter(ge, x, dim, index, updates, reduce)


@converter("aten.scatter_add.default")
def scatter_add(ge: Builder, x: GeTensor, dim: int, index: GeTensor, src: GeTensor) -> GeTensor:
    return _scatter(ge, x, dim, index, src, "add")


@converter("aten.scatter_reduce.two")
def scatter_reduce(
    ge: Builder, x: GeTensor, dim: int, index: GeTensor, src: GeTensor, reduce: str, include_self: bool = True
) -> GeTensor:
    """Raises: NoConverterError for a mean, and where x itself does not count: ScatterElements has neither."""
    if reduce not in _REDUCTIONS or not include_self:
        raise NoConverterError(
            f"torch.ops.aten.scatter_reduce.two: expected reduce sum, prod, amin or amax with include_self=True, got "
            f"reduce={reduce} with include_self={include_self}. Write it as scatter_add and a division."
        )
    return _scatter(ge, x, dim, index, src, reduce)


def _scatter(ge: Builder, x: GeTensor, dim: int, index: GeTensor, updates: GeTensor, reduce: str) -> GeTensor:
    inputs = {"data": x, "indices": index, "updates": updates}
    return ge.op("ScatterElements", inputs, {"axis": dim, "reduction": _REDUCTIONS.get(reduce, "none")})


@converter("aten.index_add.default")
def index_add(ge: Builder, x: GeTensor, dim: int, index: GeTensor, source: GeTensor, alpha: Any = 1) -> GeTensor:
    inputs = {"var": x, "indices": index, "updates": source, "alpha": ge.number(alpha, x.dtype)}
    return ge.op("InplaceIndexAdd", inputs, {"axis": dim})


@converter("aten.index_copy.default")
def index_copy(ge: Builder, x: GeTensor, dim: int, index: GeTensor, source: GeTensor) -> GeTensor:
    mask = [0] * (dim % max(len(x.shape), 1)) + [1]
    inputs = {"x": x, "value": source, "indexed_sizes": mask, "indexed_strides": mask, "indices0": index}
    return ge.op("IndexPutV2", inputs, {"accumulate": False})


@converter("aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor")
def index_fill(ge: Builder, x: GeTensor, dim: int, index: GeTensor, value: Any) -> GeTensor:
    number = ge.number(value, x.dtype)
    return ge.op("InplaceIndexFill", {"x": x, "indices": index, "value": number}, {"dim": dim})


@converter("aten.masked_scatter.default")
def masked_scatter(ge: Builder, x: GeTensor, mask: GeTensor, source: GeTensor) -> GeTensor:
    return ge.op("MaskedScatter", {"x": x, "mask": mask, "updates": source})


@converter("aten.masked_select.default")
def masked_select(ge: Builder, x: GeTensor, mask: GeTensor) -> GeTensor:
    return ge.op("MaskedSelect", {"x": x, "mask": mask})


@converter("aten.nonzero.default")
def nonzero(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("NonZero", {"x": x}, {"transpose": False})


@converter("aten.unfold.default")
def unfold(ge: Builder, x: GeTensor, dimension: int, size: int, step: int) -> GeTensor:
    """Windows along an axis: rows of indices, fetched, then their axis is moved to the end.

    Raises: NoConverterError for an open size of that axis.
    """
    rank = len(x.shape)
    if not rank:
        return ge.op("Reshape", {"x": x, "shape": [1]})
    axis = dimension % rank
    count = ge.result.shape[axis]
    if not isinstance(count, int):
        raise NoConverterError(
            f"torch.ops.aten.unfold.default: expected an axis {dimension} of known size, got {x.shape}. Compile with "
            "dynamic=False."
        )
    windows = [[first * step + offset for offset in range(size)] for first in range(count)]
    fetched = ge.op("GatherV2", {"x": x, "indices": ge.const(windows), "axis": axis})
    perm = [each for each in range(rank + 1) if each != axis + 1]
    return ge.op("Transpose", {"x": fetched, "perm": [*perm, axis + 1]})
