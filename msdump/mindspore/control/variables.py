"""Variables of a rewritten function that its branches and bodies write, and what else these might change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CellType
from typing import Any

from msdump.errors import GraphError
from msdump.mindspore.control.join import UNBOUND


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
