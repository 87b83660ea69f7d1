"""What msaccucmp compare does: rows of tensors measured, and the cells of its result file."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from msdump.analysis._payload import all_in_order
from msdump.analysis.compare.result_csv import (
    NO_VALUE,
    ResultRow,
    SideCells,
    result_csv,
    safe_cell,
    table_csv,
)
from msdump.analysis.convert.target_format import CustomFormats
from msdump.analysis.distance.metrics import METRICS, SCALAR_NOTE, PairMetrics, compare_arrays, metric_text
from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.analysis.msaccucmp.align import FusionOrigin, align
from msdump.analysis.msaccucmp.custom_metrics import Compare, run_custom
from msdump.analysis.msaccucmp.pairs import Pair
from msdump.analysis.msaccucmp.sides import Side, SideTensor
from msdump.errors import FormatError
from msdump.tensors.arrays import Array

_LARGEST_HALF = 65504
_LINE_END = "\r\n"
# Below this cosine an operator counts as inaccurate.
ACCURATE = 0.99
OVERFLOW, INPUT, CONSISTENCY = "FP16 Overflow", "Input Inconsistent", "Global Consistency"


@dataclass(frozen=True)
class AccuracyRequest:
    """How rows are measured.

    metrics      chosen metrics; None for those that are built in
    arguments    of each metric
    max_count    compare only the first elements; None for all
    custom       format converters of the user's
    """

    metrics: Mapping[str, Compare | None] = field(default_factory=lambda: dict.fromkeys(METRICS))
    arguments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    max_count: int | None = None
    has_overflow: bool = False
    custom: CustomFormats | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One measured row: cells by metric, and why some are NaN.

    dtypes   of mine and golden
    shape    of mine when it was measured; None for a row without a tensor of mine
    """

    pair: Pair
    cells: Mapping[str, str]
    reason: str
    overflow: str = NO_VALUE
    dtypes: tuple[str, ...] = (NO_VALUE, NO_VALUE)
    shape: tuple[int, ...] | None = None


def measure(pairs: Sequence[Pair], request: AccuracyRequest, thread_count: int | None = None) -> list[Row]:
    """Measure rows on all cores, in their order."""
    return all_in_order(lambda pair: _measure(pair, request), pairs, thread_count)


def _measure(pair: Pair, request: AccuracyRequest) -> Row:
    no_cells = dict.fromkeys(request.metrics, NO_VALUE)
    shape = None if pair.mine is None else pair.mine.shape
    # Between dumps the dtypes are those of the files; with a fusion json those of the arrays that were measured.
    sides = (pair.mine, pair.golden) if pair.origin is None else (None, None)
    dtypes = tuple(NO_VALUE if side is None else side.dtype for side in sides)
    overflow = NO_VALUE
    try:
        if pair.mine is not None and request.has_overflow:
            overflow = _overflow(pair.mine.load_stored())
        if pair.mine is None or pair.golden is None:
            return Row(pair, no_cells, pair.problem, overflow, dtypes, shape)
        both = align(pair.mine, pair.golden, pair.origin or FusionOrigin(), request.custom)
        cells, reason = measured_cells(
            _cut(both.mine, request), _cut(both.golden, request), request, _facts(pair, both.mine, both.golden)
        )
        if pair.origin is not None:
            dtypes, shape = (both.mine.dtype.name, both.golden.dtype.name), both.shape
        return Row(pair, cells, reason, overflow, dtypes, shape)
    except FormatError as error:
        return Row(pair, no_cells, f"{pair.tensor_index}: {error}", overflow, dtypes, shape)
    except OSError as error:
        problem = f"{error.filename}: expected to read it, got: {error.strerror}."
        return Row(pair, no_cells, problem, overflow, dtypes, shape)


def _cut(array: Array, request: AccuracyRequest) -> Array:
    return array if request.max_count is None else array.reshape(-1)[: request.max_count]


