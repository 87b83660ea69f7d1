"""Elements fetched, written and added by index or mask."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.registry import kernel

kernel("MaskedScatter")(torch.masked_scatter)
kernel("MaskedSelect")(torch.masked_select)

_REDUCTIONS = {"mul": "prod", "min": "amin", "max": "amax"}


@kernel("IndexByTensor")
def index_by_tensor(x: Any, *indices: Any, indices_mask: list[int]) -> Any:
    return torch.ops.aten.index.Tensor(x, _placed(indices, indices_mask))


@kernel("IndexPutV2", host=("indexed_sizes", "indexed_strides"))
def index_put(
    x: Any, value: Any, indexed_sizes: list[int], indexed_strides: list[int], *indices: Any, accumulate: bool
) -> Any:
    """indexed_sizes   1 for an axis that an index stands for"""
    return torch.ops.aten.index_put.default(x, _placed(indices, indexed_sizes), value, accumulate)


def _placed(indices: Any, mask: list[int]) -> list[Any]:
    rest = iter(indices)
    return [next(rest) if is_given else None for is_given in mask]


@kernel("GatherV2", host=("axis",), numbers=("indices",))
def gather(x: Any, indices: Any, axis: int, *, negative_index_support: bool = False) -> Any:
    """indices   a number takes the axis away, a tensor puts its own axes in its place"""
    if not isinstance(indices, torch.Tensor):
        return torch.select(x, axis, indices)
    if indices.dim() == 1:
        return torch.index_select(x, axis, indices)
    if axis == 0 and x.dim() == 2:
        return torch.embedding(x, indices)
    axis %= max(x.dim(), 1)
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    return torch.index_select(x, axis, indices.reshape(-1)).reshape(shape)


@kernel("EmbeddingDenseGrad")
def embedding_dense_grad(
    grad: Any,
    indices: Any,
    *,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Any:
    backward = torch.ops.aten.embedding_dense_backward.default
    return backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)


@kernel("GatherElements")
def gather_elements(x: Any, index: Any, *, dim: int) -> Any:
    return torch.gather(x, dim, index)


@kernel("ScatterElements")
def scatter_elements(data: Any, indices: Any, updates: Any, *, axis: int, reduction: str) -> Any:
    if reduction == "none":
        return torch.scatter(data, axis, indices, updates)
    if reduction == "add":
        return torch.scatter_add(data, axis, indices, updates)
    return torch.scatter_reduce(data, axis, indices, updates, _REDUCTIONS[reduction])


@kernel("InplaceIndexAdd", host=("alpha",))
def index_add(var: Any, indices: Any, updates: Any, alpha: Any, *, axis: int) -> Any:
    """A new tensor, in spite of the name."""
    return torch.index_add(var, axis, indices, updates, alpha=alpha)


@kernel("InplaceIndexFill", numbers=("value",))
def index_fill(x: Any, indices: Any, value: Any, *, dim: int) -> Any:
    """A new tensor, in spite of the name."""
    return torch.index_fill(x, dim, indices, value)


@kernel("NonZero")
def nonzero(x: Any, *, transpose: bool) -> Any:
    found = torch.nonzero(x)
    return found.T if transpose else found
