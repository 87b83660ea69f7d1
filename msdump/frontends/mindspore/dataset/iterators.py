"""What `create_tuple_iterator` and `create_dict_iterator` return."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msdump.arrays import Array
from msdump.errors import ConfigError
from msdump.frontends.mindspore.common.tensor import Tensor
from msdump.frontends.mindspore.dataset import checks, config
from msdump.frontends.mindspore.dataset.prefetch import PrefetchedRows
from msdump.frontends.mindspore.dataset.rows import Pass, Row, Values


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
        self,
        rows: Callable[[Pass], Iterator[Row]],
        names: Sequence[str],
        columns: Sequence[str] | None,
        num_epochs: int,
        output_numpy: bool,
    ) -> None:
        self._epochs = _Epochs(rows, num_epochs)
        where = "create_tuple_iterator(columns)"
        self._slots = None if columns is None else checks.column_slots(where, names, columns)
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

    def __next__(self) -> dict[str, Any]:
        values = self._epochs.next_values()
        if values is None:
            raise StopIteration
        return {name: _output(value, self._output_numpy) for name, value in zip(self._columns, values, strict=True)}


def _output(value: Array, output_numpy: bool) -> Any:
    # Strings have no tensor form here; MindSpore's string tensors are of no use to a network either.
    return value if output_numpy or value.dtype.kind in "US" else Tensor(value)
