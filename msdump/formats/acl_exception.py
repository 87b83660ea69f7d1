"""Files of an exception dump: what an operator had in hand when it raised, in three degrees of detail.

    brief    exception_info.{stream}.{task}.{stamp}      dump file of plain bytes: no dtypes, no shapes
    norm     {op_type}.{op_name}.{task}.{stamp}          dump file with dtypes, shapes, formats, attributes, log text
    detail   {kernel}.{stream}.{task}.{stamp}.core       text, see `acl_core`

all below `{base}/extra-info/data-dump/{device_id}/`; `stamp` is `YYYYmmddHHMMSS` and three digits of milliseconds, in
local time. Dump files are containers 2.0 whose entries also tell address, `arg_index` and, for inputs, `input_type`.
Source: CANN, exception dump; container 2.0.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump.formats.bin_reader import NOT_SLICED
from msdump.formats.bin_writer import CONTAINER_VERSION, container_chunks, described
from msdump.formats.direct import Buffer
from msdump.formats.paths.acl import safe_piece
from msdump.formats.paths.sync import NUMBER
from msdump.layouts import FORMAT_NUMBER
from msdump.records import INPUT, TensorRecord

EXCEPTION_INFO, CORE_SUFFIX = "exception_info", ".core"
_LONGEST_CORE_NAME = 255
# Source: CANN, `input_type`.
_INPUT_TYPE = 2
_STAMP = re.compile(r"[0-9]{17}")
_CORE_NAME = re.compile(
    rf"(?P<kernel>.*)\.(?P<stream>{NUMBER})\.(?P<task>{NUMBER})\.(?P<stamp>{NUMBER})\{CORE_SUFFIX}", re.DOTALL
)


@dataclass(frozen=True)
class FailedOperand:
    """One operand of the operator that raised, as far as it exists.

    shape    as it was; for one that was not made, as it was foreseen
    address  in the memory of the process; 0 when there is none
    record   None: it was not made
    """

    io: str
    slot: int
    dtype: str
    shape: tuple[int, ...]
    format: str
    address: int = 0
    record: TensorRecord | None = None

    def __str__(self) -> str:
        text = f"{self.io} {self.slot}: {self.dtype}{list(self.shape)} {self.format}"
        if self.record is not None:
            return f"{text}, {self.record.size_bytes} bytes at {self.address:#x}"
        return f"{text}, not made"


@dataclass(frozen=True)
class OperatorFailure:
    """All that is known of an operator that raised.

    moment      when, in local time
    attributes  of the operator, as text
    error       its class and its message
    stack       lines of the call stack that led to the operator, outermost first
    traceback   of what it raised, with its causes
    """

    op_type: str
    op_name: str
    task_id: int
    stream_id: int
    device_id: int
    iteration: int
    timestamp_us: int
    operands: tuple[FailedOperand, ...]
    attributes: tuple[tuple[str, str], ...] = ()
    error_type: str = ""
    message: str = ""
    stack: tuple[str, ...] = ()
    traceback: tuple[str, ...] = ()

    @property
    def records(self) -> list[TensorRecord]:
        return [operand.record for operand in self.operands if operand.record is not None]

    @property
    def kernel_name(self) -> str:
        return f"{safe_piece(self.op_type)}_{safe_piece(self.op_name)}"

    @property
    def log_text(self) -> str:
        """What happened, then one line per operand."""
        head = (
            f"device {self.device_id}, stream {self.stream_id}, task {self.task_id}, iteration {self.iteration}: "
            f"{self.op_type} {self.op_name} raised {self.error_type}: {self.message}"
        )
        return "\n".join([head, *map(str, self.operands)])


# -- names -------------------------------------------------------------------------------------------------------


def exception_dir(base: Path, device_id: int) -> Path:
    """Folder of the files of exceptions on a device."""
    return base / "extra-info" / "data-dump" / str(device_id)


def format_stamp(timestamp_us: int) -> str:
    """Microseconds since the epoch as `YYYYmmddHHMMSSmmm`, local time."""
    seconds, rest = divmod(timestamp_us, 1_000_000)
    return f"{datetime.datetime.fromtimestamp(seconds):%Y%m%d%H%M%S}{rest // 1000:03d}"


def parse_stamp(text: str) -> int | None:
    """Microseconds since the epoch, whole milliseconds; None for another text.

    Edges:  of the two hours that look alike when summer time ends, the first.
    """
    if not _STAMP.fullmatch(text):
        return None
    try:
        moment = datetime.datetime.strptime(text[:14], "%Y%m%d%H%M%S")
        return int(moment.timestamp()) * 1_000_000 + int(text[14:]) * 1000
    except (ValueError, OverflowError, OSError):
        return None


def brief_file_name(failure: OperatorFailure, stamp: str) -> str:
    return f"{EXCEPTION_INFO}.{failure.stream_id}.{failure.task_id}.{stamp}"


def norm_file_name(failure: OperatorFailure, stamp: str) -> str:
    """An ordinary dump file's name in its oldest form, without the stream."""
    return f"{safe_piece(failure.op_type)}.{safe_piece(failure.op_name)}.{failure.task_id}.{stamp}"


