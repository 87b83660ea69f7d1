"""One line of a user's script, as the graph files (.ir, .pb) spell it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MARKS = ("# In file ", "# inlined:In file ")
_LINE_NUMBER = re.compile(r":([0-9]{1,9})/")

# All that str.splitlines takes for the end of a line.
_LINE_END = re.compile("[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One frame of the user's script. `code` keeps its indent."""

    path: str
    line: int
    code: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


def format_source_line(line: SourceLine) -> str:
    """`PATH:LINE/CODE/`, on one line whatever the path and the code hold."""
    return f"{_one_line(line.path)}:{line.line}/{_one_line(line.code.rstrip())}/"


def _one_line(text: str) -> str:
    # A file name may hold any byte, a text file only UTF-8.
    encodable = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return _LINE_END.sub(lambda match: repr(match[0])[1:-1], encodable)


def parse_source_line(text: str) -> SourceLine | None:
    """Inverse of `format_source_line` with its `# In file` mark; None for any other line."""
    text = text.strip()
    mark = next((mark for mark in _MARKS if text.startswith(mark)), None)
    # The path stops at the first ":LINE/", so that a slice in the code ("a[0:2/n]") is not taken for the line number.
    number = None if mark is None else _LINE_NUMBER.search(text, len(mark) + 1)
    if mark is None or number is None or not text.endswith("/") or number.end() == len(text):
        return None
    return SourceLine(text[len(mark) : number.start()], int(number[1]), text[number.end() : -1])
