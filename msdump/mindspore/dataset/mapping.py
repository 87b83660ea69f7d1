"""`map`: transforms and Python functions on the columns of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from msdump.errors import ConfigError, ExecutionError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.pipeline import ColumnNames, Dataset, Operations, step
from msdump.mindspore.dataset.rows import Pass, Row, Values, apply_operation, as_value, holds_objects
from msdump.mindspore.dataset.steps import OneChild

MakeGenerator = Callable[..., np.random.Generator]


@step
class MapDataset(OneChild):
    """Each row with some of its columns replaced by what the operations make of them."""

    def __init__(
        self,
        input_dataset: Dataset,
        operations: Operations,
        input_columns: ColumnNames | None = None,
        output_columns: ColumnNames | None = None,
        num_parallel_workers: int | None = None,
        python_multiprocessing: bool = False,
        cache: Any = None,
        callbacks: None = None,
        max_rowsize: Any = None,
        offload: bool | None = None,
    ) -> None:
        super().__init__(input_dataset)
        names = input_dataset.get_col_names()
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
