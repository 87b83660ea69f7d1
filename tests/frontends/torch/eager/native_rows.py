"""Rows of a statistic.csv, comparable between `msdump_native` and a dispatch mode."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

Row = tuple[str, ...]
# What PyTorch runs in other ways under a mode: it copies what it saves, and adds a bias out of place.
UNDER_A_MODE = "aten.detach.default"
ALIKE = {"aten.add_.Tensor": "aten.add.Tensor"}
# What is computed again ends with an exception in this operator, whose results nobody reads.
LAST_RECOMPUTED = "aten.tanh.default"


def rows(folder: Path) -> dict[str, Counter[Row]]:
    """Of each graph and iteration: rows without time stamps, and without numbers of operators that differ."""
    found = {}
    for path in sorted(folder.rglob("statistic.csv")):
        with path.open() as file:
            lines = list(csv.reader(file))[1:]
        own: Counter[Row] = Counter()
        for op_type, name, _, _, _, *rest in lines:
            shown, number = re.fullmatch(r"(.*?)(-op\d+)?", name).groups()  # type: ignore[union-attr]
            shown = ALIKE.get(shown, shown)
            # Of an LSTM, memory that its kernel works in.
            is_last = shown.endswith(LAST_RECOMPUTED) and path.parts[-3] == "1"
            if shown != UNDER_A_MODE and "uint8" not in rest and not is_last:
                kept = "" if shown in ALIKE.values() else number or ""
                own[(op_type if shown == name.removesuffix(number or "") else "", shown + kept, *rest)] += 1
        found[str(path.relative_to(folder))] = own
    return found


def alike(counts: Counter[Row]) -> Counter[Row]:
    """Operators of types that differ have no type."""
    return Counter({("" if row[1] in ALIKE.values() else row[0], *row[1:]): count for row, count in counts.items()})
