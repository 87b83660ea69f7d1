"""What msaccucmp compare does: rows of tensors, with or without the fusion json, and the cells of its result file."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from msdump.analysis.accuracy_sides import DUMP, Side, SideTensor
from msdump.analysis.advisor import AdvisorRow
from msdump.analysis.comparison_report import safe_cell
from msdump.analysis.custom_metrics import Compare, run_custom
from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.analysis.fusion_json import FusedOperator, FusedOutput
from msdump.analysis.metrics import METRICS, SCALAR_NOTE, PairMetrics, compare_arrays, metric_text
from msdump.errors import FormatError
from msdump.events import Array
from msdump.formats.async_layout import safe_piece
from msdump.records import INPUT, OUTPUT

_LARGEST_HALF = 65504
# Operators that never run: they have no dump file, and nobody misses it.
_NEVER_DUMPED = frozenset({"Data", "Const", "Constant", "Variable", "NetOutput", "AnnData"})


@dataclass(frozen=True, slots=True)
class Pair:
    """One row before it is measured; a side is None when no file has it."""

    op_type: str
    mine_name: str
    golden_name: str
    io: str
    index: int
    mine: SideTensor | None
    golden: SideTensor | None
    sequence: int | None = None
    origin_format: str | None = None
    origin_shape: tuple[int, ...] | None = None

    @property
    def tensor_index(self) -> str:
        return f"{self.mine_name}:{self.io}:{self.index}"


@dataclass(frozen=True)
class Request:
    """How rows are measured.

    metrics      chosen metrics; None for those that are built in
    arguments    of each metric
    max_count    compare only the first elements; None for all
    """

    metrics: Mapping[str, Compare | None] = field(default_factory=lambda: dict.fromkeys(METRICS))
    arguments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    max_count: int | None = None
    has_overflow: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One measured row: cells by metric, and why some are NaN."""

    pair: Pair
    cells: Mapping[str, str]
    reason: str
    overflow: str


def pairs_by_name(mine: Side, golden: Side) -> list[Pair]:
    """Every tensor of mine with the tensor of golden's operator of the same name."""
    return [
        Pair(
            tensor.op_type,
            name,
            name if any(True for _ in golden.of(name)) else "*",
            tensor.io,
            tensor.index,
            tensor,
            golden.find(name, tensor.io, tensor.index),
        )
        for name in mine.op_names
        for tensor in mine.of(name)
    ]


def pairs_by_fusion(
    mine: Side, golden: Side, operators: Sequence[FusedOperator], wanted: Collection[int] | None = None
) -> list[Pair]:
    """Rows of a fused model: each output with the original output that it stands for, each input with that of the
    operator that made it.

    wanted   sequence numbers, None for all
    """
    outputs = {operator.name: operator.outputs for operator in operators}
    found: list[Pair] = []
    for operator in operators:
        if wanted is not None and operator.sequence not in wanted:
            continue
        rows = list(_rows_of(operator, outputs, mine, golden))
        if rows or operator.op_type in _NEVER_DUMPED:
            found += rows
        else:
            found.append(Pair(operator.op_type, operator.name, "*", OUTPUT, 0, None, None, operator.sequence))
    return found


def _rows_of(
    operator: FusedOperator, outputs: Mapping[str, tuple[FusedOutput, ...]], mine: Side, golden: Side
) -> Iterator[Pair]:
    for tensor in mine.of(operator.name):
        origin: FusedOutput | None = None
        if tensor.io == OUTPUT and tensor.index < len(operator.outputs):
            origin = operator.outputs[tensor.index]
        elif tensor.io == INPUT and tensor.index < len(operator.inputs):
            edge = operator.inputs[tensor.index]
            made = () if edge is None else outputs.get(edge[0], ())
            if edge is not None and 0 <= edge[1] < len(made):
                origin = made[edge[1]]
            elif edge is not None:
                origin = FusedOutput(edge[0], max(0, edge[1]), None, None)
        other = None if origin is None else golden.find(origin.origin_name, OUTPUT, origin.origin_index)
        if other is None and golden.kind == DUMP:
            # Both sides are dumps of one model: the operator has its own file there.
            other = golden.find(operator.name, tensor.io, tensor.index)
        name = "*" if origin is None else origin.origin_name
        yield Pair(
            operator.op_type,
            operator.name,
            name,
            tensor.io,
            tensor.index,
            tensor,
            other,
            operator.sequence,
            None if origin is None else origin.origin_format,
            None if origin is None else origin.origin_shape,
        )


def measure(pairs: Sequence[Pair], request: Request, thread_count: int | None = None) -> list[Row]:
    """Measure rows on all cores, in their order."""
    with ThreadPoolExecutor(thread_count or len(os.sched_getaffinity(0)), "msdump-accuracy") as pool:
        return list(pool.map(lambda pair: _measure(pair, request), pairs))


