"""Which rows of a source that can be read in any order, and in which order."""

from __future__ import annotations

import copy
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from msdump.errors import ConfigError
from msdump.mindspore.dataset import checks, config
from msdump.mindspore.dataset.rows import Pass
from msdump.tensors.arrays import Array

SOURCE_HEIGHT = 0  # samplers belong to sources, see rows.Pass.generator


class BuiltinSampler(ABC):
    """Chooses rows of a source for each walk; after `add_child`, of the rows that another sampler chose."""

    _child: BuiltinSampler | None = None

    @abstractmethod
    def places(self, size: int, walk: Pass) -> Sequence[int]:
        """Rows to read, each in [0, size)."""

    @abstractmethod
    def count(self, size: int) -> int:
        """How many rows `places` gives."""

    def sampled(self, size: int, walk: Pass) -> Sequence[int]:
        """Rows to read, each in [0, size), after all samplers of the chain."""
        if self._child is None:
            return self.places(size, walk)
        inner = self._child.sampled(size, walk)
        return [inner[place] for place in self.places(len(inner), walk)]

    def sampled_count(self, size: int) -> int:
        """How many rows `sampled` gives."""
        return self.count(size if self._child is None else self._child.sampled_count(size))

    def labeled(self, labels: Callable[[], Sequence[int]]) -> BuiltinSampler:
        """The sampler to use for a source with these labels; itself unless it chooses by label."""
        return self

    def add_child(self, sampler: BuiltinSampler | None) -> None:
        """Choose among the rows of `sampler`.   Raises: TypeError, ConfigError (there is one)."""
        if sampler is None:
            return
        if not isinstance(sampler, BuiltinSampler):
            raise TypeError(f"add_child: expected a sampler, got {type(sampler).__name__}.")
        if self._child is not None:
            raise ConfigError("add_child: expected a sampler without a child, got one that has a child.")
        self._child = sampler

    def get_child(self) -> BuiltinSampler | None:
        """The sampler of `add_child`."""
        return self._child


class Sampler(BuiltinSampler):
    """Base class of a script's own sampler: its `__iter__` gives the rows of each walk."""

    def __init__(self, num_samples: int | None = None) -> None:
        self.num_samples = _limit("Sampler", num_samples)
        self.dataset_size = 0

    def __iter__(self) -> Iterator[int]:
        raise NotImplementedError("Sampler: expected a subclass that has __iter__. Write one that yields row numbers.")

    def places(self, size: int, walk: Pass) -> Sequence[int]:
        self.dataset_size = size
        limit = getattr(self, "num_samples", None)  # a subclass may not call __init__
        return _inside([int(place) for place in itertools.islice(iter(self), limit)], size)

    def count(self, size: int) -> int:
        self.dataset_size = size
        return sum(1 for _ in itertools.islice(iter(self), getattr(self, "num_samples", None)))


class SequentialSampler(BuiltinSampler):
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


class RandomSampler(BuiltinSampler):
    """Rows in a new random order in each walk; with `replacement` a row may come several times."""

    def __init__(self, replacement: bool = False, num_samples: int | None = None, shuffle: Any = None) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"RandomSampler(replacement): expected a bool, got {type(replacement).__name__}.")
        self._replacement = replacement
        self._limit = _limit("RandomSampler", num_samples)

    def places(self, size: int, walk: Pass) -> Sequence[int]:
        generator = walk.generator(SOURCE_HEIGHT)
        if self._replacement:
            return [int(place) for place in generator.integers(size, size=self.count(size))]
        return [int(place) for place in generator.permutation(size)[: self.count(size)]]

    def count(self, size: int) -> int:
        return _at_most(size, self._limit)


class SubsetSampler(BuiltinSampler):
    """The given rows, in the given order."""

    def __init__(self, indices: int | Iterable[int], num_samples: int | None = None) -> None:
        given = list(indices) if isinstance(indices, Iterable) else [indices]
        self._indices = [checks.whole_number("sampler(indices)", index, 0) for index in given]
        self._limit = _limit("SubsetSampler", num_samples)

    def places(self, size: int, walk: Pass) -> Sequence[int]:
        return _inside(self._indices, size)[: self.count(size)]

    def count(self, size: int) -> int:
        return _at_most(len(self._indices), self._limit)


class SubsetRandomSampler(SubsetSampler):
    """The given rows, in a new random order in each walk."""

    def places(self, size: int, walk: Pass) -> Sequence[int]:
        indices = SubsetSampler(self._indices).places(size, walk)
        return [
            indices[int(slot)] for slot in walk.generator(SOURCE_HEIGHT).permutation(len(indices))[: self.count(size)]
        ]


