"""What a graph and its files say alike: dtype and shape of a tensor, and a line of the user's script."""

from __future__ import annotations

import functools
import math
import os
import re
from dataclasses import dataclass

from msdump.tensors import dtypes

_MARKS = ("# In file ", "# inlined:In file ")
# Folders of frameworks and of Python, and code that they make: frames in them say nothing of the user's own lines. Of
# MindSpore those that cells and functions lie in: a script may lie in a folder `mindspore` of its own.
_LIBRARY = re.compile(
    r"(?:^|/)(?:(?:site|dist)-packages|lib/python3\.[0-9]+|msdump/(?:frontends|torchair)"
    r"|mindspore/(?:_extends|boost|common|experimental|mint|nn|numpy|ops|parallel|scipy|train))/"
    r"|^\.\.\.|^<(?:eval_with_key|frozen )"
)
_LINE_NUMBER = re.compile(r":([0-9]{1,9})/")
# All that str.splitlines takes for the end of a line.
_LINE_END = re.compile("[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor before there is any data.

    dtype: a name of the dtype table; shape: () for a 0-d tensor, zeros allowed, -1 where only the data decide.
    """

    dtype: str
    shape: tuple[int, ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        return self.size * dtypes.dtype(self.dtype).itemsize

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """One tensor as far as the file knows it.

    dtype  a name of the dtype table; None when the file does not say
    shape  sizes, -1 where it is only known at run time; None when the file does not say
    """

    dtype: str | None
    shape: tuple[int, ...] | None

    @property
    def size_bytes(self) -> int | None:
        """Bytes in memory; None when dtype or a size is unknown."""
        if self.dtype is None or self.shape is None or min(self.shape, default=0) < 0:
            return None
        return math.prod(self.shape) * dtypes.dtype(self.dtype).itemsize


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One frame of the user's script. `code` keeps its indent; as text, a file below the working folder is named from
    there.
    """

    path: str
    line: int
    code: str

    @property
    def shown_path(self) -> str:
        """The path from the working folder, where the file lies below it."""
        return _from_here(self.path)

    def __str__(self) -> str:
        return f"{self.shown_path}:{self.line}"


def _from_here(path: str) -> str:
    try:
        here = os.path.join(os.getcwd(), "")
    except OSError:
        return path  # the folder is gone
    return path[len(here) :] if path.startswith(here) and len(path) > len(here) else path


def is_library(path: str) -> bool:
    """Whether a file is no script of the user's."""
    return _LIBRARY.search(path) is not None


def format_source_line(line: SourceLine) -> str:
    """`PATH:LINE/CODE/` as .ir and .pb spell it, on one line whatever the path and the code hold."""
    return f"{_one_line(line.path)}:{line.line}/{_one_line(line.code.rstrip())}/"


def _one_line(text: str) -> str:
    # A file name may hold any byte, a text file only UTF-8.
    encodable = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return _LINE_END.sub(lambda match: repr(match[0])[1:-1], encodable)


@functools.lru_cache(maxsize=8192)
def parse_source_line(text: str) -> SourceLine | None:
    """Inverse of `format_source_line` with its `# In file` mark; None for any other line."""
    text = text.strip()
    mark = next((mark for mark in _MARKS if text.startswith(mark)), None)
    # The path stops at the first ":LINE/", so that a slice in the code ("a[0:2/n]") is not taken for the line number.
    number = None if mark is None else _LINE_NUMBER.search(text, len(mark) + 1)
    if mark is None or number is None or not text.endswith("/") or number.end() == len(text):
        return None
    return SourceLine(text[len(mark) : number.start()], int(number[1]), text[number.end() : -1])
