"""`msaccucmp overflow`: the first overflows of a dump, the operators they happened in, and what these computed.

Source: CANN, overflow analysis: order, files and the text of the summary.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from msdump.analysis.convert.files import Converter, ConvertOptions, SourceFile
from msdump.analysis.exit_codes import AnalysisError, ExitCode
from msdump.errors import DtypeError, FormatError
from msdump.formats.atomic import make_dirs, write_file
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_file import read_dump
from msdump.formats.dump_tensor import DumpedFile, DumpedTensor
from msdump.formats.npy import npy_array
from msdump.formats.opdebug import AcceleratorRecord, Opdebug, opdebug_json, read_opdebug
from msdump.formats.paths import parse

_UNKNOWN_PART = 65535  # of a context or thread
_FILE_MODE, _DIR_MODE = 0o600, 0o700


@dataclass(frozen=True, slots=True)
class UnitStatus:
    """One unit of the device that met an overflow; context and thread are None where the file has none."""

    unit: str
    task_id: int
    stream_id: int
    status: int
    context_id: int | None = None
    thread_id: int | None = None


@dataclass(frozen=True, slots=True)
class OverflowFile:
    """One overflow file, the dump files of the operators behind it, and their tensors."""

    file: DumpedFile
    units: tuple[UnitStatus, ...]
    operators: tuple[DumpedFile, ...]
    tensors: tuple[DumpedTensor, ...]


@dataclass(frozen=True)
class OverflowReport:
    """What was found.

    total      overflow files in the dump, of which `overflows` are the first
    examined   overflow files whose content is known, also one without a status
    damaged    files that could not be read
    code       what msaccucmp ends with; unless it is 0, no later overflow file was looked at
    """

    overflows: tuple[OverflowFile, ...]
    total: int
    examined: tuple[DumpedFile, ...] = ()
    damaged: tuple[tuple[str, str], ...] = ()
    code: ExitCode = ExitCode.NONE
    written: list[str] = field(default_factory=list)


def find_overflows(path: str | os.PathLike[str], count: int = 1) -> OverflowReport:
    """The first overflows by time stamp and the operators with their task and stream.

    Edges:   the first file that does not tell an overflow, and the first operator with a damaged file, end the search.
    Raises:  FormatError.
    """
    dump = DumpDir.open(path)
    files = dump.overflow_files()
    overflows: list[OverflowFile] = []
    examined: list[DumpedFile] = []
    damaged: list[tuple[str, str]] = []
    code = ExitCode.NONE
    for file in files[:count]:
        try:
            content = read_opdebug(file.path)
            examined.append(file)
            overflows.append(_overflow(dump, file, content))
        except (FormatError, OSError) as error:
            damaged.append((file.path, str(error)))
            code = error.code if isinstance(error, AnalysisError) else ExitCode.PARSE_DUMP_FILE
        if dump.damaged:
            damaged.extend((path, str(error)) for path, error in dump.damaged)
            code = code or ExitCode.INVALID_DUMP_DATA
        if code:
            break
    return OverflowReport(tuple(overflows), len(files), tuple(examined), tuple(damaged), code)


def write_overflow_report(report: OverflowReport, output: str | os.PathLike[str], moment: datetime) -> str:
    """Write JSON, npy files and, when nothing was damaged, `overflow_summary_{time}.txt`; the text of the summary.

    Raises: WriteError.
    """
    make_dirs(output, _DIR_MODE)
    for overflow_file in report.examined:
        _write_json(overflow_file, Path(output), report.written)
    with Converter(ConvertOptions(Path(output))) as converter:
        for file in dict.fromkeys(file for overflow in report.overflows for file in overflow.operators):
            result = converter.convert(SourceFile(file.path, file.original_name))
            report.written.extend(result.written)
    text = summary_text(report)
    if report.code:
        return text
    path = os.path.join(output, f"overflow_summary_{moment:%Y%m%d%H%M%S}.txt")
    write_file(path, [text.encode(errors="backslashreplace")], _FILE_MODE, replace=True)
    report.written.append(path)
    return text


def summary_text(report: OverflowReport) -> str:
    """The summary, block by block, as msaccucmp words it."""
    return "".join(_block(number, overflow) for number, overflow in enumerate(report.overflows, 1))


def _block(number: int, overflow: OverflowFile) -> str:
    lines = ["=" * 49 + f"[{number}]" + "=" * 50]
    lines += dict.fromkeys(f"[{file.op_type}] {_op_name(file)}" for file in overflow.operators)
    lines += (
        f" [{unit.unit}][TaskId:{unit.task_id}][StreamId:{unit.stream_id}][Status:{unit.status}]"
        for unit in overflow.units
    )
    lines.append(f" [timestamp:{overflow.file.timestamp_us}]")
    for tensor in overflow.tensors:
        lines += _tensor_lines(tensor)
    return "\n".join(lines) + "\n"


def _tensor_lines(tensor: DumpedTensor) -> list[str]:
    try:
        return _described(tensor)
    except (FormatError, DtypeError) as error:
        return [f" {tensor.file.original_name}", f" -[{error}]"]


def _described(tensor: DumpedTensor) -> list[str]:
    array = npy_array(tensor.load(), tensor.dtype) if tensor.dtype != "hifloat8" else tensor.load()
    name = tensor.file.original_name
    if tensor.file.form != parse.NPY:
        name = f"{name}.{tensor.io}.{tensor.slot}.npy"
    shape = array.shape or (1,)
    head = f" -[Format: {tensor.format}] [Shape: {shape}] [Dtype: {array.dtype}]"
    if not array.size:
        return [f" {name}", f"{head} [empty]"]
    with np.errstate(all="ignore"):
        return [
            f" {name}",
            f"{head} [Max: {_number(array.max())}] [Min: {_number(array.min())}] [Mean: {_number(array.mean())}]",
        ]


def _number(value: Any) -> str:
    """As numpy 1 prints it: the shortest digits of its own precision, without an exponent below 1e16."""
    if isinstance(value, np.floating) and (value == 0 or 1e-4 <= abs(value) < 1e16):
        return np.format_float_positional(value, unique=True, trim="0")
    return str(value)


def _op_name(file: DumpedFile) -> str:
    """From the header, else from the file's name."""
    if file.form != parse.BIN:
        return file.known_full_name or file.op_name
    try:
        return read_dump(file.path).op_name or file.op_name
    except (FormatError, OSError):
        return file.op_name


