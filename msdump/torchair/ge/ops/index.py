"""Elements fetched, written and added by index or mask; bags of embeddings: the sum or the mean of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from msdump.torchair.ge.builder import Builder, Feed, ge_number, placement_hints
from msdump.torchair.ge.graph import GeTensor, Operand, Scalar, Size
from msdump.torchair.ge.ops.size import sym_size
from msdump.torchair.ge.registry import NoConverterError, converter, kernel
from msdump.torchair.ge.rows import Attr, row

# Reductions as GE spells them; then back, as torch does.
_REDUCTIONS = {"sum": "add", "prod": "mul", "amin": "min", "amax": "max", "add": "add", "multiply": "mul"}
_TORCH_REDUCTIONS = {"mul": "prod", "min": "amin", "max": "amax"}
_MODES = ("sum", "mean", "max")


@converter("aten.index.Tensor", "aten._unsafe_index.Tensor")
def index(ge: Builder, x: GeTensor, indices: Sequence[GeTensor | None]) -> GeTensor:
    return ge.op("IndexByTensor", {"x": x, **_given(indices)}, {"indices_mask": _mask(indices)})


@kernel("IndexByTensor")
def index_by_tensor_kernel(x: torch.Tensor, *indices: torch.Tensor, indices_mask: list[int]) -> Any:
    return torch.ops.aten.index.Tensor(x, _placed(indices, indices_mask))


def _placed(indices: Sequence[torch.Tensor], mask: list[int]) -> list[torch.Tensor | None]:
    rest = iter(indices)
    return [next(rest) if is_given else None for is_given in mask]


@converter("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(
    ge: Builder, x: GeTensor, indices: Sequence[GeTensor | None], values: GeTensor, accumulate: bool = False
) -> GeTensor:
    mask = _mask(indices)
    inputs: dict[str, Feed] = {
        "x": x,
        "value": values,
        "indexed_sizes": mask,
        "indexed_strides": mask,
        **_given(indices),
    }
    return ge.op("IndexPutV2", inputs, {"accumulate": accumulate})


@kernel("IndexPutV2", host=("indexed_sizes", "indexed_strides"))
def index_put_kernel(
    x: torch.Tensor,
    value: torch.Tensor,
    indexed_sizes: list[int],
    indexed_strides: list[int],
    *indices: torch.Tensor,
    accumulate: bool,
) -> Any:
    """indexed_sizes   1 for an axis that an index stands for"""
    return torch.ops.aten.index_put.default(x, _placed(indices, indexed_sizes), value, accumulate)


def _mask(indices: Sequence[GeTensor | None]) -> list[int]:
    """1 for an axis that an index stands for."""
    return [int(index is not None) for index in indices]


def _given(indices: Sequence[GeTensor | None]) -> dict[str, GeTensor]:
    tensors = [index for index in indices if index is not None]
    return {f"indices{number}": tensor for number, tensor in enumerate(tensors)}


@converter("aten.index_select.default")
def index_select(ge: Builder, x: GeTensor, dim: int, index: GeTensor) -> GeTensor:
    return ge.op("GatherV2", {"x": x, "indices": index, "axis": dim})


@kernel("GatherV2", host=("axis",), numbers=("indices",))
def gather_kernel(
    x: torch.Tensor, indices: torch.Tensor | int, axis: int, *, negative_index_support: bool = False
) -> torch.Tensor:
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


embedding_dense_backward = row(
    "aten.embedding_dense_backward.default",
    "EmbeddingDenseGrad",
    "grad",
    "indices",
    *map(Attr, ("num_weights", "padding_idx", "scale_grad_by_freq")),
)
row("aten.gather.default", "GatherElements", "x", Attr("dim"), "index")
row("aten.masked_scatter.default", "MaskedScatter", "x", "mask", "updates")
row("aten.masked_select.default", "MaskedSelect", "x", "mask")


@converter("aten.scatter.src", "aten.scatter.reduce")
def scatter(ge: Builder, x: GeTensor, dim: int, index: GeTensor, src: GeTensor, reduce: str = "none") -> GeTensor:
    return _scatter(ge, x, dim, index, src, reduce)


@converter("aten.scatter.value", "aten.scatter.value_reduce")
def scatter_value(
    ge: Builder, x: GeTensor, dim: int, index: GeTensor, value: Operand, reduce: str = "none"
) -> GeTensor:
    shape = ge.op("Shape", {"x": index})
    if isinstance(value, GeTensor) and value.is_host:
        filled = ge.op("Fill", {"dims": shape, "value": value}, hints=placement_hints(None, x.fake.device))
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


@kernel("ScatterElements")
def scatter_elements_kernel(
    data: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor, *, axis: int, reduction: str
) -> torch.Tensor:
    if reduction == "none":
        return torch.scatter(data, axis, indices, updates)
    if reduction == "add":
        return torch.scatter_add(data, axis, indices, updates)
    return torch.scatter_reduce(data, axis, indices, updates, _TORCH_REDUCTIONS[reduction])


@converter("aten.index_add.default")
def index_add(ge: Builder, x: GeTensor, dim: int, index: GeTensor, source: GeTensor, alpha: Operand = 1) -> GeTensor:
    inputs = {"var": x, "indices": index, "updates": source, "alpha": ge.number(alpha, x.dtype)}
    return ge.op("InplaceIndexAdd", inputs, {"axis": dim})


@kernel("InplaceIndexAdd", host=("alpha",))
def index_add_kernel(
    var: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor, alpha: Scalar, *, axis: int
) -> torch.Tensor:
    """A new tensor, in spite of the name."""
    return torch.index_add(var, axis, indices, updates, alpha=alpha)


@converter("aten.index_copy.default")
def index_copy(ge: Builder, x: GeTensor, dim: int, index: GeTensor, source: GeTensor) -> GeTensor:
    mask = [0] * (dim % max(len(x.shape), 1)) + [1]
    inputs: dict[str, Feed] = {
        "x": x,
        "value": source,
        "indexed_sizes": mask,
        "indexed_strides": mask,
        "indices0": index,
    }
    return ge.op("IndexPutV2", inputs, {"accumulate": False})


@converter("aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor")
def index_fill(ge: Builder, x: GeTensor, dim: int, index: GeTensor, value: Operand) -> GeTensor:
    number = ge.number(value, x.dtype)
    return ge.op("InplaceIndexFill", {"x": x, "indices": index, "value": number}, {"dim": dim})


@kernel("InplaceIndexFill", numbers=("value",))
def index_fill_kernel(
    x: torch.Tensor, indices: torch.Tensor, value: torch.Tensor | Scalar, *, dim: int
) -> torch.Tensor:
    """A new tensor, in spite of the name."""
    return torch.index_fill(x, dim, indices, value)


@converter("aten.nonzero.default")
def nonzero(ge: Builder, x: GeTensor) -> GeTensor:
    return ge.op("NonZero", {"x": x}, {"transpose": False})


@kernel("NonZero")
def nonzero_kernel(x: torch.Tensor, *, transpose: bool) -> torch.Tensor:
    indices = torch.nonzero(x)
    return indices.T if transpose else indices


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
    perm = [dim for dim in range(rank + 1) if dim != axis + 1]
    return ge.op("Transpose", {"x": fetched, "perm": [*perm, axis + 1]})


@converter("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
def embedding_bag(
    ge: Builder,
    weight: GeTensor,
    indices: GeTensor,
    offsets: GeTensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: GeTensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[GeTensor, ...]:
    """Beside y come the three tensors that the gradient asks for; of those the kernel for inference has less."""
    inputs = {"weight": weight, "indices": indices, "offsets": offsets, "per_sample_weights": per_sample_weights}
    attrs = {
        "mode": _MODES[mode],
        "scale_grad_by_freq": scale_grad_by_freq,
        "sparse": sparse,
        "include_last_offset": include_last_offset,
        "padding_idx": padding_idx,
    }
    forward_only = "forward_only" in str(ge.node.target if ge.node is not None else "")
    outputs = ("y", "offset2bag", "bag_size", "max_indices")
    return ge.multi_op("EmbeddingBag", inputs, outputs, attrs, hints={"is_inference": True} if forward_only else None)


@kernel("EmbeddingBag")
def embedding_bag_kernel(
    weight: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    per_sample_weights: torch.Tensor | None,
    *,
    mode: str,
    scale_grad_by_freq: bool,
    sparse: bool,
    include_last_offset: bool,
    padding_idx: int,
    is_inference: bool = False,
) -> Any:
    """-> y, offset2bag, bag_size, max_indices"""
    function = torch.ops.aten._embedding_bag_forward_only if is_inference else torch.ops.aten._embedding_bag
    return function.default(
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        _MODES.index(mode),
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )


@converter("aten._embedding_bag_backward.default")
def embedding_bag_backward(
    ge: Builder,
    grad: GeTensor,
    indices: GeTensor,
    offsets: GeTensor,
    offset2bag: GeTensor,
    bag_size: GeTensor,
    max_indices: GeTensor,
    num_weights: Size,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: GeTensor | None,
    padding_idx: int = -1,
) -> GeTensor:
    """Each row gets the gradient of its bag, a mean its share. Equal to eager but for the order of sums.

    Raises: NoConverterError for a maximum, and for a sparse gradient.
    """
    if sparse or _MODES[mode] == "max":
        raise NoConverterError(
            "torch.ops.aten._embedding_bag_backward.default: expected mode sum or mean and sparse=False, got "
            f"mode={_MODES[mode]}, sparse={sparse}. Use another mode, or dump with config.debug.data_dump."
        )

    # What came with the result may be empty: ATen does not always fill it.
    bags = _bags(ge, indices, offsets)

    def of_bag(x: GeTensor) -> GeTensor:
        return ge.op("GatherV2", {"x": x, "indices": bags, "axis": 0})

    rows = of_bag(grad)
    if _MODES[mode] == "mean":
        shares = ge.op("Unsqueeze", {"x": ge.cast(of_bag(bag_size), grad.dtype)}, {"axes": [1]})
        rows = ge.op("RealDiv", {"x1": rows, "x2": shares})
    if per_sample_weights is not None:
        rows = ge.op("Mul", {"x1": rows, "x2": ge.op("Unsqueeze", {"x": per_sample_weights}, {"axes": [1]})})
    return embedding_dense_backward(ge, rows, indices, num_weights, padding_idx, scale_grad_by_freq)


def _bags(ge: Builder, indices: GeTensor, offsets: GeTensor) -> GeTensor:
    """Number of the bag that each index is in: the last one that starts at it or before."""
    count = indices.shape[0]
    limit = count if isinstance(count, int) else sym_size(ge, indices, 0)
    positions = ge.op(
        "Range", {"start": 0, "limit": limit, "delta": 1}, hints=placement_hints(None, indices.fake.device)
    )
    inputs = {"sorted_sequence": ge.cast(offsets, torch.int64), "values": positions, "sorter": None}
    attrs = {"dtype": ge_number(torch.int64), "right": True}
    after = ge.op("SearchSorted", inputs, attrs, output="out")
    return ge.op("Sub", {"x1": after, "x2": ge.const(1)})
