"""Answers for the public: without folders, addresses, lines of code, and the names of the user and of the machine.

What the answers themselves hold as a path or as the name of an operator decides first, in every text that repeats it;
what looks like a path or an address goes after that.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any

HIDDEN = "(hidden)"
_PATHS = ("dump", "golden", "path", "golden_path")  # keys of a text that is a path
_FILES = ("damaged", "foreign")  # keys of lists of [path, reason]
_CELLS = "cells"  # key of numbers in base64, or one digit each, which are no text
_NAMES = ("name", "operator", "scope", "source", "parameter", "parameters", "only_mine", "only_golden", "type")
_ADDRESS = re.compile(r"(?<![\w+.-])([A-Za-z][A-Za-z0-9+.-]+)://([^\s\"'<>|]*)")
# Folders of a path, of POSIX or of Windows, and its last part. A folder whose name has blanks ends before a sign that
# ends a clause, and with the same slash as the path has at its start.
_PART = r"[^\s/\\'\"<>|:]+[/\\]"
_PART_WITH_BLANKS = r"[^\s/\\'\"<>|:,;](?:[^/\\'\"<>|:,;\n]*[^\s/\\'\"<>|:,;])?"
_POSIX = rf"(?:/(?!/)|~[\w.-]*/|(?<!\w)[A-Za-z]:/)(?:{_PART}|{_PART_WITH_BLANKS}/)*"
_WINDOWS = rf"(?:~[\w.-]*\\|(?<!\w)[A-Za-z]:\\|\\\\)(?:{_PART}|{_PART_WITH_BLANKS}\\)*"
_FOLDERS = re.compile(rf"(?<![\w/.\\])({_POSIX}|{_WINDOWS})([^\s/\\'\"<>|:,;]*)")
_HOMES = ("home", "users")
_NOTHING = "(?!)"


class Redaction:
    """What is private in some answers of `Pages`, and how they are shown to other people.

    answers  all of them, so that a text of one may repeat a path of another
    private_paths   paths of the dumps: what stands above them is hidden wherever it occurs

    Kept:    names of operators, of files and of the dump's own folder, and all numbers.
    """

    def __init__(self, answers: Mapping[str, dict[str, Any]], private_paths: Iterable[str | os.PathLike[str]]) -> None:
        roots = [os.fspath(path_text) for path_text in private_paths]
        paths: set[str] = set()
        names: set[str] = set()
        for answer in answers.values():
            _collect(answer, "", paths, names)
        above = {str(Path(root).absolute().parent) for root in roots if "://" not in root}
        folders, words = {*above, str(Path.home())} - {"/"}, (_user() or "", socket.gethostname())
        self._private = re.compile(rf"(?<!\w)(?:(?:{_any_of(folders)})(?![\w.-])|(?:{_any_of(words)})(?!\w))")
        known = {path for path in (*paths, *roots) if path != _last(path)}
        # A line of the script stands behind its file: "train.py:7  y = net(x)".
        self._known = re.compile(rf"(?<!\w)({_any_of(known)})(?![\w-])(?:(:\d+)  [^\n]*)?")
        # Those of ONNX begin as paths do.
        kept = {name[1:] for name in names if name[:1] == "/"}
        self._kept = re.compile(rf"(?<![\w/.])/(?:{_any_of(kept)})(?![\w/-])")

    def of(self, answer: dict[str, Any]) -> dict[str, Any]:
        """A copy of an answer that may be shown to other people."""
        return {name: self._value(value, name) for name, value in answer.items()}

    def text(self, text: str) -> str:
        """A message without what is private."""
        if "/" not in text and "\\" not in text:
            return self._private.sub(HIDDEN, text)
        parts, end = [], 0
        for match in self._kept.finditer(text):
            parts += [self._shown(text[end : match.start()]), match[0]]
            end = match.end()
        return "".join([*parts, self._shown(text[end:])])

    def _shown(self, text: str) -> str:
        text = self._known.sub(lambda match: f"{_last(match[1])}{match[2] or ''}", text)
        text = _ADDRESS.sub(_shown_address, text)
        return _FOLDERS.sub(_shown_path, self._private.sub(HIDDEN, text))

    def _value(self, value: Any, name: str) -> Any:
        if name == _CELLS:
            return value
        if name in _PATHS and isinstance(value, str):
            return self._private.sub(HIDDEN, _last(value))
        if name == "lines":
            return [_line(item) for item in value]
        if name in _FILES:
            return [[_last(path), self.text(reason)] for path, reason in value]
        if name == "line" and _is_line(value):
            return _line(value)
        if isinstance(value, dict):
            return {key: self._value(part, key) for key, part in value.items()}
        if isinstance(value, list):
            return [self._value(part, "name" if _are_names(name) else "") for part in value]
        if not isinstance(value, str):
            return value
        return self._private.sub(HIDDEN, value) if name in _NAMES else self.text(value)


def _collect(value: Any, name: str, paths: set[str], names: set[str]) -> None:
    """Add the paths and the names of operators that a part of an answer holds under this key."""
    if isinstance(value, str):
        if name in _PATHS:
            paths.add(value)
        elif name in _NAMES:
            names.add(value)
    elif name == "lines" or (name == "line" and _is_line(value)):
        paths.update(line[0] for line in ([value] if name == "line" else value))
    elif name in _FILES and isinstance(value, list):
        paths.update(path for path, _ in value)
    elif isinstance(value, dict):
        for key, part in value.items():
            _collect(part, key, paths, names)
    elif isinstance(value, list):
        for part in value:
            _collect(part, "name" if _are_names(name) else "", paths, names)


def _are_names(name: str) -> bool:
    """Whether a list under this key is one of names of operators."""
    return name in _NAMES or name == "golden"


def _is_line(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and isinstance(value[0], str)


def _line(line: list[Any]) -> list[Any]:
    path, number, _ = line
    return [_last(path), number, ""]


def _any_of(words: Iterable[str]) -> str:
    """An expression for any of them, the longest first."""
    return "|".join(map(re.escape, sorted(filter(None, words), key=len, reverse=True))) or _NOTHING


def _last(path: str) -> str:
    """The name alone; of an address without what follows its path."""
    if re.match(_ADDRESS, path):
        path_text = re.split("[?#]", path.partition("://")[2])[0].rstrip("/")
        return path_text.rpartition("/")[2] if "/" in path_text else HIDDEN
    return PureWindowsPath(path).name if "\\" in path else PurePath(path).name


def _shown_address(match: re.Match[str]) -> str:
    name = _last(match[0])
    return f"{match[1]}://{HIDDEN}" if name == HIDDEN else f"{match[1]}://{HIDDEN}/{name}"


def _shown_path(match: re.Match[str]) -> str:
    folders, name = match[1], match[2]
    if len(folders) == 1:
        return match[0]
    is_home = re.split(r"[/\\]", folders.rstrip("/\\"))[-1].lower() in _HOMES
    return HIDDEN if is_home and name else name


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without an entry, as in containers
        return None


def redacted(answer: dict[str, Any], *private_paths: str | os.PathLike[str]) -> dict[str, Any]:
    """An answer that stands alone, as `Redaction` shows it."""
    return Redaction({"": answer}, private_paths).of(answer)
