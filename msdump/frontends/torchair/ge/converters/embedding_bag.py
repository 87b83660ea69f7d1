"""Bags of embeddings: the sum or the mean of rows."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge import placement
from msdump.frontends.torchair.ge.builder import Builder
from msdump.frontends.torchair.ge.converters.index import embedding_dense_backward
from msdump.frontends.torchair.ge.converters.size import sym_size
from msdump.frontends.torchair.ge.dtypes import ge_number
from msdump.frontends.torchair.ge.graph import GeTensor
from msdump.frontends.torchair.ge.registry import NoConverterError, converter

_MODES = ("sum", "mean", "max")


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


@converter("aten._embedding_bag_backward.default")
def embedding_bag_backward(
    ge: Builder,
    grad: GeTensor,
    indices: GeTensor,
    offsets: GeTensor,
    offset2bag: GeTensor,
    bag_size: GeTensor,
    max_indices: GeTensor,
    num_weights: Any,
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
    places = ge.op("Range", {"start": 0, "limit": limit, "delta": 1}, hints=placement.hints(None, indices.fake.device))
    inputs = {"sorted_sequence": ge.cast(offsets, torch.int64), "values": places, "sorter": None}
    attrs = {"dtype": ge_number(torch.int64), "right": True}
    after = ge.op("SearchSorted", inputs, attrs, output="out")
    return ge.op("Sub", {"x1": after, "x2": ge.const(1)})
