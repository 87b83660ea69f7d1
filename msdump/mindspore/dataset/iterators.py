"""What `create_tuple_iterator` and `create_dict_iterator` return."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.dataset import checks, config
from msdump.mindspore.dataset.rows import Pass, Row, Values
from msdump.tensors.arrays import Array

# Finished rows that may wait: bytes, so that the rule is the same for pixels and for batches of 227 x 227 images.
BYTE_BUDGET = 64 * 2**20


class _Channel:
    """Bounded queue between one producer and one consumer that either side may close.

    A row larger than the budget passes alone. Owned by both threads; every field is guarded by `_changed`.
    """

    def __init__(self, row_limit: int) -> None:
        self._row_limit = row_limit
        self._rows: deque[tuple[Values, int]] = deque()
        self._bytes = 0
        self._error: BaseException | None = None
        self._is_finished = False
        self._is_closed = False
        self._changed = threading.Condition()

    def put(self, values: Values) -> bool:
        """Wait for room, then add a row. False: the consumer has ended."""
        size_bytes = sum(getattr(value, "nbytes", 0) for value in values)
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._has_room(size_bytes))
            if self._is_closed:
                return False
            self._rows.append((values, size_bytes))
            self._bytes += size_bytes
            self._changed.notify_all()
            return True

    def finish(self, error: BaseException | None) -> None:
        """No more rows will come, because of `error` or because that was all."""
        with self._changed:
            self._error = error
            self._is_finished = True
            self._changed.notify_all()

    def close(self) -> None:
        """The consumer has ended; a waiting producer wakes up and ends."""
        with self._changed:
            self._is_closed = True
            self._rows.clear()
            self._changed.notify_all()

    def get(self) -> Values | None:
        """The next row, or None after the last.   Raises: whatever stopped the producer, after its last good row."""
        with self._changed:
            self._changed.wait_for(lambda: self._rows or self._is_finished)
            if self._rows:
                values, size_bytes = self._rows.popleft()
                self._bytes -= size_bytes
                self._changed.notify_all()
                return values
            if self._error is not None:
                raise self._error
            return None

    def _has_room(self, size_bytes: int) -> bool:
        if not self._rows:
            return True
        return len(self._rows) < self._row_limit and self._bytes + size_bytes <= BYTE_BUDGET


class PrefetchedRows:
    """Rows of one epoch, in order. The thread ends with the last row, with `close()`, or when this object is gone."""

    def __init__(self, rows: Iterator[Row], row_limit: int) -> None:
        self._channel = _Channel(row_limit)
        self._closer = weakref.finalize(self, self._channel.close)
        # The thread must not hold this object, or it would never be gone.
        self.thread = threading.Thread(target=_produce, args=(rows, self._channel), name="msdump-dataset", daemon=True)
        self.thread.start()

    def __iter__(self) -> PrefetchedRows:
        return self

    def __next__(self) -> Values:
        values = self._channel.get()
        if values is None:
            raise StopIteration
        return values

    def close(self) -> None:
        """Stop the thread; rows that were ready are dropped."""
        self._closer()


def _produce(rows: Iterator[Row], channel: _Channel) -> None:
    error: BaseException | None = None
    try:
        for row in rows:
            if not channel.put(row()):
                break
    except BaseException as raised:  # noqa: BLE001 - raised again in the training loop, where the user sees it
        error = raised
    channel.finish(error)


class _Epochs:
    """Walks a dataset epoch by epoch, preparing rows ahead. Used by one thread."""

    def __init__(self, rows: Callable[[Pass], Iterator[Row]], num_epochs: int) -> None:
        if isinstance(num_epochs, bool) or not isinstance(num_epochs, int):
            raise TypeError(f"num_epochs: expected an int, got {type(num_epochs).__name__} {num_epochs!r}.")
        if num_epochs != -1 and num_epochs < 1:
            raise ConfigError(f"num_epochs: expected -1 (no end) or at least 1, got {num_epochs}.")
        self._walk = rows
        self._num_epochs = num_epochs
        self._pass = Pass(config.iterator_seed())
        self._rows: PrefetchedRows | None = None

    def next_values(self) -> Values | None:
        """Next row, or None at the end of an epoch; the call after that starts the next epoch."""
        if self._rows is None:
            if self._pass.epoch == self._num_epochs:
                raise ConfigError(
                    f"dataset iterator: expected at most num_epochs={self._num_epochs} epochs, got a request for one "
                    "more. Create a new iterator, or pass num_epochs=-1."
                )
            self._rows = PrefetchedRows(self._walk(self._pass), config.get_prefetch_size())
        try:
            return next(self._rows)
        except StopIteration:
            self.end_epoch()
            return None

    def end_epoch(self) -> None:
        """Drop what is left of this epoch."""
        if self._rows is not None:
            self._rows.close()
            self._rows = None
        self._pass = self._pass.at_epoch(self._pass.epoch + 1)


class TupleIterator:
    """Rows as lists of Tensor (or of arrays). Each `for` over it walks one epoch; `num_epochs` of -1 has no end."""

    def __init__(
        self, rows: Callable[[Pass], Iterator[Row]], names: Sequence[str], columns: Sequence[str] | None,
        num_epochs: int, output_numpy: bool,
    ) -> None:  # fmt: skip
        self._epochs = _Epochs(rows, num_epochs)
        where = "create_tuple_iterator(columns)"
        chosen = [name for name in names if not is_hidden(name)] if columns is None else columns
        self._slots = None if columns is None and chosen == list(names) else checks.column_slots(where, names, chosen)
        self._output_numpy = output_numpy

    def __iter__(self) -> TupleIterator:
        return self

    def __next__(self) -> list[Any]:
        values = self._epochs.next_values()
        if values is None:
            raise StopIteration
        if self._slots is not None:
            values = tuple(values[slot] for slot in self._slots)
        return [_output(value, self._output_numpy) for value in values]


class DictIterator:
    """Rows as dictionaries from column name to Tensor (or array). Each `for` over it walks one epoch."""

    def __init__(
        self, rows: Callable[[Pass], Iterator[Row]], names: Sequence[str], num_epochs: int, output_numpy: bool
    ) -> None:
        self._epochs = _Epochs(rows, num_epochs)
        self._columns = names
        self._output_numpy = output_numpy

    def __iter__(self) -> DictIterator:
        return self

    def get_next(self) -> dict[str, Any]:
        """The next row; MindSpore's other name of `next`."""
        return next(self)

    def __next__(self) -> dict[str, Any]:
        values = self._epochs.next_values()
        if values is None:
            raise StopIteration
        return {
            name: _output(value, self._output_numpy)
            for name, value in zip(self._columns, values, strict=True)
            if not is_hidden(name)
        }


def is_hidden(column: str) -> bool:
    """Is it a column that comes out only under another name (`rename`)?   Source: MindSpore's extra_metadata"""
    return column.startswith("_meta-")


def _output(value: Array | dict[Any, Any], output_numpy: bool) -> Any:
    if isinstance(value, dict):
        return _converted(value, output_numpy)
    if output_numpy:
        return value
    return Tensor.of_text(value) if value.dtype.kind in "US" else Tensor(value)


def _converted(item: Any, output_numpy: bool) -> Any:
    """What a dict of a row holds, with arrays or tensors in the place of numbers, strings and arrays."""
    if isinstance(item, dict):
        return {key: _converted(value, output_numpy) for key, value in item.items()}
    if isinstance(item, list | tuple):
        return type(item)(_converted(value, output_numpy) for value in item)
    array = np.asarray(item)
    return item if array.dtype.hasobject else _output(array, output_numpy)
