"""gradients.csv: what optimizers read as gradients in iterations that are not dumped, a row for each step of one.

One file for each rank, `rank_N/.dump_metadata/gradients.csv`; docs/formats/gradients.md describes it.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from msdump.errors import FormatError
from msdump.formats.append_file import AppendFile
from msdump.formats.atomic import make_dirs
from msdump.storage.files import read_file
from msdump.storage.plain import unreadable

GRADIENTS_FILE = "gradients.csv"
COLUMNS = ("Iteration", "Optimizer", "Parameters", "L2Norm", "Not Finite", "First Not Finite", "Skipped", "Digest")
_TITLES = ",".join(COLUMNS)
_MODE = 0o400
_MAX_NAME = 1000
_DIGEST = 16


@dataclass(frozen=True, slots=True)
class GradientRow:
    """The gradients of one step of one optimizer, after clipping and unscaling.

    optimizer   name of its class
    parameters  how many of its parameters had a gradient
    l2norm      of all of them together; NaN or Inf where one of them is not finite
    not_finite  of how many parameters the gradient has a NaN or an Inf
    first       the first of these, in the order of the optimizer; "" without one
    is_skipped  a scaler of the loss has left out the step
    digest      16 hexadecimal digits, equal where the L2 norms of all parameters have the same bits
    """

    iteration: int
    optimizer: str
    parameters: int
    l2norm: float
    not_finite: int = 0
    first: str = ""
    is_skipped: bool = False
    digest: str = "0" * _DIGEST

    @property
    def is_bad(self) -> bool:
        """Whether the step has put a NaN or an Inf into a parameter, or would have."""
        return self.not_finite > 0


def append_gradients(
    directory: str | os.PathLike[str], rows: Iterable[GradientRow], *, begins_run: bool = False
) -> None:
    """Add rows to the file of a rank, which is made when it is not there.

    begins_run  whether they are the first of a run: then the titles stand above them once more, where an earlier run
                has left rows
    Raises: WriteError.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow(
            (row.iteration, _one_line(row.optimizer), row.parameters, repr(row.l2norm), row.not_finite,
             _one_line(row.first), int(row.is_skipped), row.digest)
        )  # fmt: skip
    make_dirs(directory)
    with AppendFile(Path(directory) / GRADIENTS_FILE, _MODE, head=_TITLES + "\n") as file:
        if begins_run and not file.is_new:
            file.append(_TITLES + "\n")
        file.append(text.getvalue())


def read_gradients(path: str | os.PathLike[str]) -> tuple[GradientRow, ...]:
    """Rows of a rank in the order of iterations; of several runs in one folder those of the last one.

    Raises: FormatError for a file that is damaged or cannot be read.
    """
    where = os.fspath(path)
    try:
        lines = bytes(read_file(path)).decode().splitlines()
    except FormatError:
        raise
    except UnicodeDecodeError as error:
        raise FormatError(f"{where}: expected text in UTF-8, got something else: {error}.") from error
    except OSError as error:
        raise unreadable(path, error) from error
    if not lines or lines[0] != _TITLES:
        got = lines[0][:80] if lines else "an empty file"
        raise FormatError(f"{where}, line 1: expected the columns {_TITLES}, got {got}.")
    rows: list[GradientRow] = []
    for number, line in enumerate(lines[1:], 2):
        if line == _TITLES:
            rows.clear()  # another run begins
        else:
            rows.append(_row(line, f"{where}, line {number}"))
    # Threads that train at the same time write as they come.
    return tuple(sorted(rows, key=lambda row: row.iteration))


def _row(line: str, where: str) -> GradientRow:
    try:
        iteration, optimizer, parameters, l2norm, not_finite, first, skipped, digest = next(csv.reader([line]))
        counts = int(parameters), float(l2norm), int(not_finite)
        row = GradientRow(int(iteration), optimizer, *counts, first, bool(int(skipped)), digest)
        int(digest, 16)
    except (ValueError, StopIteration, csv.Error) as error:
        raise FormatError(f"{where}: expected {len(COLUMNS)} values, got {line[:80]!r}: {error}.") from error
    is_sound = 0 <= row.not_finite <= row.parameters and row.iteration >= 0 and (row.l2norm >= 0 or row.is_bad)
    if not is_sound or len(digest) != _DIGEST or max(len(optimizer), len(first)) > _MAX_NAME:
        raise FormatError(f"{where}: expected the numbers of a step of an optimizer, got {line[:80]!r}.")
    return row


def first_bad(rows: Iterable[GradientRow]) -> GradientRow | None:
    """The first row that is not finite and was not left out by a scaler of the loss, which is there for that."""
    return next((row for row in rows if row.is_bad and not row.is_skipped), None)


def _one_line(name: str) -> str:
    return " ".join(name.split())[:_MAX_NAME]


def norm_of(norms: Sequence[float]) -> float:
    """The L2 norm of all tensors from those of each; NaN where one is NaN, else Inf where one is Inf."""
    if all(map(math.isfinite, norms)):
        return math.hypot(*norms)
    return math.nan if any(map(math.isnan, norms)) else math.inf


def first_differing(
    mine: Iterable[GradientRow], golden: Iterable[GradientRow], tolerance: float
) -> tuple[GradientRow, GradientRow] | None:
    """The first step that both runs have and whose L2 norms differ by more than that part of the golden one."""
    others = {(row.iteration, row.optimizer): row for row in golden}
    for row in mine:
        other = others.get((row.iteration, row.optimizer))
        if other is None or (row.is_bad and other.is_bad):
            continue
        if not abs(row.l2norm - other.l2norm) <= tolerance * other.l2norm:
            return row, other
    return None
