"""What `msdump_native` has counted of the tensors of one iteration: which there are, and their numbers."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import torch

from msdump.frontends.torch.convert import array_of
from msdump.frontends.torch.eager.tensors import Part
from msdump.statistics.measured import MeasuredNumbers, RowTexts
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
# By code.
_IS_INTEGER = np.array([code in _DTYPES and not _DTYPES[code].is_floating_point for code in range(256)])


class Iteration:
    """What is known of the tensors of one iteration: rows of the native tables, as they come.

    keeps     whether tensors are copied in the place of being measured
    origins   memory -> what it is called
    first     the sequence number with which autograd began
    order     how many calls there were; written: memory -> the last call that has written it, and the last one of the
              forward pass
    """

    def __init__(self, keeps: bool = False) -> None:
        self.keeps = keeps
        self.infos: dict[int, TensorInfo] = {}
        self.arrays: dict[int, Array] = {}
        self.origins: dict[int, Hashable] = {}
        self.numbers = MeasuredNumbers(_row_texts())
        self.first: int | None = None
        self.batches: Counter[int] = Counter()
        self.order = 0
        self.written: dict[int, int] = {}
        self.written_by_forward: dict[int, int] = {}
        self._origins: Counter[Hashable] = Counter()
        self._tensors: list[tuple[int, ...]] = []
        self._kept: dict[int, torch.Tensor] = {}
        self._dimensions: list[int] = []
        self._waiting: list[Mapping[str, Any]] = []

    def add(self, batch: Mapping[str, Any]) -> None:
        if self.first is None and len(batch["operators"]):
            self.first = int(batch["operators"]["first_sequence"][0])
        self._waiting.append(batch)
        tensors = batch["tensors"]
        is_integer = np.zeros(len(batch["measurements"]), bool)
        if self.keeps:
            for number, elements, is_negative in batch["kept"]:
                self._kept[number] = elements.neg() if is_negative else elements
            return
        measured = tensors[tensors["measurement"] != NONE]
        own = measured["measurement"].astype(np.int64) - batch["first_measurement"]
        is_integer[own[own >= 0]] = _IS_INTEGER[measured["dtype"][own >= 0]]
        for number, elements, is_negative in batch["kept"]:
            own_place = number - batch["first_measurement"]
            is_integer[own_place] = _measure(batch["measurements"][own_place], elements, is_negative)
        self.numbers.add(batch["measurements"], is_integer)

    def new_origin(self, origin: Hashable) -> Hashable:
        """What a memory is called: others may be called alike."""
        earlier = self._origins[origin]
        self._origins[origin] += 1
        return (origin, earlier) if earlier else origin

    def tensor(self, place: int) -> tuple[int, ...]:
        """Storage, offset, version, first dimension, measurement, memory, number of dimensions, dtype, and whether its
        values are the conjugates or the negatives of what lies in memory."""
        self._take()
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

    def _take(self) -> None:
        # Lists are made when they are first needed: steps that repeat need none.
        for batch in self._waiting:
            self._tensors += batch["tensors"].tolist()
            self._dimensions += batch["dimensions"].tolist()
        self._waiting.clear()


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


@functools.cache
def _row_texts() -> RowTexts:
    import msdump_native

    found: RowTexts = msdump_native.row_texts
    return found
