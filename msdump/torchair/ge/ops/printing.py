"""npu_print: a text is made of the tensors' values, and printed on standard output."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch._subclasses.fake_tensor import FakeTensor

from msdump.torchair.ge.builder import Builder
from msdump.torchair.ge.graph import GeTensor
from msdump.torchair.ge.registry import converter, kernel
from msdump.torchair.ops import library


@converter(*(f"{namespace}.{library.PRINT}.default" for namespace in library.NAMESPACES))
def npu_print(
    ge: Builder,
    tensors: Sequence[GeTensor],
    msg_format: str,
    placeholder: str,
    summarize_size: int,
    tensor_detail: bool = False,
) -> None:
    """Source: TorchAir: StringFormat gets what GE can print, and PrintV2 its text."""
    shown = [ge.cast(tensor, torch.float32) if tensor.dtype == torch.bfloat16 else tensor for tensor in tensors]
    if tensor_detail:
        msg_format = library.detailed(msg_format, placeholder, [str(tensor.dtype) for tensor in tensors])
        shapes = [ge.op("Shape", {"x": tensor}) for tensor in tensors]
        shown = [item for pair in zip(shown, shapes, strict=True) for item in pair]
    attrs = {"template": msg_format, "placeholder": placeholder, "summarize": summarize_size}
    text = ge.op("StringFormat", {f"x{index}": tensor for index, tensor in enumerate(shown)}, attrs)
    ge.multi_op("PrintV2", {"x": text}, (), {"output_stream": "stdout", "_kernel": "extend"})


@kernel("StringFormat")
def string_format_kernel(*tensors: torch.Tensor | list[int], template: str, placeholder: str, summarize: int) -> str:
    """A size is a list in Python's form.   Edges: "" for tensors without values, when the graph is compiled."""
    if any(isinstance(tensor, FakeTensor) for tensor in tensors):
        return ""
    return library.filled(template, placeholder, [_text(tensor, summarize) for tensor in tensors])


def _text(value: object, summarize: int) -> str:
    return library.tensor_text(value, summarize) if isinstance(value, torch.Tensor) else str(value)


@kernel("PrintV2")
def print_text_kernel(x: str, *, output_stream: str, _kernel: str) -> tuple[()]:
    print(x, flush=True)
    return ()
