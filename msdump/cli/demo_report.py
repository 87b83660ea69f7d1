"""What `msdump demo` says about the dump it made: a table by operator type, and one way from a line to a file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from msdump.cli.printing import print_table
from msdump.cli.report_text import format_bytes
from msdump.errors import DumpError
from msdump.formats.paths.sync import SyncLayout, parse_data_file_name, short_op_name
from msdump.formats.sidecars import read_order

LINE = "x = self.conv3(x)"
PARAMETER_TYPE = "Parameter"  # how the layout calls the operator type of graph inputs
_OPERATOR = "conv3-Conv2d/Conv2D-op"
_TITLES = ("operator type", "operators", "files", "bytes")


@dataclass
class TypeSummary:
    """Files of all operators of one type; the type of parameters has files but no operators."""

    op_type: str
    operators: set[str] = field(default_factory=set)
    files: int = 0
    size_bytes: int = 0


def summaries(dump: Path, net_name: str) -> list[TypeSummary]:
    """Operator types of the first dumped iteration, largest first."""
    by_type: dict[str, TypeSummary] = {}
    with os.scandir(SyncLayout(dump, 0, net_name).data_dir(0, 0)) as entries:
        for entry in entries:
            name = parse_data_file_name(entry.name)
            if name is not None:
                summary = by_type.setdefault(name.op_type, TypeSummary(name.op_type))
                if name.op_type != PARAMETER_TYPE:
                    summary.operators.add(name.op_name)
                summary.files += 1
                summary.size_bytes += entry.stat().st_size
    return sorted(by_type.values(), key=lambda summary: (-summary.size_bytes, summary.op_type))


def find_example(dump: Path, net_name: str, start: Path) -> str:
    """Lines that lead from a line of the script to the operator and to the file with its result.

    Raises: DumpError when the dump does not hold it.
    """
    layout = SyncLayout(dump, 0, net_name)
    names = [
        name for name in read_order(layout.order_file(0)) if _OPERATOR in name and not name.startswith("Gradients/")
    ]
    files = [
        file for name in names for file in layout.data_dir(0, 0).glob(f"Conv2D.{short_op_name(name)}.*.output.0.*.npy")
    ]
    graph = layout.graph_file(0, "ir")
    lines = [number for number, text in enumerate(graph.read_text(encoding="utf-8").splitlines(), 1) if LINE in text]
    if not files or not lines:
        raise DumpError(
            f"{dump}: expected the operator of {LINE!r} in the graph and on disk, got no such file or line."
        )
    shown_file, shown_graph = (os.path.relpath(path, start) for path in (files[0], graph))
    return (
        f"  the operator of `{LINE}`, with its inputs, attributes and source line:\n"
        f"    {shown_graph}:{lines[0]}\n"
        f"  what it computed in the first step:\n"
        f'    numpy.load("{shown_file}")\n'
        f"  minimum, maximum, mean, NaN count, ... of every tensor:\n"
        f"    {os.path.relpath(layout.statistic_file(0, 0), start)}"
    )


def _cells(title: str, operators: int, files: int, size_bytes: int) -> tuple[str, str, str, str]:
    return title, str(operators or "-"), str(files), format_bytes(size_bytes)


def print_summaries(rows: list[TypeSummary], stream: TextIO) -> None:
    """Write the summaries and their total as a table."""
    cells = [_cells(row.op_type, len(row.operators), row.files, row.size_bytes) for row in rows]
    total = _cells(
        "total",
        sum(len(row.operators) for row in rows),
        sum(row.files for row in rows),
        sum(row.size_bytes for row in rows),
    )
    print_table(_TITLES, [*cells, total], stream, numbers=(1, 2, 3), styles={len(cells): "bold"})
