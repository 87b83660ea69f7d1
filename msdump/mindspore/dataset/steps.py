"""The steps of a pipeline that move, pick, repeat and map rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from msdump.errors import ConfigError, ExecutionError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.pipeline import ColumnNames, Dataset, Operations, step
from msdump.mindspore.dataset.rows import Pass, Row, Values, apply_operation, as_value, constant, holds_objects
from msdump.mindspore.dataset.samplers import BuiltinSampler

ENDLESS = -1


class OneChild(Dataset):
    """A step on the dataset that its first setting gives; it keeps the columns, and subclasses say which rows come."""

    def _begin(self, settings: dict[str, Any]) -> None:
        self._child: Dataset = settings.pop("input_dataset")
        if not isinstance(self._child, Dataset):
            raise TypeError(f"{type(self).__name__}: expected a dataset, got {type(self._child).__name__}.")

    def get_col_names(self) -> list[str]:
        return self._child.get_col_names()

    def children(self) -> tuple[Dataset, ...]:
        return (self._child,)

    def known_size(self) -> int | None:
        return self._child.known_size()


@step
class ShuffleDataset(OneChild, takes="input_dataset buffer_size"):
    """Rows drawn at random from a buffer; another order in each walk."""

    def _set_up(self, buffer_size: int) -> None:
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


@step
class RepeatDataset(OneChild, takes="input_dataset count"):
    """The same data several times; each time in a new order where something shuffles."""

    def _set_up(self, count: int | None) -> None:
        self._count = ENDLESS if count in (None, ENDLESS) else checks.whole_number("repeat(count)", count)

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
class TakeDataset(OneChild, takes="input_dataset count"):
    """The first `count` rows; -1: all."""

    def _set_up(self, count: int) -> None:
        self._count = None if count == -1 else checks.whole_number("take(count)", count)

    def rows(self, walk: Pass) -> Iterator[Row]:
        return itertools.islice(self._child.rows(walk), self._count)

    def known_size(self) -> int | None:
        size = self._child.known_size()
        if size is None or self._count is None:
            return size
        return self._count if size == ENDLESS else min(size, self._count)


@step
class SkipDataset(OneChild, takes="input_dataset count"):
    """All but the first `count` rows."""

    def _set_up(self, count: int) -> None:
        self._count = checks.whole_number("skip(count)", count, 0)

    def rows(self, walk: Pass) -> Iterator[Row]:
        return itertools.islice(self._child.rows(walk), self._count, None)

    def known_size(self) -> int | None:
        size = self._child.known_size()
        return size if size is None or size == ENDLESS else max(size - self._count, 0)


@step
class PartDataset(OneChild, takes="input_dataset places seed"):
    """One part of `split`: the rows at `places` of the child's order, in the order of `places`."""

    def _set_up(self, places: Sequence[int], seed: int) -> None:
        self._slot_by_place = {place: slot for slot, place in enumerate(places)}
        self._seed = seed

    def rows(self, walk: Pass) -> Iterator[Row]:
        # The child must come in one order in every walk of every part, or the parts would share rows.
        picked: dict[int, Row] = {}
        for place, row in enumerate(self._child.rows(Pass(self._seed))):
            if place in self._slot_by_place:
                picked[self._slot_by_place[place]] = row
        return iter([picked[slot] for slot in sorted(picked)])

    def known_size(self) -> int | None:
        return len(self._slot_by_place)


@step
class ProjectDataset(OneChild, takes="input_dataset columns"):
    """Some columns, in a given order."""

    def _set_up(self, columns: ColumnNames) -> None:
        self._columns = checks.column_names("project(columns)", columns) or []
        self._slots = checks.column_slots("project(columns)", self._child.get_col_names(), self._columns)
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


@step
class RenameDataset(OneChild, takes="input_dataset input_columns output_columns"):
    """The same values under other names."""

    def _set_up(self, input_columns: ColumnNames, output_columns: ColumnNames) -> None:
        old = checks.column_names("rename(input_columns)", input_columns) or []
        new = checks.column_names("rename(output_columns)", output_columns) or []
        if len(old) != len(new):
            raise ConfigError(f"rename: expected as many new names as old ones, got {old} -> {new}.")
        names = self._child.get_col_names()
        for slot, name in zip(checks.column_slots("rename(input_columns)", names, old), new, strict=True):
            names[slot] = name
        self._columns = checks.column_names("rename(output_columns)", names) or []

    def rows(self, walk: Pass) -> Iterator[Row]:
        return self._child.rows(walk)

    def get_col_names(self) -> list[str]:
        return list(self._columns)


