"""Two tensors element by element: the files that msaccucmp compare -op writes for one tensor of one operator.

Files: `{op}_{io}_{i}.npy` (mine), `{op}_{io}_{i}_{first}.csv`, `..._absolute_error_topn.csv`,
`..._relative_error_topn.csv`, `..._summary.txt`. Numbers have six decimals and a tab behind them, which keeps a
spreadsheet from reading them as something else.   Source: CANN, msaccucmp compare, `-op`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from msdump.analysis.compare.result_csv import safe_cell
from msdump.errors import WriteError
from msdump.formats.sidecars import read_mapping
from msdump.storage.plain import plain_opener
from msdump.tensors.arrays import Array

MAPPING_FILE = "simple_op_mapping.csv"
_LONGEST = 254  # characters of a file's name
_AXES = {"ID": "ID", "NCDHW": "N C D H W", "NHWC": "N H W C", "HWCN": "H W C N"}
_NOTHING = "-"


@dataclass(frozen=True, slots=True)
class DetailRequest:
    """What is written: `top` rows of the largest errors, at most `lines` rows in one file.

    has_elements   also the csv of all elements
    """

    top: int = 20
    lines: int = 1_000_000
    has_elements: bool = True


@dataclass(frozen=True, slots=True)
class Detail:
    """One tensor of both sides.

    name          beginning of the file names, `{op}_{io}_{i}`
    dump_file     name of mine's dump file, which stands for `name` where that is too long
    operators     of mine and golden, as the summary names them
    order         axis order of both arrays
    """

    name: str
    dump_file: str
    operators: tuple[str, str]
    order: str
    mine: Array
    golden: Array


def write_detail(folder: Path, detail: Detail, request: DetailRequest) -> list[Path]:
    """Write everything about one tensor, in place of what an earlier run left; the files.   Raises: WriteError."""
    try:
        _remove_old(folder, detail.name)
        return _write_all(folder, detail, request)
    except OSError as error:
        raise WriteError(f"{folder}: expected to write the detail there, got: {error.strerror}.") from error


def _write_all(folder: Path, detail: Detail, request: DetailRequest) -> list[Path]:
    def path_of(ending: str, start: int | None = None) -> Path:
        return folder / _file_name(folder, detail, ending, start)

    table = _table(detail)
    written = [_save(path_of(".npy"), detail.mine)]
    written.append(_write(path_of("_summary.txt"), _summary(detail, table)))
    if request.has_elements:
        for start in range(0, max(1, table.size), request.lines):
            rows = range(start, min(table.size, start + request.lines))
            written.append(_write(path_of(".csv", start), [table.header, *map(table.row, rows)]))
    for kind, errors in (("absolute", table.absolute), ("relative", table.relative)):
        lines = [table.header, *map(table.top_row, _largest(errors, request.top, table.is_bool))]
        written.append(_write(path_of(f"_{kind}_error_topn.csv"), lines))
    return written


def _largest(errors: Array, count: int, is_bool: bool) -> list[int]:
    """Places of the largest errors, the largest first, of equal ones the last first.

    Edges:   a tensor with fewer elements than `count` leaves out its smallest error, as msaccucmp does, unless it has
             only one. Inf and NaN count as 0.
    """
    if errors.size < count:
        count = errors.size - 1 or errors.size
    if is_bool:
        return list(range(count))
    order = np.lexsort((np.arange(errors.size), np.nan_to_num(errors, nan=0.0)))[::-1]
    return [int(element) for element in order[:count]]


@dataclass(frozen=True, slots=True)
class _Table:
    """Elements of both sides in C order, with their errors; NaN where there is none."""

    header: str
    shape: tuple[int, ...]
    mine: Array
    golden: Array
    absolute: Array
    relative: Array
    is_bool: bool

    @property
    def size(self) -> int:
        return int(self.mine.size)

    def row(self, element: int) -> str:
        """One line of the list of elements."""
        if self.is_bool:
            return f"{self._head(element)},{_NOTHING}\t,{_NOTHING}"
        relative = float(self.relative[element])
        shown = f"{relative:.6f}\t" if np.isfinite(relative) else _NOTHING
        return f"{self._head(element)},{float(self.absolute[element]):.6f}\t,{shown}"

    def top_row(self, element: int) -> str:
        """One line of a list of the largest errors, where NaN and Inf are `-`."""
        errors = f"{float(self.absolute[element]):.6f}\t,{float(self.relative[element]):.6f}\t"
        return f"{self._head(element)},{errors}".replace("nan", _NOTHING).replace("inf", _NOTHING)

    def _head(self, element: int) -> str:
        indices = " ".join(str(int(index)) for index in np.unravel_index(element, self.shape))
        mine, golden = self.mine[element], self.golden[element]
        if self.is_bool:
            return f"{element},{indices},{bool(mine)}\t,{bool(golden)}\t"
        return f"{element},{indices},{float(mine):.6f}\t,{float(golden):.6f}\t"


def _table(detail: Detail) -> _Table:
    mine, golden = _real(detail.mine), _real(detail.golden)
    shape = detail.mine.shape + (1,) * (4 - detail.mine.ndim)
    axes = _AXES.get(detail.order, "N C H W" if detail.mine.shape else "ID")
    header = f"Index,{axes},NPUDump,GroundTruth,AbsoluteError,RelativeError"
    is_bool = mine.dtype == np.bool_ and golden.dtype == np.bool_
    if is_bool:
        nothing = np.full(mine.size, np.nan)
        return _Table(header, shape, mine, golden, nothing, nothing, True)
    x, y = _signed(mine), _signed(golden)
    with np.errstate(all="ignore"):
        absolute = np.abs(x - y)
        relative = np.true_divide(absolute, np.abs(y))
    # Infinite errors count as none: they would hide all others.
    absolute, relative = (np.where(np.isinf(errors), np.nan, errors) for errors in (absolute, relative))
    return _Table(header, shape, mine, golden, absolute, relative, False)


def _real(array: Array) -> Array:
    flat = array.reshape(-1)
    return flat.real if flat.dtype.kind == "c" else flat


def _signed(array: Array) -> Array:
    """Numbers whose differences do not wrap around: floats as they are, integers as float64."""
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _summary(detail: Detail, table: _Table) -> Iterator[str]:
    yield f"TotalCount:{table.size}"
    yield f"NPUDump:{detail.operators[0].replace(',', ' ')}"
    yield f"GroundTruth:{detail.operators[1].replace(',', ' ')}"
    yield f"Format:{table.header.split(',')[1]}"
    for name, errors in (("Absolute", table.absolute), ("Relative", table.relative)):
        for kind in ("min", "max"):
            value = "nan"
            if table.is_bool:
                value = _NOTHING
            elif errors.size:
                value = f"{float(getattr(np.nan_to_num(errors, nan=0.0), kind)()):.6f}"
            yield f"{kind.capitalize()}{name}Error:{value}"


# -- names ---------------------------------------------------------------------------------------------------------


def _file_name(folder: Path, detail: Detail, ending: str, start: int | None) -> str:
    """The name, or where it is too long the dump file's, or a hash; simple_op_mapping.csv tells what it replaces."""
    part = "" if start is None else f"_{start}"
    name = f"{detail.name}{part}{ending}"
    if len(name) <= _LONGEST:
        return name
    io_index = "_".join(detail.name.rsplit("_", 2)[1:])
    short = f"{detail.dump_file.replace('/', '_').replace('.', '_')}_{io_index}{part}{ending}"
    if len(short) > _LONGEST:
        short = uuid.uuid3(uuid.NAMESPACE_DNS, name).hex + ending
    with _opened(folder / MAPPING_FILE, "a") as file:
        file.write(f"{short},{safe_cell(name)}\n")
    return short


