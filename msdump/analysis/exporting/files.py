"""Files of exports: written completely or not at all, and never over files that are no exports."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msdump.analysis.exporting import Written
from msdump.errors import ConfigError
from msdump.formats.atomic import make_dirs, write_file

_MODE, _DIR_MODE = 0o644, 0o755


def write_text(path: str, text: str, notes: Sequence[str] = ()) -> Written:
    """A file of one text; `-` is standard output.   Raises: ConfigError; WriteError."""
    if path == "-":
        return Written((), tuple(notes), text)
    return write_bytes(path, text.encode("utf-8", "backslashreplace"), notes)


def write_bytes(path: str, data: bytes, notes: Sequence[str] = ()) -> Written:
    """One file; one that is there is replaced.   Raises: ConfigError where a folder has its name; WriteError."""
    target = new_file(path)
    write_file(target, [data], _MODE, replace=True)
    return Written((target,), tuple(notes))


def new_file(path: str) -> Path:
    """The path of a file, whose folder is made.   Raises: ConfigError; WriteError."""
    target = Path(path)
    if path == "-" or target.is_dir():
        kind = "standard output" if path == "-" else "a folder"
        raise ConfigError(f"{path}: expected the path of a file to write, got {kind}. Name a file with -o.")
    make_dirs(target.parent, _DIR_MODE)
    return target


def write_folder(path: str, files: Mapping[str, bytes], notes: Sequence[str] = ()) -> Written:
    """Files by their paths below a folder.   Raises: ConfigError where a file has the folder's name; WriteError."""
    root = Path(path)
    if path == "-" or (os.path.lexists(root) and not root.is_dir()):
        kind = "standard output" if path == "-" else "a file"
        raise ConfigError(f"{path}: expected the path of a folder to write to, got {kind}. Name a folder with -o.")
    written = []
    for name, data in files.items():
        target = root / name
        make_dirs(target.parent, _DIR_MODE)
        write_file(target, [data], _MODE, replace=True)
        written.append(target)
    return Written(tuple(written), tuple(notes))
