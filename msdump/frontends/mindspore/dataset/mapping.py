"""`map`: transforms and Python functions on the columns of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from msdump.errors import ConfigError, ExecutionError
from msdump.frontends.mindspore.dataset import checks
from msdump.frontends.mindspore.dataset.pipeline import ColumnNames, Dataset, Operations, step
from msdump.frontends.mindspore.dataset.rows import Pass, Row, Values, apply_operation

MakeGenerator = Callable[..., np.random.Generator]


@step
class MapDataset(Dataset):
    """Each row with some of its columns replaced by what the operations make of them."""

    def __init__(
        self,
        child: Dataset,
        operations: Operations,
        input_columns: ColumnNames | None,
        output_columns: ColumnNames | None,
    ) -> None:
        names = child.get_col_names()
        inputs = checks.column_names("map(input_columns)", input_columns) or names[:1]
        outputs = checks.column_names("map(output_columns)", output_columns) or inputs
        self._child = child
        self._operations = _checked_operations(operations)
        self._input_names = inputs
        self._slots = checks.column_slots("map(input_columns)", names, inputs)
        self._kept = [slot for slot in range(len(names)) if slot not in self._slots]
        self._output_count = len(outputs)
        if len(outputs) == len(inputs):
            for slot, name in zip(self._slots, outputs, strict=True):
                names[slot] = name
        else:
            # Source: MindSpore, "first columns are occupied by the outputs" when their number changes.
            names = [*outputs, *(names[slot] for slot in self._kept)]
        self._columns = checks.column_names("map(output_columns)", names) or []

    def rows(self, walk: Pass) -> Iterator[Row]:
        generator_of = partial(walk.generator, self.height())
        return (self._mapped(row, ordinal, generator_of) for ordinal, row in enumerate(self._child.rows(walk)))

    def get_col_names(self) -> list[str]:
        return list(self._columns)

    def children(self) -> tuple[Dataset, ...]:
        return (self._child,)

    def known_size(self) -> int | None:
        return self._child.known_size()

    def _mapped(self, row: Row, ordinal: int, generator_of: MakeGenerator) -> Row:
        def compute() -> Values:
            values = row()
            results = self._apply(tuple(values[slot] for slot in self._slots), ordinal, generator_of)
            if len(results) != len(self._slots):
                return (*results, *(values[slot] for slot in self._kept))
            together = list(values)
            for slot, value in zip(self._slots, results, strict=True):
                together[slot] = value
            return tuple(together)

        return compute

    def _apply(self, values: tuple[Any, ...], ordinal: int, generator_of: MakeGenerator) -> Values:
        for number, operation in enumerate(self._operations):
            try:
                values = apply_operation(operation, values, partial(generator_of, ordinal, number))
            except Exception as error:
                raise ExecutionError(
                    f"map(operations[{number}]={_name(operation)}, input_columns={self._input_names}), row {ordinal}: "
                    f"{type(error).__name__}: {error}"
                ) from error
        if len(values) != self._output_count:
            raise ExecutionError(
                f"map(input_columns={self._input_names}): expected {self._output_count} values from the operations, "
                f"got {len(values)}. Name the columns of all of them in output_columns."
            )
        return tuple(np.asarray(value) for value in values)


def _checked_operations(operations: Operations) -> tuple[Callable[..., Any], ...]:
    given: Sequence[Any] = operations if isinstance(operations, (list, tuple)) else [operations]
    if not given:
        raise ConfigError("map(operations): expected at least one operation, got none.")
    for operation in given:
        if isinstance(operation, type) or not callable(operation):
            hint = f" Write {operation.__name__}()." if isinstance(operation, type) else ""
            raise TypeError(
                f"map(operations): expected transforms or functions, got {type(operation).__name__} "
                f"{operation!r}.{hint}"
            )
    return tuple(given)


def _name(operation: Any) -> str:
    return str(getattr(operation, "__name__", type(operation).__name__))
