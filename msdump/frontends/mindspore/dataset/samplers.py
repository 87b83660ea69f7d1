"""Which rows of a source that can be read in any order, and in which order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.frontends.mindspore.dataset import checks, config
from msdump.frontends.mindspore.dataset.rows import Pass

SOURCE_HEIGHT = 0  # samplers belong to sources, see rows.Pass.generator


class Sampler(ABC):
    """Chooses rows of a source for each walk."""

    @abstractmethod
    def places(self, size: int, walk: Pass) -> Sequence[int]:
        """Rows to read, each in [0, size)."""

    @abstractmethod
    def count(self, size: int) -> int:
        """How many rows `places` gives."""


class SequentialSampler(Sampler):
    """Rows in their own order, from `start_index` on."""

    def __init__(self, start_index: int | None = None, num_samples: int | None = None) -> None:
        self._start = (
            0 if start_index is None else checks.whole_number("SequentialSampler(start_index)", start_index, 0)
        )
        self._limit = _limit("SequentialSampler", num_samples)

    def places(self, size: int, walk: Pass) -> Sequence[int]:
        return range(self._start, self._start + self.count(size))

    def count(self, size: int) -> int:
        return _at_most(max(size - self._start, 0), self._limit)


class RandomSampler(Sampler):
    """Rows in a new random order in each walk; with `replacement` a row may come several times."""

    def __init__(self, replacement: bool = False, num_samples: int | None = None) -> None:
        self._replacement = replacement
        self._limit = _limit("RandomSampler", num_samples)

    def places(self, size: int, walk: Pass) -> Sequence[int]:
        generator = walk.generator(SOURCE_HEIGHT)
        if self._replacement:
            return [int(place) for place in generator.integers(size, size=self.count(size))]
        return [int(place) for place in generator.permutation(size)[: self.count(size)]]

    def count(self, size: int) -> int:
        return _at_most(size, self._limit)


class SubsetSampler(Sampler):
    """The given rows, in the given order."""

    def __init__(self, indices: Iterable[int], num_samples: int | None = None) -> None:
        self._indices = [checks.whole_number("sampler(indices)", index, 0) for index in indices]
        self._limit = _limit("SubsetSampler", num_samples)

    def places(self, size: int, walk: Pass) -> Sequence[int]:
        outside = [index for index in self._indices if index >= size]
        if outside:
            raise ConfigError(f"sampler(indices): expected indices below {size}, got {outside[0]}.")
        return self._indices[: self.count(size)]

    def count(self, size: int) -> int:
        return _at_most(len(self._indices), self._limit)


class SubsetRandomSampler(SubsetSampler):
    """The given rows, in a new random order in each walk."""

    def places(self, size: int, walk: Pass) -> Sequence[int]:
        indices = SubsetSampler(self._indices).places(size, walk)
        return [
            indices[int(slot)] for slot in walk.generator(SOURCE_HEIGHT).permutation(len(indices))[: self.count(size)]
        ]


class DistributedSampler(Sampler):
    """Every `num_shards`-th row, from row `shard_id` on. All shards have the same number of rows: some come twice."""

    def __init__(
        self,
        num_shards: int,
        shard_id: int,
        shuffle: bool = True,
        num_samples: int | None = None,
    ) -> None:
        self._num_shards = checks.whole_number("num_shards", num_shards)
        self._shard_id = checks.whole_number("shard_id", shard_id, 0)
        if self._shard_id >= self._num_shards:
            raise ConfigError(f"shard_id: expected a number below num_shards={num_shards}, got {shard_id}.")
        self._shuffle = shuffle
        self._limit = _limit("DistributedSampler", num_samples)

    def places(self, size: int, walk: Pass) -> Sequence[int]:
        order = np.arange(size)
        if self._shuffle:
            # All shards must draw one order, so the seed is the set one (or its default), never a fresh one.
            order = Pass(config.get_seed(), (), walk.epoch).generator(SOURCE_HEIGHT).permutation(size)
        chosen = (np.arange(self.count(size)) * self._num_shards + self._shard_id) % max(size, 1)
        return [int(place) for place in order[chosen]] if size else []

    def count(self, size: int) -> int:
        return _at_most(-(-size // self._num_shards), self._limit)


def sampler_of(
    sampler: Any,
    shuffle: bool | None,
    num_samples: int | None,
    num_shards: int | None,
    shard_id: int | None,
) -> Sampler:
    """Sampler that the arguments of a source ask for; `shuffle` of None means yes.   Raises: TypeError, ConfigError."""
    if shuffle is not None and not isinstance(shuffle, bool):
        raise TypeError(f"shuffle: expected a bool or None, got {type(shuffle).__name__} {shuffle!r}.")
    if (num_shards is None) != (shard_id is None):
        raise ConfigError(f"num_shards and shard_id: expected both or none, got {num_shards} and {shard_id}.")
    if sampler is not None:
        if shuffle is not None or num_shards is not None:
            raise ConfigError("sampler: expected no shuffle, num_shards or shard_id beside it, got them too.")
        if isinstance(sampler, Sampler):
            return sampler
        return SubsetSampler(sampler, num_samples)
    if num_shards is not None and shard_id is not None:
        return DistributedSampler(num_shards, shard_id, shuffle is not False, num_samples)
    if shuffle is False:
        return SequentialSampler(None, num_samples)
    return RandomSampler(False, num_samples)


def _limit(where: str, num_samples: int | None) -> int | None:
    """None and 0 both mean "all rows", as in MindSpore."""
    if num_samples is None:
        return None
    return checks.whole_number(f"{where}(num_samples)", num_samples, 0) or None


def _at_most(count: int, limit: int | None) -> int:
    return count if limit is None else min(count, limit)
