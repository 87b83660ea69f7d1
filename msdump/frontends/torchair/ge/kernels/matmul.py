"""GE operators of matrix products."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.registry import kernel

kernel("Dot")(torch.dot)


@kernel("MatMul")
def matmul(x1: Any, x2: Any, bias: Any, *, transpose_x1: bool = False, transpose_x2: bool = False) -> Any:
    x1, x2 = x1.t() if transpose_x1 else x1, x2.t() if transpose_x2 else x2
    return torch.mm(x1, x2) if bias is None else torch.addmm(bias, x1, x2)


@kernel("MatMulV2")
def matmul_v2(
    x1: Any, x2: Any, bias: Any, offset_w: Any, *, transpose_x1: bool = False, transpose_x2: bool = False
) -> Any:
    """offset_w serves quantised weights, which torch's graphs do not have here; it is never fed."""
    return matmul(x1, x2, bias, transpose_x1=transpose_x1, transpose_x2=transpose_x2)


@kernel("BatchMatMul")
def batch_matmul(x1: Any, x2: Any, *, adj_x1: bool = False, adj_x2: bool = False) -> Any:
    return torch.bmm(x1.mT if adj_x1 else x1, x2.mT if adj_x2 else x2)
