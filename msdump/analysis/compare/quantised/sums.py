"""Sums of products of codes: which operators behind them make numbers of them, and what scales these bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from msdump.analysis.compare.quantised.numbers import Grid, count_of, grid, loaded
from msdump.analysis.compare.quantised.wires import Wires
from msdump.analysis.steps import Operator, Slot
from msdump.formats.dump_tensor import DumpedTensor
from msdump.operators.codes import family, rescales
from msdump.tensors.arrays import Array

_FIRST = Slot(0)
_FACTORS = 2  # one of the data, one of the weight


@dataclass(frozen=True, eq=False, slots=True)
class ScaledSums:
    """Sums and what scales them.

    parts     indices of the operators that do so, in execution order
    result    the numbers
    rows      product of what rows are multiplied by, of as many axes as the result; None where there is none
    columns   factors of columns, or of all numbers alike
    offset    what is taken from the sums of each column first: the zero point of the data times the sum of the codes of
              the weight; None where nothing is
    """

    parts: tuple[int, ...]
    result: DumpedTensor
    rows: Array | None
    columns: tuple[Array, ...]
    offset: Array | None = None

    def zero_of_data(self, weight: Array) -> int:
        """The zero point of the data.   weight: its codes, (data, columns)"""
        if self.offset is None:
            return 0
        sums, offset = weight.astype(np.float64).sum(axis=0).reshape(-1), self.offset.astype(np.float64).reshape(-1)
        length = float(sums @ sums)
        return round(float(sums @ offset) / length) if length and sums.shape == offset.shape else 0


def scaled_sums(source: Sequence[Operator], wires: Wires, index: int) -> ScaledSums | None:
    """What scales the sums that an operator makes; None where nothing does."""
    result = source[index].outputs.get(_FIRST)
    parts: list[int] = []
    factors: list[Array] = []
    offset = None
    if result is not None and (taken := _next_offset(source, wires, result, index)) is not None:
        number, offset = taken
        parts.append(number)
        result = source[number].outputs.get(_FIRST)
    while result is not None and len(factors) < _FACTORS:
        step = _next_scaling(source, wires, result, parts[-1] if parts else index)
        if step is None:
            break
        number, factor = step
        parts.append(number)
        result = source[number].outputs.get(_FIRST)
        if factor is not None:
            factors.append(factor)
    if result is None or not parts or not result.true_dtype.startswith(("float", "bfloat")):
        return None
    by_rows = [factor for factor in factors if _is_of_rows(factor)]
    if not by_rows and len(factors) == _FACTORS and {factor.size for factor in factors} == {1}:
        # One scale for all tokens keeps the axes of the rows, that of the weight is one number.
        by_rows = [factor for factor in factors if factor.ndim > 1][: _FACTORS - 1]
    rows = None if not by_rows else np.prod([factor[..., :1] for factor in by_rows], axis=0)
    columns = tuple(one.reshape(-1) for one in factors if not any(one is row for row in by_rows))
    return ScaledSums(tuple(parts), result, rows, columns, offset)


def split_scales(sums: ScaledSums, data: Grid | None, zero: int = 0) -> tuple[Grid | None, Array | None]:
    """Scales of the data and of the weight out of what sums are multiplied by.

    data      what is known of the data; None for nothing
    zero      zero point of data whose rows have a scale each
    Returns:  None for what the factors do not tell
    """
    columns = sums.columns
    if sums.rows is not None:
        return data or Grid(sums.rows, np.full(1, zero)), columns[0] if columns else None
    if data is None or data.scale.size != 1:
        return data, None
    if len(columns) == 1:
        return data, grid(columns[0]).scale / (float(data.scale.reshape(())) or 1.0)
    return data, next((one for one in columns if not np.array_equal(one, data.scale.reshape(-1))), None)


def _next_scaling(
    source: Sequence[Operator], wires: Wires, tensor: DumpedTensor, index: int
) -> tuple[int, Array | None] | None:
    """The next operator that only scales a tensor, and what it multiplies it by."""
    for reader, slot in wires.readers(tensor, index):
        operator = source[reader]
        output = operator.outputs.get(_FIRST)
        if not rescales(operator.op_type) or output is None or count_of(output) != count_of(tensor):
            continue
        factor = next((one for other, one in operator.inputs.items() if other != slot), None)
        if factor is None:
            return reader, None
        array = loaded(factor)
        # A product of two activations scales nothing.
        if array is not None and (array.size < count_of(tensor) or count_of(tensor) == 1 or _is_of_rows(array)):
            return reader, array
    return None


def _next_offset(
    source: Sequence[Operator], wires: Wires, tensor: DumpedTensor, index: int
) -> tuple[int, Array] | None:
    """The operator that takes one number from all sums of a column, and these numbers."""
    for reader, slot in wires.readers(tensor, index):
        operator = source[reader]
        output = operator.outputs.get(_FIRST)
        other = next((one for at, one in operator.inputs.items() if at != slot), None)
        if slot != _FIRST or output is None or other is None or family(operator.op_type) != "sub":
            continue
        if output.true_dtype == other.true_dtype == tensor.true_dtype and count_of(output) == count_of(tensor):
            array = loaded(other)
            if array is not None and array.size == array.shape[-1] < count_of(tensor):
                return reader, array
    return None


def _is_of_rows(factor: Array) -> bool:
    """Whether a factor has one number for each row of a matrix, spread over it or not."""
    if factor.ndim < 2 or factor.size == 1:
        return False
    return factor.shape[-1] == 1 or bool((factor == factor[..., :1]).all())
