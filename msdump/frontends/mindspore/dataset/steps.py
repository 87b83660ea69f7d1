"""The steps of a pipeline that move, stack, pick and repeat rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from msdump.arrays import Array
from msdump.errors import ConfigError, ExecutionError
from msdump.frontends.mindspore.dataset import checks
from msdump.frontends.mindspore.dataset.pipeline import ColumnNames, Dataset, step
from msdump.frontends.mindspore.dataset.rows import Pass, Row, Values, constant

ENDLESS = -1


@step
class BatchDataset(Dataset):
    """`batch_size` rows stacked into one."""

    def __init__(self, child: Dataset, batch_size: int, drop_remainder: bool) -> None:
        if not isinstance(drop_remainder, bool):
            raise TypeError(f"batch(drop_remainder): expected a bool, got {type(drop_remainder).__name__}.")
        self._child = child
        self._batch_size = checks.whole_number("batch(batch_size)", batch_size)
        self._drops_remainder = drop_remainder

    def rows(self, walk: Pass) -> Iterator[Row]:
        rows = self._child.rows(walk)
        for number in itertools.count():
            group = list(itertools.islice(rows, self._batch_size))
            if not group or (len(group) < self._batch_size and self._drops_remainder):
                return
            yield _stacked_row(group, number * self._batch_size, self.get_col_names())

    def get_col_names(self) -> list[str]:
        return self._child.get_col_names()

    def children(self) -> tuple[Dataset, ...]:
        return (self._child,)

    def known_size(self) -> int | None:
        size = self._child.known_size()
        if size is None or size == ENDLESS:
            return size
        return size // self._batch_size if self._drops_remainder else -(-size // self._batch_size)

    def get_batch_size(self) -> int:
        return self._batch_size


def _stacked_row(rows: Sequence[Row], first: int, columns: Sequence[str]) -> Row:
    def stack() -> Values:
        values = [row() for row in rows]
        return tuple(
            _stack(name, first, column) for name, column in zip(columns, zip(*values, strict=True), strict=True)
        )

    return stack


def _stack(name: str, first: int, values: Sequence[Array]) -> Array:
    expected = values[0]
    for offset, value in enumerate(values):
        if value.shape != expected.shape or (value.dtype != expected.dtype and value.dtype.kind not in "US"):
            raise ExecutionError(
                f"batch: column {name!r}, row {first + offset}: expected {expected.dtype} {expected.shape} as in row "
                f"{first}, got {value.dtype} {value.shape}. Resize or pad the rows before batch."
            )
    return np.stack(values)


@step
class ShuffleDataset(Dataset):
    """Rows drawn at random from a buffer; another order in each walk."""

    def __init__(self, child: Dataset, buffer_size: int) -> None:
        self._child = child
        self._buffer_size = checks.whole_number("shuffle(buffer_size)", buffer_size, 2)

    def rows(self, walk: Pass) -> Iterator[Row]:
        generator = walk.generator(self.height())
        waiting: list[Row] = []
        for row in self._child.rows(walk):
            if len(waiting) < self._buffer_size:
                waiting.append(row)
                continue
            slot = int(generator.integers(self._buffer_size))
            drawn, waiting[slot] = waiting[slot], row
            yield drawn
        for slot in generator.permutation(len(waiting)):
            yield waiting[slot]

    def get_col_names(self) -> list[str]:
        return self._child.get_col_names()

    def children(self) -> tuple[Dataset, ...]:
        return (self._child,)

    def known_size(self) -> int | None:
        return self._child.known_size()


@step
class RepeatDataset(Dataset):
    """The same data several times; each time in a new order where something shuffles."""

    def __init__(self, child: Dataset, count: int | None) -> None:
        if count is not None and count != ENDLESS:
            checks.whole_number("repeat(count)", count)
        self._child = child
        self._count = ENDLESS if count is None else count

    def rows(self, walk: Pass) -> Iterator[Row]:
        rounds = itertools.count() if self._count == ENDLESS else range(self._count)
        first = 0 if self._count == ENDLESS else walk.epoch * self._count
        for number in rounds:
            is_empty = True
            for row in self._child.rows(walk.at_epoch(first + number)):
                is_empty = False
                yield row
            if is_empty:  # an endless repeat of nothing would never come back
                return

    def get_col_names(self) -> list[str]:
        return self._child.get_col_names()

    def children(self) -> tuple[Dataset, ...]:
        return (self._child,)

    def known_size(self) -> int | None:
        size = self._child.known_size()
        if size in (0, ENDLESS):
            return size
        if self._count == ENDLESS:
            return ENDLESS
        return None if size is None else size * self._count

    def get_repeat_count(self) -> int:
        return self._count


@step
class SliceDataset(Dataset):
    """Rows from `start` on, at most `count` of them."""

    def __init__(self, child: Dataset, start: int, count: int | None) -> None:
        self._child = child
        self._start = start
        self._count = count

    def rows(self, walk: Pass) -> Iterator[Row]:
        end = None if self._count is None else self._start + self._count
        return itertools.islice(self._child.rows(walk), self._start, end)

    def get_col_names(self) -> list[str]:
        return self._child.get_col_names()

    def children(self) -> tuple[Dataset, ...]:
        return (self._child,)

    def known_size(self) -> int | None:
        size = self._child.known_size()
        if size == ENDLESS:
            return ENDLESS if self._count is None else self._count
        if size is None:
            return None
        remaining = max(size - self._start, 0)
        return remaining if self._count is None else min(remaining, self._count)


@step
class PartDataset(Dataset):
    """One part of `split`: the rows at `places` of the child's order, in the order of `places`."""

    def __init__(self, child: Dataset, places: Sequence[int], seed: int) -> None:
        self._child = child
        self._slot_by_place = {place: slot for slot, place in enumerate(places)}
        self._seed = seed

    def rows(self, walk: Pass) -> Iterator[Row]:
        # The child must come in one order in every walk of every part, or the parts would share rows.
        picked: dict[int, Row] = {}
        for place, row in enumerate(self._child.rows(Pass(self._seed))):
            if place in self._slot_by_place:
                picked[self._slot_by_place[place]] = row
        return iter([picked[slot] for slot in sorted(picked)])

    def get_col_names(self) -> list[str]:
        return self._child.get_col_names()

    def children(self) -> tuple[Dataset, ...]:
        return (self._child,)

    def known_size(self) -> int | None:
        return len(self._slot_by_place)