def _facts(pair: Pair, x: Array, y: Array) -> dict[str, Any]:
    """What a metric of the user's learns besides the numbers."""
    is_scalar = all(size == 1 for size in x.shape) and all(size == 1 for size in y.shape)
    return {
        "shape_type": "SCALAR" if is_scalar else "TENSOR",
        "my_output_dump_file": "" if pair.mine is None else pair.mine.path,
        "ground_truth_dump_file": "" if pair.golden is None else pair.golden.path,
    }


def measured_cells(
    x: Array, y: Array, request: AccuracyRequest, facts: Mapping[str, Any]
) -> tuple[dict[str, str], str]:
    """Cells of the chosen metrics, and the notes of those that could not be computed."""
    own = [name for name, compare in request.metrics.items() if compare is None]
    pair = compare_arrays(x, y, "KullbackLeiblerDivergence" in own) if own else None
    cells: dict[str, str] = {}
    notes: dict[str, None] = {}
    for name, compare in request.metrics.items():
        if compare is None:
            cells[name], note = metric_text(_known(pair), name)
        else:
            plain = x.astype(np.float32).reshape(-1), y.astype(np.float32).reshape(-1)
            cells[name], note = run_custom(compare, *plain, {**facts, **request.arguments.get(name, {})})
        if note:
            notes[note if note == SCALAR_NOTE else f"[{name}] {note}"] = None
    return cells, " ".join(notes)


def _known(pair: PairMetrics | None) -> PairMetrics:
    assert pair is not None  # there is a built-in metric, so it was computed
    return pair


def _overflow(array: Array) -> str:
    """YES when a float16 tensor reaches its largest number.   Edges: a NaN makes the test false; others are NaN."""
    if array.dtype != np.float16:
        return "NaN"
    return "YES" if array.size and float(np.abs(array).max()) >= _LARGEST_HALF else "NO"


# -- cells ---------------------------------------------------------------------------------------------------------


def accuracy_csv(rows: Sequence[Row], mine: Side, golden: Side, request: AccuracyRequest, has_sequence: bool) -> str:
    """Text of `result_{time}.csv`.   Source: CANN, msaccucmp compare."""
    return result_csv(
        map(_result_row, rows),
        request.metrics,
        (mine.has_addresses, golden.has_addresses),
        has_sequence=has_sequence,
        has_overflow=request.has_overflow,
        line_end=_LINE_END,
    )


def _result_row(row: Row) -> ResultRow:
    pair = row.pair
    # What a fusion json maps to has no address of its own.
    golden = pair.golden if pair.origin is None else None
    return ResultRow(
        pair.number,
        pair.op_type,
        SideCells(pair.mine_name, row.dtypes[0], _address_cell(pair.mine)),
        SideCells(pair.golden_name, row.dtypes[1], _address_cell(golden)),
        pair.tensor_index,
        row.shape,
        row.cells,
        row.reason,
        pair.sequence or 0,
        row.overflow,
    )


def _address_cell(tensor: SideTensor | None) -> str:
    return str(tensor.address) if tensor is not None and tensor.address else NO_VALUE


def mapping_csv(pairs: Sequence[Pair], has_sequence: bool) -> str:
    """Text of `mapping_{time}.csv`: which file meets which.   Source: CANN, msaccucmp compare, `-map`."""
    sequence = ["OpSequence"] if has_sequence else []
    table = [["Index", *sequence, "OpType", "NPUDump", "GroundTruth", "TensorIndex", "NPUDumpPath", "GroundTruthPath"]]
    for pair in pairs:
        paths = [
            NO_VALUE if tensor is None else safe_cell(os.path.realpath(tensor.path))
            for tensor in (pair.mine, pair.golden)
        ]
        names = [safe_cell(name) for name in (pair.op_type, pair.mine_name, pair.golden_name, pair.tensor_index)]
        table.append([str(pair.number), *([str(pair.sequence or 0)] if has_sequence else []), *names, *paths])
    return table_csv(table, _LINE_END)


