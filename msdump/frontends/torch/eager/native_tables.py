"""What `msdump_native` has counted of the tensors of one iteration: which there are, and their numbers."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from msdump.frontends.torch.convert import array_of
from msdump.frontends.torch.eager.tensors import Part
from msdump.statistics.measured import MeasuredNumbers, RowFrames
from msdump.statistics.stats import statistics
from msdump.tensors.arrays import Array
from msdump.tensors.records import TensorInfo
from msdump.tensors.torch_arrays import dtype_name

# Source: c10/core/ScalarType.h. Others have no bytes of their own, or no values that anything computes with.
_DTYPE_NAMES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64",
    8: "complex32", 9: "complex64", 10: "complex128", 11: "bool", 15: "bfloat16", 23: "float8_e5m2",
    24: "float8_e4m3fn", 25: "float8_e5m2fnuz", 26: "float8_e4m3fnuz", 27: "uint16", 28: "uint32", 29: "uint64",
    44: "float8_e8m0fnu",
}  # fmt: skip
_DTYPES: dict[int, torch.dtype] = {
    code: getattr(torch, name) for code, name in _DTYPE_NAMES.items() if hasattr(torch, name)
}
# Place of what is not there.
NONE = 0xFFFFFFFF


class Iteration:
    """What is known of the tensors of one iteration: rows of the native tables, as they come.

    keeps     whether tensors are copied in the place of being measured
    origins   memory -> what it is called
    first     the sequence number with which autograd began
    order     how many calls there were; written: memory -> the last call that has written it, and the last one of the
              forward pass
    """

    def __init__(self, numbers: Any, keeps: bool = False) -> None:
        """numbers: as of `msdump_native.Observer`"""
        self.keeps = keeps
        self._compiled = numbers
        self.infos: dict[int, TensorInfo] = {}
        self.arrays: dict[int, Array] = {}
        self.origins: dict[int, Hashable] = {}
        self.numbers = MeasuredNumbers(CompiledTable(numbers))
        self.first = 0
        self.batches: Counter[int] = Counter()
        self.order = 0
        self.written: dict[int, int] = {}
        self.written_by_forward: dict[int, int] = {}
        # Origin -> memory that it stands for.
        self._memories: dict[Hashable, int] = {}
        self._rows, self._sizes = _Growing(), _Growing()
        self._tensors: list[tuple[int, ...]] = []
        self._kept: dict[int, torch.Tensor] = {}
        self._dimensions: list[int] = []

    def add(self, batch: Mapping[str, Any]) -> None:
        """Rows of tensors that were met since rows were added last."""
        self._rows.add(batch["tensors"])
        self._sizes.add(batch["dimensions"])
        for number, elements, is_negative in batch["kept"]:
            if self.keeps:
                self._kept[number] = elements.neg() if is_negative else elements
            else:
                own = number - batch["first_measurement"]
                record = batch["measurements"][own : own + 1]
                is_integer = _measure(record[0], elements, is_negative)
                self._compiled.put(number, record, is_integer)

    def complete(self) -> None:
        """All that was measured so far has its numbers."""
        self.numbers.count = len(self._compiled)

    def name_memory(self, memory: int, origin: Hashable) -> Hashable:
        """Call a memory by what it comes from; others may come from the like.   Returns: what it is called"""
        number, name = 0, origin
        while name in self._memories:
            number += 1
            name = (origin, number)
        self.origins[memory] = name
        self._memories[name] = memory
        return name

    def take_origins(self, origins: Mapping[int, Hashable]) -> bool:
        """Call memories what they were called in another iteration; False, and nothing is changed, where a memory has
        another name by now, or a name another memory."""
        known, memories = self.origins, self._memories
        for memory, origin in origins.items():
            if known.get(memory, origin) != origin or memories.get(origin, memory) != memory:
                return False
        known.update(origins)
        memories.update(zip(origins.values(), origins.keys(), strict=True))
        return True

    def storages(self, places: Sequence[int]) -> list[int]:
        """Addresses of the storages of tensors."""
        found: list[int] = self._rows.all["storage"][places].tolist()
        return found

    def tensor(self, place: int) -> tuple[int, ...]:
        """Storage, offset, version, first dimension, measurement, memory, number of dimensions, dtype, and whether its
        values are the conjugates or the negatives of what lies in memory."""
        if place >= len(self._tensors):
            # Lists are made when they are first needed: steps that repeat need none.
            self._tensors += self._rows.all[len(self._tensors) :].tolist()
            self._dimensions += self._sizes.all[len(self._dimensions) :].tolist()
        return self._tensors[place]

    def part(self, place: int) -> Part:
        _, offset, _, first, _, _, count, dtype, is_conjugate, is_negative = self.tensor(place)
        sizes = self._dimensions[first : first + count]
        strides = self._dimensions[first + count : first + 2 * count]
        return (offset, tuple(sizes), tuple(strides), _DTYPES[dtype], bool(is_conjugate), bool(is_negative))

    def values(self, place: int) -> Array:
        """Elements of a tensor that was copied as it ran."""
        kept = self._kept[self.tensor(place)[4]]
        _, sizes, strides, _, is_conjugate, _ = self.part(place)
        if kept.dim() == 1 and len(sizes) != 1:
            # All of a piece of memory, which views in other orders share.
            kept = kept.as_strided(sizes, strides, 0)
        return array_of(kept.conj().resolve_conj() if is_conjugate else kept)


class _Growing:
    """An array that grows at its end."""

    def __init__(self) -> None:
        self._memory: Array = np.empty(0)
        self._count = 0

    @property
    def all(self) -> Array:
        return self._memory[: self._count]

    def add(self, more: Array) -> None:
        count = self._count + len(more)
        if count > len(self._memory):
            memory = np.empty(2 * count, more.dtype)
            memory[: self._count] = self.all
            self._memory = memory
        self._memory[self._count : count] = more
        self._count = count


@functools.cache
def shown_as(code: int) -> tuple[str, bool]:
    """Of a dtype: why tensors of it are not shown, "" where they are; and whether they have statistics."""
    dtype = _DTYPES.get(code)
    if dtype is None or dtype_name(dtype) is None:
        return f"dtype {_DTYPE_NAMES.get(code, f'of code {code}')}", False
    return "", not dtype.is_complex


def _measure(record: Any, elements: torch.Tensor, is_negative: bool) -> bool:
    """Fill in the numbers of a tensor that compiled code has kept.   Returns: whether extremes are those of integers"""
    name = dtype_name(elements.dtype)
    assert name is not None, elements.dtype
    numbers = statistics(array_of(-elements if is_negative else elements), name)
    for field in ("negative", "positive", "zero", "nan", "negative_inf", "positive_inf"):
        record[field] = getattr(numbers, field)
    record["average"] = np.nan if numbers.avg is None else numbers.avg
    record["norm"] = numbers.l2norm
    if numbers.max is None or numbers.min is None:
        return False
    # An unsigned integer may be larger than those of the record; its text is that of a float.
    is_integer = isinstance(numbers.max, int) and numbers.max < 2**63
    prefix = "integer_" if is_integer else ""
    record[f"{prefix}maximum"], record[f"{prefix}minimum"] = numbers.max, numbers.min
    return is_integer


class CompiledTable:
    """The numbers of `msdump_native`, as `CompiledNumbers`."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def since(self, first: int, last: int) -> tuple[Array, Array]:
        found: tuple[Array, Array] = self._compiled.since(first, last)
        return found

    def lines(self, frames: RowFrames, first_stamp: int, attributes: Sequence[str], end: str) -> str:
        import msdump_native

        compiled = frames.compiled
        if compiled is None:
            compiled = frames.compiled = msdump_native.Frames(frames.heads, frames.tails, frames.places)
        return str(compiled.lines(self._compiled, first_stamp, attributes, end))
