"""Call sites: the code that runs an operator, which tells operators of one type apart, and the lines that are shown."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Hashable
from types import FrameType

import torch

from msdump.graph.types import SourceLine, is_library

# Files and instructions of the frames inside of the innermost call of a module, the operator's own first; or what
# stands for them where there are none.
Site = tuple[Hashable, ...]

_OWN, _TORCH, _SCRIPT = range(3)
_OWN_FOLDER = __file__.rpartition("/frontends/")[0]
_MAX_FRAMES = 16
_CALL = torch.nn.Module._call_impl.__code__
# Source: PyTorch 2.3 and later: whatever a backward pass runs is called from here.
_ENGINE = torch.autograd.graph._engine_run_backward.__code__

# Files whose frames lie between an operator and whoever is told of it.
_PASSED = {torch._dynamo.eval_frame.__file__, torch._compile.__file__}

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
        if code is _CALL or code is _ENGINE:
            break
        name = code.co_filename
        if name not in _PASSED:
            parts += (name, code.co_firstlineno, frame.f_lasti)
            left -= 1
        frame = frame.f_back
    return parts


def call_lines() -> tuple[tuple[SourceLine, ...], bool]:
    """Lines of the script that run the operator, as nodes hold them: outermost first.

    Those of libraries that lie between the operator and the innermost line of the user's own files are among them.

    Returns: the lines, and whether code of Python's runs the operator; False: autograd does, called by these lines
    """
    lines: list[SourceLine] = []
    is_called = True
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(lines) < _MAX_FRAMES:
        name = frame.f_code.co_filename
        if frame.f_code is _ENGINE and not lines:
            is_called = False
        if (_kinds.get(name) or _kind(name)) == _SCRIPT:
            number = frame.f_lineno
            lines.append(SourceLine(name, number, linecache.getline(name, number).rstrip("\r\n")))
            if not is_library(name):
                break
        frame = frame.f_back
    return tuple(reversed(lines)), is_called and bool(lines)


def _kind(name: str) -> int:
    kind = _OWN if name.startswith(_OWN_FOLDER) else _TORCH if name.startswith(torch.__path__[0]) else _SCRIPT
    _kinds[name] = kind
    return kind
