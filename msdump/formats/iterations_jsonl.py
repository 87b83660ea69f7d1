"""ms_iteration_order_graph_N.jsonl: what each iteration of a graph that was built while the program ran has executed.

A program that runs operator by operator need not do the same in every iteration. Its graph file holds each operator as
it first ran; this file says which of them an iteration ran, in which order, and who made what they read. Its keys are
in docs/formats/graphs.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from msdump.errors import FormatError
from msdump.formats.append_file import append_text
from msdump.formats.atomic import make_dirs, write_file
from msdump.storage.files import read_file

_MODE = 0o400
_MAX = 1 << 40
_MAX_OPERATORS = 1 << 22

# Of an input, who made it in this iteration: (graph, index of the operator, output); of what nobody made that was seen,
# a number that its readers in a graph have in common; None: nothing is known.
Maker: TypeAlias = "tuple[int, int, int] | int | None"


_NONE: Mapping[int, Mapping[str, object]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ExecutedOperators:
    """What an iteration has executed.

    order    indices of operators in `ms_execution_order_graph_N.csv`, in the order in which they ran
    makers   by index: of each input
    attributes  by index, of operators that have others than the graph file says
    """

    order: tuple[int, ...] = ()
    makers: Mapping[int, tuple[Maker, ...]] = field(default_factory=dict)
    attributes: Mapping[int, Mapping[str, Any]] = field(default_factory=dict, compare=False)


class IterationsFile:
    """The file of one graph, to which a process appends where an iteration differs from the one before."""

    def __init__(self, path: Path, graph_id: int) -> None:
        self._path = path
        self._graph_id = graph_id
        self._last: ExecutedOperators | None = None
        # What the last call was given.
        self._noted: ExecutedOperators | None = None
        self._iteration = -1

    def note(
        self, iteration: int, executed: ExecutedOperators, attributes: Mapping[int, Mapping[str, object]] = _NONE
    ) -> None:
        """An iteration has ended. The first one replaces the file of an earlier run.

        attributes   by index, of operators that have others than in the iteration before
        Raises: WriteError.
        """
        last = self._last
        is_same = executed is self._noted
        if last is not None and (is_same or last == executed) and iteration >= self._iteration and not attributes:
            self._iteration = iteration
            return
        known = {} if last is None else last.makers
        changed: dict[int, tuple[Maker, ...]] = {}
        if not is_same:
            changed = {index: makers for index, makers in executed.makers.items() if known.get(index) != makers}
        line: dict[str, Any] = {"iteration": iteration}
        if last is None or (not is_same and last.order != executed.order):
            line["order"] = _as_ranges(executed.order)
        if changed:
            line["inputs"] = {str(index): [self._shown(maker) for maker in makers] for index, makers in changed.items()}
        if attributes:
            line["attributes"] = {str(index): dict(values) for index, values in attributes.items()}
        text = json.dumps(line, separators=(",", ":")) + "\n"
        if last is None:
            make_dirs(self._path.parent)
            write_file(self._path, [text.encode()], _MODE, replace=True)
        else:
            append_text(self._path, text, _MODE)
        if not is_same:
            self._last = ExecutedOperators(executed.order, {**known, **executed.makers})
            self._noted = executed
        self._iteration = iteration

    def _shown(self, maker: Maker) -> list[int] | int | None:
        if maker is None or isinstance(maker, int):
            return maker
        return list(maker) if maker[0] != self._graph_id else list(maker[1:])


def read_iterations(path: str | os.PathLike[str], graph_id: int) -> list[tuple[int, ExecutedOperators]]:
    """First iteration that executed it, and what it executed; those in between did as the one before them.

    Edges:  a last line without its end was cut, and is left out. A line of an earlier iteration than the one before it
            is of a program that went back: what was known of later iterations is dropped.
    Raises: FormatError with the line's number; OSError when the file cannot be opened.
    """
    found: list[tuple[int, ExecutedOperators]] = []
    order: tuple[int, ...] = ()
    makers: dict[int, tuple[Maker, ...]] = {}
    attributes: dict[int, Mapping[str, Any]] = {}
    for number, line in enumerate(read_file(path).split(b"\n")[:-1], 1):
        where = f"{os.fspath(path)}, line {number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{where}: expected an object in JSON, got {line[:80]!r}.") from error
        if not isinstance(value, dict):
            raise FormatError(f"{where}: expected an object in JSON, got {line[:80]!r}.")
        iteration = _number(value.get("iteration"), f"{where}: iteration")
        if "order" in value:
            order = _from_ranges(value["order"], where)
        changed = value.get("inputs", {})
        if not isinstance(changed, dict):
            raise FormatError(f"{where}: inputs: expected an object, got {str(changed)[:80]}.")
        if changed:
            read = {_index(key, where, "inputs"): _makers(item, graph_id, where) for key, item in changed.items()}
            makers = {**makers, **read}
        others = value.get("attributes", {})
        if not isinstance(others, dict) or not all(isinstance(item, dict) for item in others.values()):
            raise FormatError(f"{where}: attributes: expected an object of objects, got {str(others)[:80]}.")
        if others:
            attributes = {**attributes, **{_index(key, where, "attributes"): item for key, item in others.items()}}
        while found and found[-1][0] >= iteration:
            found.pop()
        found.append((iteration, ExecutedOperators(order, makers, attributes)))
    return found


def _as_ranges(order: Sequence[int]) -> list[int | list[int]]:
    """Runs of ascending numbers as [first, last]."""
    ranges: list[int | list[int]] = []
    begin = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or order[end] != order[end - 1] + 1:
            first, last = order[begin], order[end - 1]
            if last - first > 1:
                ranges.append([first, last])
            else:
                ranges += order[begin:end]
            begin = end
    return ranges


def _from_ranges(value: object, where: str) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise FormatError(f"{where}: order: expected a list, got {str(value)[:80]}.")
    order: list[int] = []
    for item in value:
        if isinstance(item, list) and len(item) == 2:
            first, last = (_number(part, f"{where}: order") for part in item)
            if not first <= last < first + _MAX_OPERATORS:
                raise FormatError(f"{where}: order: expected [first, last], got {item}.")
            order += range(first, last + 1)
        else:
            order.append(_number(item, f"{where}: order"))
        if len(order) > _MAX_OPERATORS:
            raise FormatError(f"{where}: order: expected at most {_MAX_OPERATORS} operators, got more.")
    return tuple(order)


def _makers(value: object, graph_id: int, where: str) -> tuple[Maker, ...]:
    if not isinstance(value, list):
        raise FormatError(f"{where}: inputs: expected a list of makers, got {str(value)[:80]}.")
    return tuple(_maker(item, graph_id, where) for item in value)


def _maker(value: object, graph_id: int, where: str) -> Maker:
    if value is None:
        return None
    if isinstance(value, int):
        return _number(value, f"{where}: inputs")
    if not isinstance(value, list) or len(value) not in (2, 3):
        shape = "a number, [operator, output] or [graph, operator, output]"
        raise FormatError(f"{where}: inputs: expected {shape}, got {str(value)[:80]}.")
    parts: Iterable[object] = value if len(value) == 3 else [graph_id, *value]
    graph, index, output = (_number(part, f"{where}: inputs") for part in parts)
    return graph, index, output


def _index(key: str, where: str, part: str) -> int:
    if not (key.isascii() and key.isdigit() and len(key) <= 12):
        raise FormatError(f"{where}: {part}: expected the index of an operator, got {key[:80]!r}.")
    return int(key)


def _number(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MAX:
        raise FormatError(f"{where}: expected a number from 0, got {str(value)[:80]}.")
    return value
