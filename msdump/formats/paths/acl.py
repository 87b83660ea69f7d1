"""Folder and file names of dumps with a file per operator: the asynchronous dump, and those of ACL's configuration.

Three trees of the asynchronous dump, each ending in the folder of one iteration:

    plain       {path}/{time}/{device_id}/{model_name}/{model_id}/{iteration}/
    ACL         {path}/{step_id}/{time}/{device_id}/{model_name}/{model_id}/{iteration}/
    ACL, O0     {path}/{step_id}/{time}/{device_id}/ and, for operators of dynamic shape, .../{iteration}/

and the two of ACL's own configuration:

    model             {root}/{time}/{device_id}/{model_name}/{model_id}/{data_index}/{file}
    single operator   {root}/{time}/{device_id}/{file}

Files are named `{op_type}.{op_name}.{task_id}.{stream_id}.{timestamp}`, with `.csv` behind it for statistics. A file of
the watcher has the type of the operator that is watched, C, the name `{A}_To_{C}`, and the ids of A, which ran just
before.

Pieces that all grammars share are in `sync.py`.
Source: MindSpore dump guide, asynchronous dump; CANN, names of dump files.
"""

from __future__ import annotations

import datetime
import functools
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from msdump.errors import FormatError
from msdump.formats.paths.sync import NUMBER, data_file_name
from msdump.tensors.device_layouts import host_format
from msdump.tensors.records import TensorRecord

OVERFLOW_TYPE, OVERFLOW_NAME = "Opdebug", "Node_OpDebug"

# What the converter of CANN understands in a name: everything else becomes `_`.
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_PIECE = r"[^./\\\x00-\x20\x7f-\x9f\u2028\u2029\ud800-\udfff]+"
_BIN_FILE = re.compile(
    rf"(?P<op_type>{_PIECE})\.(?P<op_name>{_PIECE})\.(?P<task_id>{NUMBER})(?:\.(?P<stream_id>{NUMBER}))?"
    rf"\.(?P<timestamp>{NUMBER})"
)
_TASK_PART = re.compile(rf"((?:[^.]+\.){{5}})({NUMBER}(?:\.{NUMBER}){{0,3}})")
_OVERFLOW_JSON = re.compile(rf"(?P<dump>.+)\.output\.(?P<slot>{NUMBER})\.json")
_TIME = r"[0-9]{14}"
_MODEL = rf"(?P<model_name>[A-Za-z0-9_-]+)/(?P<model_id>{NUMBER})/(?P<iteration>{NUMBER})"
_TIME_AND_DEVICE = rf"(?P<time>{_TIME})/(?P<device_id>{NUMBER})"
_STEP = rf"(?P<step_id>{NUMBER})"
_ASYNC_PATHS = tuple(
    re.compile(rf"{folder}/(?P<name>[^/\x00]+)")
    for folder in (
        rf"{_TIME_AND_DEVICE}/{_MODEL}",
        rf"{_STEP}/{_TIME_AND_DEVICE}/{_MODEL}",
        rf"{_STEP}/{_TIME_AND_DEVICE}(?:/(?P<iteration>{NUMBER}))?",
    )
)


# -- names of files ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BinFileName:
    """The pieces of a dump file's name, which says nothing of its tensors.

    op_name    full name with `_` for all but letters, digits, `_` and `-`
    stream_id  None in very old names
    task_part  further numbers of split tasks: task type, context, thread, device
    """

    op_type: str
    op_name: str
    task_id: int
    stream_id: int | None
    timestamp_us: int
    task_part: tuple[int, ...] = ()

    @property
    def is_overflow(self) -> bool:
        """True for what says where an operator overflowed, not what it computed."""
        return self.op_type == OVERFLOW_TYPE and self.op_name == OVERFLOW_NAME


def format_bin_file_name(name: BinFileName) -> str:
    """Text of a dump file's name; the inverse of `parse_bin_file_name`.

    Raises: FormatError for pieces that would not parse back; `safe_piece` makes safe ones.
    Source: MindSpore dump guide, `{op_type}.{op_name}.{task_id}.{stream_id}.{timestamp}`.
    """
    stream = () if name.stream_id is None else (name.stream_id,)
    numbers = (name.task_id, *stream, name.timestamp_us, *name.task_part)
    text = ".".join([name.op_type, name.op_name, *map(str, numbers)])
    if parse_bin_file_name(text) != name:
        raise FormatError(f"{text!r}: expected pieces that form a dump file name, got {name}. Make them safe first.")
    return text


def parse_bin_file_name(text: str) -> BinFileName | None:
    """Pieces of a dump file's name; None when it is not one."""
    split = _TASK_PART.fullmatch(text)
    head, tail = (split[1][:-1], split[2]) if split is not None else (text, "")
    match = _BIN_FILE.fullmatch(head)
    if match is None or (tail and match["stream_id"] is None):
        return None
    return BinFileName(
        match["op_type"],
        match["op_name"],
        int(match["task_id"]),
        None if match["stream_id"] is None else int(match["stream_id"]),
        int(match["timestamp"]),
        tuple(int(number) for number in tail.split(".") if number),
    )


@functools.lru_cache(maxsize=4096)
def safe_piece(text: str) -> str:
    """Operator type, operator name or model name as one piece that every reader understands."""
    return _FOREIGN.sub("_", text) or "_"


def bin_file_name(record: TensorRecord) -> str:
    """Name of the file of a record's operator; always parses back. The record's time stamp is the file's."""
    return (
        f"{safe_piece(record.op_type)}.{safe_piece(record.op_name)}.{record.task_id}.{record.stream_id}"
        f".{record.timestamp_us}"
    )


