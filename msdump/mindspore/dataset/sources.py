"""Sources of arrays: `NumpySlicesDataset`, `PaddedDataset`; and what all sources share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset import checks
from msdump.mindspore.dataset.pipeline import ColumnNames, Dataset
from msdump.mindspore.dataset.rows import Pass, Row, constant
from msdump.mindspore.dataset.samplers import BuiltinSampler, SequentialSampler, sampler_of

# Settings of sources that say which rows come, as `sampler_of` takes them.
CHOICE = ("sampler", "shuffle", "num_samples", "num_shards", "shard_id")


class SourceDataset(Dataset):
    """A dataset that reads no other."""

    def children(self) -> tuple[Dataset, ...]:
        return ()


class MappableDataset(SourceDataset):
    """A source whose rows can be read in any order. Subclasses say how many there are and how to read one."""

    _sampler: BuiltinSampler

    @abstractmethod
    def source_size(self) -> int:
        """Rows of the source, before sampling."""

    @abstractmethod
    def row_at(self, place: int) -> Row:
        """One row."""

    def labels(self) -> Sequence[int]:
        """Class of each row of the source, for samplers that choose by class.   Raises: ConfigError: it knows none."""
        raise ConfigError(
            f"{type(self).__name__}: expected another sampler: PKSampler needs a source that knows the label of each "
            "row, as ImageFolderDataset."
        )

    def sampler(self) -> BuiltinSampler:
        """Which rows, in which order."""
        return self._sampler.labeled(self.labels)

    def use_sampler(self, new_sampler: BuiltinSampler | None) -> None:
        """Take the rows of `new_sampler` from now on.   Raises: TypeError."""
        if new_sampler is not None and not isinstance(new_sampler, BuiltinSampler):
            raise TypeError(f"use_sampler: expected a sampler, got {type(new_sampler).__name__}.")
        self._sampler = SequentialSampler() if new_sampler is None else new_sampler

    def add_sampler(self, new_sampler: BuiltinSampler) -> None:
        """Let `new_sampler` choose among the rows of the sampler that is there.   Raises: TypeError."""
        before = self._sampler
        self.use_sampler(new_sampler)
        self._sampler.add_child(before)

    def rows(self, walk: Pass) -> Iterator[Row]:
        return (self.row_at(place) for place in self.sampler().sampled(self.source_size(), walk))

    def known_size(self) -> int | None:
        return self.sampler().sampled_count(self.source_size())


class NumpySlicesDataset(
    MappableDataset,
    takes="data column_names=None num_samples=None num_parallel_workers=1 shuffle=None sampler=None num_shards=None "
    "shard_id=None",
):
    """Slices along the first axis of one array, of each of a tuple of arrays, or of each value of a dictionary."""

    def _set_up(self, data: Any, column_names: ColumnNames | None, **choice: Any) -> None:
        if not isinstance(data, (list, tuple, Mapping, np.ndarray)):
            raise TypeError(f"NumpySlicesDataset(data): expected arrays, lists or a dict, got {type(data).__name__}.")
        if isinstance(data, Mapping):
            default_names = [str(name) for name in data]
            columns = list(data.values())
        else:
            columns = list(data) if isinstance(data, tuple) else [data]
            default_names = [f"column_{slot}" for slot in range(len(columns))]
        self._columns = [np.asarray(column) for column in columns]
        self._names = checks.column_names("NumpySlicesDataset(column_names)", column_names) or default_names
        self._sampler = sampler_of(*(choice[name] for name in CHOICE))
        if len(self._names) != len(self._columns):
            raise ConfigError(
                f"NumpySlicesDataset(column_names): expected {len(self._columns)} names, got {self._names}."
            )
        lengths = [len(column) if column.ndim else None for column in self._columns]
        if not lengths or None in lengths or len(set(lengths)) != 1:
            raise ConfigError(f"NumpySlicesDataset(data): expected columns of one length, got lengths {lengths}.")

    def source_size(self) -> int:
        return len(self._columns[0])

    def row_at(self, place: int) -> Row:
        return constant([column[place] for column in self._columns])

    def get_col_names(self) -> list[str]:
        return list(self._names)


class PaddedDataset(MappableDataset):
    """The given rows, each a dictionary from column to value; to be added to another dataset before it is sharded."""

    def __init__(self, padded_samples: Sequence[Mapping[str, Any]]) -> None:
        if not isinstance(padded_samples, (list, tuple)) or not padded_samples:
            raise TypeError(f"PaddedDataset(padded_samples): expected a list of rows, got {padded_samples!r}.")
        for row in padded_samples:
            if not isinstance(row, Mapping) or list(row) != list(padded_samples[0]):
                raise ConfigError(f"PaddedDataset(padded_samples): expected dicts of one set of columns, got {row!r}.")
        self._names = checks.column_names("PaddedDataset", list(padded_samples[0])) or []
        self._rows = [constant(list(row.values())) for row in padded_samples]
        self._sampler = SequentialSampler()

    def source_size(self) -> int:
        return len(self._rows)

    def row_at(self, place: int) -> Row:
        return self._rows[place]

    def get_col_names(self) -> list[str]:
        return list(self._names)
