"""Tables and progress for people: rich on a terminal, plain aligned text anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from msdump.cli.printing import draw, is_terminal, printable, put

Advance = Callable[[int, int], None]


def print_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], stream: TextIO, numbers: Sequence[int] = ()
) -> None:
    """A table.

    numbers   columns that are aligned on their right
    """
    titles, rows = tuple(titles), [tuple(map(printable, row)) for row in rows]
    if not is_terminal(stream):
        widths = [max(len(row[column]) for row in (titles, *rows)) for column in range(len(titles))]
        for row in (titles, *rows):
            cells = (
                f"{cell:>{width}}" if column in numbers else f"{cell:<{width}}"
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            put("  ".join(cells).rstrip(), stream)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for column, title in enumerate(titles):
        # On a narrow terminal numbers stay whole, names lose their ends, and the last column takes more lines.
        width = max(len(row[column]) for row in (titles, *rows)) if column in numbers else None
        is_last = column == len(titles) - 1
        table.add_column(
            title,
            justify="right" if column in numbers else "left",
            overflow="fold" if is_last else "ellipsis",
            no_wrap=not is_last,
            min_width=width,
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    draw(table, stream)


@contextmanager
def progress_bar(label: str, stream: TextIO, is_quiet: bool = False) -> Iterator[Advance]:
    """A function that takes (done, in all) and shows how far that is, where somebody can see it."""
    if is_quiet or not is_terminal(stream):
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(file=stream), transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
