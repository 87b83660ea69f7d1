"""GE operators that each stand for one ATen operator, as rows: converter and kernel in one declaration."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from msdump.torchair.ge.builder import Builder, real
from msdump.torchair.ge.graph import GeTensor
from msdump.torchair.ge.registry import converter, kernel


def _as_it_is(value: object) -> object:
    return value


@dataclass(frozen=True, slots=True)
class Attr:
    """An argument that becomes an attribute.   write, read: from ATen's value to GE's, and back"""

    name: str
    write: Callable[[Any], object] = _as_it_is
    read: Callable[[Any], object] = _as_it_is


@dataclass(frozen=True, slots=True)
class Sizes:
    """An argument that becomes an input of sizes, which the kernel gets as Python values."""

    name: str


@dataclass(frozen=True, slots=True)
class Fixed:
    """An argument that GE does not have; the kernel calls with this value."""

    value: object


def numbers(*names: str) -> tuple[Attr, ...]:
    """Attributes that GE has as floats."""
    return tuple(Attr(name, real) for name in names)


def lists(*names: str) -> tuple[Attr, ...]:
    """Attributes that are lists of whole numbers."""
    return tuple(Attr(name, list) for name in names)


def axis(name: str) -> Attr:
    """An attribute of several axes, of which ATen has one."""
    return Attr(name, lambda dim: [dim], lambda axes: axes[0])


def choice(name: str, spellings: Sequence[str]) -> Attr:
    """An attribute as text, where ATen has a number."""
    return Attr(name, spellings.__getitem__, spellings.index)


def row(
    aten: str,
    op_type: str,
    *arguments: str | Attr | Sizes | Fixed,
    output: str = "y",
    order: str = "",
    is_cast: bool = False,
    attrs: Mapping[str, object] | None = None,
) -> Callable[..., GeTensor]:
    """Register a GE operator that computes what an ATen operator does; returns the converter, for others that need it.

    aten       as FX shows it, such as `aten.mish.default`
    arguments  what stands for each argument of the ATen operator, in its order; a text names an input. Those that are
               left out at the end are not written, and the kernel leaves them out, too
    output     names of the outputs, with spaces between
    order      names in the order of the GE operator's interface, where that is not ATen's
    is_cast    inputs are cast to the dtype of the result before
    attrs      attributes that are always the same
    """
    inputs = [
        argument if isinstance(argument, str) else argument.name
        for argument in arguments
        if isinstance(argument, str | Sizes)
    ]
    order_of_names = order.split() or [
        argument if isinstance(argument, str) else getattr(argument, "name", "") for argument in arguments
    ]
    fed = sorted(inputs, key=order_of_names.index)

    @converter(aten)
    def convert(ge: Builder, *args: Any, **keywords: Any) -> Any:
        unnamed = _overload(aten)._schema.arguments[len(args) :]
        rest = (keywords.get(argument.name, argument.default_value) for argument in unnamed)
        given: dict[str, Any] = {}
        written: dict[str, object] = dict(attrs or {})
        for argument, value in zip(arguments, (*args, *rest), strict=False):
            if isinstance(argument, str):
                given[argument] = ge.promoted(value, dtype=ge.result.dtype)[0] if is_cast else value
            elif isinstance(argument, Sizes):
                given[argument.name] = ge.sizes(value)
            elif isinstance(argument, Attr):
                written[argument.name] = argument.write(value)
        written = dict(
            sorted(written.items(), key=lambda item: order_of_names.index(item[0]) if item[0] in order_of_names else -1)
        )
        outputs = output.split()
        results: tuple[GeTensor, ...] = ge.multi_op(op_type, {name: given[name] for name in fed}, outputs, written)
        return results if len(outputs) > 1 else results[0]

    host = tuple(argument.name for argument in arguments if isinstance(argument, Sizes))
    is_plain = fed == list(arguments) and not attrs

    @kernel(op_type, host=host)
    def compute(*given: object, **settings: object) -> Any:
        if is_plain:
            return _overload(aten)(*given)
        values = []
        for argument in arguments:
            if isinstance(argument, Attr):
                values.append(argument.read(settings[argument.name]))
            elif isinstance(argument, Fixed):
                values.append(argument.value)
            else:
                values.append(given[fed.index(argument if isinstance(argument, str) else argument.name)])
        return _overload(aten)(*values)

    return convert


@functools.cache
def _overload(aten: str) -> Any:
    """Looked up when it is called: not every version of PyTorch has all of them."""
    found: Any = torch.ops
    for part in aten.split("."):
        found = getattr(found, part)
    return found