def _measure(pair: Pair, request: Request) -> Row:
    nothing = dict.fromkeys(request.metrics, "NaN")
    if pair.mine is None:
        return Row(pair, nothing, f"{pair.mine_name} has no dump file.", "NaN")
    try:
        x = pair.mine.load(pair.origin_format, pair.origin_shape)
        overflow = _overflow(x) if request.has_overflow else "NaN"
        if pair.golden is None:
            return Row(pair, nothing, f"{pair.golden_name} has no such tensor on the other side.", overflow)
        y = pair.golden.load()
        if x.size != y.size:
            return Row(pair, nothing, f"Shapes {list(x.shape)} and {list(y.shape)} have different sizes.", overflow)
        cells, reason = measured_cells(_cut(x, request), _cut(y, request), request, _facts(pair, x, y))
        return Row(pair, cells, reason, overflow)
    except FormatError as error:
        return Row(pair, nothing, str(error), "NaN")
    except OSError as error:
        return Row(pair, nothing, f"{pair.mine.path}: expected to read it, got: {error.strerror}.", "NaN")


def _cut(array: Array, request: Request) -> Array:
    return array if request.max_count is None else array.reshape(-1)[: request.max_count]


def _facts(pair: Pair, x: Array, y: Array) -> dict[str, Any]:
    """What a metric of the user's learns besides the numbers."""
    is_scalar = all(size == 1 for size in x.shape) and all(size == 1 for size in y.shape)
    return {
        "shape_type": "SCALAR" if is_scalar else "TENSOR",
        "my_output_dump_file": "" if pair.mine is None else pair.mine.path,
        "ground_truth_dump_file": "" if pair.golden is None else pair.golden.path,
    }


def measured_cells(x: Array, y: Array, request: Request, facts: Mapping[str, Any]) -> tuple[dict[str, str], str]:
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


def result_csv(rows: Sequence[Row], mine: Side, golden: Side, request: Request, has_sequence: bool) -> str:
    """Text of `result_{time}.csv`.   Source: CANN, msaccucmp compare."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    address = [["Address"] if side.kind == DUMP else [] for side in (mine, golden)]
    writer.writerow(
        [
            "Index",
            *(["OpSequence"] if has_sequence else []),
            "OpType",
            "NPUDump",
            "DataType",
            *address[0],
            "GroundTruth",
            "DataType",
            *address[1],
            "TensorIndex",
            "Shape",
            *(["OverFlow"] if request.has_overflow else []),
            *request.metrics,
            "CompareFailReason",
        ]
    )
    for index, row in enumerate(rows):
        pair = row.pair
        cells = [str(index), *([str(pair.sequence)] if has_sequence else []), safe_cell(pair.op_type or "*")]
        for name, tensor, column in ((pair.mine_name, pair.mine, 0), (pair.golden_name, pair.golden, 1)):
            cells += [safe_cell("*" if tensor is None else name), "NaN" if tensor is None else tensor.dtype]
            cells += ["NaN" if tensor is None else tensor.address] if address[column] else []
        shape = [] if pair.mine is None else list(pair.mine.shape)
        cells += [safe_cell(pair.tensor_index), "[" + ",".join(map(str, shape)) + "]"]
        cells += [row.overflow] if request.has_overflow else []
        writer.writerow([*cells, *(row.cells[name] for name in request.metrics), row.reason])
    return stream.getvalue()


def mapping_csv(rows: Sequence[Row]) -> str:
    """Text of `mapping_{time}.csv`: which file was compared with which."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["Index", "OpType", "NPUDump", "GroundTruth", "TensorIndex", "NPUDumpPath", "GroundTruthPath"])
    for index, row in enumerate(rows):
        pair = row.pair
        paths = ["*" if tensor is None else tensor.path for tensor in (pair.mine, pair.golden)]
        names = [safe_cell(pair.mine_name), safe_cell(pair.golden_name), safe_cell(pair.tensor_index)]
        writer.writerow([str(index), safe_cell(pair.op_type or "*"), *names, *paths])
    return stream.getvalue()


def advisor_rows(rows: Sequence[Row]) -> list[AdvisorRow]:
    found = []
    for index, row in enumerate(rows):
        cosine = row.cells.get("CosineSimilarity", "NaN")
        found.append(AdvisorRow(index, row.pair.op_type, row.pair.mine_name, float(cosine), row.overflow))
    return found


def compare_files(mine: str, golden: str, request: Request) -> dict[str, str]:
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
    from msdump.formats.npy import read_npy

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


def has_missing(rows: Sequence[Row]) -> bool:
    """True when an operator of the model has no dump file."""
    return any(row.pair.mine is None for row in rows)


def detail_name(op_name: str, io_name: str, index: int) -> str:
    """Beginning of the names of the files of one tensor's detail."""
    return f"{safe_piece(op_name)}_{io_name}_{index}"
