"""Picking, searching and sorting elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msdump.mindspore.common.dtype import Type
from msdump.mindspore.common.dtype import int32 as _int32
from msdump.mindspore.common.dtype import int64 as _int64
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dispatch import as_tensor, promoted
from msdump.mindspore.names import publish
from msdump.mindspore.ops.arithmetic import less, neg
from msdump.mindspore.ops.array import cast, expand_dims, gather, swapaxes, unstack
from msdump.mindspore.ops.declaration import operator, plain
from msdump.mindspore.ops.elementary import invert
from msdump.mindspore.ops.primitive import operator_class
from msdump.mindspore.ops.reductions import sum as _sum
from msdump.tensors import dtypes

# -- picking -----------------------------------------------------------------------------------------------------------


def _long(index: Any) -> Any:
    """PyTorch takes indices of int64."""
    return index.long()


@operator("GatherNd")
def gather_nd(torch: Any, input_x: Tensor, indices: Tensor) -> Any:
    """Elements, or slices, at the coordinates in the last axis of indices."""
    return input_x[tuple(torch.moveaxis(_long(indices), -1, 0))]


def index_select(input: Tensor, axis: int, index: Tensor) -> Tensor:
    """Slices along an axis, at the indices.   Raises: ValueError for indices of more than one axis."""
    if index.ndim > 1:
        raise ValueError(f"For 'index_select', the dimension of 'index' must be 1, but got {index.ndim}.")
    return gather(input, index, axis)


@operator("MaskedSelect", is_sized_by_data=True)
def masked_select(torch: Any, input: Tensor, mask: Tensor) -> Any:
    """The elements where mask is true, in one axis."""
    values, where = torch.broadcast_tensors(input, mask)
    return torch.reshape(values, (-1,))[torch.nonzero(torch.reshape(where, (-1,)))[:, 0]]


@operator("MaskedScatter")
def masked_scatter(torch: Any, input: Tensor, mask: Tensor, source: Tensor) -> Any:
    """A copy of input with the first elements of source where mask is true."""
    return torch.masked_scatter(input, mask, source)


@operator("NonZero", is_sized_by_data=True, has_gradient=False)
def _nonzero(torch: Any, input: Tensor) -> Any:
    """The coordinates of elements that are not zero, a row each."""
    return torch.nonzero(input != 0)


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The coordinates of elements that are not zero, a row each; with `as_tuple` a tensor per axis."""
    rows = _nonzero(input)
    return tuple(unstack(rows, 1)) if as_tuple else rows


def argwhere(input: Tensor) -> Any:
    """The coordinates of elements that are not zero, a row each."""
    return _nonzero(input)


def count_nonzero(x: Tensor, axis: Any = (), keep_dims: bool = False, dtype: Type = _int32) -> Tensor:
    """How many elements are not zero."""
    return _sum(cast(x != 0, dtype), axis, keep_dims)


@operator("CountNonZero", has_gradient=False)
def _count_nonzero(torch: Any, x: Tensor, dims: Any = None) -> Any:
    """How many elements are not zero; int64."""
    return torch.count_nonzero(x, dims)


def sequence_mask(lengths: Tensor, maxlen: int | None = None) -> Tensor:
    """Rows with as many true elements as lengths say, then false ones up to maxlen, else to the largest length."""
    if maxlen is None:
        maxlen = int(lengths._concrete("the largest length", "Give maxlen").max())
    return less(Tensor(np.arange(maxlen)), expand_dims(cast(lengths, _int64), -1))


# -- distinct elements -------------------------------------------------------------------------------------------------


@operator("UniqueConsecutive", is_sized_by_data=True, has_gradient=False)
def _unique_consecutive(
    torch: Any, input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Any, ...]:
    """Elements that differ from the one before, for each element its place among them, and how often each comes."""
    return tuple(torch.unique_consecutive(input, True, True, dim))


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Elements that differ from the one before; also each element's place among them, and how often each comes."""
    values, places, counts = _unique_consecutive(input, return_inverse, return_counts, dim)
    results = [values, *([places] if return_inverse else []), *([counts] if return_counts else [])]
    return tuple(results) if len(results) > 1 else values


@operator("UniqueWithPad", has_gradient=False)
def unique_with_pad(torch: Any, x: Tensor, pad_num: Tensor) -> tuple[Any, ...]:
    """Distinct elements by first appearance, filled up with pad_num, and each element's place among them; int32."""
    same = x[:, None] == x[None, :]
    first = torch.argmax(same.int(), 1)
    is_first = first == torch.arange(x.shape[0], device=first.device)
    rank = torch.cumsum(is_first, 0) - 1
    places = rank[first]
    padded = torch.broadcast_to(pad_num, x.shape).to(x.dtype)
    return torch.scatter(padded, 0, places, x), places.int()


# -- searching ---------------------------------------------------------------------------------------------------------


@operator("SearchSorted", init="dtype right", has_gradient=False)
def _search_sorted(
    torch: Any, sorted_sequence: Tensor, values: Tensor, sorter: Tensor | None = None, dtype: Type = _int64,
    right: bool = False,
) -> Any:  # fmt: skip
    """Where values would stand in sorted rows: before equal elements, or with `right` behind them."""
    order = None if sorter is None else _long(sorter)
    return torch.searchsorted(sorted_sequence, values, right=right, sorter=order).to(dtype)


def searchsorted(
    sorted_sequence: Any, values: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Tensor | None = None,
) -> Any:  # fmt: skip
    """Where values would stand in sorted rows: before equal elements, or with `right` behind them."""
    if side not in (None, "left", "right"):
        raise ValueError(f"For 'searchsorted', 'side' must be 'left' or 'right', but got {side!r}.")
    rows, sought = promoted(as_tensor(sorted_sequence), as_tensor(values))
    return _search_sorted(rows, sought, sorter, _int32 if out_int32 else _int64, right or side == "right")