def npy_file_name(record: TensorRecord) -> str:
    """Name of a record's npy file: that of the synchronous dump, with the host's format.

    Source: MindSpore dump guide; format NCHW for four axes, else ND.
    """
    return data_file_name(replace(record, format=host_format(record.data.shape)))


def overflow_file_name(task_id: int, stream_id: int, timestamp_us: int) -> str:
    """Name of the file that says where an operator overflowed."""
    return format_bin_file_name(BinFileName(OVERFLOW_TYPE, OVERFLOW_NAME, task_id, stream_id, timestamp_us))


def overflow_json_name(task_id: int, stream_id: int, timestamp_us: int) -> str:
    """The same in npy mode."""
    return f"{overflow_file_name(task_id, stream_id, timestamp_us)}.output.0.json"


def parse_overflow_json_name(text: str) -> BinFileName | None:
    """Pieces of the name of an overflow file in npy mode, or of what a converter makes of one; None for others."""
    match = _OVERFLOW_JSON.fullmatch(text)
    name = parse_bin_file_name(match["dump"]) if match is not None else None
    return name if name is not None and name.is_overflow else None


# -- folders -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AsyncPath:
    """What the path of a file in an asynchronous dump says; None where its grammar has no such level.

    time       14 digits, when the folder was made
    step_id    the user's training step; `iteration` is the graph engine's own count
    """

    time: str
    device_id: int
    file_name: str
    model_name: str | None = None
    model_id: int | None = None
    iteration: int | None = None
    step_id: int | None = None


def parse_async_path(relative: str | os.PathLike[str]) -> AsyncPath | None:
    """What a path below the dump's root says; None when it belongs to no asynchronous dump."""
    text = relative if isinstance(relative, str) else PurePosixPath(relative).as_posix()
    for pattern in _ASYNC_PATHS:
        match = pattern.fullmatch(text)
        if match is not None and match["name"] not in (".", "..") and _is_time(match["time"]):
            found = match.groupdict()
            return AsyncPath(
                found["time"],
                int(found["device_id"]),
                found["name"],
                found.get("model_name"),
                _number(found.get("model_id")),
                _number(found.get("iteration")),
                _number(found.get("step_id")),
            )
    return None


def format_time(moment: datetime.datetime) -> str:
    """Name of the folder that is made at this moment: `YYYYMMDDhhmmss`."""
    return f"{moment:%Y%m%d%H%M%S}"


class PlainPaths:
    """Folders of the graph engine's own dump.

    time   `format_time` of the moment when the dump began; one for all its graphs
    """

    def __init__(self, root: str | os.PathLike[str], time: str, device_id: int) -> None:
        self.root = Path(root)
        self.device_dir = self.root / time / str(device_id)
        self._data_dirs: dict[tuple[str, int, int], Path] = {}

    def data_dir(self, model_name: str, model_id: int, iteration: int) -> Path:
        """Folder of one iteration of a model; any thread may ask."""
        key = (model_name, model_id, iteration)
        path = self._data_dirs.get(key)
        if path is None:
            if len(self._data_dirs) >= 1024:
                self._data_dirs.clear()
            path = self._data_dirs[key] = self.device_dir / safe_piece(model_name) / str(model_id) / str(iteration)
        return path


class AclPaths:
    """Folders of a dump through ACL: the user's step comes first, and each step has a time of its own."""

    def __init__(self, root: str | os.PathLike[str], device_id: int) -> None:
        self.root = Path(root)
        self._device_id = device_id

    def data_dir(self, step_id: int, time: str, model_name: str, model_id: int, iteration: int) -> Path:
        plain = PlainPaths(self.root / str(step_id), time, self._device_id)
        return plain.data_dir(model_name, model_id, iteration)


class AclOperatorPaths:
    """Folders of a dump through ACL where operators are launched one by one (`jit_level` O0): no models."""

    def __init__(self, root: str | os.PathLike[str], device_id: int) -> None:
        self.root = Path(root)
        self._device_id = device_id

    def data_dir(self, step_id: int, time: str, iteration: int | None = None) -> Path:
        """Folder of operators of static shape; with an iteration, of those of dynamic shape."""
        folder = self.root / str(step_id) / time / str(self._device_id)
        return folder if iteration is None else folder / str(iteration)


def _is_time(text: str) -> bool:
    try:
        datetime.datetime.strptime(text, "%Y%m%d%H%M%S")
    except ValueError:
        return False
    return True


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


CSV_SUFFIX = ".csv"
_WATCHER_JOINT = "_To_"


class AclDumpPaths:
    """Folders of one dump.

    root   of the dump: `dump_path`, or a folder of one process below it
    time   `format_time` of the moment when the dump wrote its first file
    """

    def __init__(self, root: str | os.PathLike[str], time: str, device_id: int) -> None:
        self._plain = PlainPaths(root, time, device_id)

    @property
    def operator_dir(self) -> Path:
        """Folder of operators that are called one by one."""
        return self._plain.device_dir

    def model_dir(self, model_name: str, model_id: int, data_index: int) -> Path:
        """Folder of one iteration of a model; any thread may ask."""
        return self._plain.data_dir(model_name, model_id, data_index)


def stats_file_name(record: TensorRecord) -> str:
    """Name of the csv of a record's operator."""
    return bin_file_name(record) + CSV_SUFFIX


def parse_stats_file_name(text: str) -> BinFileName | None:
    """Pieces of the name of an operator's csv; None when it is not one."""
    return parse_bin_file_name(text.removesuffix(CSV_SUFFIX)) if text.endswith(CSV_SUFFIX) else None


def watcher_op_name(trigger: str, watched: str) -> str:
    """Name of an operator in a file of the watcher, `{A}_To_{C}`; as any name it is made safe with the file's."""
    return f"{trigger}{_WATCHER_JOINT}{watched}"
