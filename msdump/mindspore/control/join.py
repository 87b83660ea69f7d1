"""Variables that branches and bodies write, and join: what two of them leave in one variable, as one thing.

Tensors must agree in dtype and shape, as in MindSpore; what is equal stays what it is; numbers that differ, or that
meet a tensor of the dtype that they would become, become tensors.
Source: MindSpore, "Type Join Failed", "Shape Join Failed".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CellType
from typing import Any

import numpy as np

from msdump.errors import BranchShapeError, BranchTypeError, GraphError
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.control.exits import PREFIX, RESULT
from msdump.mindspore.sources import user_line
from msdump.tensors import dtypes


@dataclass(frozen=True)
class Variables:
    """The cells of variables, by name."""

    cells: Mapping[str, CellType]

    @classmethod
    def of(cls, functions: Sequence[Callable[..., Any]], names: Sequence[str]) -> Variables:
        """Those of `names` that the functions share with the function around them."""
        cells = _cells(functions)
        return cls({name: cells[name] for name in names if name in cells})

    def read(self, name: str) -> Any:
        """Edges: UNBOUND for a variable that is not assigned."""
        return _content(self.cells[name])

    def read_all(self) -> dict[str, Any]:
        return {name: _content(cell) for name, cell in self.cells.items()}

    def write(self, name: str, value: Any) -> None:
        cell = self.cells[name]
        if value is not UNBOUND:
            cell.cell_contents = value
        elif _content(cell) is not UNBOUND:
            del cell.cell_contents

    def write_all(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            self.write(name, value)

    def with_cell(self, name: str, value: Any) -> Variables:
        """These and one more."""
        return Variables({**self.cells, name: CellType(value)})


@contextmanager
def unchanged(functions: Sequence[Callable[..., Any]], where: str) -> Iterator[None]:
    """What is traced inside may change variables alone.

    where   line of the script, for the message
    Raises: GraphError when it has changed a list, a dict, a set or an attribute that the functions see: the change
            would be there whatever branch runs.
    """
    seen = [(name, _content(cell)) for name, cell in _cells(functions).items()]
    before = [(name, thing, _state(thing)) for name, thing in seen if _state(thing) is not None]
    yield
    for name, thing, state in before:
        if not _is_same(state, _state(thing)):
            raise GraphError(
                f"{where}: expected a branch or a loop on a tensor's value to change variables and Parameters alone, "
                f"but it changed '{name}', a {type(thing).__name__}. Assign a new tuple or list to the variable, keep "
                "state in a Parameter, or run with set_context(mode=PYNATIVE_MODE)."
            )


def _cells(functions: Sequence[Callable[..., Any]]) -> dict[str, CellType]:
    cells: dict[str, CellType] = {}
    for function in functions:
        code, closure = getattr(function, "__code__", None), getattr(function, "__closure__", None)
        if code is not None and closure:
            cells.update(zip(code.co_freevars, closure, strict=True))
    return cells


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


def _state(thing: Any) -> list[Any] | None:
    """What can change in a thing; None where nothing is looked at."""
    if isinstance(thing, list):
        return list(thing)
    if isinstance(thing, dict):
        return [*thing, *thing.values()]
    if isinstance(thing, set):
        return sorted(thing, key=id)
    if hasattr(thing, "_cells") and hasattr(thing, "_params"):  # a Cell
        return [item for pair in vars(thing).items() for item in pair]
    return None


def _is_same(first: list[Any] | None, second: list[Any] | None) -> bool:
    if first is None or second is None or len(first) != len(second):
        return False
    return all(one is other for one, other in zip(first, second, strict=True))


class _Unbound:
    """What a variable holds before it is assigned."""

    def __repr__(self) -> str:
        return "nothing"


UNBOUND = _Unbound()
Taker = Callable[[Iterator[Tensor]], Any]
NUMBERS = (bool, int, float)


def tensor_of_number(number: bool | int | float) -> Tensor:
    """Dtypes: bool, int64, float32, as MindSpore's scalars."""
    return Tensor(number)


def as_same(name: str, thing: Any, other: Any) -> Any:
    """A number as a tensor where it meets a tensor that such a number might have become."""
    if not isinstance(thing, NUMBERS) or not isinstance(other, Tensor):
        return thing
    tensor = tensor_of_number(thing)
    return tensor if is_internal(name) or tensor.type_ == other.type_ else thing


def is_internal(name: str) -> bool:
    """Is it a variable that rewriting has added?"""
    return name.startswith(PREFIX)


