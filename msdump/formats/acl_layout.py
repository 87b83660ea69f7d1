"""Grammar of the paths of a dump through ACL's own configuration, both directions.

    model             {root}/{time}/{device_id}/{model_name}/{model_id}/{data_index}/{file}
    single operator   {root}/{time}/{device_id}/{file}

Files are named `{op_type}.{op_name}.{task_id}.{stream_id}.{timestamp}`, with `.csv` behind it for statistics. A file of
the watcher has the type of the operator that is watched, C, the name `{A}_To_{C}`, and the ids of A, which ran just
before. What the pieces are made of, and the folders of a model, is said in `async_layout`.

Source: CANN, directories and names of dump files.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from msdump.formats.async_layout import (
    BinFileName,
    PlainLayout,
    bin_file_name,
    parse_async_path,
    parse_bin_file_name,
    safe_piece,
)
from msdump.records import TensorRecord

CSV_SUFFIX = ".csv"
_WATCHER_JOINT = "_To_"


class AclDumpLayout:
    """Folders of one dump.

    root   of the dump: `dump_path`, or a folder of one process below it
    time   `format_time` of the moment when the dump wrote its first file
    """

    def __init__(self, root: str | os.PathLike[str], time: str, device_id: int) -> None:
        self._plain = PlainLayout(root, time, device_id)

    @property
    def operator_dir(self) -> Path:
        """Folder of operators that are called one by one."""
        return self._plain.device_dir

    def model_dir(self, model_name: str, model_id: int, data_index: int) -> Path:
        """Folder of one iteration of a model; any thread may ask."""
        return self._plain.data_dir(model_name, model_id, data_index)


@dataclass(frozen=True, slots=True)
class AclPath:
    """What the path of a file says; None where a single operator has no such level."""

    time: str
    device_id: int
    file_name: str
    model_name: str | None = None
    model_id: int | None = None
    data_index: int | None = None


def parse_acl_path(relative: str | os.PathLike[str]) -> AclPath | None:
    """What a path below the dump's root says; None when it belongs to no such dump."""
    text = relative if isinstance(relative, str) else PurePosixPath(relative).as_posix()
    found = parse_async_path(text)
    if found is not None and found.step_id is None:
        return AclPath(found.time, found.device_id, found.file_name, found.model_name, found.model_id, found.iteration)
    # A folder for a step makes the path of a single operator one that the grammar knows.
    found = parse_async_path(f"0/{text}")
    if found is None or found.model_name is not None or found.iteration is not None:
        return None
    return AclPath(found.time, found.device_id, found.file_name)


def stats_file_name(record: TensorRecord) -> str:
    """Name of the csv of a record's operator."""
    return bin_file_name(record) + CSV_SUFFIX


def parse_stats_file_name(text: str) -> BinFileName | None:
    """Pieces of the name of an operator's csv; None when it is not one."""
    return parse_bin_file_name(text.removesuffix(CSV_SUFFIX)) if text.endswith(CSV_SUFFIX) else None


def watcher_op_name(trigger: str, watched: str) -> str:
    """Name of an operator in a file of the watcher, `{A}_To_{C}`; as any name it is made safe with the file's."""
    return f"{trigger}{_WATCHER_JOINT}{watched}"


def watched_of(op_name: str, watched_names: frozenset[str]) -> tuple[str, str] | None:
    """(A, C) of a name in a file of the watcher; None for an ordinary name.

    watched_names  what may stand for C, as in the configuration: both names may hold `_To_` themselves
    """
    for watched in sorted(watched_names, key=len, reverse=True):
        ending = _WATCHER_JOINT + safe_piece(watched)
        if op_name.endswith(ending) and len(op_name) > len(ending):
            return op_name[: -len(ending)], watched
    return None
