"""The GE operator of bags of embeddings."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.registry import kernel

_MODES = {"sum": 0, "mean": 1, "max": 2}


@kernel("EmbeddingBag")
def embedding_bag(
    weight: Any,
    indices: Any,
    offsets: Any,
    per_sample_weights: Any,
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
        _MODES[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )
