"""Cells that hold other cells in order, and the one that holds a loaded graph."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from typing import Any

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.mindir.reader import LoadedGraph
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell


def _children(args: tuple[Any, ...]) -> OrderedDict[str, Cell]:
    """Children by name: of cells, of one list, or of one OrderedDict.   Raises: TypeError for anything but cells."""
    if len(args) == 1 and isinstance(args[0], OrderedDict):
        named = OrderedDict(args[0])
    else:
        items = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
        named = OrderedDict((str(index), cell) for index, cell in enumerate(items))
    for cell in named.values():
        _check_cell(cell)
    return named


def _check_cell(cell: Any) -> None:
    if not isinstance(cell, Cell):
        raise TypeError(f"For containers, each cell must be subclass of Cell, but got type {type(cell).__name__}.")


class CellDict(Cell, MutableMapping[str, Cell]):
    """Cells by name, which the owner of the dictionary calls."""

    is_container = True
    __hash__, __eq__ = Cell.__hash__, Cell.__eq__

    def __init__(self, *args: Any, auto_prefix: bool = True) -> None:
        super().__init__(auto_prefix=auto_prefix)
        if len(args) > 1:
            raise TypeError(f"For 'CellDict', expected at most one argument, got {len(args)}.")
        self.update(*args)

    def __setitem__(self, key: str, cell: Cell) -> None:
        if not isinstance(key, str):
            raise TypeError(f"For 'CellDict', the type of key should be string but got {type(key).__name__}.")
        if not isinstance(cell, Cell) or isinstance(cell, _Ordered | CellDict):
            raise TypeError(f"For 'CellDict', expected a Cell that is no container, got {type(cell).__name__}.")
        if not key or "." in key or (key not in self._cells and hasattr(type(self), key)):
            raise KeyError(f"For 'CellDict', expected a key without '.' that is no attribute of Cell, but got {key!r}.")
        self._cells.pop(key, None)
        self.insert_child_to_cell(key, cell)

    def __getitem__(self, key: str) -> Cell:
        return self._cells[key]

    def __delitem__(self, key: str) -> None:
        self._cells[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def construct(self, *inputs: Any, **kwargs: Any) -> Any:
        """Raises: NotImplementedError: a dictionary is not called."""
        raise NotImplementedError("CellDict: expected calls of its cells, got a call of the dictionary. Look one up.")


class _Ordered(Cell):
    """What containers with numbered cells share: parameters are named after the place of their cell."""

    def append(self, cell: Cell) -> Any:
        """Add a cell at the end."""
        self._put(len(self), [cell])
        return self

    def extend(self, cells: Iterable[Cell]) -> Any:
        """Add cells at the end."""
        if not isinstance(cells, Iterable):
            raise TypeError(f"For '{self.cls_name}', the new cells must be a list, but got {type(cells).__name__}.")
        self._put(len(self), list(cells))
        return self

    def insert(self, index: int, cell: Cell) -> None:
        """Add a cell before that of an index.   Raises: IndexError for one that is not there."""
        if not -len(self) <= index <= len(self):
            raise IndexError(f"For '{self.cls_name}', expected an index within {len(self)} cells, got {index}.")
        self._put(index if index >= 0 else index + len(self), [cell])

    def _put(self, index: int, new: Sequence[Cell]) -> None:
        for cell in new:
            _check_cell(cell)
        cells = list(self._cells.values())
        self._set_cells([*cells[:index], *new, *cells[index:]])

    def _set_cells(self, cells: Sequence[Cell]) -> None:
        """Hold just these cells. Those whose place is another than before get the name of the new one."""
        prefix, before = self._prefix(), dict(self._cells)
        for name in before:
            delattr(self, name)
        for index, cell in enumerate(cells):
            name = str(index)
            stays = before.get(name) is cell
            self._cells[name] = cell
            object.__setattr__(cell, "scope_name", name)
            object.__setattr__(self, name, cell)
            if self._auto_prefix and not stays:
                cell.update_parameters_name(f"{prefix}{name}.")

    def _prefix(self) -> str:
        """What the names of this container's parameters begin with, after the cells that hold it."""
        for name, cell in self._cells.items():
            for place, parameter in cell.parameters_and_names():
                end = f"{name}.{place}"
                if parameter.name.endswith(end):
                    return parameter.name.removesuffix(end)
        return ""

    def _index(self, index: Any) -> int:
        if isinstance(index, Tensor):
            # Source: MindSpore: a tensor chooses a cell in a graph.
            index = operator.index(index)
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"For '{self.cls_name}', the type of 'index' must be int, but got {type(index).__name__}.")
        if not -len(self) <= index < len(self):
            raise IndexError(f"For '{self.cls_name}', expected an index of {len(self)} cells, got {index}.")
        return index % len(self)

    def __setitem__(self, index: int, cell: Cell) -> None:
        _check_cell(cell)
        cells = list(self._cells.values())
        cells[self._index(index)] = cell
        self._set_cells(cells)

    def __delitem__(self, index: int | slice) -> None:
        cells = list(self._cells.values())
        del cells[index if isinstance(index, slice) else self._index(index)]
        self._set_cells(cells)

    def __len__(self) -> int:
        return len(self._cells)

    def __bool__(self) -> bool:
        return len(self._cells) != 0

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells.values())


