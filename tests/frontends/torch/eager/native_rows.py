"""Rows of a statistic.csv, comparable between `msdump_native` and a dispatch mode."""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from msdump.formats.npy_reader import read_npy
from msdump.formats.paths.sync import parse_data_file_name

Row = tuple[str, ...]
# What PyTorch runs in other ways under a mode: it copies what it saves, and adds a bias out of place.
UNDER_A_MODE = "aten.detach.default"
ALIKE = {"aten.add_.Tensor": "aten.add.Tensor"}
# What is computed again ends with an exception in this operator, whose results nobody reads.
LAST_RECOMPUTED = "aten.tanh.default"


# What else it writes out of place in other formulas of gradients, and views in other words.
VARIANTS = {
    **ALIKE,
    "aten._reshape_alias.default": "aten.view.default",
    "aten._index_put_impl_.default": "aten.index_put.default",
    "aten.scatter_.src": "aten.scatter.src",
    "aten.mul_.Tensor": "aten.mul.Tensor",
    "aten.sub_.Tensor": "aten.sub.Tensor",
}
# Who gives memory that nothing has written, and who reads such memory to write all of it: no run has its numbers twice.
UNWRITTEN = re.compile(r"aten\.(new_)?empty(_like|_strided)?\..*")
OVERWRITING = re.compile(r"aten\.(bernoulli_|uniform_|normal_|copy_|fill_)\..*")
# Those that say what a row is of come before its numbers: IO, slot, size, type, shape.
_KEYS = 5


def rows(
    folder: Path, pairs: Mapping[str, str] = MappingProxyType(ALIKE), has_unwritten: bool = True
) -> dict[str, Counter[Row]]:
    """Of each graph and iteration: rows without time stamps, and without numbers of operators that differ.

    pairs          names of operators that stand for each other
    has_unwritten  whether rows keep the statistics of memory that nothing has written
    """
    found = {}
    for path, lines in _lines(folder):
        own: Counter[Row] = Counter()
        for op_type, name, _, _, _, *rest in lines:
            shown, number = re.fullmatch(r"(.*?)(-op\d+)?", name).groups()  # type: ignore[union-attr]
            shown = pairs.get(shown, shown)
            is_overwritten = OVERWRITING.fullmatch(shown) and rest[:2] == ["input", "0"]
            if not has_unwritten and (UNWRITTEN.fullmatch(shown) or is_overwritten):
                rest = rest[:_KEYS]
            # Of an LSTM, memory that its kernel works in.
            is_last = shown.endswith(LAST_RECOMPUTED) and path.parts[-3] == "1"
            if shown != UNDER_A_MODE and "uint8" not in rest and not is_last:
                kept = "" if shown in pairs.values() else number or ""
                own[(op_type if shown == name.removesuffix(number or "") else "", shown + kept, *rest)] += 1
        found[str(path.relative_to(folder))] = own
    return found


def _lines(folder: Path) -> Iterator[tuple[Path, list[list[str]]]]:
    """Of each iteration: rows of its statistics, or one for each of its tensors, of which the numbers are their MD5."""
    for path in sorted(folder.rglob("statistic.csv")):
        with path.open() as file:
            yield path, list(csv.reader(file))[1:]
    folders = {path.parent for path in folder.rglob("*.npy") if "constants" not in path.parts}
    for each in sorted(folders):
        lines = []
        for path in sorted(each.glob("*.npy")):
            name = parse_data_file_name(path.name)
            assert name is not None, path.name
            array = read_npy(path)
            digest = hashlib.md5(array.tobytes()).hexdigest()
            keys = [name.io, str(name.slot), str(array.nbytes), array.dtype.name, str(array.shape)]
            lines.append([name.op_type, name.op_name, "", "", "", *keys, digest])
        yield each / "tensors", lines


def alike(counts: Counter[Row], pairs: Mapping[str, str] = MappingProxyType(ALIKE)) -> Counter[Row]:
    """Operators of types that differ have no type."""
    found: Counter[Row] = Counter()
    for row, count in counts.items():
        found[("" if row[1] in pairs.values() else row[0], *row[1:])] += count
    return found


def operators_alike(one: Path, other: Path) -> dict[tuple[str, str], bool]:
    """Of two dumps: (graph, operator) -> whether all iterations have the same rows of it.

    Those of a type that stands for another have one name, and so have no numbers.
    """
    found: dict[tuple[str, str], bool] = {}
    ours, others = (rows(folder, VARIANTS, has_unwritten=False) for folder in (one, other))
    for path in sorted({*ours, *others}):
        counts = [alike(each.get(path, Counter()), VARIANTS) for each in (ours, others)]
        unequal = {row[1] for row in (counts[0] - counts[1]) + (counts[1] - counts[0])}
        for name in {row[1] for row in counts[0] + counts[1]}:
            key = Path(path).parts[-3], name
            found[key] = found.get(key, True) and name not in unequal
    return found
