"""Call sites: the code that runs an operator, which tells operators of one type apart, and the lines that are shown."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Hashable, Iterable, Iterator
from types import CodeType, FrameType

import torch
import torch._compile
from torch._dynamo import eval_frame

from msdump.graph.types import SourceLine, is_library

# Files and instructions of the frames inside of the innermost call of a module or of an optimizer, the operator's own
# first; or what stands for them where there are none.
Site = tuple[Hashable, ...]

# File and number of each.
Lines = tuple[tuple[str, int], ...]

_FRAMEWORK, _LIBRARY, _SCRIPT = range(3)
_OWN_FOLDER = __file__.rpartition("/frontends/")[0]
_TORCH = torch.__path__[0]
# Formulas that PyTorch has written in Python and a script calls as it would those of any library.
_CALLED = tuple(os.path.join(_TORCH, *parts, "") for parts in (("distributions",), ("nn", "utils")))
_MAX_FRAMES = 16
_CALL = torch.nn.Module._call_impl.__code__
# Source: PyTorch 2.3 and later: whatever a backward pass runs is called from here.
_ENGINE = torch.autograd.graph._engine_run_backward.__code__

# Source: PyTorch, `Optimizer.profile_hook_step`: the function that it puts around each `step`.
_STEP = next(
    (each for each in torch.optim.Optimizer.profile_hook_step.__code__.co_consts if isinstance(each, CodeType)), None
)
# PyTorch's own files on every call stack between an operator and the dispatch mode.
_PASSED = {eval_frame.__file__, torch._compile.__file__}

# The same for those who walk stacks without Python.
STOPS = tuple(code for code in (_CALL, _ENGINE, _STEP) if code is not None)
PASSED_FILES = tuple(sorted(_PASSED))
OWN_FOLDERS = (_OWN_FOLDER, _TORCH)

_kinds: dict[str, int] = {}


def call_site(depth: int) -> Site:
    """Of the operator that runs in this thread; () where autograd itself runs it, without code of Python's.

    A frame is its file, the first line of its function, and the instruction: lines take longer to look up.

    depth  how many frames above this one is what PyTorch calls: what lies between is msdump's, and each frame that is
           looked at costs time
    """
    parts: Site = ()
    frame = sys._getframe(depth).f_back
    left = _MAX_FRAMES
    while frame is not None and left:
        code = frame.f_code
        if code is _CALL or code is _ENGINE or code is _STEP:
            break
        name = code.co_filename
        if name not in _PASSED:
            parts += (name, code.co_firstlineno, frame.f_lasti)
            left -= 1
        frame = frame.f_back
    return parts


def call_lines() -> Lines:
    """Lines of the script that run the operator, outermost first.

    Those of libraries that lie between the operator and the innermost line of the user's own files are among them.
    """
    return lines_above(sys._getframe(1))


def lines_above(frame: FrameType | None) -> Lines:
    """As `call_lines`, of the code that a frame has called."""
    return lines_of(_places(frame))


def _places(frame: FrameType | None) -> Iterator[tuple[str, int]]:
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back


def lines_of(places: Iterable[tuple[str, int]]) -> Lines:
    """As `call_lines`, of the files and lines of a call stack, innermost first."""
    lines: list[tuple[str, int]] = []
    for name, line in places:
        kind = _kinds.get(name)
        if kind is None:
            kind = _kinds[name] = _kind(name)
        if kind != _FRAMEWORK:
            lines.append((name, line))
            if kind == _SCRIPT or len(lines) == _MAX_FRAMES:
                break
    return tuple(reversed(lines))


def call_stack() -> Lines:
    """Lines of all code that is not PyTorch's and runs now, innermost first: two calls of a helper differ by theirs."""
    lines: list[tuple[str, int]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(lines) < _MAX_FRAMES:
        name = frame.f_code.co_filename
        if _kinds.setdefault(name, _kind(name)) != _FRAMEWORK:
            lines.append((name, frame.f_lineno))
        frame = frame.f_back
    return tuple(lines)


def source_lines(lines: Lines) -> tuple[SourceLine, ...]:
    """The same with their text."""
    return tuple(SourceLine(name, line, linecache.getline(name, line).rstrip("\r\n")) for name, line in lines)


def _kind(name: str) -> int:
    if not is_library(name):
        # Readers would take a line of a PyTorch that lies elsewhere for the user's.
        return _FRAMEWORK if name.startswith((_OWN_FOLDER, _TORCH)) else _SCRIPT
    is_framework = name.startswith((_OWN_FOLDER, _TORCH)) and not name.startswith(_CALLED)
    return _FRAMEWORK if is_framework else _LIBRARY