class SequentialCell(_Ordered):
    """Cells called one after another."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        for name, cell in _children(args).items():
            self.insert_child_to_cell(name, cell)

    def construct(self, input_data: Any) -> Any:
        for cell in self._cells.values():
            input_data = cell(input_data)
        return input_data

    def __getitem__(self, index: int | slice) -> Any:
        cells = list(self._cells.items())
        if isinstance(index, slice):
            return SequentialCell(OrderedDict(cells[index]))
        return cells[self._index(index)][1]


class CellList(_Ordered):
    """A list of cells, which the owner of the list calls."""

    is_container = True

    def __init__(self, *args: Any, auto_prefix: bool = True) -> None:
        super().__init__(auto_prefix=auto_prefix)
        self.extend(list(_children(args).values()))

    def __getitem__(self, index: int | slice) -> Any:
        cells = list(self._cells.values())
        return CellList(cells[index]) if isinstance(index, slice) else cells[self._index(index)]

    def __iadd__(self, cells: Iterable[Cell]) -> CellList:
        self.extend(cells)
        return self

    def construct(self, *inputs: Any, **kwargs: Any) -> Any:
        """Raises: NotImplementedError: a list is not called."""
        raise NotImplementedError("CellList: expected calls of its cells, got a call of the list. Loop over it.")


class GraphCell(Cell):
    """Runs what `mindspore.load` gave.   params_init: values for weights, by name."""

    def __init__(self, graph: Any, params_init: dict[str, Tensor] | None = None, obf_random_seed: Any = None) -> None:
        super().__init__()
        if obf_random_seed is not None:
            raise NotImplementedError("GraphCell: expected obf_random_seed=None. Obfuscated models are not read.")
        if not isinstance(graph, LoadedGraph):
            raise TypeError(
                "For 'GraphCell', the argument 'graph' must be a FuncGraph loaded from MindIR, "
                f"but got type {type(graph)}."
            )
        values = {} if params_init is None else params_init
        if not isinstance(values, dict):
            raise TypeError(f"For 'GraphCell', the argument 'params_init' must be a dict, but got {type(values)}.")
        object.__setattr__(self, "graph", graph)
        weights = {node: parameter.clone() for node, parameter in graph.parameters.items()}
        object.__setattr__(self, "_weights", weights)
        by_name = {parameter.name: parameter for parameter in weights.values()}
        for name, value in values.items():
            self._initialize(by_name, name, value)
        self._params.update(by_name)

    def _initialize(self, by_name: dict[str, Parameter], name: Any, value: Any) -> None:
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise TypeError(
                "For 'GraphCell', the key of the 'params_init' must be str, and the value must be Tensor or "
                f"Parameter, but got the key type: {type(name)}, and the value type: {type(value)}"
            )
        if name not in by_name:
            raise ValueError(f"For 'GraphCell', expected names of weights ({', '.join(by_name)}), but got {name}.")
        by_name[name].set_data(value)

    def construct(self, *inputs: Tensor) -> Any:
        return self.graph.run(inputs, self._weights)


publish(__name__)
