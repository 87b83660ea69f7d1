"""Paths of TorchAir's eager data dump, graph dump and FX summary, made and parsed back here.

    {path}/worldsize{W}_global_rank{R}/graph_{G}/{step}/{node}-{target}.{INPUT|OUTPUT}.{slot}[.{element}].{time}.npy
    dynamo_{original|optimized}_graph_{G}_rank_{R}_pid_{pid}_ts_{time}.{txt|pbtxt|py}
    summary_rank_{R}_pid_{pid}_ts_{time}.csv

`slot` counts positional arguments, or names a keyword argument, which TorchAir itself does not save. `element` counts
inside a list of tensors. `time` has 20 digits: date, time of day and microseconds, in UTC.
"""

from __future__ import annotations

import datetime
import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from msdump.errors import FormatError
from msdump.formats.paths.sync import NUMBER

INPUT, OUTPUT = "INPUT", "OUTPUT"
SKIPPED_FILE = "skipped.txt"

_EPOCH = datetime.datetime(1970, 1, 1)
_FIRST = datetime.datetime(1000, 1, 1)  # earlier years would have fewer digits
_MIN_US, _MAX_US = ((end - _EPOCH) // datetime.timedelta(microseconds=1) for end in (_FIRST, datetime.datetime.max))
_UNSAFE = re.compile('[/\\\\<>:"|?*\\s\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+')
_NAME = re.compile(
    rf"(?P<node>[^-/.\s]+)-(?P<target>[^/\s]+)\.(?P<io>{INPUT}|{OUTPUT})\.(?P<slot>{NUMBER}|[A-Za-z_][A-Za-z0-9_]*)"
    rf"(?:\.(?P<element>{NUMBER}))?\.(?P<time>[0-9]{{20}})\.npy"
)
_PATH = re.compile(
    rf"worldsize(?P<world_size>{NUMBER})_global_rank(?P<global_rank>{NUMBER})/graph_(?P<graph_id>{NUMBER})"
    rf"/(?P<step>{NUMBER})/(?P<name>[^/]+)"
)


@dataclass(frozen=True, slots=True)
class TorchairFileName:
    """The pieces of a data file's name.

    node     name of the FX node, "add_1"; the page calls it the operator's type
    target   operator that it calls, "aten.add.Tensor"
    slot     position among the arguments or the results, or the name of a keyword argument
    element  position in a list of tensors; None for everything else
    """

    node: str
    target: str
    io: str
    slot: int | str
    element: int | None
    timestamp_us: int


@dataclass(frozen=True, slots=True)
class TorchairPath:
    """What the path of a file below the dump's folder says."""

    world_size: int
    global_rank: int
    graph_id: int
    step: int
    file_name: str


# All values of a node have one time stamp.
@functools.lru_cache(maxsize=64)
def format_timestamp(timestamp_us: int) -> str:
    """Microseconds since the epoch as 20 digits.   Raises: FormatError outside the years 1000 to 9999."""
    if _MIN_US <= timestamp_us <= _MAX_US:
        return (_EPOCH + datetime.timedelta(microseconds=timestamp_us)).strftime("%Y%m%d%H%M%S%f")
    raise FormatError(f"time stamp: expected microseconds of a year from 1000 to 9999, got {timestamp_us}.")


@functools.lru_cache(maxsize=64)
def parse_timestamp(text: str) -> int | None:
    """Microseconds since the epoch; None when the digits are no moment."""
    try:
        moment = datetime.datetime.strptime(text, "%Y%m%d%H%M%S%f")
    except ValueError:
        return None
    if len(text) != 20 or moment < _FIRST:
        return None
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1)


@functools.lru_cache(maxsize=4096)
def safe_target(text: str) -> str:
    """Operator's name as a piece of a file name on any system: no blanks, separators or wildcards."""
    return _UNSAFE.sub("_", text) or "_"


def format_torchair_name(name: TorchairFileName) -> str:
    """Text of a data file's name; the inverse of `parse_torchair_name`.

    Raises: FormatError for pieces that would not parse back.
    Source: TorchAir eager data dump; the page's example, whose dots its prose leaves out.
    """
    element = "" if name.element is None else f".{name.element}"
    time = format_timestamp(name.timestamp_us)
    text = f"{name.node}-{name.target}.{name.io}.{name.slot}{element}.{time}.npy"
    if parse_torchair_name(text) != name:
        raise FormatError(f"{text!r}: expected pieces that form a data file name, got {name}. Make them safe first.")
    return text