class IterSampler(Sampler):
    """The rows of an iterable of row numbers, or of an object with `__getitem__` and `__len__`."""

    def __init__(self, sampler: Any, num_samples: int | None = None) -> None:
        if not _has_numbers(sampler):
            raise TypeError(f"IterSampler(sampler): expected an iterable, got {type(sampler).__name__}.")
        super().__init__(num_samples)
        self._numbers = sampler

    def __iter__(self) -> Iterator[int]:
        if isinstance(self._numbers, Iterable):
            return iter(self._numbers)
        return (self._numbers[index] for index in range(len(self._numbers)))


class WeightedRandomSampler(BuiltinSampler):
    """Rows drawn with probabilities in proportion to `weights`; without `replacement` no row comes twice."""

    def __init__(self, weights: Sequence[float], num_samples: int | None = None, replacement: bool = True) -> None:
        if not isinstance(weights, (list, tuple, np.ndarray)) or not len(weights):
            raise TypeError(f"WeightedRandomSampler(weights): expected a list of numbers, got {weights!r}.")
        if not isinstance(replacement, bool):
            raise TypeError(f"WeightedRandomSampler(replacement): expected a bool, got {type(replacement).__name__}.")
        self._weights = np.asarray(weights, np.float64)
        if not np.isfinite(self._weights).all() or (self._weights < 0).any() or not self._weights.any():
            raise ConfigError("WeightedRandomSampler(weights): expected numbers of at least 0, not all 0.")
        self._replacement = replacement
        self._limit = _limit("WeightedRandomSampler", num_samples)

    def places(self, size: int, walk: Pass) -> Sequence[int]:
        if len(self._weights) > size:
            raise ConfigError(
                f"WeightedRandomSampler(weights): expected at most {size} weights, got {len(self._weights)}."
            )
        generator, shares = walk.generator(SOURCE_HEIGHT), self._weights / self._weights.sum()
        count = self.count(size)
        if self._replacement:
            return [int(place) for place in generator.choice(len(shares), count, p=shares)]
        # Rows of weight 0 come last, as nothing else remains to be drawn.
        ranks = np.where(shares > 0, generator.exponential(size=len(shares)) / np.maximum(shares, 1e-300), np.inf)
        return [int(place) for place in np.argsort(ranks, kind="stable")[:count]]

    def count(self, size: int) -> int:
        if self._replacement:
            return size if self._limit is None else self._limit
        return _at_most(min(size, len(self._weights)), self._limit)


class PKSampler(BuiltinSampler):
    """`num_val` rows, drawn with replacement, of each of `num_class` classes; None: of each class."""

    def __init__(
        self, num_val: int, num_class: int | None = None, shuffle: bool = False, class_column: str = "label",
        num_samples: int | None = None,
    ) -> None:  # fmt: skip
        self._rows_per_class = checks.whole_number("PKSampler(num_val)", num_val)
        if num_class is not None:
            raise NotImplementedError("PKSampler(num_class): expected None, as MindSpore does, got a number.")
        if not isinstance(shuffle, bool):
            raise TypeError(f"PKSampler(shuffle): expected a bool, got {type(shuffle).__name__}.")
        self._shuffle, self.class_column = shuffle, class_column
        self._limit = _limit("PKSampler", num_samples)
        self._labels: Callable[[], Sequence[int]] | None = None

    def labeled(self, labels: Callable[[], Sequence[int]]) -> BuiltinSampler:
        sampler = copy.copy(self)
        sampler._labels = labels
        return sampler

    def places(self, size: int, walk: Pass) -> Sequence[int]:
        generator, labels = walk.generator(SOURCE_HEIGHT), self._label_array()
        classes = np.unique(labels)
        if self._shuffle:
            classes = generator.permutation(classes)
        chosen = [generator.choice(np.flatnonzero(labels == label), self._rows_per_class) for label in classes]
        return [int(place) for place in np.concatenate(chosen)[: self.count(size)]]

    def count(self, size: int) -> int:
        return _at_most(len(np.unique(self._label_array())) * self._rows_per_class, self._limit)

    def _label_array(self) -> Array:
        if self._labels is None:
            raise ConfigError(
                "PKSampler: expected a source that knows the label of each row, as ImageFolderDataset, got another."
            )
        return np.asarray(self._labels())


