"""Operators of `torch.ops.air`, which stand in a graph for calls of `torchair.ops`, and the text of `npu_print`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.fx.node import has_side_effect

from msdump.frontends.torch.convert import NoArrayError, array_from_value
from msdump.tensors.arrays import Array

# Source: TorchAir, names and arguments of its operators; `tensor_detail` is an argument of its own here.
_SCHEMAS = {
    "print": "print(Tensor[] tensors, str msg_format, str placeholder, int summarize_size, "
    "bool tensor_detail=False) -> ()",
    "record": "record(*, Device? device=None) -> Tensor",
    "wait": "wait(Tensor[] x) -> ()",
    "scope_enter": "scope_enter(str[] keys, str[] values) -> ()",
    "scope_exit": "scope_exit() -> ()",
    "tagged_event_record": "tagged_event_record(str tag, bool created_inside=False) -> ()",
    "tagged_event_wait": "tagged_event_wait(str tag, bool created_inside=False) -> ()",
    "record_tagged_stream": "record_tagged_stream(Tensor input, str tag) -> ()",
}
# The capturing mode of a name of its own has them under that name, too.
NAMESPACES = ("air", "npugraph_ex")
_libraries: dict[str, Any] = {
    name: torch.library.Library(name, "FRAGMENT")  # type: ignore[no-untyped-call]
    for name in NAMESPACES
}


def _print(
    tensors: Sequence[torch.Tensor], msg_format: str, placeholder: str, summarize_size: int, tensor_detail: bool = False
) -> None:
    texts = [tensor_text(tensor, summarize_size) for tensor in tensors]
    if tensor_detail:
        msg_format = detailed(msg_format, placeholder, [str(tensor.dtype) for tensor in tensors])
        texts = [text for pair in zip(texts, map(shape_text, tensors), strict=True) for text in pair]
    print(filled(msg_format, placeholder, texts), flush=True)


def detailed(template: str, placeholder: str, dtypes: Sequence[str]) -> str:
    """The template with a shape beside each tensor, to be filled in as well, and its dtype."""
    return filled(
        template, placeholder, [f"tensor({placeholder}, shape={placeholder}, dtype={dtype})" for dtype in dtypes]
    )


def shape_text(tensor: torch.Tensor) -> str:
    """The sizes as npu_print shows them, such as `[2, 3]`."""
    return str(list(tensor.shape))


def _record(*, device: torch.device | None = None) -> torch.Tensor:
    return torch.empty(0, device=device)


def _nothing(*_: object, **__: object) -> None:
    """What an operator without a result does to tensors that have no values."""


def _define(name: str, function: Callable[..., Any], fake: Callable[..., Any]) -> None:
    """Edges: an operator that another package has defined stays as it is."""
    for namespace, library in _libraries.items():
        operators = getattr(torch.ops, namespace)
        if not hasattr(operators, name):
            library.define(_SCHEMAS[name])
            library.impl(name, function, "CompositeExplicitAutograd")
            torch.library.register_fake(f"{namespace}::{name}", fake, lib=library)
        # Their results have no readers, and still no pass may take them out.
        has_side_effect(getattr(operators, name).default)


_define("print", _print, _nothing)
_define("record", _record, _record)
for _name in ("wait", "scope_enter", "scope_exit", "tagged_event_record", "tagged_event_wait", "record_tagged_stream"):
    _define(_name, _nothing, _nothing)

print_op, record_op, wait_op = torch.ops.air.print.default, torch.ops.air.record.default, torch.ops.air.wait.default
tagged_record_op = torch.ops.air.tagged_event_record.default
tagged_wait_op = torch.ops.air.tagged_event_wait.default
tagged_stream_op = torch.ops.air.record_tagged_stream.default
# Names of operators, in whichever of the namespaces.
PRINT, RECORD, WAIT = "print", "record", "wait"
TAGGED_RECORD, TAGGED_WAIT, TAGGED_STREAM = "tagged_event_record", "tagged_event_wait", "record_tagged_stream"
# What a pass of a script may put into a graph; in a function, `scope` marks the nodes themselves.
SCOPE_ENTER, SCOPE_EXIT = "scope_enter", "scope_exit"


def name_of(target: object) -> str:
    """Which of these operators a node calls; "" for any other one."""
    namespace, _, rest = str(target).partition(".")
    return rest.removesuffix(".default") if namespace in NAMESPACES and rest.endswith(".default") else ""


def placeholder_for(texts: Sequence[str]) -> str:
    """What stands for a tensor in a message: `{}`, or the first of `{0}`, `{1}`, ... that no text holds."""
    joined = " ".join(texts)
    placeholder, number = "{}", 0
    while placeholder in joined:
        placeholder = f"{{{number}}}"
        number += 1
    return placeholder


ELLIPSIS = "..."


def tensor_text(tensor: torch.Tensor, summarize_size: int) -> str:
    """`[1 2 3 ... 8 9 10]`; an axis more is a list of such rows, one a line.

    summarize_size  elements from both ends of an axis that is longer than twice as many; -1: all
    Dtypes:  bfloat16 and 8-bit floats are read as float32; a bool is 1 or 0.
    Edges:   0-d is the value alone; whole numbers have no point; no elements: `[]`; a tensor that has no values on
             the host says why in place of them.
    Source:  TorchAir, ops.npu_print.
    """
    try:
        return _array_text(array_from_value(tensor), summarize_size)
    except NoArrayError as error:
        return f"<{error}>"


def filled(template: str, placeholder: str, texts: Sequence[str]) -> str:
    """The template with texts in place of its placeholders, in order. A text that holds one stays as it is.

    Edges: placeholders beyond the last text stay, and texts beyond the last placeholder are left out.
    """
    pieces = template.split(placeholder, len(texts))
    # One text more than gaps: the last piece has none behind it.
    return "".join(piece + text for piece, text in zip(pieces, [*texts[: len(pieces) - 1], ""], strict=True))


def _array_text(array: Array, count: int) -> str:
    if array.ndim == 0:
        return _number_text(array[()])
    if array.size == 0:
        return "[]"
    separator = " " if array.ndim == 1 else "\n "
    if count < 0 or len(array) <= 2 * count:
        return f"[{separator.join(_array_text(row, count) for row in array)}]"
    first = [_array_text(row, count) for row in array[:count]]
    last = [_array_text(row, count) for row in array[-count:]]
    return f"[{separator.join([*first, ELLIPSIS, *last])}]"


def _number_text(value: object) -> str:
    if isinstance(value, np.bool_):
        return str(int(value))
    if isinstance(value, np.floating) and np.isfinite(value) and value == np.trunc(value):
        return f"{value:.0f}"
    return str(value.item() if isinstance(value, np.integer) else value)