def _remove_old(folder: Path, name: str) -> None:
    """Files of the same tensor from an earlier run: it may have had more of them."""
    path = folder / MAPPING_FILE
    mapping = read_mapping(path) if path.is_file() else {}
    for entry in folder.iterdir():
        if entry.is_file() and entry.name != MAPPING_FILE and _is_of(mapping.get(entry.name, entry.name), name):
            entry.unlink()
    remaining = {short: original for short, original in mapping.items() if not _is_of(original, name)}
    if len(remaining) < len(mapping):
        path.unlink()
        if remaining:
            _write(path, [f"{short},{original}" for short, original in remaining.items()])


def _is_of(file_name: str, name: str) -> bool:
    is_own = file_name == f"{name}.npy" or file_name == f"{name}_summary.txt"
    return is_own or (file_name.startswith(f"{name}_") and file_name.endswith((".csv", ".npy")))


def _save(path: Path, array: Array) -> Path:
    with open(path, "wb", opener=plain_opener()) as file:
        np.save(file, np.ascontiguousarray(array).reshape(array.shape))
    return path


def _write(path: Path, lines: Iterable[str]) -> Path:
    with _opened(path, "w") as file:
        file.writelines(f"{line}\n" for line in lines)
    return path


def _opened(path: Path, how: str) -> IO[str]:
    # Names may hold bytes that are not UTF-8.
    return open(path, how, encoding="utf-8", errors="backslashreplace", opener=plain_opener())