@operator("Bucketize", has_gradient=False)
def _bucketize(torch: Any, input: Tensor, boundaries: Any, right: bool = True) -> Any:
    """How many boundaries are at or below each element; with right=False how many are below; int32."""
    numbers: Any = input
    edges = torch.tensor(boundaries, dtype=torch.float64, device=numbers.device)
    return torch.bucketize(numbers.double(), edges, right=right).int()


def bucketize(input: Tensor, boundaries: Sequence[float], *, right: bool = False) -> Any:
    """How many boundaries are below each element; with right also those that are equal; int32."""
    return _bucketize(input, boundaries, right)


@operator("LowerBound", init="out_type", has_gradient=False)
def _lower_bound(torch: Any, sorted_x: Tensor, values: Tensor, out_type: Type = _int32) -> Any:
    """For each row, where values would stand before equal elements."""
    return torch.searchsorted(sorted_x, values).to(out_type)


@operator("UpperBound", init="out_type", has_gradient=False)
def _upper_bound(torch: Any, sorted_x: Tensor, values: Tensor, out_type: Type = _int32) -> Any:
    """For each row, where values would stand behind equal elements."""
    return torch.searchsorted(sorted_x, values, right=True).to(out_type)


@operator("InTopK", init="k", has_gradient=False)
def intopk(torch: Any, x1: Tensor, x2: Tensor, k: int) -> Any:
    """Whether the element of each row that x2 names is among its k largest."""
    chosen = torch.gather(x1, 1, _long(x2)[:, None])
    return torch.logical_and((x1 > chosen).sum(1) < k, torch.isfinite(chosen[:, 0]))


@operator("ListDiff", init="out_idx", is_sized_by_data=True, has_gradient=False)
def _list_diff(torch: Any, x: Tensor, y: Tensor, out_idx: Type = _int32) -> tuple[Any, ...]:
    """The elements of x that are not in y, and their places."""
    places = torch.nonzero(~torch.isin(x, y))[:, 0]
    return x[places], places.to(out_idx)


# -- sorting -----------------------------------------------------------------------------------------------------------


@operator("Sort", init="axis descending")
def sort(torch: Any, input_x: Tensor, axis: int = -1, descending: bool = False) -> tuple[Any, ...]:
    """Elements sorted along an axis, and where they stood before; int32. Equal elements stay in their order."""
    values, order = torch.sort(input_x, dim=axis, descending=descending, stable=True)
    return values, order.int()


def argsort(input: Tensor, axis: int = -1, descending: bool = False) -> Any:
    """Where the elements stood that sorting puts in order; int32."""
    return sort(input, axis, descending)[1]


def msort(input: Tensor) -> Any:
    """Elements sorted along axis 0."""
    return sort(input, 0)[0]


@operator("TopK", init="sorted")
def _top_k(torch: Any, input: Tensor, k: int, sorted: bool = True) -> tuple[Any, ...]:
    """The k largest elements of each row in descending order, and their places; int32. Of equal ones the first."""
    values, order = torch.sort(input, dim=-1, descending=True, stable=True)
    return values[..., :k], order[..., :k].int()


def _reversed(input: Tensor) -> Tensor:
    """Elements in the opposite order, and back: the complement of integers, as a negation of theirs may wrap."""
    is_whole = dtypes.dtype(input.type_.dtype).kind in (dtypes.INT, dtypes.UINT)
    return invert(input) if is_whole else neg(input)


def topk(input: Tensor, k: int, dim: int | None = None, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest, or smallest, elements along an axis in their order, and their places; int32."""
    if input.type_.dtype == "bool":
        raise TypeError(f"TopK: expected input of a dtype of numbers, got {input.type_}. Cast it to int32.")
    axis, count = -1 if dim is None else dim, plain(k, "k")
    if not 0 < count <= input.shape[axis]:
        raise ValueError(f"TopK: expected k in (0, {input.shape[axis]}], got {count}.")
    is_last = axis % max(input.ndim, 1) == input.ndim - 1
    rows = input if is_last else swapaxes(input, axis, input.ndim - 1)
    values, places = _top_k(rows if largest else _reversed(rows), count, sorted)
    values = values if largest else _reversed(values)
    if is_last:
        return values, places
    return swapaxes(values, axis, input.ndim - 1), swapaxes(places, axis, input.ndim - 1)


def top_k(input_x: Tensor, k: int, sorted: bool = True) -> Any:
    """The k largest elements of each row in descending order, and their places; int32."""
    return _top_k(input_x, k, sorted)


@operator("NthElement", init="reverse")
def _nth_element(torch: Any, input: Tensor, n: int, reverse: bool = False) -> Any:
    """The n-th smallest, or with `reverse` largest, element of each row, counted from 0."""
    return torch.sort(input, dim=-1, descending=reverse).values[..., n]


# -- looking up --------------------------------------------------------------------------------------------------------


@operator("EmbeddingLookup", init="")
def _embedding_lookup(torch: Any, params: Tensor, indices: Tensor, offset: int) -> Any:
    """Rows of params at `indices - offset`; zeros for a row that it does not have."""
    places = indices - offset
    is_inside = (places >= 0) & (places < params.shape[0])
    rows = params[torch.where(is_inside, places, 0)]
    mask = torch.reshape(is_inside, (*places.shape, *(1,) * (params.ndim - 1)))
    return torch.where(mask, rows, torch.zeros_like(rows))


@operator_class("GatherV2", "SparseGatherV2")
def _gather(params: Tensor, indices: Tensor, axis: int) -> Tensor:
    return gather(params, indices, plain(axis, "axis"))


publish(__name__)
