"""Inputs that `Cell.set_inputs` declares: tensors whose dimensions may be open, and calls that have to fit them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msdump.frontends.mindspore.common.tensor import OPEN, Tensor
from msdump.frontends.mindspore.structure import flatten


def has_open_shape(declared: Sequence[Any]) -> bool:
    """Does a dimension of any declared tensor stay open?"""
    leaves: list[Tensor] = []
    flatten(tuple(declared), leaves)
    return any(OPEN in leaf.shape for leaf in leaves)


def check_inputs(declared: Sequence[Any], args: Sequence[Any]) -> None:
    """Edges:  what is declared as anything but a tensor fits everything.

    Raises: ValueError when a call does not fit: in number, dtype, rank or a dimension that is not open.
    """
    if len(declared) != len(args):
        raise ValueError(f"set_inputs: expected {len(declared)} inputs as declared, got {len(args)}.")
    for at, (wanted, arg) in enumerate(zip(declared, args, strict=True)):
        if not isinstance(wanted, Tensor):
            continue
        if not isinstance(arg, Tensor):
            raise ValueError(f"set_inputs: expected a tensor as input {at}, got {type(arg).__name__}.")
        fits = len(wanted.shape) == len(arg.shape) and all(
            size in (OPEN, actual) for size, actual in zip(wanted.shape, arg.shape, strict=True)
        )
        if not fits or wanted.dtype != arg.dtype:
            shape = "[" + ", ".join("None" if size == OPEN else str(size) for size in wanted.shape) + "]"
            raise ValueError(
                f"set_inputs: expected {wanted.dtype} of shape {shape} as input {at}, got {arg.dtype} of shape "
                f"{list(arg.shape)}. Leave dimensions that change open with None."
            )
