"""`MindDataset`: rows of MindRecord files; and `save`, which writes them."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from msdump.errors import ConfigError, ExecutionError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.pipeline import Dataset
from msdump.mindspore.dataset.rows import Pass, Row, constant
from msdump.mindspore.dataset.samplers import BuiltinSampler, sampler_of
from msdump.mindspore.dataset.sources import CHOICE, MappableDataset
from msdump.mindspore.dataset.text_files import Shuffle
from msdump.mindspore.mindrecord.reader import record_files
from msdump.mindspore.mindrecord.writer import FileWriter
from msdump.tensors.arrays import Array

SAVE_BATCH = 1024  # rows that are written at a time
# What MindRecord stores for a numpy dtype.
_STORED = {
    **dict.fromkeys(("bool", "int8", "int16", "int32", "uint8", "uint16"), "int32"),
    **dict.fromkeys(("int64", "uint32"), "int64"),
    **dict.fromkeys(("float16", "float32"), "float32"),
    "float64": "float64",
}


class FileSampler(BuiltinSampler):
    """Files in random order (their rows in order), or rows in random order within their files."""

    def __init__(self, sizes: Sequence[int], shuffle: Shuffle, limit: int | None) -> None:
        self._sizes, self._shuffle, self._limit = sizes, shuffle, limit or None

    def places(self, size: int, walk: Pass) -> Sequence[int]:
        generator = walk.generator(0)
        starts = [0, *itertools.accumulate(self._sizes)]
        blocks = [list(range(first, last)) for first, last in itertools.pairwise(starts)]
        if self._shuffle is Shuffle.FILES:
            blocks = [blocks[place] for place in generator.permutation(len(blocks))]
        else:
            blocks = [[block[place] for place in generator.permutation(len(block))] for block in blocks]
        return list(itertools.chain.from_iterable(blocks))[: self.count(size)]

    def count(self, size: int) -> int:
        return size if self._limit is None else min(size, self._limit)


class MindDataset(
    MappableDataset,
    takes="dataset_files columns_list=None num_parallel_workers=None shuffle=None num_shards=None shard_id=None "
    "sampler=None padded_sample=None num_padded=None num_samples=None cache=None",
):
    """Rows of MindRecord files: one name stands for all its shards.

    Dtypes: bytes come as (N,) uint8, so that no zero at their end is lost; everything else as its schema says.
    Edges:  columns are sorted by name unless `columns_list` chooses them. `num_padded` rows of `padded_sample` follow
            the last one.
    """

    def _set_up(
        self, dataset_files: Any, columns_list: Sequence[str] | None, shuffle: bool | Shuffle | None,
        padded_sample: Mapping[str, Any] | None, num_padded: int | None, **choice: Any,
    ) -> None:  # fmt: skip
        self._files = record_files("MindDataset(dataset_files)", dataset_files)
        self._ends = list(itertools.accumulate(len(file) for file in self._files))
        names = [field.name for field in self._files[0].fields]
        chosen = checks.column_names("MindDataset(columns_list)", columns_list)
        checks.column_slots("MindDataset(columns_list)", names, chosen or [])
        self._columns = chosen or names
        self._padded = checks.whole_number("MindDataset(num_padded)", num_padded or 0, 0)
        self._check_padding(padded_sample, chosen)
        self._padding = constant([(padded_sample or {}).get(name, 0) for name in self._columns])
        if isinstance(shuffle, Shuffle) and shuffle is not Shuffle.GLOBAL:
            if choice["sampler"] is not None or choice["num_shards"] is not None:
                raise ConfigError(f"MindDataset(shuffle): expected no sampler and no num_shards with {shuffle}.")
            limit = checks.whole_number("num_samples", choice["num_samples"] or 0, 0)
            self._sampler = FileSampler([len(file) for file in self._files], shuffle, limit)
        else:
            choice["shuffle"] = True if shuffle is Shuffle.GLOBAL else shuffle
            self._sampler = sampler_of(*(choice[name] for name in CHOICE))

    def _check_padding(self, padded_sample: Mapping[str, Any] | None, chosen: list[str] | None) -> None:
        if (padded_sample is None) != (not self._padded):
            raise ConfigError("MindDataset: expected padded_sample and num_padded together, got one of them.")
        if padded_sample is not None and (chosen is None or set(padded_sample) != set(chosen)):
            raise ConfigError("MindDataset(padded_sample): expected a value for each column of columns_list.")

    def source_size(self) -> int:
        return self._ends[-1] + self._padded

    def row_at(self, place: int) -> Row:
        if place >= self._ends[-1]:
            return self._padding
        number = bisect.bisect_right(self._ends, place)
        file, first = self._files[number], self._ends[number] - len(self._files[number])
        kinds = {field.name: field.type for field in file.fields}

        def read() -> tuple[Array, ...]:
            row = file.row(place - first)
            return tuple(_array(row[name], kinds[name]) for name in self._columns)

        return read

    def get_col_names(self) -> list[str]:
        return list(self._columns)


def _array(value: Any, kind: str) -> Array:
    if kind == "bytes":
        return np.frombuffer(value, np.uint8)
    return np.asarray(value) if kind == "string" else np.asarray(value, kind)


def save(dataset: Dataset, file_name: str, num_files: int, file_type: str) -> None:
    """Write the rows of one walk into MindRecord files.   Raises: ConfigError, ExecutionError (a bad column)."""
    if file_type != "mindrecord":
        raise ConfigError(f'save(file_type): expected "mindrecord", got {file_type!r}.')
    names = dataset.get_col_names()
    rows = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
    first = next(rows, None)
    if first is None:
        raise ExecutionError("save: expected at least one row, got none.")
    writer = FileWriter(file_name, num_files, overwrite=True)
    schema = {name: _saved_field(name, value) for name, value in zip(names, first, strict=True)}
    writer.add_schema(schema, "mindrecord")
    remaining = itertools.chain([first], rows)
    while batch := list(itertools.islice(remaining, SAVE_BATCH)):
        writer.write_raw_data(
            [{name: _saved(value, schema[name]) for name, value in zip(names, row, strict=True)} for row in batch]
        )
    writer.commit()


def _saved_field(name: str, value: Array) -> dict[str, Any]:
    if value.dtype.kind in "US" and value.ndim == 0:
        return {"type": "string"}
    kind = _STORED.get(value.dtype.name)
    if kind is None:
        raise ExecutionError(
            f"save: column {name!r}: expected numbers or single strings, got {value.dtype} {value.shape}."
        )
    return {"type": kind} if value.ndim == 0 else {"type": kind, "shape": [-1, *value.shape[1:]]}


def _saved(value: Array, field: Mapping[str, Any]) -> Any:
    if field["type"] == "string":
        return str(value)
    return value.astype(field["type"]) if "shape" in field else value.item()