@step
class FilterDataset(OneChild, takes="input_dataset predicate input_columns=None num_parallel_workers=None"):
    """Rows that satisfy a predicate."""

    def _set_up(self, predicate: Callable[..., Any], input_columns: ColumnNames | None) -> None:
        if not callable(predicate):
            raise TypeError(f"filter(predicate): expected a function, got {type(predicate).__name__}.")
        have = self._child.get_col_names()
        names = checks.column_names("filter(input_columns)", input_columns) or have
        self._predicate, self._slots = predicate, checks.column_slots("filter(input_columns)", have, names)

    def rows(self, walk: Pass) -> Iterator[Row]:
        for row in self._child.rows(walk):
            values = row()
            if bool(self._predicate(*(values[slot] for slot in self._slots))):
                yield constant(values)

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

        self._sampler: BuiltinSampler | None = None

    def use_sampler(self, sampler: Any) -> None:
        """Let a sampler of rows that need not be shuffled, as DistributedSampler, choose rows of all the datasets."""
        if not isinstance(sampler, BuiltinSampler):
            raise TypeError(f"use_sampler: expected a sampler, got {type(sampler).__name__}.")
        self._sampler = sampler

    def rows(self, walk: Pass) -> Iterator[Row]:
        rows = itertools.chain.from_iterable(
            child.rows(walk.branch(place)) for place, child in enumerate(self._children)
        )
        if self._sampler is None:
            return rows
        waiting = list(rows)
        return iter([waiting[place] for place in self._sampler.sampled(len(waiting), walk)])

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
        return total if self._sampler is None else self._sampler.sampled_count(total)


def _checked_datasets(where: str, datasets: Sequence[Dataset]) -> tuple[Dataset, ...]:
    for dataset in datasets:
        if not isinstance(dataset, Dataset):
            raise TypeError(f"{where}: expected datasets, got {type(dataset).__name__}.")
    return tuple(datasets)


MakeGenerator = Callable[..., np.random.Generator]


@step
class MapDataset(
    OneChild,
    takes="input_dataset operations input_columns=None output_columns=None num_parallel_workers=None "
    "python_multiprocessing=False cache=None callbacks=None max_rowsize=None offload=None",
):
    """Each row with some of its columns replaced by what the operations make of them."""

    def _set_up(
        self, operations: Operations, input_columns: ColumnNames | None, output_columns: ColumnNames | None,
        callbacks: None,
    ) -> None:  # fmt: skip
        names = self._child.get_col_names()
        self._inputs = checks.column_names("map(input_columns)", input_columns) or names[:1]
        outputs = checks.column_names("map(output_columns)", output_columns) or self._inputs
        self._operations = _checked_operations(operations)
        self._places = checks.ColumnPlaces.of("map", names, self._inputs, outputs)
        if callbacks is not None:
            raise ConfigError(
                "map(callbacks): expected None, got callbacks, which msdump does not call. "
                "Call them from an operation of the map, or from a callback of the training."
            )

    def rows(self, walk: Pass) -> Iterator[Row]:
        generator_of = partial(walk.generator, self.height())
        return (self._mapped(row, ordinal, generator_of) for ordinal, row in enumerate(self._child.rows(walk)))

    def get_col_names(self) -> list[str]:
        return list(self._places.names)

    def _mapped(self, row: Row, ordinal: int, generator_of: MakeGenerator) -> Row:
        def compute() -> Values:
            values = row()
            results = self._apply(tuple(values[slot] for slot in self._places.slots), ordinal, generator_of)
            return self._places.merged(values, results)

        return compute

    def _apply(self, values: tuple[Any, ...], ordinal: int, generator_of: MakeGenerator) -> Values:
        for number, operation in enumerate(self._operations):
            try:
                values = apply_operation(operation, values, partial(generator_of, ordinal, number))
            except Exception as error:
                raise ExecutionError(
                    f"map(operations[{number}]={_name(operation)}, input_columns={self._inputs}), row {ordinal}: "
                    f"{type(error).__name__}: {error}"
                ) from error
        if len(values) != self._places.output_count:
            raise ExecutionError(
                f"map(input_columns={self._inputs}): expected {self._places.output_count} values from the "
                f"operations, got {len(values)}. Name the columns of all of them in output_columns."
            )
        arrays = tuple(map(as_value, values))
        for value, array in zip(values, arrays, strict=True):
            if holds_objects(array):
                raise ExecutionError(
                    f"map(input_columns={self._inputs}), row {ordinal}: expected numbers, strings or arrays of them "
                    f"from {_name(self._operations[-1])}, got {type(value).__name__}. Does the function return?"
                )
        return arrays


def _checked_operations(operations: Operations) -> tuple[Callable[..., Any], ...]:
    given: Sequence[Any] = operations if isinstance(operations, (list, tuple)) else [operations]
    if not given:
        raise ConfigError("map(operations): expected at least one operation, got none.")
    for operation in given:
        if isinstance(operation, type) or not callable(operation):
            hint = f" Write {operation.__name__}()." if isinstance(operation, type) else ""
            raise ConfigError(
                f"map(operations): expected transforms or functions, got {type(operation).__name__} "
                f"{operation!r}.{hint}"
            )
    return tuple(given)


def _name(operation: Any) -> str:
    return str(getattr(operation, "__name__", type(operation).__name__))
