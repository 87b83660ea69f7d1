"""Names of TorchAir's graph dump and FX summary, made and parsed back here.

    dynamo_{original|optimized}_graph_{G}_rank_{R}_pid_{pid}_ts_{time}.{txt|pbtxt|py}
    summary_rank_{R}_pid_{pid}_ts_{time}.csv

`time` has 20 digits: date, time of day and microseconds, in UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from msdump.errors import FormatError
from msdump.formats.layout import NUMBER
from msdump.formats.torchair_layout import format_timestamp, parse_timestamp

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
