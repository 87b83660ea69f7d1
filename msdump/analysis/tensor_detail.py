"""Two tensors element by element: the files that msaccucmp compare -op writes for one tensor of one operator."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from msdump.errors import WriteError
from msdump.events import Array
from msdump.plain_files import plain_opener

_LONGEST = 200  # characters of an operator's name that leave room for the endings
_AXES = {4: "N C H W", 5: "N C D H W"}


@dataclass(frozen=True, slots=True)
class DetailRequest:
    """What is written: `top` rows of the largest errors, at most `lines` rows in one file.

    has_elements   also the csv of all elements
    """

    top: int = 20
    lines: int = 1_000_000
    has_elements: bool = True


def write_detail(
    folder: Path,
    name: str,
    sides: tuple[str, str],
    mine: Array,
    golden: Array,
    format_name: str,
    request: DetailRequest,
) -> list[Path]:
    """Write everything about one tensor; the files.

    name    beginning of the names; one that is too long is replaced by a hash and told in simple_op_mapping.csv
    sides   beginnings of the names of both arrays

    Raises: WriteError.
    """
    try:
        short = _short(folder, name)
        written = [_save(folder, _short(folder, sides[0]), mine)]
        # Two operators of one name must not overwrite each other.
        other = sides[1] if sides[1] != sides[0] else f"{sides[1]}_ground_truth"
        written.append(_save(folder, _short(folder, other), golden))
        x, y = (side.astype(np.float64).reshape(-1) for side in (mine, golden))
        with np.errstate(all="ignore"):
            absolute = np.abs(x - y)
            relative = np.where(y != 0, absolute / np.abs(y), np.where(absolute == 0, 0.0, np.nan))
        table = _Table(golden.shape, x, y, absolute, relative)
        if request.has_elements:
            for start in range(0, x.size, request.lines):
                rows = range(start, min(x.size, start + request.lines))
                written.append(_write(folder / f"{short}_{start}.csv", table.lines(rows)))
        for kind, errors in (("absolute", absolute), ("relative", relative)):
            order = np.argsort(-np.nan_to_num(errors, nan=-1.0), kind="stable")[: request.top]
            written.append(_write(folder / f"{short}_{kind}_error_topn.csv", table.lines([int(row) for row in order])))
        written.append(_write(folder / f"{short}_summary.txt", _summary(sides, format_name, table)))
    except OSError as error:
        raise WriteError(f"{folder}: expected to write the detail there, got: {error.strerror}.") from error
    return written


@dataclass(frozen=True, slots=True)
class _Table:
    shape: tuple[int, ...]
    mine: Array
    golden: Array
    absolute: Array
    relative: Array

    def lines(self, rows: range | list[int]) -> Iterator[str]:
        axes = _AXES.get(len(self.shape), " ".join(f"D{axis}" for axis in range(len(self.shape))))
        yield f"Index,{axes},NPUDump,GroundTruth,AbsoluteError,RelativeError"
        for row in rows:
            place = " ".join(str(int(index)) for index in np.unravel_index(row, self.shape)) if self.shape else ""
            numbers = (self.mine[row], self.golden[row], self.absolute[row], self.relative[row])
            yield f"{row},{place}," + ",".join(f"{number:.6f}" for number in numbers)


def _summary(sides: tuple[str, str], format_name: str, table: _Table) -> Iterator[str]:
    yield f"TotalCount:{table.mine.size}"
    yield f"NPUDump:{sides[0]}"
    yield f"GroundTruth:{sides[1]}"
    yield f"Format:{format_name}"
    for name, errors in (("Absolute", table.absolute), ("Relative", table.relative)):
        known = errors[~np.isnan(errors)]
        for kind, value in (("Min", known.min(initial=np.inf)), ("Max", known.max(initial=0.0))):
            yield f"{kind}{name}Error:{value if known.size else float('nan'):.6f}"


def _short(folder: Path, name: str) -> str:
    if len(name) <= _LONGEST:
        return name
    short = uuid.uuid3(uuid.NAMESPACE_DNS, name).hex
    with _opened(folder / "simple_op_mapping.csv", "a") as file:
        file.write(f"{short},{name}\n")
    return short


def _save(folder: Path, name: str, array: Array) -> Path:
    path = folder / f"{name}.npy"
    with open(path, "wb", opener=plain_opener()) as file:
        np.save(file, np.ascontiguousarray(array))
    return path


def _write(path: Path, lines: Iterator[str]) -> Path:
    with _opened(path, "w") as file:
        file.writelines(f"{line}\n" for line in lines)
    return path


def _opened(path: Path, how: str) -> IO[str]:
    # Names may hold bytes that are not UTF-8.
    return open(path, how, encoding="utf-8", errors="backslashreplace", opener=plain_opener())