def _overflow(dump: DumpDir, file: DumpedFile, content: Opdebug | AcceleratorRecord) -> OverflowFile:
    units = _units(content)
    if not units:
        code = ExitCode.INVALID_OVERFLOW_TYPE if isinstance(content, Opdebug) else ExitCode.INVALID_OVERFLOW_STATUS
        raise AnalysisError(code, f"{file.path}: expected a unit with a status other than 0, got none.")
    operators: dict[DumpedFile, None] = {}
    for unit in units:
        operators.update(dict.fromkeys(_operator_files(file, unit)))
    tensors = [tensor for operator in operators for tensor in dump.read(operator)]
    return OverflowFile(file, tuple(units), tuple(operators), tuple(tensors))


def _units(content: Opdebug | AcceleratorRecord) -> list[UnitStatus]:
    if isinstance(content, Opdebug):
        return [
            UnitStatus(name, task.task_id, task.stream_id, task.status)
            for name, task in content.areas.items()
            if task.status
        ]
    values = content.values
    if not values["status"]:
        return []
    return [
        UnitStatus(
            content.acc_type,
            values["task_id"],
            values["stream_id"],
            values["status"],
            _known(values["context_id"]),
            _known(values["thread_id"]),
        )
    ]


def _known(number: int) -> int | None:
    return None if number == _UNKNOWN_PART else number


def _operator_files(overflow: DumpedFile, unit: UnitStatus) -> Sequence[DumpedFile]:
    """Files beside the overflow file of the earliest operator with that task: one dump file, or its npy files."""
    beside = DumpDir(os.path.dirname(overflow.path)).files()
    fitting = [
        file
        for file in beside
        if os.path.dirname(file.path) == os.path.dirname(overflow.path)
        and (file.task_id, file.stream_id) == (unit.task_id, unit.stream_id)
        and file.form in (parse.BIN, parse.NPY)
        and _fits_part(file, unit)
    ]
    bins = [file for file in fitting if file.form == parse.BIN]
    if bins:
        return [min(bins, key=lambda file: (file.timestamp_us or 0, file.path))]
    if not fitting:
        return []
    first = min(fitting, key=lambda file: (file.timestamp_us or 0, file.path))
    return [file for file in fitting if (file.op_type, file.op_name) == (first.op_type, first.op_name)]


def _fits_part(file: DumpedFile, unit: UnitStatus) -> bool:
    """Context and thread decide only where both sides tell them: names have them third and second to last."""
    if len(file.name.task_part) < 3:
        return True
    _, context, thread, *_ = file.name.task_part
    return unit.context_id in (None, context) and unit.thread_id in (None, thread)


def _write_json(file: DumpedFile, output: Path, written: list[str]) -> None:
    name = file.original_name if file.original_name.endswith(".json") else f"{file.original_name}.output.0.json"
    text = json.dumps(opdebug_json(read_opdebug(file.path)), indent=4)
    write_file(output / name, [text.encode()], _FILE_MODE, replace=True)
    written.append(str(output / name))
