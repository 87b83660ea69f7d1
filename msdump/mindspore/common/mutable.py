"""`mutable`: arguments that MindSpore would else take for constants."""

from __future__ import annotations

from typing import Any

from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish


def mutable(input_data: Any, dynamic_len: bool = False) -> Any:
    """The same data: a tensor is a variable here wherever it stands, a number a constant of a graph of its own.

    Raises: TypeError for anything but numbers, tensors, and tuples, lists and dicts of them; for a `dynamic_len` of
    anything but a tuple or list.
    """
    if not _is_mutable(input_data):
        raise TypeError(
            "For 'mutable', the 'input_data' should be one of (bool, int, float, Tensor, tuple, list, dict) or their "
            f"nested structures with no self-reference, but got {type(input_data).__name__}: {input_data}."
        )
    if dynamic_len and not isinstance(input_data, tuple | list):
        raise TypeError(
            f"For 'mutable', with dynamic_len the 'input_data' should be list or tuple, but got {input_data}."
        )
    return input_data


def _is_mutable(data: Any) -> bool:
    if isinstance(data, tuple | list):
        return all(map(_is_mutable, data))
    if isinstance(data, dict):
        return all(map(_is_mutable, data.values()))
    return isinstance(data, bool | int | float | Tensor)


publish(__name__)