class Join:
    """Collects the pairs of tensors that become one.   pairs: what either side gives; where: for messages."""

    def __init__(self, where: str) -> None:
        self.pairs: list[tuple[Tensor, Tensor]] = []
        self.where = where

    def join(self, name: str, first: Any, second: Any) -> Taker:
        """A function that takes the joined tensors of this thing and gives the thing.

        Raises: BranchTypeError, BranchShapeError.
        """
        if first is second:
            return lambda _: first
        if first is UNBOUND or second is UNBOUND:
            if name == RESULT:
                first, second = (zeros(second), second) if first is UNBOUND else (first, zeros(first))
            else:
                return lambda _: UNBOUND
        if isinstance(first, Tensor) or isinstance(second, Tensor):
            return self._tensor(name, first, second)
        if type(first) is not type(second):
            raise self._types(name, first, second)
        if isinstance(first, tuple | list) and len(first) == len(second):
            return self._items(name, first, second)
        if isinstance(first, dict) and list(first) == list(second):
            parts = [self.join(name, first[key], second[key]) for key in first]
            return lambda tensors: dict(zip(first, [part(tensors) for part in parts], strict=True))
        if isinstance(first, NUMBERS) and not _is_equal(first, second):
            return self._tensor(name, tensor_of_number(first), tensor_of_number(second))
        if _is_equal(first, second):
            return lambda _: first
        raise self._types(name, first, second)

    def _items(self, name: str, first: Sequence[Any], second: Sequence[Any]) -> Taker:
        parts = [self.join(name, one, other) for one, other in zip(first, second, strict=True)]
        kind: Any = type(first)

        def joined(tensors: Iterator[Tensor]) -> Any:
            items = [part(tensors) for part in parts]
            return kind(*items) if hasattr(kind, "_fields") else kind(items)

        return joined

    def _tensor(self, name: str, first: Any, second: Any) -> Taker:
        first, second = as_same(name, first, second), as_same(name, second, first)
        if not isinstance(first, Tensor) or not isinstance(second, Tensor):
            raise self._types(name, first, second)
        if first.dtype != second.dtype:
            raise BranchTypeError(
                f"{self._head(name)}: Type Join Failed: dtype1 = {first.dtype}, dtype2 = {second.dtype}. "
                "Cast one of them."
            )
        if first.shape != second.shape:
            raise BranchShapeError(
                f"{self._head(name)}: Shape Join Failed: shape1 = {first.shape}, shape2 = {second.shape}. "
                "Shapes must be known while the graph is traced: give both the same shape, or run with "
                "set_context(mode=PYNATIVE_MODE)."
            )
        self.pairs.append((first, second))
        return lambda tensors: next(tensors)

    def _types(self, name: str, first: Any, second: Any) -> BranchTypeError:
        return BranchTypeError(
            f"{self._head(name)}: Type Join Failed: {_kind(first)} cannot join with {_kind(second)}. "
            "Make both the same kind, such as Tensor(0.0) in place of 0."
        )

    def _head(self, name: str) -> str:
        what = "what is returned" if name in ("", RESULT) else f"the variable '{name}'"
        return f"{self.where}: Cannot join the return values of different branches, expected {what} to be equal in kind"


def _kind(thing: Any) -> str:
    return f"{thing.dtype}{list(thing.shape)}" if isinstance(thing, Tensor) else type(thing).__name__


def _is_equal(first: Any, second: Any) -> bool:
    """Objects of other kinds are equal only to themselves."""
    is_plain = isinstance(first, (*NUMBERS, str, bytes, type(None)))
    return is_plain and bool(first == second or (first != first and second != second))


def zeros(thing: Any) -> Any:
    """Of the same kind: stands where nothing has been returned yet, and nobody looks."""
    if isinstance(thing, Tensor):
        return Tensor(np.zeros(thing.shape, dtypes.dtype(thing.type_.dtype).numpy))
    if isinstance(thing, tuple | list):
        items = [zeros(item) for item in thing]
        return type(thing)(*items) if hasattr(thing, "_fields") else type(thing)(items)
    if isinstance(thing, dict):
        return {key: zeros(item) for key, item in thing.items()}
    return thing


def leaves(thing: Any) -> Iterator[Any]:
    """Tensors and numbers in nested tuples, lists and dicts."""
    if isinstance(thing, tuple | list):
        for item in thing:
            yield from leaves(item)
    elif isinstance(thing, dict):
        for item in thing.values():
            yield from leaves(item)
    else:
        yield thing


def replaced(thing: Any, new: Iterator[Any]) -> Any:
    """The same structure with other leaves."""
    if isinstance(thing, tuple | list):
        items = [replaced(item, new) for item in thing]
        return type(thing)(*items) if hasattr(thing, "_fields") else type(thing)(items)
    if isinstance(thing, dict):
        return {key: replaced(item, new) for key, item in thing.items()}
    return next(new)


def place() -> str:
    """The line of the script that is at work."""
    return user_line() or "construct"
