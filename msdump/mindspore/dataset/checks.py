"""Checks of arguments that several datasets and transforms share."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump.errors import ConfigError, did_you_mean


def whole_number(where: str, value: Any, low: int = 1) -> int:
    """`value` as an int that is at least `low`.   Raises: TypeError, ConfigError."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{where}: expected an int, got {type(value).__name__} {value!r}.")
    number = int(value.__index__())
    if number < low:
        raise ConfigError(f"{where}: expected an int of at least {low}, got {number}.")
    return number


def probability(where: str, value: Any) -> float:
    """`value` as a float in [0, 1].   Raises: TypeError, ConfigError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{where}: expected a number, got {type(value).__name__} {value!r}.")
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"{where}: expected a number in [0, 1], got {value}.")
    return float(value)


def size_pair(where: str, value: Any) -> tuple[int, int]:
    """(height, width) from an int or a pair of ints.   Raises: TypeError, ConfigError."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        if len(value) != 2:
            raise ConfigError(f"{where}: expected an int or (height, width), got {tuple(value)}.")
        return whole_number(where, value[0]), whole_number(where, value[1])
    side = whole_number(where, value)
    return side, side


def borders(where: str, value: Any) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) from an int, two ints or all four.   Raises: TypeError, ConfigError."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        numbers = [whole_number(where, item, 0) for item in value]
        if len(numbers) == 2:
            return numbers[0], numbers[1], numbers[0], numbers[1]
        if len(numbers) == 4:
            return numbers[0], numbers[1], numbers[2], numbers[3]
        raise ConfigError(f"{where}: expected an int, 2 or 4 ints (left, top, right, bottom), got {tuple(value)}.")
    width = whole_number(where, value, 0)
    return width, width, width, width


def operations(where: str, transforms: Any) -> tuple[Callable[..., Any], ...]:
    """The transforms of a list.   Raises: TypeError, ConfigError for an empty one."""
    if not isinstance(transforms, Sequence) or not transforms:
        raise ConfigError(f"{where}: expected a list of at least one transform, got {transforms!r}.")
    for transform in transforms:
        if isinstance(transform, type) or not callable(transform):
            raise TypeError(f"{where}: expected transforms or functions, got {transform!r}.")
    return tuple(transforms)


def path_like(where: str, value: Any) -> str:
    """`value` as text.   Raises: TypeError for what is no path."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{where}: expected a path, got {type(value).__name__} {value!r}.")
    return os.fspath(value)


def existing_folder(where: str, folder: Any) -> Path:
    """`folder` as a path.   Raises: TypeError for what is no path, ConfigError when there is no such folder."""
    path = Path(path_like(f"{where}(dataset_dir)", folder))
    if not path.is_dir():
        what = "a file" if path.exists() else "nothing there"
        raise ConfigError(
            f"{where}(dataset_dir): expected a folder, got {what}: {os.fspath(folder)!r} "
            f"(in {os.getcwd()}). Check the path."
        )
    return path


def one_of(where: str, value: str | None, choices: Sequence[str]) -> None:
    """Raises: ConfigError with the nearest choice for what is neither None nor a choice."""
    if value is not None and value not in choices:
        hint = did_you_mean(str(value), list(choices))
        raise ConfigError(f"{where}: expected one of {list(choices)}, got {value!r}. {hint}".rstrip())


def column_names(where: str, value: Any) -> list[str] | None:
    """A list of column names from a str or a sequence of str; None stays None.   Raises: TypeError, ConfigError."""
    if value is None:
        return None
    names = [value] if isinstance(value, str) else list(value)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{where}: expected column names (str), got {type(name).__name__} {name!r}.")
        if not name:
            raise ConfigError(f"{where}: expected column names, got an empty one.")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ConfigError(f"{where}: expected each column once, got {repeated} more than once.")
    return names


def column_slots(where: str, have: Sequence[str], selected: Sequence[str]) -> list[int]:
    """Place of each wanted column.   Raises: ConfigError with the nearest name."""
    for name in selected:
        if name not in have:
            raise ConfigError(
                f"{where}: expected columns of {list(have)}, got {name!r}. {did_you_mean(name, have)}".rstrip()
            )
    return [have.index(name) for name in selected]


@dataclass(frozen=True)
class ColumnPlaces:
    """Where the outputs of a function of some columns stand in the row.

    Edges: as many outputs as inputs keep the places of the inputs; otherwise the outputs come first and the columns
           that are no input after them (MindSpore orders those by a hash table, here they keep their order).
    """

    names: tuple[str, ...]
    slots: tuple[int, ...]
    output_count: int

    @classmethod
    def of(cls, where: str, have: Sequence[str], inputs: Sequence[str], outputs: Sequence[str]) -> ColumnPlaces:
        """Raises: ConfigError for a column that is not there, or that would be there twice."""
        slots = column_slots(f"{where}(input_columns)", have, inputs)
        names = list(have)
        if len(outputs) == len(inputs):
            for slot, name in zip(slots, outputs, strict=True):
                names[slot] = name
        else:
            names = [*outputs, *(name for slot, name in enumerate(have) if slot not in slots)]
        column_names(f"{where}(output_columns)", names)
        return cls(tuple(names), tuple(slots), len(outputs))

    def merged(self, values: Sequence[Any], results: Sequence[Any]) -> tuple[Any, ...]:
        """The new row of the old `values` and the function's `results`."""
        if self.output_count != len(self.slots):
            return (*results, *(value for slot, value in enumerate(values) if slot not in self.slots))
        together = list(values)
        for slot, value in zip(self.slots, results, strict=True):
            together[slot] = value
        return tuple(together)
