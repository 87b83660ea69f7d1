"""GE operators of distances and of places in an order."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.dtypes import dtype_of_number
from msdump.frontends.torchair.ge.registry import kernel

_aten = torch.ops.aten


@kernel("Cdist")
def cdist(x1: Any, x2: Any, *, p: float, compute_mode: int | None = None) -> Any:
    return _aten._cdist_forward.default(x1, x2, p, compute_mode)


@kernel("CdistGrad")
def cdist_grad(grad: Any, x1: Any, x2: Any, cdist: Any, *, p: float) -> Any:
    return _aten._cdist_backward.default(grad.contiguous(), x1, x2, p, cdist)


@kernel("SearchSorted")
def search_sorted(sorted_sequence: Any, values: Any, sorter: Any, *, dtype: int, right: bool) -> Any:
    is_short = dtype_of_number(dtype) is torch.int32
    return torch.searchsorted(sorted_sequence, values, out_int32=is_short, right=right, sorter=sorter)
