"""The csv files of execution_order: which operators run in which order, and in which iterations a graph ran."""

from __future__ import annotations

import os

from msdump.errors import FormatError
from msdump.formats.append_file import append_text
from msdump.formats.atomic import make_dirs, write_file
from msdump.plain_files import read_plain

ORDER_TITLE = "NodeExecutionOrder-FullNameWithScope"


def write_order(path: str | os.PathLike[str], text: str, mode: int = 0o400, dir_mode: int = 0o700) -> None:
    """Write the order of one graph over that of an earlier run.   Raises: WriteError."""
    make_dirs(os.path.dirname(os.fspath(path)) or ".", dir_mode)
    write_file(path, [text.encode()], mode, replace=True)


def append_history(path: str | os.PathLike[str], iteration: int, mode: int = 0o400, dir_mode: int = 0o700) -> None:
    """Note that the graph ran in a dumped iteration.   Raises: WriteError."""
    make_dirs(os.path.dirname(os.fspath(path)) or ".", dir_mode)
    append_text(path, f"{iteration}\n", mode)


def read_order(path: str | os.PathLike[str]) -> list[str]:
    """Full names of operators in launch order.

    Raises: FormatError; OSError when the file cannot be opened.
    """
    lines = _read_lines(path)
    if not lines or lines[0] != ORDER_TITLE:
        got = lines[0][:80] if lines else "nothing"
        raise FormatError(f"{os.fspath(path)}, line 1: expected {ORDER_TITLE}, got {got}.")
    for number, name in enumerate(lines[1:], 2):
        if not name:
            raise FormatError(f"{os.fspath(path)}, line {number}: expected the full name of an operator, got nothing.")
    return lines[1:]


def read_history(path: str | os.PathLike[str]) -> list[int]:
    """Dumped iterations in the order in which they ran; other columns of later versions are left out.

    Raises: FormatError with the line's number; OSError when the file cannot be opened.
    """
    iterations = []
    for number, line in enumerate(_read_lines(path), 1):
        first = line.split(",", 1)[0].strip()
        if not (first.isascii() and first.isdigit() and len(first) <= 20):
            raise FormatError(f"{os.fspath(path)}, line {number}: expected an iteration number, got {line[:80]!r}.")
        iterations.append(int(first))
    return iterations


def _read_lines(path: str | os.PathLike[str]) -> list[str]:
    """Whole lines; a last line without its end was cut and is left out."""
    data = read_plain(path)
    try:
        return data.decode().replace("\r\n", "\n").split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise FormatError(f"{os.fspath(path)}: expected UTF-8 text, got byte {data[error.start]}.") from error