@step
class ProjectDataset(Dataset):
    """Some columns, in a given order."""

    def __init__(self, child: Dataset, columns: ColumnNames) -> None:
        self._child = child
        self._columns = checks.column_names("project(columns)", columns) or []
        self._slots = checks.column_slots("project(columns)", child.get_col_names(), self._columns)
        if not self._columns:
            raise ConfigError("project(columns): expected at least one column, got none.")

    def rows(self, walk: Pass) -> Iterator[Row]:
        return (self._picked(row) for row in self._child.rows(walk))

    def _picked(self, row: Row) -> Row:
        def pick() -> Values:
            values = row()
            return tuple(values[slot] for slot in self._slots)

        return pick

    def get_col_names(self) -> list[str]:
        return list(self._columns)

    def children(self) -> tuple[Dataset, ...]:
        return (self._child,)

    def known_size(self) -> int | None:
        return self._child.known_size()


@step
class RenameDataset(Dataset):
    """The same values under other names."""

    def __init__(self, child: Dataset, input_columns: ColumnNames, output_columns: ColumnNames) -> None:
        old = checks.column_names("rename(input_columns)", input_columns) or []
        new = checks.column_names("rename(output_columns)", output_columns) or []
        if len(old) != len(new):
            raise ConfigError(f"rename: expected as many new names as old ones, got {old} -> {new}.")
        names = child.get_col_names()
        for slot, name in zip(checks.column_slots("rename(input_columns)", names, old), new, strict=True):
            names[slot] = name
        self._child = child
        self._columns = checks.column_names("rename(output_columns)", names) or []

    def rows(self, walk: Pass) -> Iterator[Row]:
        return self._child.rows(walk)

    def get_col_names(self) -> list[str]:
        return list(self._columns)

    def children(self) -> tuple[Dataset, ...]:
        return (self._child,)

    def known_size(self) -> int | None:
        return self._child.known_size()


@step
class FilterDataset(Dataset):
    """Rows that satisfy a predicate."""

    def __init__(self, child: Dataset, predicate: Callable[..., Any], input_columns: ColumnNames | None) -> None:
        names = checks.column_names("filter(input_columns)", input_columns) or child.get_col_names()
        self._child = child
        self._predicate = predicate
        self._slots = checks.column_slots("filter(input_columns)", child.get_col_names(), names)

    def rows(self, walk: Pass) -> Iterator[Row]:
        for row in self._child.rows(walk):
            values = row()
            if bool(self._predicate(*(values[slot] for slot in self._slots))):
                yield constant(values)

    def get_col_names(self) -> list[str]:
        return self._child.get_col_names()

    def children(self) -> tuple[Dataset, ...]:
        return (self._child,)

    def known_size(self) -> int | None:
        return None


@step
class ZipDataset(Dataset):
    """Columns side by side."""

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self._children = _checked_datasets("zip", datasets)
        names = [name for dataset in datasets for name in dataset.get_col_names()]
        self._columns = checks.column_names("zip", names) or []

    def rows(self, walk: Pass) -> Iterator[Row]:
        walks = [child.rows(walk.branch(place)) for place, child in enumerate(self._children)]
        return (_joined_row(rows) for rows in zip(*walks, strict=False))

    def get_col_names(self) -> list[str]:
        return list(self._columns)

    def children(self) -> tuple[Dataset, ...]:
        return self._children

    def known_size(self) -> int | None:
        sizes = [child.known_size() for child in self._children]
        if None in sizes:
            return None
        finite = [size for size in sizes if size is not None and size != ENDLESS]
        return min(finite) if finite else ENDLESS


def _joined_row(rows: Sequence[Row]) -> Row:
    return lambda: tuple(value for row in rows for value in row())


@step
class ConcatDataset(Dataset):
    """Rows one dataset after the other."""

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self._children = _checked_datasets("concat", datasets)
        names = self._children[0].get_col_names()
        for child in self._children[1:]:
            if child.get_col_names() != names:
                raise ConfigError(f"concat: expected columns {names} in each dataset, got {child.get_col_names()}.")

    def rows(self, walk: Pass) -> Iterator[Row]:
        for place, child in enumerate(self._children):
            yield from child.rows(walk.branch(place))

    def get_col_names(self) -> list[str]:
        return self._children[0].get_col_names()

    def children(self) -> tuple[Dataset, ...]:
        return self._children

    def known_size(self) -> int | None:
        total = 0
        for child in self._children:
            size = child.known_size()
            if size is None or size == ENDLESS:
                return size
            total += size
        return total


def _checked_datasets(where: str, datasets: Sequence[Dataset]) -> tuple[Dataset, ...]:
    for dataset in datasets:
        if not isinstance(dataset, Dataset):
            raise TypeError(f"{where}: expected datasets, got {type(dataset).__name__}.")
    return tuple(datasets)
