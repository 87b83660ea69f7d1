"""The steps that make one row of several: `batch`, `padded_batch`, `bucket_batch_by_length`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from msdump.errors import ConfigError, ExecutionError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.pipeline import ColumnNames, Dataset, step
from msdump.mindspore.dataset.rows import Pass, Row, Values, as_value, constant, holds_objects
from msdump.mindspore.dataset.steps import ENDLESS, OneChild
from msdump.tensors.arrays import Array

# column -> (shape, where None means "as large as the largest of the batch"; value)
PadInfo = Mapping[str, tuple[Sequence[int | None] | None, Any]]
Group = tuple[list[Row], int]


@dataclass(frozen=True)
class BatchInfo:
    """Which batch a function is called for. Both numbers count from 0."""

    batch_number: int
    epoch_number: int

    def get_batch_num(self) -> int:
        """Number of the batch within its epoch."""
        return self.batch_number

    def get_epoch_num(self) -> int:
        """Number of the epoch."""
        return self.epoch_number


@step
class BatchDataset(
    OneChild,
    takes="input_dataset batch_size drop_remainder=False num_parallel_workers=None per_batch_map=None "
    "input_columns=None output_columns=None python_multiprocessing=False max_rowsize=None",
):
    """`batch_size` rows stacked into one. `per_batch_map` may change the lists of values before they are stacked."""

    def _set_up(
        self, batch_size: int | Callable[[BatchInfo], int], drop_remainder: bool,
        per_batch_map: Callable[..., Any] | None, input_columns: ColumnNames | None, output_columns: ColumnNames | None,
    ) -> None:  # fmt: skip
        if not isinstance(drop_remainder, bool):
            raise TypeError(f"batch(drop_remainder): expected a bool, got {type(drop_remainder).__name__}.")
        is_function = callable(batch_size)
        self._batch_size = batch_size if is_function else checks.whole_number("batch(batch_size)", batch_size)
        self._drops_remainder = drop_remainder
        if per_batch_map is None and (input_columns is not None or output_columns is not None):
            raise ConfigError("batch(input_columns, output_columns): expected them with per_batch_map, got none.")
        if per_batch_map is not None and not callable(per_batch_map):
            raise TypeError(f"batch(per_batch_map): expected a function, got {type(per_batch_map).__name__}.")
        self._function = per_batch_map
        names = self._child.get_col_names()
        inputs = checks.column_names("batch(input_columns)", input_columns) or names
        outputs = checks.column_names("batch(output_columns)", output_columns) or inputs
        self._places = checks.ColumnPlaces.of("batch", names, inputs, outputs)

    def rows(self, walk: Pass) -> Iterator[Row]:
        rows = self._child.rows(walk)
        first = 0
        for number in itertools.count():
            size = self._size_of(BatchInfo(number, walk.epoch))
            group = list(itertools.islice(rows, size))
            if not group or (len(group) < size and self._drops_remainder):
                return
            yield self._stacked(group, first, BatchInfo(number, walk.epoch))
            first += len(group)

    def _size_of(self, info: BatchInfo) -> int:
        if callable(self._batch_size):
            return checks.whole_number("batch(batch_size): its result", self._batch_size(info))
        return self._batch_size

    def _stacked(self, group: list[Row], first: int, info: BatchInfo) -> Row:
        columns = self._child.get_col_names()
        if self._function is None:
            return stacked_row(group, first, columns)
        function = self._function

        def compute() -> Values:
            lists = [list(column) for column in zip(*(row() for row in group), strict=True)]
            result = self._called(function, [lists[slot] for slot in self._places.slots], info)
            merged = self._places.merged(lists, result)
            columns: list[Any] = [
                column if isinstance(column, np.ndarray | dict) else stack(name, first, _arrays(column))
                for name, column in zip(self.get_col_names(), merged, strict=True)
            ]
            return tuple(columns)

        return compute

    def _called(self, function: Callable[..., Any], lists: list[list[Array]], info: BatchInfo) -> tuple[Any, ...]:
        try:
            result = function(*lists, info)
        except Exception as error:
            raise ExecutionError(
                f"batch(per_batch_map), batch {info.batch_number}: {type(error).__name__}: {error}"
            ) from error
        columns = result if isinstance(result, tuple) else (result,)
        if len(columns) != self._places.output_count:
            raise ExecutionError(
                f"batch(per_batch_map): expected {self._places.output_count} columns from the function, got "
                f"{len(columns)}. Return a tuple of lists, and name their columns in output_columns."
            )
        return columns

    def get_col_names(self) -> list[str]:
        return list(self._places.names)

    def known_size(self) -> int | None:
        size = self._child.known_size()
        if size is None or size == ENDLESS or callable(self._batch_size):
            return None if size != ENDLESS else size
        return size // self._batch_size if self._drops_remainder else -(-size // self._batch_size)

    def get_batch_size(self) -> int:
        return -1 if callable(self._batch_size) else self._batch_size


@step
class PaddedBatchDataset(
    OneChild, takes="input_dataset batch_size drop_remainder=False num_parallel_workers=None pad_info=None"
):
    """`batch_size` rows stacked into one, after their columns were padded to one shape.

    Edges: an empty `pad_info` pads every column with zeros to the largest of the batch, None pads nothing; otherwise
           its columns are padded. A value that is larger than its shape is cut.
    """

    def _set_up(self, batch_size: int, drop_remainder: bool, pad_info: PadInfo | None) -> None:
        self._pads = {} if pad_info is None else checked_pad_info("padded_batch", self._child, pad_info)
        self._batches = BatchDataset(self._child, batch_size, drop_remainder)
        self._batch_size, self._drops_remainder = int(batch_size), drop_remainder

    def rows(self, walk: Pass) -> Iterator[Row]:
        rows = self._child.rows(walk)
        for number in itertools.count():
            group = list(itertools.islice(rows, self._batch_size))
            if not group or (len(group) < self._batch_size and self._drops_remainder):
                return
            yield padded_row(group, number * self._batch_size, self.get_col_names(), self._pads)

    def known_size(self) -> int | None:
        return self._batches.known_size()

    def get_batch_size(self) -> int:
        return self._batch_size


@step
class BucketBatchByLengthDataset(
    OneChild,
    takes="input_dataset column_names bucket_boundaries bucket_batch_sizes element_length_function=None pad_info=None "
    "pad_to_bucket_boundary=False drop_remainder=False",
):
    """Rows of similar length in one batch, padded. A batch comes when its bucket is full; the rest come at the end.

    Edges: with `pad_to_bucket_boundary` None in a shape of `pad_info` is the upper boundary less 1, and a row of the
           last, open bucket is an error.
    """

    def _set_up(
        self, column_names: ColumnNames, bucket_boundaries: Sequence[int], bucket_batch_sizes: Sequence[int],
        element_length_function: Callable[..., int] | None, pad_info: PadInfo | None, pad_to_bucket_boundary: bool,
    ) -> None:  # fmt: skip
        where = "bucket_batch_by_length"
        names = checks.column_names(f"{where}(column_names)", column_names) or []
        if element_length_function is None and len(names) != 1:
            raise ConfigError(f"{where}: expected one column name without element_length_function, got {names}.")
        self._slots = checks.column_slots(f"{where}(column_names)", self._child.get_col_names(), names)
        self._boundaries = [checks.whole_number(f"{where}(bucket_boundaries)", edge) for edge in bucket_boundaries]
        self._sizes = [checks.whole_number(f"{where}(bucket_batch_sizes)", size) for size in bucket_batch_sizes]
        if not self._boundaries or self._boundaries != sorted(set(self._boundaries)):
            raise ConfigError(f"{where}(bucket_boundaries): expected increasing ints, got {list(bucket_boundaries)}.")
        if len(self._sizes) != len(self._boundaries) + 1:
            raise ConfigError(
                f"{where}(bucket_batch_sizes): expected {len(self._boundaries) + 1} sizes, one more than boundaries, "
                f"got {len(self._sizes)}."
            )
        self._length_of = element_length_function
        self._pads = checked_pad_info(where, self._child, pad_info)
        self._pads_to_boundary = bool(pad_to_bucket_boundary and pad_info)

    def rows(self, walk: Pass) -> Iterator[Row]:
        buckets: list[list[Row]] = [[] for _ in self._sizes]
        for number, row in enumerate(self._child.rows(walk)):
            values = row()
            bucket = self._bucket_of(values, number)
            buckets[bucket].append(constant(values))
            if len(buckets[bucket]) == self._sizes[bucket]:
                yield self._padded(buckets[bucket], bucket)
                buckets[bucket] = []
        if not self.drop_remainder:
            yield from (self._padded(rows, bucket) for bucket, rows in enumerate(buckets) if rows)

    def _bucket_of(self, values: Values, number: int) -> int:
        chosen = [values[slot] for slot in self._slots]
        length = int(self._length_of(*chosen)) if self._length_of is not None else _first_size(chosen[0])
        if length < 0:
            raise ExecutionError(
                f"bucket_batch_by_length(element_length_function), row {number}: expected a length of at least 0, "
                f"got {length}."
            )
        bucket = sum(length >= edge for edge in self._boundaries)
        if self._pads_to_boundary and bucket == len(self._boundaries):
            raise ExecutionError(
                f"bucket_batch_by_length(pad_to_bucket_boundary), row {number}: expected a length below the last "
                f"boundary {self._boundaries[-1]}, got {length}. Add a boundary."
            )
        return bucket

    def _padded(self, rows: list[Row], bucket: int) -> Row:
        open_size = self._boundaries[bucket] - 1 if self._pads_to_boundary else None
        return padded_row(rows, 0, self.get_col_names(), self._pads, open_size)

    def known_size(self) -> int | None:
        return None

    def get_batch_size(self) -> int:
        return -1


def checked_pad_info(where: str, dataset: Dataset, pad_info: PadInfo | None) -> PadInfo:
    """Shape and value of each column that is padded; all columns when none is named.

    Raises: TypeError, ConfigError.
    """
    names = dataset.get_col_names()
    if pad_info is not None and not isinstance(pad_info, Mapping):
        raise TypeError(f"{where}(pad_info): expected a dict, got {type(pad_info).__name__}.")
    if not pad_info:
        return dict.fromkeys(names, (None, None))
    checks.column_slots(f"{where}(pad_info)", names, list(pad_info))
    for name, pad in pad_info.items():
        if not isinstance(pad, tuple) or len(pad) != 2:
            raise TypeError(f"{where}(pad_info[{name!r}]): expected (shape, value), got {pad!r}.")
    return dict(pad_info)


def padded_row(
    rows: Sequence[Row], first: int, columns: Sequence[str], pads: PadInfo, open_size: int | None = None
) -> Row:
    """Row of stacked columns, those of `pads` padded; `open_size` stands for None in a shape."""

    def compute() -> Values:
        together = zip(columns, zip(*(row() for row in rows), strict=True), strict=True)
        return tuple(
            stack(name, first, _padded_values(name, values, *pads[name], open_size) if name in pads else values)
            for name, values in together
        )

    return compute


def _padded_values(
    name: str, values: Sequence[Array], shape: Sequence[int | None] | None, fill: Any, open_size: int | None
) -> list[Array]:
    rank = values[0].ndim
    sizes = [None] * rank if shape is None else list(shape)
    if len(sizes) != rank or any(value.ndim != rank for value in values):
        raise ExecutionError(
            f"pad_info[{name!r}]: expected a shape of {rank} sizes as the column has, got {list(shape or [])}."
        )
    largest = [max(value.shape[axis] for value in values) for axis in range(rank)]
    target = [
        size if size is not None else (max(open_size, most) if open_size is not None and most <= open_size else most)
        for size, most in zip(sizes, largest, strict=True)
    ]
    return [pad_end(f"pad_info[{name!r}]", value, target, fill) for value in values]


def pad_end(where: str, value: Array, shape: Sequence[int], fill: Any) -> Array:
    """`value` in another shape: `fill` after it along the axes that grow, the front part of those that shrink."""
    is_text = value.dtype.kind in "US"
    if fill is not None and isinstance(fill, (str, bytes)) != is_text:
        raise ExecutionError(f"{where}: expected a pad value that fits {value.dtype}, got {fill!r}.")
    if is_text:
        word = ("" if fill is None else fill) if value.dtype.kind == "U" else _bytes(fill)
        width = max(value.dtype.itemsize // np.dtype(f"{value.dtype.kind}1").itemsize, len(word), 1)
        value, fill = value.astype(f"{value.dtype.kind}{width}"), word
    widths = [(0, max(size - have, 0)) for size, have in zip(shape, value.shape, strict=True)]
    part = value[tuple(slice(size) for size in shape)]
    return np.pad(part, widths, constant_values=0 if fill is None else fill)


def _bytes(fill: Any) -> bytes:
    return fill.encode() if isinstance(fill, str) else (fill or b"")


def stacked_row(rows: Sequence[Row], first: int, columns: Sequence[str]) -> Row:
    """Row of the columns of `rows`, stacked; `first` is the number of the first one, for messages."""
    return padded_row(rows, first, columns, {})


def stack(name: str, first: int, values: Sequence[Any]) -> Any:
    """Values of one column as one array; dicts as one dict of arrays.

    Raises: ExecutionError that names the row that does not fit.
    """
    expected = values[0]
    if isinstance(expected, dict):
        return _stacked_dicts(name, first, values)
    for offset, value in enumerate(values):
        if value.shape != expected.shape or (value.dtype != expected.dtype and value.dtype.kind not in "US"):
            raise ExecutionError(
                f"batch: column {name!r}, row {first + offset}: expected {expected.dtype} {expected.shape} as in row "
                f"{first}, got {value.dtype} {value.shape}. Resize or pad the rows before batch."
            )
    return np.stack(values)


def _stacked_dicts(name: str, first: int, values: Sequence[dict[Any, Any]]) -> dict[Any, Any]:
    for offset, value in enumerate(values):
        if not isinstance(value, dict) or value.keys() != values[0].keys():
            raise ExecutionError(
                f"batch: column {name!r}, row {first + offset}: expected a dict with the keys {list(values[0])} as in "
                f"row {first}, got {list(value) if isinstance(value, dict) else type(value).__name__}."
            )
    together = {key: [as_value(value[key]) for value in values] for key in values[0]}
    for key, items in together.items():
        if any(map(holds_objects, items)):
            raise ExecutionError(f"batch: column {name!r}, key {key!r}: expected numbers or strings, got objects.")
    return {key: stack(f"{name}[{key!r}]", first, items) for key, items in together.items()}


def _arrays(column: Any) -> list[Any]:
    if not isinstance(column, (list, tuple)) or not column:
        raise ExecutionError(
            f"batch(per_batch_map): expected a list of values or an array for each column, got "
            f"{type(column).__name__} {column!r}."
        )
    return [as_value(value) for value in column]


def _first_size(value: Array) -> int:
    return int(value.shape[0]) if value.ndim else 1
