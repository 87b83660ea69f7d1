"""Elementwise GE operators."""

from __future__ import annotations

from typing import Any

import torch

from msdump.frontends.torchair.ge.dtypes import dtype_of_number
from msdump.frontends.torchair.ge.registry import kernel

kernel("Add")(torch.add)
kernel("Sub")(torch.sub)
kernel("Mul")(torch.mul)
kernel("Relu")(torch.relu)


@kernel("Cast")
def cast(x: Any, *, dst_type: int) -> Any:
    return torch.as_tensor(x).to(dtype_of_number(dst_type))


@kernel("AxpyV2")
def axpy(x1: Any, x2: Any, alpha: Any) -> Any:
    return x1 + x2 * alpha
