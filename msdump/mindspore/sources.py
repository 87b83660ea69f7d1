"""Source lines: which lines of the user's script, and of the cells it calls, lead to an operator."""

from __future__ import annotations

import linecache
import os
import sys
import weakref
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Generic, NamedTuple, TypeVar

from msdump._version import FOLDER
from msdump.graph.types import SourceLine
from msdump.graph.types import is_library as is_no_script

# Cells and the functions of `ops` stand for MindSpore's library; all other frames of msdump are machinery.
_LIBRARY = tuple(os.path.join(FOLDER, "mindspore", folder) + os.sep for folder in ("nn", "ops"))

_T = TypeVar("_T")


class CodeTable(Generic[_T]):
    """A value for each of some code objects, while they live.

    By identity: code of two files may be equal, and a code object computes its hash from all that it holds each time.
    """

    def __init__(self) -> None:
        self._rows: dict[int, tuple[weakref.ref[CodeType], _T]] = {}

    def __contains__(self, code: CodeType) -> bool:
        return id(code) in self._rows

    def __getitem__(self, code: CodeType) -> _T:
        return self._rows[id(code)][1]

    def get(self, code: CodeType) -> _T | None:
        """Its value, None without one."""
        return self._rows[id(code)][1] if id(code) in self._rows else None

    def __setitem__(self, code: CodeType, value: _T) -> None:
        key = id(code)
        self._rows[key] = weakref.ref(code, lambda _: self._rows.pop(key, None)), value

    def codes(self) -> list[CodeType]:
        """All code objects that have a value."""
        return [code for reference, _ in list(self._rows.values()) if (code := reference()) is not None]


class _Place(NamedTuple):
    """Whose code it is."""

    path: str
    is_user: bool
    is_layer: bool  # the construct of a layer of `nn`


_roots: CodeTable[bool] = CodeTable()
# Code that was made of the script's own: parts of its functions.
_generated: CodeTable[bool] = CodeTable()
_places: CodeTable[_Place] = CodeTable()


def mark_root(code: CodeType) -> None:
    """Frames outside a frame of this code are not part of the program."""
    _roots[code] = True


def is_root(code: CodeType) -> bool:
    """Was it marked as a root?"""
    return code in _roots


def mark_generated(code: CodeType) -> None:
    """Frames of this code are part of the function whose source they show."""
    _generated[code] = True


def is_generated(code: CodeType) -> bool:
    """Was it made of the script's own code?"""
    return code in _generated


def is_library(path: str) -> bool:
    """Is the file one of msdump's?"""
    return os.path.abspath(path).startswith(FOLDER)


def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Code of the functions and classes inside of other code, however deep."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from nested_codes(constant)


def source_lines() -> tuple[SourceLine, ...]:
    """Lines from the root of the traced program inwards, outermost first.

    Edges: library frames inside the innermost user frame are left out; when there is no user frame, as in a loss of
           `nn` under a wrapper of `nn`, they stay behind the line of the script that called the program.
    """
    lines: list[tuple[bool, SourceLine]] = []
    frame: FrameType | None = sys._getframe(1)
    is_part = False
    while frame is not None and frame.f_code not in _roots:
        path, is_user, is_layer = _place_of(frame.f_code)
        # A branch of a function is called by the function: its own line says all.
        is_hidden = is_user and is_part
        if is_user:
            is_part = _is_part(frame)
        if is_hidden:
            pass
        elif is_user or is_layer:
            code = linecache.getline(path, frame.f_lineno).rstrip("\r\n")
            lines.append((is_user, SourceLine(path, frame.f_lineno, code)))
        frame = frame.f_back
    first = next((index for index, (is_user, _) in enumerate(lines) if is_user), None)
    if first is None:
        caller = _caller(frame)
        return (*(() if caller is None else (caller,)), *(line for _, line in reversed(lines)))
    return tuple(line for _, line in reversed(lines[first:]))


def _caller(frame: FrameType | None) -> SourceLine | None:
    """The innermost line of a script around a frame; of another library where there is no script."""
    innermost: SourceLine | None = None
    while frame is not None:
        path, is_user, _ = _place_of(frame.f_code)
        # Code that Python or a library has made, as `<frozen runpy>`, has no file.
        if is_user and not frame.f_code.co_filename.startswith("<"):
            line = SourceLine(path, frame.f_lineno, linecache.getline(path, frame.f_lineno).rstrip("\r\n"))
            if not is_no_script(path):
                return line
            innermost = innermost or line
        frame = frame.f_back
    return innermost


def _place_of(code: CodeType) -> _Place:
    place = _places.get(code)
    if place is None:
        path = os.path.abspath(code.co_filename)
        is_layer = code.co_name == "construct" and path.startswith(_LIBRARY)
        _places[code] = place = _Place(path, not path.startswith(FOLDER), is_layer)
    return place


def _is_part(frame: FrameType) -> bool:
    """Is it a branch, a body or an operand of the function that is called before it?"""
    if frame.f_code not in _generated:
        return False
    return frame.f_code.co_name == "<lambda>" or frame.f_code.co_name.startswith("_msdump_")


def user_line() -> str:
    """`path:line: code` of the innermost user frame; in a program without one, of its caller; "" for none at all."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _place_of(frame.f_code).is_user:
        frame = frame.f_back
    if frame is None:
        return ""
    path = _place_of(frame.f_code).path
    code = linecache.getline(path, frame.f_lineno).strip()
    return f"{SourceLine(path, frame.f_lineno, code)}: {code}"
