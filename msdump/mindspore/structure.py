"""Structure: nested tuples, lists and dicts of tensors <-> a flat list of tensors and a hashable description."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import GeneratorType
from typing import Any

from msdump.graph.types import TensorType
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import OPEN, Tensor


@dataclass(frozen=True)
class Structure:
    """kind "tensor" (detail: its type), "tuple", "list", "dict" (detail: keys) or "constant" (detail: the object)."""

    kind: str
    detail: Any = None
    children: tuple[Structure, ...] = ()


@dataclass(frozen=True, eq=False)
class _Fixed:
    """Something that is part of the program, not data: equal to another of the same class and value."""

    object: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Fixed) or type(self.object) is not type(other.object):
            return False
        if self.object is other.object:
            return True
        return isinstance(self.object, _COMPARED) and bool(self.object == other.object)

    def __hash__(self) -> int:
        return hash(self.object) if isinstance(self.object, _COMPARED) else id(self.object)


_COMPARED = (bool, int, float, complex, str, bytes, type(None))


def is_same_constant(first: Any, second: Any) -> bool:
    """Are they one object, or equal numbers, strings or tuples of them?"""
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(is_same_constant, first, second))
    return _Fixed(first) == _Fixed(second)


def flatten(thing: Any, leaves: list[Tensor]) -> Structure:
    """Describe `thing` and append its tensors to `leaves`. Parameters and other objects are constants."""
    if isinstance(thing, Tensor) and not isinstance(thing, Parameter):
        leaves.append(thing)
        return Structure("tensor", thing.type_)
    if isinstance(thing, tuple | list):
        kind = "list" if isinstance(thing, list) else "tuple"
        return Structure(kind, None, tuple(flatten(item, leaves) for item in thing))
    if isinstance(thing, dict):
        return Structure("dict", tuple(thing), tuple(flatten(item, leaves) for item in thing.values()))
    return Structure("constant", _Fixed(thing))


def unflatten(structure: Structure, leaves: Iterator[Tensor]) -> Any:
    """The thing that `structure` describes, made of `leaves`."""
    if structure.kind == "tensor":
        return next(leaves)
    if structure.kind == "constant":
        return structure.detail.object
    items = [unflatten(child, leaves) for child in structure.children]
    if structure.kind == "dict":
        return dict(zip(structure.detail, items, strict=True))
    return items if structure.kind == "list" else tuple(items)


def without_iterators(thing: Any) -> Any:
    """`thing` with what iterators give in their places, also in tuples, lists and dicts.

    Source: MindSpore: a graph returns lists for generators, `filter`, and `map` over a list; tuples for the rest.
    """
    if isinstance(thing, GeneratorType | filter | map | zip | range | enumerate):
        is_list = isinstance(thing, GeneratorType | filter) or (isinstance(thing, map) and _is_over_list(thing))
        thing = list(thing) if is_list else tuple(thing)
    if isinstance(thing, dict):
        return {key: without_iterators(item) for key, item in thing.items()}
    if type(thing) in (tuple, list):
        items = [without_iterators(item) for item in thing]
        return items if isinstance(thing, list) else tuple(items)
    return thing


def _is_over_list(mapped: map[Any]) -> bool:
    return isinstance(mapped.__reduce__()[1][1], type(iter([])))


def tensor_types(structures: Sequence[Structure]) -> list[TensorType]:
    """Types of the tensors in the order of `flatten`."""
    types: list[TensorType] = []
    for structure in structures:
        if structure.kind == "tensor":
            types.append(structure.detail)
        types.extend(tensor_types(structure.children))
    return types


def count_tensors(structure: Structure) -> int:
    """How many tensors `structure` describes."""
    return len(tensor_types([structure]))


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
    for index, (expected, arg) in enumerate(zip(declared, args, strict=True)):
        if not isinstance(expected, Tensor):
            continue
        if not isinstance(arg, Tensor):
            raise ValueError(f"set_inputs: expected a tensor as input {index}, got {type(arg).__name__}.")
        fits = len(expected.shape) == len(arg.shape) and all(
            size in (OPEN, actual) for size, actual in zip(expected.shape, arg.shape, strict=True)
        )
        if not fits or expected.dtype != arg.dtype:
            shape = "[" + ", ".join("None" if size == OPEN else str(size) for size in expected.shape) + "]"
            raise ValueError(
                f"set_inputs: expected {expected.dtype} of shape {shape} as input {index}, got {arg.dtype} of shape "
                f"{list(arg.shape)}. Leave dimensions that change open with None."
            )
