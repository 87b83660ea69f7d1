""".dump_metadata: what the user asked for and for which device, kept beside what was dumped."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from msdump.errors import FormatError, WriteError
from msdump.formats.atomic import Folder, make_dirs
from msdump.plain_files import read_plain

CONFIG_COPY_FILE = "data_dump.json"
CONFIG_FILE = "config.json"


@dataclass(frozen=True, slots=True)
class DumpMetadata:
    """Content of .dump_metadata. Without a config.json the target is "Ascend", as MindSpore's readers take it."""

    config_text: bytes
    device_target: str = "Ascend"
    ms_version: str | None = None


def write_metadata(
    directory: str | os.PathLike[str],
    config_text: bytes,
    device_target: str,
    ms_version: str,
    mode: int = 0o400,
    dir_mode: int = 0o700,
) -> bool:
    """Write both files; False when an earlier run has left them, which are then kept as they are.

    Raises: WriteError.
    Source: MindSpore 2.0.0: a byte copy of the user's JSON, and a compact config.json without a line end.
    """
    config = json.dumps({"device_target": device_target, "ms_version": ms_version}, separators=(",", ":"))
    make_dirs(directory, dir_mode)
    is_new = True
    with Folder(directory) as folder:
        for name, content in ((CONFIG_COPY_FILE, config_text), (CONFIG_FILE, config.encode())):
            if folder.has(name):
                is_new = False
                continue
            try:
                folder.write(name, [content], mode)
            except WriteError:
                if not folder.has(name):  # another process of the same rank was faster
                    raise
                is_new = False
    return is_new


def read_metadata(directory: str | os.PathLike[str]) -> DumpMetadata:
    """Both files.   Raises: FormatError for a damaged config.json; OSError when the user's JSON is not there."""
    config_text = read_plain(Path(directory) / CONFIG_COPY_FILE)
    path = Path(directory) / CONFIG_FILE
    if not path.exists():
        return DumpMetadata(config_text)
    try:
        config = json.loads(read_plain(path))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: expected JSON, got something else: {error}.") from error
    if not isinstance(config, dict) or not isinstance(config.get("device_target"), str):
        raise FormatError(f'{path}: expected an object with "device_target", got {str(config)[:120]}.')
    version = config.get("ms_version")
    return DumpMetadata(config_text, config["device_target"], None if version is None else str(version))
