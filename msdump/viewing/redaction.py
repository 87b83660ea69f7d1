"""Answers for the public: without folders, lines of code, and the names of the user and of the machine."""

from __future__ import annotations

import getpass
import os
import re
import socket
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any

# Folders up to the last part of a path: of POSIX, and of Windows with its drive.
_FOLDERS = re.compile(r"(?<![\w/.])(?:/(?:[^/\s'\"<>|:]+/)+|[A-Za-z]:\\(?:[^\\\s'\"<>|:]+\\)+)")
HIDDEN = "(hidden)"


def redacted(answer: dict[str, Any], dump: str | os.PathLike[str]) -> dict[str, Any]:
    """A copy of an answer of `Pages` that may be shown to anybody.

    dump   its folder: what stands above it is hidden wherever it occurs
    Kept:  names of operators, of files and of the dump's own folder, and all numbers.
    """
    folder = str(Path(dump).absolute().parent)
    words = sorted({folder, str(Path.home()), *filter(None, (_user(), socket.gethostname()))} - {"/"}, key=len)
    private = re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in reversed(words)))
    return {name: _of(value, name, private) for name, value in answer.items()}


def _of(value: Any, name: str, private: re.Pattern[str]) -> Any:
    if name in ("dump", "golden", "path") and isinstance(value, str):
        return _last(value)
    if name == "lines":
        return [_line(one) for one in value]
    if name == "line" and isinstance(value, list) and len(value) == 3 and isinstance(value[0], str):
        return _line(value)
    if isinstance(value, dict):
        return {key: _of(part, key, private) for key, part in value.items()}
    if isinstance(value, list):
        return [_of(part, "", private) for part in value]
    return _FOLDERS.sub("", private.sub(HIDDEN, value)) if isinstance(value, str) else value


def _line(line: list[Any]) -> list[Any]:
    path, number, _ = line
    return [_last(path), number, ""]


def _last(path: str) -> str:
    return PureWindowsPath(path).name if "\\" in path else PurePath(path).name


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without an entry, as in containers
        return None
