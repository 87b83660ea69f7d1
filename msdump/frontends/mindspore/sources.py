"""Source lines: which lines of the user's script, and of the cells it calls, lead to an operator."""

from __future__ import annotations

import linecache
import os
import sys
from types import CodeType, FrameType

import msdump
from msdump.graph.types import SourceLine

_HOME = os.path.dirname(os.path.abspath(msdump.__file__)) + os.sep
# Cells and the functions of `ops` stand for MindSpore's library; all other frames of msdump are machinery.
_LIBRARY = tuple(os.path.join(_HOME, "frontends", "mindspore", folder) + os.sep for folder in ("nn", "ops"))

_roots: set[CodeType] = set()
# Code that was made of the script's own: parts of its functions.
_generated: set[CodeType] = set()


def mark_root(code: CodeType) -> None:
    """Frames outside a frame of this code are not part of the program."""
    _roots.add(code)


def is_root(code: CodeType) -> bool:
    """Was it marked as a root?"""
    return code in _roots


def mark_generated(code: CodeType) -> None:
    """Frames of this code are part of the function whose source they show."""
    _generated.add(code)


def is_generated(code: CodeType) -> bool:
    """Was it made of the script's own code?"""
    return code in _generated


def is_library(path: str) -> bool:
    """Is the file one of msdump's?"""
    return os.path.abspath(path).startswith(_HOME)


def source_lines() -> tuple[SourceLine, ...]:
    """Lines from the root of the traced program inwards, outermost first.

    Edges: library frames inside the innermost user frame are left out; when there is no user frame they stay.
    """
    lines: list[tuple[bool, SourceLine]] = []
    frame: FrameType | None = sys._getframe(1)
    is_part = False
    while frame is not None and frame.f_code not in _roots:
        path = os.path.abspath(frame.f_code.co_filename)
        is_user = not path.startswith(_HOME)
        # A branch of a function is called by the function: its own line says all.
        is_hidden = is_user and is_part
        if is_user:
            is_part = _is_part(frame)
        if is_hidden:
            pass
        elif is_user or (frame.f_code.co_name == "construct" and path.startswith(_LIBRARY)):
            code = linecache.getline(path, frame.f_lineno).rstrip("\r\n")
            lines.append((is_user, SourceLine(path, frame.f_lineno, code)))
        frame = frame.f_back
    first = next((index for index, (is_user, _) in enumerate(lines) if is_user), 0)
    return tuple(line for _, line in reversed(lines[first:]))


def _is_part(frame: FrameType) -> bool:
    """Is it a branch, a body or an operand of the function that is called before it?"""
    if not _generated or frame.f_code not in _generated:
        return False
    return frame.f_code.co_name == "<lambda>" or frame.f_code.co_name.startswith("_msdump_")


def user_line() -> str:
    """`path:line: code` of the innermost user frame, or "" when there is none."""
    lines = [line for line in source_lines() if not line.path.startswith(_HOME)]
    return f"{lines[-1]}: {lines[-1].code.strip()}" if lines else ""
