"""Cells that hold other cells in order."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from msdump.frontends.mindspore.names import publish
from msdump.frontends.mindspore.nn.cell import Cell


def _children(args: tuple[Any, ...]) -> OrderedDict[str, Cell]:
    """Children by name: of cells, of one list, or of one OrderedDict.   Raises: TypeError for anything but cells."""
    if len(args) == 1 and isinstance(args[0], OrderedDict):
        named = OrderedDict(args[0])
    else:
        items = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
        named = OrderedDict((str(index), cell) for index, cell in enumerate(items))
    for cell in named.values():
        if not isinstance(cell, Cell):
            raise TypeError(f"For containers, each cell must be subclass of Cell, but got type {type(cell).__name__}.")
    return named


class SequentialCell(Cell):
    """Cells called one after another."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        for name, cell in _children(args).items():
            self.insert_child_to_cell(name, cell)

    def append(self, cell: Cell) -> SequentialCell:
        """Add a cell at the end."""
        self.insert_child_to_cell(str(len(self)), cell)
        return self

    def construct(self, input_data: Any) -> Any:
        for cell in self._cells.values():
            input_data = cell(input_data)
        return input_data

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def __getitem__(self, index: int | slice) -> Any:
        cells = list(self._cells.values())
        return SequentialCell(cells[index]) if isinstance(index, slice) else cells[index]


class CellList(Cell):
    """A list of cells, which the owner of the list calls."""

    is_container = True

    def __init__(self, *args: Any, auto_prefix: bool = True) -> None:
        super().__init__(auto_prefix=auto_prefix)
        self.extend(list(_children(args).values()))

    def append(self, cell: Cell) -> CellList:
        """Add a cell at the end."""
        return self.extend([cell])

    def extend(self, cells: Iterable[Cell]) -> CellList:
        """Add cells at the end."""
        for cell in cells:
            self.insert_child_to_cell(str(len(self)), cell)
        return self

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def __getitem__(self, index: int | slice) -> Any:
        cells = list(self._cells.values())
        return CellList(cells[index]) if isinstance(index, slice) else cells[index]

    def construct(self, *inputs: Any, **kwargs: Any) -> Any:
        """Raises: NotImplementedError: a list is not called."""
        raise NotImplementedError("CellList: expected calls of its cells, got a call of the list. Loop over it.")


publish(__name__)
