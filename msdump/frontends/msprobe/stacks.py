"""Where in the script a function or module was called: the text of `stack.json`.

Source: mindstudio-probe 26.2, the form of a line.
"""

from __future__ import annotations

import linecache
import os
import sys
from types import FrameType

from msdump._version import FOLDER

# What stands below the script: `msdump run`, not the script, called it.
_BELOW = os.path.join(FOLDER, "cli") + os.sep
Stack = tuple[str, ...]


def current_stack() -> Stack:
    """One text for each frame, the innermost first, without frames of msdump and those that have no source."""
    lines = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(FOLDER):
            if path.startswith(_BELOW):
                break
        else:
            source = linecache.getline(path, frame.f_lineno).strip()
            if source:
                lines.append(
                    f"File {os.path.abspath(path)}, line {frame.f_lineno}, in {frame.f_code.co_name}, \n {source}"
                )
        frame = frame.f_back
    return tuple(lines)
