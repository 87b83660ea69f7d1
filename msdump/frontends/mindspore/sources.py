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


def mark_root(code: CodeType) -> None:
    """Frames outside a frame of this code are not part of the program."""
    _roots.add(code)


def source_lines() -> tuple[SourceLine, ...]:
    """Lines from the root of the traced program inwards, outermost first.

    Edges: library frames inside the innermost user frame are left out; when there is no user frame they stay.
    """
    lines: list[tuple[bool, SourceLine]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code not in _roots:
        path = os.path.abspath(frame.f_code.co_filename)
        is_user = not path.startswith(_HOME)
        if is_user or (frame.f_code.co_name == "construct" and path.startswith(_LIBRARY)):
            code = linecache.getline(path, frame.f_lineno).rstrip("\r\n")
            lines.append((is_user, SourceLine(path, frame.f_lineno, code)))
        frame = frame.f_back
    first = next((index for index, (is_user, _) in enumerate(lines) if is_user), 0)
    return tuple(line for _, line in reversed(lines[first:]))


def user_line() -> str:
    """`path:line: code` of the innermost user frame, or "" when there is none."""
    lines = [line for line in source_lines() if not line.path.startswith(_HOME)]
    return f"{lines[-1]}: {lines[-1].code.strip()}" if lines else ""
