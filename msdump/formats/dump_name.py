"""What the name of a data file says, in every form that the tools around a dump have ever used.

    npy              {op_type}.{op_name}.{task}.{stream}.{time}.{io}.{slot}.{format}[.{dtype}].npy
    bin              {op_type}.{op_name}.{task}[.{stream}].{time}[.{task type}.{context}.{thread}.{device}]
    converted        {bin}.{io}.{slot}[.{shape}].npy and {bin}.{io}.{slot}.{shape}.{dtype}.{format}.bin
    fx               {node}-{target}.{INPUT|OUTPUT}.{i}[.{j}].{time}.npy
    golden           {op_name}.{output}.{time}.npy
    exception        exception_info.{stream}.{task}.{time}, {kernel}.{stream}.{task}.{time}.core
    any other .npy   a tensor with the name of the file

Source: MindSpore dump guide; CANN, names of dump files; TorchAir, names of its eager dump.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from msdump import dtypes
from msdump.formats.acl_exception import parse_core_file_name
from msdump.formats.async_layout import BinFileName, parse_bin_file_name, parse_overflow_json_name
from msdump.formats.layout import NUMBER, parse_data_file_name
from msdump.formats.torchair_layout import parse_torchair_name
from msdump.records import INPUT, OUTPUT

NPY, BIN, RAW, OVERFLOW = "npy", "bin", "raw", "overflow"

_CONVERTED = re.compile(
    rf"(?P<dump>.+)\.(?P<io>{INPUT}|{OUTPUT})\.(?P<slot>{NUMBER})"
    r"(?:\.(?P<shape>[0-9]+(?:x[0-9]+)*))?\.npy"
)
_RAW = re.compile(
    rf"(?P<dump>.+)\.(?P<io>{INPUT}|{OUTPUT})\.(?P<slot>{NUMBER})"
    r"\.(?P<shape>[0-9]{1,19}(?:_[0-9]{1,19}){0,63})\.(?P<dtype>[a-z0-9_]+)\.(?P<format>[A-Za-z0-9_]+)\.bin"
)
# TorchAir itself takes the operator's name as it is, blanks and brackets included, and any digits for the time.
_FX = re.compile(
    rf"(?P<node>[^-]+)-(?P<target>.+)\.(?P<io>INPUT|OUTPUT)\.(?P<slot>{NUMBER})(?:\.(?P<part>{NUMBER}))?"
    rf"\.(?P<time>{NUMBER})\.npy"
)
_GOLDEN = re.compile(rf"(?P<op_name>.+)\.(?P<slot>{NUMBER})\.(?P<time>[1-9][0-9]{{9,19}})\.npy")
_EXCEPTION = re.compile(rf"exception_info\.(?P<stream>{NUMBER})\.(?P<task>{NUMBER})\.(?P<time>{NUMBER})")
_FIRST_KEYWORD = 10**6
_SHAPE_FORMAT = re.compile(r"[0-9]+(?:x[0-9]+)*")


@dataclass(frozen=True, slots=True)
class DumpName:
    """The pieces of a name; None where its form has no such piece.

    form    "npy", "bin", "raw" (bytes whose name tells shape and dtype) or "overflow"
    slot    None in bin names: the file holds all tensors of its operator
    part    index in a list of tensors that is one argument
    shape   of raw files
    keyword name of a keyword argument, whose slot then is a number above all positions that stands for the name
    is_argument  TorchAir's: any argument or result, so the file may hold text or an object in place of a tensor
    """

    form: str
    op_type: str
    op_name: str
    task_id: int | None = None
    stream_id: int | None = None
    timestamp_us: int | None = None
    io: str | None = None
    slot: int | None = None
    part: int | None = None
    format: str | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    task_part: tuple[int, ...] = ()
    keyword: str | None = None
    is_argument: bool = False


def parse_dump_name(text: str) -> DumpName | None:
    """Pieces of the name of a file that holds tensors, or an overflow; None for any other file."""
    if text.endswith(".npy"):
        return _npy(text)
    if text.endswith(".bin"):
        return _raw(text)
    if text.endswith(".json"):
        overflow = parse_overflow_json_name(text)
        return None if overflow is None else _of_bin(overflow)
    core = parse_core_file_name(text)
    if core is not None:
        kernel, stream, task, stamp = core
        return DumpName(BIN, "core", kernel, task, stream, stamp)
    exception = _EXCEPTION.fullmatch(text)
    if exception is not None:
        numbers = int(exception["task"]), int(exception["stream"]), int(exception["time"])
        return DumpName(BIN, "exception_info", f"{numbers[1]}_{numbers[0]}", *numbers)
    name = parse_bin_file_name(text)
    return None if name is None else _of_bin(name)


def _of_bin(name: BinFileName) -> DumpName:
    return DumpName(
        OVERFLOW if name.is_overflow else BIN,
        name.op_type,
        name.op_name,
        name.task_id,
        name.stream_id,
        name.timestamp_us,
        task_part=name.task_part,
    )


def _npy(text: str) -> DumpName:
    data = parse_data_file_name(text)
    if data is not None:
        numbers = data.task_id, data.stream_id, data.timestamp_us
        tensor_format = None if _SHAPE_FORMAT.fullmatch(data.format) else data.format
        return DumpName(
            NPY, data.op_type, data.op_name, *numbers, data.io, data.slot, format=tensor_format, dtype=data.dtype
        )
    fx = _fx(text)
    if fx is not None:
        return fx
    converted = _CONVERTED.fullmatch(text)
    name = parse_bin_file_name(converted["dump"]) if converted is not None else None
    if converted is not None and name is not None:
        numbers_of_bin = name.task_id, name.stream_id, name.timestamp_us
        return DumpName(NPY, name.op_type, name.op_name, *numbers_of_bin, converted["io"], int(converted["slot"]))
    golden = _GOLDEN.fullmatch(text)
    if golden is not None:
        return DumpName(NPY, "", golden["op_name"], None, None, int(golden["time"]), OUTPUT, int(golden["slot"]))
    return DumpName(NPY, "", text[:-4], io=OUTPUT, slot=0)


def _fx(text: str) -> DumpName | None:
    name = parse_torchair_name(text)
    if name is not None:
        keyword = name.slot if isinstance(name.slot, str) else None
        slot = name.slot if isinstance(name.slot, int) else _FIRST_KEYWORD + zlib.crc32(name.slot.encode()) % 10**6
        return DumpName(
            NPY, name.target, name.node, None, None, name.timestamp_us, name.io.lower(), slot, name.element,
            keyword=keyword, is_argument=True,
        )  # fmt: skip
    match = _FX.fullmatch(text)
    if match is None:
        return None
    part = None if match["part"] is None else int(match["part"])
    io, slot = match["io"].lower(), int(match["slot"])
    time = int(match["time"])
    return DumpName(NPY, match["target"], match["node"], None, None, time, io, slot, part, is_argument=True)


def _raw(text: str) -> DumpName | None:
    match = _RAW.fullmatch(text)
    name = parse_bin_file_name(match["dump"]) if match is not None else None
    if match is None or name is None or match["dtype"] not in dtypes.BY_NAME:
        return None
    return DumpName(
        RAW,
        name.op_type,
        name.op_name,
        name.task_id,
        name.stream_id,
        name.timestamp_us,
        match["io"],
        int(match["slot"]),
        format=match["format"],
        dtype=match["dtype"],
        shape=tuple(int(size) for size in match["shape"].split("_")),
    )
