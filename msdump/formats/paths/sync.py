"""Folder and file names of MindSpore's synchronous dump, and the rules that all grammars share for names from models.

Names come from models and may hold anything. What could leave the folder, hide the file or break a line is replaced by
`_` when a name is made: `/`, `\\`, NUL and all other control characters, line separators, lone surrogates, and dots at
the start of a piece; in operator types and formats also every other dot and blank. That is not reversible, and need not
be: two names that fall together are still kept apart by their time stamps. Dots inside parameter names stay, so names
are parsed from the right.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from msdump.errors import ConfigError, FormatError
from msdump.tensors.records import INPUT, OUTPUT, TensorRecord

NAME_MAX_BYTES = 255  # longest file name that filesystems take
STATISTIC_FILE = "statistic.csv"
MAPPING_FILE = "mapping.csv"
METADATA_FOLDER = ".dump_metadata"
DATA, CONSTANTS, GRAPH, ORDER, HISTORY, METADATA = "data", "constants", "graph", "order", "history", "metadata"
ITERATIONS = "iterations"

_UNSAFE = re.compile("[/\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNSAFE_IN_TYPE = re.compile("[./\\\\ \x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_LEADING_DOTS = re.compile(r"^\.+")
NUMBER = r"(?:0|[1-9][0-9]{0,19})"
_DATA_FILE = re.compile(
    rf"(?P<op_type>[^.]+)\.(?P<op_name>.+)\.(?P<task_id>{NUMBER})\.(?P<stream_id>{NUMBER})\.(?P<timestamp>{NUMBER})"
    rf"\.(?P<io>{INPUT}|{OUTPUT})\.(?P<slot>{NUMBER})\.(?P<format>[^.]+)(?:\.(?P<dtype>[^.]+))?\.(?P<suffix>[A-Za-z0-9]+)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class DataFileName:
    """The pieces of a data file's name.

    op_name  as in the file's name: last part of the full name, or (later versions) the whole scope with `_`
    dtype    piece of later versions ("Float32"); None in names of MindSpore up to 2.3, which msdump writes
    """

    op_type: str
    op_name: str
    task_id: int
    stream_id: int
    timestamp_us: int
    io: str
    slot: int
    format: str
    dtype: str | None = None
    suffix: str = "npy"


def format_data_file_name(name: DataFileName) -> str:
    """Text of a data file's name; the inverse of `parse_data_file_name`.

    Raises: FormatError for pieces that would not parse back; `data_file_name` makes safe pieces of any record.
    Source: MindSpore dump guide, `{op_type}.{op_name}.{task_id}.{stream_id}.{timestamp}.{input_output_index}...`.
    """
    dtype = "" if name.dtype is None else f".{name.dtype}"
    text = (
        f"{name.op_type}.{name.op_name}.{name.task_id}.{name.stream_id}.{name.timestamp_us}"
        f".{name.io}.{name.slot}.{name.format}{dtype}.{name.suffix}"
    )
    if parse_data_file_name(text) != name:
        raise FormatError(f"{text!r}: expected pieces that form a data file name, got {name}. Make them safe first.")
    return text


def data_file_pieces(text: str) -> tuple[str, str, str, str, str, str, str, str, str | None, str] | None:
    """Pieces of a data file's name as text, in the order of `DataFileName`, parsed from the right; None when it is not
    one."""
    match = _DATA_FILE.fullmatch(text)
    if match is None or _UNSAFE.search(text) or match[2].startswith("."):
        return None
    return match.groups()  # type: ignore[return-value]


def parse_data_file_name(text: str) -> DataFileName | None:
    """Pieces of a data file's name, parsed from the right; None when it is not one."""
    pieces = data_file_pieces(text)
    if pieces is None:
        return None
    op_type, op_name, task_id, stream_id, timestamp, io, slot, tensor_format, dtype, suffix = pieces
    numbers = int(task_id), int(stream_id), int(timestamp)
    return DataFileName(op_type, op_name, *numbers, io, int(slot), tensor_format, dtype, suffix)


@functools.lru_cache(maxsize=4096)
def safe_op_type(text: str) -> str:
    """Operator type or format as one piece of a file name: no dots, blanks or separators."""
    return _UNSAFE_IN_TYPE.sub("_", text) or "_"


def selected_op_types(selected: str | Collection[str] | None) -> frozenset[str] | None:
    """Types that a user selects, also as file names have them: ATen's have dots there and underscores here."""
    if selected is None:
        return None
    names = (selected,) if isinstance(selected, str) else selected
    return frozenset(form for name in names for form in (name, safe_op_type(name)))


@functools.lru_cache(maxsize=4096)
def safe_op_name(text: str) -> str:
    """Operator or parameter name as a piece of a file name; ordinary dots stay."""
    safe = _UNSAFE.sub("_", text)
    return _LEADING_DOTS.sub(lambda dots: "_" * len(dots[0]), safe) or "_"


@functools.lru_cache(maxsize=4096)
def short_op_name(full_name: str) -> str:
    """Last part of a full name: "Default/conv1-Conv2d/Conv2D-op12" -> "Conv2D-op12".

    Source: MindSpore sync dump, `/` becomes `--` and the part after the last `--` stays.
    """
    last = full_name.rsplit("/", 1)[-1].rsplit("--", 1)[-1]
    return last or full_name


def record_op_name(record: TensorRecord) -> str:
    """`op_name` piece of a record."""
    return op_name_in_files(record.op_name, record.is_parameter)


# Names of so many operators are kept: the largest graph must fit, or none of its names is found again.
KEPT_NAMES = 1 << 18


