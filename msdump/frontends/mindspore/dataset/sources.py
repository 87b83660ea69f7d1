"""Sources of arrays and Python objects: `NumpySlicesDataset` and `GeneratorDataset`; and what all sources share."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from msdump.errors import ConfigError, ExecutionError
from msdump.frontends.mindspore.common.dtype import DType, dtype_name
from msdump.frontends.mindspore.dataset import checks
from msdump.frontends.mindspore.dataset.pipeline import ColumnNames, Dataset
from msdump.frontends.mindspore.dataset.rows import Pass, Row, constant
from msdump.frontends.mindspore.dataset.samplers import Sampler, sampler_of


class IndexedSource(Dataset):
    """A source whose rows can be read in any order. Subclasses say how many there are and how to read one."""

    @abstractmethod
    def sampler(self) -> Sampler:
        """Which rows, in which order."""

    @abstractmethod
    def source_size(self) -> int:
        """Rows of the source, before sampling."""

    @abstractmethod
    def row_at(self, place: int) -> Row:
        """One row."""

    def rows(self, walk: Pass) -> Iterator[Row]:
        return (self.row_at(place) for place in self.sampler().places(self.source_size(), walk))

    def children(self) -> tuple[Dataset, ...]:
        return ()

    def known_size(self) -> int | None:
        return self.sampler().count(self.source_size())


class NumpySlicesDataset(IndexedSource):
    """Slices along the first axis of one array, of each of a tuple of arrays, or of each value of a dictionary."""

    def __init__(
        self,
        data: Any,
        column_names: ColumnNames | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        if isinstance(data, Mapping):
            default_names = [str(name) for name in data]
            columns = list(data.values())
        else:
            columns = list(data) if isinstance(data, tuple) else [data]
            default_names = ["data"] if len(columns) == 1 else [f"column_{slot}" for slot in range(len(columns))]
        self._columns = [np.asarray(column) for column in columns]
        self._names = checks.column_names("NumpySlicesDataset(column_names)", column_names) or default_names
        self._sampler = sampler_of(sampler, shuffle, num_samples, num_shards, shard_id)
        if len(self._names) != len(self._columns):
            raise ConfigError(
                f"NumpySlicesDataset(column_names): expected {len(self._columns)} names, got {self._names}."
            )
        lengths = [len(column) if column.ndim else None for column in self._columns]
        if not lengths or None in lengths or len(set(lengths)) != 1:
            raise ConfigError(f"NumpySlicesDataset(data): expected columns of one length, got lengths {lengths}.")

    def sampler(self) -> Sampler:
        return self._sampler

    def source_size(self) -> int:
        return len(self._columns[0])

    def row_at(self, place: int) -> Row:
        return constant([column[place] for column in self._columns])

    def get_col_names(self) -> list[str]:
        return list(self._names)


class GeneratorDataset(Dataset):
    """Rows of a Python object: a function that makes an iterator, an iterable, or an object with `[i]` and `len`.

    Edges: only an object with `[i]` and `len` is shuffled, unless `shuffle=False`. Rows are tuples of arrays;
           a row that is no tuple is the one column.
    Raises: ConfigError for shuffle, sampler or shards of a source without `[i]`; ExecutionError when the object fails.
    """

    def __init__(
        self,
        source: Any,
        column_names: ColumnNames | None = None,
        column_types: Sequence[Any] | None = None,
        schema: None = None,
        num_samples: int | None = None,
        num_parallel_workers: int = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        python_multiprocessing: bool = True,
        max_rowsize: int | None = None,
    ) -> None:
        self._names = checks.column_names("GeneratorDataset(column_names)", column_names) or []
        if not self._names:
            raise ConfigError("GeneratorDataset(column_names): expected the names of the columns, got none.")
        if schema is not None:
            raise ConfigError("GeneratorDataset(schema): expected None: msdump takes column_names and column_types.")
        self._source = source
        self._types = None if column_types is None else [DType(dtype_name(what)).numpy for what in column_types]
        self._is_indexed = hasattr(source, "__getitem__") and hasattr(source, "__len__")
        self._sampler: Sampler | None = None
        self._limit = None if num_samples is None else checks.whole_number("num_samples", num_samples)
        if self._is_indexed:
            self._sampler = sampler_of(sampler, shuffle, num_samples, num_shards, shard_id)
        elif shuffle or sampler is not None or num_shards is not None:
            raise ConfigError(
                "GeneratorDataset: expected a source with __getitem__ and __len__ for shuffle, sampler or num_shards, "
                f"got {type(source).__name__}. Use .shuffle(buffer_size) instead."
            )
        elif not callable(source) and not hasattr(source, "__iter__"):
            raise TypeError(
                "GeneratorDataset(source): expected a function that makes an iterator, an iterable, or an object with "
                f"__getitem__ and __len__, got {type(source).__name__}."
            )

    def rows(self, walk: Pass) -> Iterator[Row]:
        if self._sampler is not None:
            return (self._indexed_row(place) for place in self._sampler.places(len(self._source), walk))
        return itertools.islice(self._iterated_rows(), self._limit)

    def _indexed_row(self, place: int) -> Row:
        return lambda: self._checked(self._guarded(lambda: self._source[place], f"[{place}]"), place)()

    def _iterated_rows(self) -> Iterator[Row]:
        items = iter(self._guarded(lambda: self._source() if callable(self._source) else iter(self._source), ""))
        end = object()
        for number in itertools.count():
            item = self._guarded(lambda: next(items, end), f", row {number}")
            if item is end:
                return
            yield self._checked(item, number)

    def _guarded(self, read: Callable[[], Any], where: str) -> Any:
        try:
            return read()
        except Exception as error:
            name = getattr(self._source, "__name__", type(self._source).__name__)
            raise ExecutionError(f"GeneratorDataset({name}){where}: {type(error).__name__}: {error}") from error

    def _checked(self, item: Any, number: int) -> Row:
        values = item if isinstance(item, tuple) else (item,)
        if len(values) != len(self._names):
            raise ExecutionError(
                f"GeneratorDataset, row {number}: expected {len(self._names)} values for columns {self._names}, got "
                f"{len(values)}. A row of several columns is a tuple."
            )
        arrays = [np.asarray(value) for value in values]
        if self._types is not None:
            arrays = [array.astype(what, copy=False) for array, what in zip(arrays, self._types, strict=True)]
        for name, array in zip(self._names, arrays, strict=True):
            if array.dtype.hasobject:
                raise ExecutionError(
                    f"GeneratorDataset, row {number}, column {name!r}: expected numbers or strings, got objects."
                )
        return constant(arrays)

    def get_col_names(self) -> list[str]:
        return list(self._names)

    def children(self) -> tuple[Dataset, ...]:
        return ()

    def known_size(self) -> int | None:
        if self._sampler is not None:
            return self._sampler.count(len(self._source))
        if not hasattr(self._source, "__len__"):
            return None
        size = len(self._source)
        return size if self._limit is None else min(size, self._limit)