class DistributedSampler(BuiltinSampler):
    """Every `num_shards`-th row, from row `shard_id` on. All shards have the same number of rows: some come twice.

    offset   from 0 on: that shard gets row 0, the shards share the rows once and may differ in size; -1: see above
    """

    def __init__(
        self, num_shards: int, shard_id: int, shuffle: bool = True, num_samples: int | None = None, offset: int = -1
    ) -> None:
        self._num_shards = checks.whole_number("num_shards", num_shards)
        self._shard_id = checks.whole_number("shard_id", shard_id, 0)
        if self._shard_id >= self._num_shards:
            raise ConfigError(f"shard_id: expected a number below num_shards={num_shards}, got {shard_id}.")
        if not isinstance(shuffle, bool):
            raise TypeError(f"DistributedSampler(shuffle): expected a bool, got {type(shuffle).__name__}.")
        self._shuffle = shuffle
        self._offset = checks.whole_number("DistributedSampler(offset)", offset, -1)
        self._limit = _limit("DistributedSampler", num_samples)

    def places(self, size: int, walk: Pass) -> Sequence[int]:
        order = np.arange(size)
        if self._shuffle:
            # All shards must draw one order, so the seed is the set one (or its default), never a fresh one.
            order = Pass(config.get_seed(), (), walk.epoch).generator(SOURCE_HEIGHT).permutation(size)
        chosen = self._first() + np.arange(self.count(size)) * self._num_shards
        return [int(place) for place in order[chosen % size]] if size else []

    def count(self, size: int) -> int:
        whole = size + self._num_shards - 1 if self._offset < 0 else max(size - self._first() + self._num_shards - 1, 0)
        return _at_most(whole // self._num_shards, self._limit)

    def _first(self) -> int:
        return self._shard_id if self._offset < 0 else (self._shard_id - self._offset) % self._num_shards


def sampler_of(
    sampler: Any, shuffle: Any, num_samples: int | None, num_shards: int | None, shard_id: int | None
) -> BuiltinSampler:
    """Sampler that the arguments of a source ask for; `shuffle` of None means yes.   Raises: TypeError, ConfigError."""
    if shuffle is not None and not isinstance(shuffle, bool):
        raise TypeError(f"shuffle: expected a bool or None, got {type(shuffle).__name__} {shuffle!r}.")
    check_shards(num_shards, shard_id)
    if sampler is not None:
        if shuffle is not None or num_shards is not None:
            raise ConfigError("sampler: expected no shuffle, num_shards or shard_id beside it, got them too.")
        if isinstance(sampler, BuiltinSampler):
            return sampler
        if not _has_numbers(sampler):
            raise TypeError(f"sampler: expected a sampler or an iterable of row numbers, got {type(sampler).__name__}.")
        return IterSampler(sampler, num_samples)
    if num_shards is not None and shard_id is not None:
        return DistributedSampler(num_shards, shard_id, shuffle is not False, num_samples)
    if shuffle is False:
        return SequentialSampler(None, num_samples)
    return RandomSampler(False, num_samples)


def check_shards(num_shards: int | None, shard_id: int | None) -> None:
    """Raises: ConfigError when only one of them is there, or when there is no such shard; TypeError."""
    if (num_shards is None) != (shard_id is None):
        raise ConfigError(f"num_shards and shard_id: expected both or none, got {num_shards} and {shard_id}.")
    if num_shards is not None and checks.whole_number("shard_id", shard_id, 0) >= checks.whole_number(
        "num_shards", num_shards
    ):
        raise ConfigError(f"shard_id: expected a number below num_shards={num_shards}, got {shard_id}.")


def select_sampler(
    num_samples: int | None, input_sampler: Any, shuffle: bool | None, num_shards: int | None, shard_id: int | None
) -> BuiltinSampler:
    """Sampler that the arguments of a source ask for.   Raises: TypeError, ConfigError."""
    return sampler_of(input_sampler, shuffle, num_samples, num_shards, shard_id)


def _has_numbers(sampler: Any) -> bool:
    return isinstance(sampler, Iterable) or (hasattr(sampler, "__getitem__") and hasattr(sampler, "__len__"))


def _inside(places: list[int], size: int) -> list[int]:
    for place in places:
        if not 0 <= place < size:
            raise ConfigError(f"sampler: expected row numbers in [0, {size - 1}], got {place}.")
    return places


def _limit(where: str, num_samples: int | None) -> int | None:
    """None and 0 both mean "all rows", as in MindSpore."""
    if num_samples is None:
        return None
    return checks.whole_number(f"{where}(num_samples)", num_samples, 0) or None


def _at_most(count: int, limit: int | None) -> int:
    return count if limit is None else min(count, limit)