@functools.lru_cache(maxsize=KEPT_NAMES)
def op_name_in_files(full_name: str, is_parameter: bool) -> str:
    """`op_name` piece: parameters keep their whole name, operators the last part of theirs."""
    return safe_op_name(full_name if is_parameter else short_op_name(full_name))


def data_file_name(record: TensorRecord) -> str:
    """File name of a record in the synchronous dump; always parses back."""
    return (
        f"{safe_op_type(record.op_type)}.{record_op_name(record)}.{record.task_id}.{record.stream_id}"
        f".{record.timestamp_us}.{record.io}.{record.slot}.{safe_op_type(record.format)}.npy"
    )


# -- the tree of the synchronous dump ------------------------------------------------------------------------------

_NET_NAME = re.compile(r"[A-Za-z0-9_-]+")
_SYNC_PATHS = (
    (METADATA, re.compile(r"\.dump_metadata/(?P<name>[^/]+)")),
    (GRAPH, re.compile(rf"graphs/(?P<name>ms_output_trace_code_graph_(?P<graph_id>{NUMBER})\.(?:ir|pb))")),
    (ORDER, re.compile(rf"execution_order/(?P<name>ms_execution_order_graph_(?P<graph_id>{NUMBER})\.csv)")),
    (
        ITERATIONS,
        re.compile(rf"execution_order/(?P<name>ms_iteration_order_graph_(?P<graph_id>{NUMBER})\.jsonl)"),
    ),
    (HISTORY, re.compile(rf"execution_order/(?P<name>ms_global_execution_order_graph_(?P<graph_id>{NUMBER})\.csv)")),
    (CONSTANTS, re.compile(rf"(?P<net_name>[A-Za-z0-9_-]+)/(?P<graph_id>{NUMBER})/constants/(?P<name>[^/]+)")),
    (
        DATA,
        re.compile(rf"(?P<net_name>[A-Za-z0-9_-]+)/(?P<graph_id>{NUMBER})/(?P<iteration>{NUMBER})/(?P<name>[^/]+)"),
    ),
)
_RANK = re.compile(rf"rank_({NUMBER})/")


@dataclass(frozen=True, slots=True)
class SyncPath:
    """What the path of a file in a synchronous dump says.

    kind       "data", "constants", "graph", "order", "iterations", "history" or "metadata"
    file_name  last part of the path
    """

    rank_id: int
    kind: str
    file_name: str
    net_name: str | None = None
    graph_id: int | None = None
    iteration: int | None = None


class SyncPaths:
    """Paths of one rank's synchronous dump.   Source: MindSpore dump guide, sync dump tree.

    Raises: ConfigError for a net name that is no plain folder name.
    """

    def __init__(self, root: str | os.PathLike[str], rank_id: int, net_name: str) -> None:
        if not _NET_NAME.fullmatch(net_name):
            raise ConfigError(
                f"net_name only supports alphabetic, digit, or {{'-', '_'}}, but got: {net_name}\n"
                "common_dump_settings.net_name becomes a folder: write it with these characters only."
            )
        self.root = Path(root)
        self.rank_id = rank_id
        self.net_name = net_name
        self.rank_dir = self.root / f"rank_{rank_id}"
        self.net_dir = self.rank_dir / net_name
        self.graphs_dir = self.rank_dir / "graphs"
        self.execution_order_dir = self.rank_dir / "execution_order"
        self.metadata_dir = self.rank_dir / METADATA_FOLDER
        self._data_dirs: dict[tuple[int, int], Path] = {}

    def data_dir(self, graph_id: int, iteration: int) -> Path:
        """Folder of the tensors of one iteration; the same object for the same arguments."""
        key = (graph_id, iteration)
        path = self._data_dirs.get(key)
        if path is None:
            if len(self._data_dirs) >= 1024:
                self._data_dirs.clear()
            path = self._data_dirs[key] = self.net_dir / str(graph_id) / str(iteration)
        return path

    def constants_dir(self, graph_id: int) -> Path:
        return self.net_dir / str(graph_id) / CONSTANTS

    def statistic_file(self, graph_id: int, iteration: int) -> Path:
        return self.data_dir(graph_id, iteration) / STATISTIC_FILE

    def graph_file(self, graph_id: int, suffix: str) -> Path:
        """`suffix`: "ir" or "pb"."""
        return self.graphs_dir / f"ms_output_trace_code_graph_{graph_id}.{suffix}"

    def order_file(self, graph_id: int) -> Path:
        return self.execution_order_dir / f"ms_execution_order_graph_{graph_id}.csv"

    def iterations_file(self, graph_id: int) -> Path:
        return self.execution_order_dir / f"ms_iteration_order_graph_{graph_id}.jsonl"

    def history_file(self, graph_id: int) -> Path:
        return self.execution_order_dir / f"ms_global_execution_order_graph_{graph_id}.csv"


def parse_sync_path(relative: str | os.PathLike[str]) -> SyncPath | None:
    """What a path below the dump's root says; None when it belongs to no synchronous dump."""
    text = relative if isinstance(relative, str) else PurePosixPath(relative).as_posix()
    rank = _RANK.match(text)
    if rank is None:
        return None
    for kind, pattern in _SYNC_PATHS:
        match = pattern.fullmatch(text, rank.end())
        if match is not None and match["name"] not in (".", ".."):
            found = match.groupdict()
            return SyncPath(
                int(rank[1]),
                kind,
                found["name"],
                found.get("net_name"),
                None if found.get("graph_id") is None else int(found["graph_id"]),
                None if found.get("iteration") is None else int(found["iteration"]),
            )
    return None
