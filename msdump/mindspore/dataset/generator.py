"""`GeneratorDataset`: rows of a script's own object."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msdump.errors import ConfigError, ExecutionError
from msdump.mindspore.common.dtype import DType, dtype_name
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.batching import stacked_row
from msdump.mindspore.dataset.pipeline import ColumnNames
from msdump.mindspore.dataset.rows import Pass, Row, as_value, constant, holds_objects
from msdump.mindspore.dataset.samplers import PKSampler, check_shards, sampler_of
from msdump.mindspore.dataset.schema import Schema
from msdump.mindspore.dataset.sources import MappableDataset


class GeneratorDataset(
    MappableDataset,
    takes="source column_names=None column_types=None schema=None num_samples=None num_parallel_workers=1 shuffle=None "
    "sampler=None num_shards=None shard_id=None python_multiprocessing=True max_rowsize=None batch_sampler=None "
    "collate_fn=None",
):
    """Rows of a Python object: a function that makes an iterator, an iterable, or an object with `[i]` and `len`.

    Edges: only an object with `[i]` and `len` is shuffled, unless `shuffle=False`; `shuffle` of another changes
           nothing. A row is a tuple or list of as many values as columns; anything else is the one column.
    Raises: ConfigError for sampler or shards of a source without `[i]`; ExecutionError when the object fails, or when
           a value has another dtype than `column_types` says.
    """

    def _set_up(
        self, source: Any, column_names: ColumnNames | None, column_types: Sequence[Any] | None, schema: Any,
        num_samples: int | None, shuffle: bool | None, sampler: Any, num_shards: int | None, shard_id: int | None,
        batch_sampler: Any, collate_fn: Callable[..., Any] | None,
    ) -> None:  # fmt: skip
        names = checks.column_names("GeneratorDataset(column_names)", column_names)
        if schema is not None:
            columns = (schema if isinstance(schema, Schema) else Schema(schema)).columns
            names = names or list(columns)
            column_types = column_types or [columns[name]["type"] for name in names if name in columns]
        if not names:
            raise ConfigError("GeneratorDataset: expected column_names or a schema, got none.")
        if not (callable(source) or hasattr(source, "__iter__") or hasattr(source, "__getitem__")):
            raise TypeError(
                "GeneratorDataset(source): expected a function that makes an iterator, an iterable, or an object with "
                f"__getitem__ and __len__, got {type(source).__name__}."
            )
        self._names, self._source = names, source
        self._types = None if column_types is None else [DType(dtype_name(what)).numpy for what in column_types]
        self._is_indexed = hasattr(source, "__getitem__")
        self._limit = checks.whole_number("num_samples", num_samples, 0) or None if num_samples is not None else None
        self._batches, self._collate = batch_sampler, collate_fn
        if self._is_indexed and not hasattr(source, "__len__"):
            raise ConfigError("GeneratorDataset(source): expected __len__ beside __getitem__, got no __len__.")
        self._check_batch_sampler(sampler, num_samples, shuffle, num_shards)
        self._check_sampler(sampler, num_shards, shard_id)
        if self._is_indexed:
            self._sampler = sampler_of(sampler, shuffle, num_samples, num_shards, shard_id)

    def _check_batch_sampler(self, *others: Any) -> None:
        if self._collate is not None and self._batches is None:
            raise ConfigError("GeneratorDataset(collate_fn): expected it with batch_sampler, got it alone.")
        if self._batches is None:
            return
        if not self._is_indexed or not (hasattr(self._batches, "__iter__") or hasattr(self._batches, "__getitem__")):
            raise TypeError("GeneratorDataset(batch_sampler): expected lists of row numbers, and a source with [i].")
        if any(other is not None for other in others):
            raise ConfigError(
                "GeneratorDataset(batch_sampler): expected no sampler, num_samples, shuffle or num_shards beside it."
            )

    def _check_sampler(self, sampler: Any, num_shards: int | None, shard_id: int | None) -> None:
        check_shards(num_shards, shard_id)
        if isinstance(sampler, PKSampler):
            raise ConfigError("GeneratorDataset(sampler): expected another sampler: PKSampler needs labels.")
        if not self._is_indexed and (sampler is not None or num_shards is not None):
            raise ConfigError(
                "GeneratorDataset: expected a source with __getitem__ and __len__ for sampler or num_shards, got "
                f"{type(self._source).__name__}."
            )

    def use_sampler(self, new_sampler: Any) -> None:
        self._check_sampler(new_sampler, None, None)
        super().use_sampler(new_sampler)

    def rows(self, walk: Pass) -> Iterator[Row]:
        if self._batches is not None:
            return (self._batch_row(list(places), number) for number, places in enumerate(self._batches))
        if self._is_indexed:
            return super().rows(walk)
        return itertools.islice(self._iterated_rows(), self._limit)

    def source_size(self) -> int:
        return len(self._source)

    def row_at(self, place: int) -> Row:
        return lambda: self._checked(self._guarded(lambda: self._source[place], f"[{place}]"), place)()

    def _batch_row(self, places: list[int], number: int) -> Row:
        if self._collate is None:
            return stacked_row([self.row_at(place) for place in places], 0, self._names)
        collate = self._collate
        return lambda: self._checked(
            self._guarded(lambda: collate([self._source[place] for place in places]), f", batch {number}"), number
        )()

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
        values = item if isinstance(item, (tuple, list)) else (item,)
        if len(values) != len(self._names):
            raise ExecutionError(
                f"GeneratorDataset, row {number}: expected {len(self._names)} values for columns {self._names}, got "
                f"{len(values)}. A tuple or list is a row of several columns; make a list that is one value an array."
            )
        arrays = [value.asnumpy() if isinstance(value, Tensor) else as_value(value) for value in values]
        for slot, (name, array) in enumerate(zip(self._names, arrays, strict=True)):
            if holds_objects(array):
                raise ExecutionError(
                    f"GeneratorDataset, row {number}, column {name!r}: expected numbers or strings, got objects."
                )
            if self._types is not None and not isinstance(array, dict) and array.dtype != self._types[slot]:
                raise ExecutionError(
                    f"GeneratorDataset, row {number}, column {name!r}: expected {self._types[slot]} as column_types "
                    f"says, got {array.dtype}. Convert it in the source: np.array(value, np.{self._types[slot]})."
                )
        return constant(arrays)

    def get_col_names(self) -> list[str]:
        return list(self._names)

    def known_size(self) -> int | None:
        if self._batches is not None:
            return len(self._batches) if hasattr(self._batches, "__len__") else None
        if self._is_indexed:
            return super().known_size()
        if not hasattr(self._source, "__len__"):
            return None
        size = len(self._source)
        return size if self._limit is None else min(size, self._limit)