def parse_torchair_name(text: str) -> TorchairFileName | None:
    """Pieces of a data file's name; None when it is not one."""
    match = _NAME.fullmatch(text)
    timestamp_us = None if match is None else parse_timestamp(match["time"])
    if match is None or timestamp_us is None or safe_target(match["target"]) != match["target"]:
        return None
    slot = match["slot"]
    return TorchairFileName(
        match["node"],
        match["target"],
        match["io"],
        int(slot) if slot.isdigit() else slot,
        None if match["element"] is None else int(match["element"]),
        timestamp_us,
    )


def rank_dir(root: str | os.PathLike[str], world_size: int, global_rank: int) -> Path:
    """Folder of one process."""
    return Path(root) / f"worldsize{world_size}_global_rank{global_rank}"


def dump_options_path(current: Path, world_size: int, global_rank: int, process_id: int) -> Path:
    """File in which a process shows the options of its dump of compiled graphs, as ACL gets them.

    Source: TorchAir, `ge_dump_data_json` in the current folder.
    """
    name = f"dump_options_worldsize{world_size}_rank{global_rank}_pid{process_id}.json"
    return current / "ge_dump_data_json" / name


def step_dir(rank: Path, graph_id: int, step: int) -> Path:
    """Folder of one run of one graph."""
    return rank / f"graph_{graph_id}" / str(step)


def parse_torchair_path(relative: str | os.PathLike[str]) -> TorchairPath | None:
    """What a path below the dump's folder says; None when it belongs to no eager data dump."""
    text = relative if isinstance(relative, str) else PurePosixPath(relative).as_posix()
    match = _PATH.fullmatch(text)
    if match is None or match["name"] in (".", ".."):
        return None
    return TorchairPath(
        int(match["world_size"]), int(match["global_rank"]), int(match["graph_id"]), int(match["step"]), match["name"]
    )


ORIGINAL, OPTIMIZED = "original", "optimized"
TXT, PBTXT, PY = "txt", "pbtxt", "py"

_PROCESS = rf"rank_(?P<rank>{NUMBER})_pid_(?P<pid>{NUMBER})_ts_(?P<time>[0-9]{{20}})"
_GRAPH = re.compile(
    rf"dynamo_(?P<stage>{ORIGINAL}|{OPTIMIZED})_graph_(?P<graph_id>{NUMBER})_{_PROCESS}\.(?P<type>{TXT}|{PBTXT}|{PY})"
)
_SUMMARY = re.compile(rf"summary_{_PROCESS}\.csv")


@dataclass(frozen=True, slots=True)
class GraphDumpName:
    """The pieces of a graph file's name.

    stage      ORIGINAL: as converted; OPTIMIZED: after the passes, as it runs
    file_type  TXT, PBTXT or PY
    """

    stage: str
    graph_id: int
    rank: int
    pid: int
    timestamp_us: int
    file_type: str


@dataclass(frozen=True, slots=True)
class SummaryName:
    """The pieces of an FX summary's name."""

    rank: int
    pid: int
    timestamp_us: int


def format_graph_dump_name(name: GraphDumpName) -> str:
    """Text of a graph file's name; the inverse of `parse_graph_dump_name`.

    Raises: FormatError for pieces that would not parse back.
    Source: TorchAir, files of graph_dump.
    """
    text = (
        f"dynamo_{name.stage}_graph_{name.graph_id}_rank_{name.rank}_pid_{name.pid}"
        f"_ts_{format_timestamp(name.timestamp_us)}.{name.file_type}"
    )
    if parse_graph_dump_name(text) != name:
        raise FormatError(f"{text!r}: expected pieces that form the name of a graph file, got {name}.")
    return text


def parse_graph_dump_name(text: str) -> GraphDumpName | None:
    """Pieces of a graph file's name; None when it is not one."""
    match = _GRAPH.fullmatch(text)
    timestamp_us = None if match is None else parse_timestamp(match["time"])
    if match is None or timestamp_us is None:
        return None
    graph_id, rank, pid = (int(match[part]) for part in ("graph_id", "rank", "pid"))
    return GraphDumpName(match["stage"], graph_id, rank, pid, timestamp_us, match["type"])


def format_summary_name(name: SummaryName) -> str:
    """Text of an FX summary's name; the inverse of `parse_summary_name`.   Raises: FormatError as above."""
    text = f"summary_rank_{name.rank}_pid_{name.pid}_ts_{format_timestamp(name.timestamp_us)}.csv"
    if parse_summary_name(text) != name:
        raise FormatError(f"{text!r}: expected pieces that form the name of an FX summary, got {name}.")
    return text


def parse_summary_name(text: str) -> SummaryName | None:
    """Pieces of an FX summary's name; None when it is not one."""
    match = _SUMMARY.fullmatch(text)
    timestamp_us = None if match is None else parse_timestamp(match["time"])
    if match is None or timestamp_us is None:
        return None
    return SummaryName(int(match["rank"]), int(match["pid"]), timestamp_us)
