"""Metrics of many pairs of dumped tensors: each distinct pair once, on all cores, in any order, with one result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msdump.analysis._payload import (
    Key,
    Progress,
    available_cores,
    equal_bytes,
    identity,
    in_runs,
    is_known_equal,
    is_small_copy,
    key_of,
)
from msdump.analysis.distance.bounds import largest, real_dtype
from msdump.analysis.distance.metrics import PairMetrics, compare_arrays
from msdump.errors import FormatError
from msdump.formats.dump_tensor import DumpedTensor
from msdump.tensors.arrays import Array
from msdump.tensors.makers import maker

# Larger pairs get all threads to themselves, smaller ones a thread each.
_LARGE_BYTES = 64 << 20
_DtypePair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """Metrics of one pair; None for tensors of the same bytes. `problem` says why there are none.

    dtypes   of the numbers, which a file may store in a wider dtype; None before it is looked up
    """

    metrics: PairMetrics | None = None
    problem: str = ""
    dtypes: _DtypePair | None = ("", "")


_measured = maker(MeasuredPair)
_SAME_FILES = MeasuredPair(dtypes=None)


class Measurer:
    """Measures pairs and caches the results. One thread calls it; it uses `thread_count` of its own.

    progress   called with (bytes done, bytes in all) after each pair
    damaged    (file, what is wrong) of files that could not be read
    """

    def __init__(
        self,
        has_divergence: bool = True,
        thread_count: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._has_divergence = has_divergence
        self._thread_count = thread_count or available_cores()
        self._progress = progress
        self._known: dict[Key, MeasuredPair] = {}
        # By identity; the objects are kept so that their ids are not used again.
        self._keys: dict[tuple[int, int], tuple[Key, DumpedTensor, DumpedTensor]] = {}
        self._tops: dict[Key, float] = {}
        self.damaged: list[tuple[str, FormatError]] = []

    def measure(self, pairs: Iterable[tuple[DumpedTensor, DumpedTensor]]) -> None:
        """Measure pairs of tensors of one size; pairs that are known are left out."""
        waiting: dict[Key, tuple[DumpedTensor, DumpedTensor]] = {}
        for pair in pairs:
            key = self._key(*pair)
            if key not in self._known:
                waiting[key] = pair
        sizes = {key: mine.size_bytes + golden.size_bytes for key, (mine, golden) in waiting.items()}
        total, done = sum(sizes.values()), 0
        small = {key: pair for key, pair in waiting.items() if sizes[key] < _LARGE_BYTES}
        results: dict[Key, MeasuredPair | FormatError] = {}
        for key, result in in_runs(self._measure_each, small, {key: sizes[key] for key in small}, self._thread_count):
            results[key] = result
            done += sizes[key]
            self._report(done, total)
        for key, (mine, golden) in waiting.items():
            if key not in results:
                results[key] = self._measure(mine, golden, self._thread_count)
                done += sizes[key]
                self._report(done, total)
            self._remember(key, mine, results[key])

    def of(self, mine: DumpedTensor, golden: DumpedTensor) -> MeasuredPair:
        """Result of a pair; measured now when it is not known."""
        key = self._key(mine, golden)
        if key not in self._known:
            self.measure([(mine, golden)])
        return self._known[key]

    def dtypes_of(self, mine: DumpedTensor, golden: DumpedTensor) -> _DtypePair:
        """Dtypes of the numbers of a pair."""
        dtypes = self.of(mine, golden).dtypes
        return _real_dtypes(mine, golden, *_arrays(mine, golden)) if dtypes is None else dtypes

    def largest_of(self, tensor: DumpedTensor) -> float:
        """Largest absolute value of a tensor; 0 when it cannot be read."""
        try:
            key = identity(tensor)
            if key not in self._tops:
                self._tops[key] = largest(tensor.load())
        except (FormatError, OSError):
            return 0.0
        return self._tops[key]

    def _key(self, mine: DumpedTensor, golden: DumpedTensor) -> Key:
        """`key_of` of a pair, which asks the file system once."""
        identities = id(mine), id(golden)
        found = self._keys.get(identities)
        if found is None:
            key = key_of(mine) * 2 if mine is golden else key_of(mine, golden)
            found = self._keys[identities] = key, mine, golden
        return found[0]

    def _report(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(done, total)

    def _remember(self, key: Key, mine: DumpedTensor, result: MeasuredPair | FormatError) -> None:
        if isinstance(result, MeasuredPair):
            self._known[key] = result
        else:
            self._known[key] = MeasuredPair(problem=str(result))
            self.damaged.append((mine.path, result))

    def _measure_each(self, pairs: Sequence[tuple[DumpedTensor, DumpedTensor]]) -> list[MeasuredPair | FormatError]:
        return [self._measure(mine, golden, 1) for mine, golden in pairs]

    def _measure(self, mine: DumpedTensor, golden: DumpedTensor, thread_count: int) -> MeasuredPair | FormatError:
        try:
            left, right = self._key(mine, golden)
            # Names replace the identities of files that were removed.
            is_equal = identity(mine) == identity(golden) if isinstance(left, str) else left == right
            if is_equal:
                return _measured(dtypes=(mine.true_dtype, golden.true_dtype))
            if is_small_copy(mine, golden):
                return _SAME_FILES
            if _has_equal_hash(mine, golden):
                return MeasuredPair(dtypes=(mine.true_dtype, golden.true_dtype))
            x, y = _arrays(mine, golden)
            dtypes = _real_dtypes(mine, golden, x, y)
            if x.size != y.size:
                return FormatError(f"{mine.where}: expected {y.size} elements as in {golden.where}, got {x.size}.")
            if equal_bytes(x, y):
                return MeasuredPair(dtypes=dtypes)
            return MeasuredPair(compare_arrays(x, y, self._has_divergence, thread_count), dtypes=dtypes)
        except FormatError as error:
            return error
        except OSError as error:
            return FormatError(f"{mine.path} and {golden.path}: expected to read them, got: {error.strerror or error}.")


def _real_dtypes(mine: DumpedTensor, golden: DumpedTensor, x: Array, y: Array) -> _DtypePair:
    return real_dtype(x, mine.true_dtype), real_dtype(y, golden.true_dtype)


def _has_equal_hash(mine: DumpedTensor, golden: DumpedTensor) -> bool:
    """Whether indexes of packs say that both are the same numbers, so that none of them need be read."""
    if (mine.true_dtype, mine.dtype, mine.shape, mine.format) != (
        golden.true_dtype,
        golden.dtype,
        golden.shape,
        golden.format,
    ):
        return False
    return is_known_equal(mine, golden)


def _arrays(mine: DumpedTensor, golden: DumpedTensor) -> tuple[Array, Array]:
    """Both tensors; as the host has them unless they lie in the same layout anyway."""
    if mine.format == golden.format and mine.shape == golden.shape:
        return mine.load(), golden.load()
    return mine.load_host(), golden.load_host()