def advisor_rows(rows: Sequence[Row]) -> list[AdvisorRow]:
    """What the advisor reads of the result file."""
    return [
        AdvisorRow(
            row.pair.number,
            row.pair.op_type,
            row.pair.mine_name,
            float(row.cells.get("CosineSimilarity", NO_VALUE)),
            row.overflow,
        )
        for row in rows
    ]


def compare_files(mine: str, golden: str, request: AccuracyRequest) -> dict[str, str]:
    """Cells of two plain files, .npy or .txt.

    Raises: AnalysisError: another kind of file, shapes that differ, a file that cannot be read.
    """
    x, y = read_plain(mine), read_plain(golden)
    if x.shape != y.shape:
        raise AnalysisError(
            ExitCode.INVALID_SHAPE, f"{mine} and {golden}: expected one shape, got {list(x.shape)} and {list(y.shape)}."
        )
    return measured_cells(_cut(x, request), _cut(y, request), request, {"shape_type": "TENSOR"})[0]


def read_plain(path: str) -> Array:
    """A .npy file, or numbers in a .txt file.   Raises: AnalysisError."""
    from msdump.formats.npy_reader import read_npy

    if not os.path.isfile(path):
        raise AnalysisError(ExitCode.INVALID_PATH, f"{path}: expected a file, got nothing.")
    try:
        if path.endswith(".npy"):
            return read_npy(path)
        if path.endswith(".txt"):
            return np.loadtxt(path, dtype=np.float32, ndmin=1)
    except (FormatError, ValueError) as error:
        raise AnalysisError(ExitCode.INVALID_DUMP_DATA, f"{path}: {error}") from error
    except OSError as error:
        raise AnalysisError(ExitCode.OPEN_FILE, f"{path}: expected to read it, got: {error.strerror}.") from error
    raise AnalysisError(ExitCode.INVALID_TYPE, f"{path}: expected a .npy or .txt file. Compare folders of dump files.")


@dataclass(frozen=True, slots=True)
class AdvisorRow:
    """Input of the advisor for a row: its index, operator, cosine (NaN for none) and OverFlow cell."""

    index: int
    op_type: str
    op_name: str
    cosine: float
    overflow: str


@dataclass(frozen=True, slots=True)
class Advice:
    """One finding; `index` is None where no_cells is wrong."""

    kind: str
    index: int | None
    advice: str

    @property
    def text(self) -> str:
        """The lines of `advisor_summary.txt`."""
        index = "NA" if self.index is None else str(self.index)
        return f"Detection Type: {self.kind}\nOperator Index: {index}\nExpert Advice: {self.advice}\n"


def advise(rows: Sequence[AdvisorRow]) -> Advice:
    """The first finding."""
    for row in rows:
        if row.overflow == "YES":
            text = (
                f"{row.op_name} holds float16 values at or past 65504. Look at its inputs, scale them down, or keep "
                "the operator in float32, and compare again."
            )
            return Advice(OVERFLOW, row.index, text)
    for row in rows:
        if row.op_type == "Data" and row.cosine < ACCURATE:
            text = (
                f"The input {row.op_name} is not the same on both sides. Feed both runs the same data, or look at how "
                "it is preprocessed."
            )
            return Advice(INPUT, row.index, text)
    measured = [row for row in rows if not math.isnan(row.cosine)]
    first = next((row for row in measured if row.cosine < ACCURATE), None)
    if first is None:
        text = (
            "All operators that could be compared are accurate. Are results wrong all the same? Look at what follows."
        )
        return Advice(CONSISTENCY, None, text)
    if measured[-1].cosine < ACCURATE:
        text = (
            f"{first.op_name} is the first inaccurate operator and the output is inaccurate, too: look at it first. "
            "Quantization may be the reason: calibrate again."
        )
    else:
        text = (
            f"{first.op_name} deviates, but the output is accurate again: the deviation heals and may be left as it is."
        )
    return Advice(CONSISTENCY, first.index, text)