def core_file_name(failure: OperatorFailure, stamp: str) -> str:
    """Edges:  of a name that is too long the end counts.   Source: CANN, the last 255 characters are kept."""
    name = f"{failure.kernel_name}.{failure.stream_id}.{failure.task_id}.{stamp}{CORE_SUFFIX}"
    return name[-_LONGEST_CORE_NAME:]


def parse_core_file_name(text: str) -> tuple[str, int, int, int] | None:
    """(kernel, stream, task, stamp) of a core's name; None when it is not one."""
    match = _CORE_NAME.fullmatch(text)
    return None if match is None else (match["kernel"], int(match["stream"]), int(match["task"]), int(match["stamp"]))


# -- bytes -------------------------------------------------------------------------------------------------------


def brief_chunks(failure: OperatorFailure) -> list[Buffer]:
    """Bytes of the brief file: arguments of the kernel as they lay in memory, each with its size and address.

    Source: CANN: data_type UNDEFINED; no shape, as readers would take its elements for bytes.
    """
    message, payloads = _described(failure)
    for entry in (*message.input, *message.output):
        entry.data_type, entry.format, entry.sub_format = 0, FORMAT_NUMBER["ND"], 0
        entry.ClearField("shape")
        entry.ClearField("original_shape")
    return container_chunks(message, payloads)


def norm_chunks(failure: OperatorFailure) -> list[Buffer]:
    """Bytes of the norm file: an ordinary dump file that tells addresses, attributes and the log as well.

    Raises:  as `bin_writer.bin_chunks`.
    """
    message, payloads = _described(failure)
    for name, value in (NOT_SLICED, *failure.attributes) if failure.attributes else ():
        message.attr.add(name=_text(name), value=_text(value))
    message.dfx_message = _text(failure.log_text)
    return container_chunks(message, payloads)


def _described(failure: OperatorFailure) -> tuple[Any, list[memoryview]]:
    """The DumpData with each argument's place among those of the kernel, and the blocks of data."""
    from msdump._proto import dump_data_pb2

    if failure.records:
        message, payloads = described(failure.records)
    else:
        message, payloads = dump_data_pb2.DumpData(version=CONTAINER_VERSION), []
    message.op_name = _text(failure.op_name)
    message.dump_time = failure.timestamp_us
    input_count = sum(operand.io == INPUT for operand in failure.operands)
    for operand in failure.operands:
        if operand.record is None:
            continue
        entry = (message.input if operand.io == INPUT else message.output)[operand.slot]
        entry.address = operand.address
        entry.arg_index = operand.slot if operand.io == INPUT else input_count + operand.slot
        if operand.io == INPUT:
            entry.input_type = _INPUT_TYPE
    return message, payloads


def _text(text: str) -> str:
    """As protobuf can hold it."""
    return text.encode(errors="replace").decode()
