"""A text of tensors' values, and the line of it on standard output."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from msdump.frontends.torchair.ge.registry import kernel
from msdump.frontends.torchair.ops.tensor_text import filled, tensor_text


@kernel("StringFormat")
def string_format(*tensors: Any, template: str, placeholder: str, summarize: int) -> str:
    """A size is a list in Python's form.   Edges: "" for tensors without values, when the graph is compiled."""
    if any(isinstance(tensor, FakeTensor) for tensor in tensors):
        return ""
    return filled(template, placeholder, [_text(tensor, summarize) for tensor in tensors])


@kernel("PrintV2")
def print_text(x: str, *, output_stream: str, _kernel: str) -> tuple[()]:
    print(x, flush=True)
    return ()


def _text(value: Any, summarize: int) -> str:
    return tensor_text(value, summarize) if isinstance(value, torch.Tensor) else str(value)
