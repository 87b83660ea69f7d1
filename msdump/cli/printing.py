"""Output of all commands: no text of a dump controls a terminal or a CI service, no closed stream
ends a command.

Names, source lines and messages come from files that others made. Anything in them but letters, marks, digits, signs
and blanks is shown as Python writes it in a string: `\\x1b`, `\\u202e`; a byte that is not UTF-8 as `\\xff`. So is the
first sign of what a CI service would take for a command to itself: `\\x3a:set-output`.

Tables and progress are rich's on a terminal, and plain aligned text, or nothing, anywhere else.
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeGuard

from msdump.errors import did_you_mean
from msdump.tables.printable import LINE_ENDS, is_printable, printable, without_commands

if TYPE_CHECKING:
    from rich.console import RenderableType

    from msdump.statistics.exponents import ExponentHistogram

__all__ = [
    "BYTES", "FILES", "LINE_ENDS", "PrintableParser", "complain", "complain_of_damaged", "draw", "is_terminal", "log",
    "log_printable", "open_standard_streams", "plain_table", "print_table", "printable", "progress_bar", "put",
    "rate_text", "say", "silence",
]  # fmt: skip

BYTES, FILES = "bytes", "files"  # what a progress bar counts


class PrintableParser(argparse.ArgumentParser):
    """A parser, and those of its subcommands, whose messages go through here as well: they repeat what was typed.

    The nearest option is offered for one that it does not have.
    """

    def error(self, message: str) -> NoReturn:
        wrong = next((word for word in message.partition("unrecognized arguments: ")[2].split() if word[:1] == "-"), "")
        hint = did_you_mean(wrong.partition("=")[0], self._options()) if wrong else ""
        super().error(f"{message}. {hint}" if hint else message)

    def _options(self) -> list[str]:
        """Those of the subcommands too: of one that was not chosen there are none yet."""
        options: list[str] = []
        for action in self._actions:
            options += action.option_strings
            if isinstance(action, argparse._SubParsersAction):
                options += [option for parser in action.choices.values() for option in parser._options()]
        return options

    def _print_message(self, message: str, file: Any = None) -> None:
        put(message, sys.stderr if file is None else file, end="")


def log_printable() -> None:
    """Let what msdump logs hold no other characters either."""
    logging.getLogger("msdump").addFilter(_make_printable)


def _make_printable(record: logging.LogRecord) -> bool:
    record.msg, record.args = without_commands(printable(record.getMessage(), LINE_ENDS)), ()
    return True


def is_terminal(stream: TextIO | None) -> TypeGuard[TextIO]:
    """False also for a stream that is closed or was never open."""
    try:
        return stream is not None and stream.isatty()
    except (OSError, ValueError):
        return False


def say(text: object = "", end: str = "\n", flush: bool = False, has_secrets: bool = False) -> None:
    """Print a result.

    has_secrets  as in `printable`
    Raises:      OSError, as BrokenPipeError where its reader has gone.
    """
    put(text, sys.stdout, end, flush, has_secrets)


def complain(text: object = "", end: str = "\n") -> None:
    """Print what went wrong, beside the results."""
    put(text, sys.stderr, end)


def complain_of_damaged(damaged: Iterable[tuple[object, Exception]]) -> None:
    """Name files that could not be read; the error of each says which it is."""
    for _, problem in damaged:
        complain(f"damaged: {problem}")


def log(level: str, text: str) -> None:
    """One line in msaccucmp's form."""
    say(f"{time.strftime('%Y-%m-%d %H:%M:%S')} ({os.getpid()}) - [{level}] {text}", flush=True)


def put(text: object, stream: TextIO | None, end: str = "\n", flush: bool = False, has_secrets: bool = False) -> None:
    """Print a text of any lines to a stream; to none when it is None, which is how Python has a closed one.

    Edges:   what the stream's encoding cannot spell is written out as well.
    Raises:  OSError, but not of standard error: that its reader has gone changes no result.
    """
    if stream is None:
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    message = without_commands(printable(str(text), LINE_ENDS, has_secrets)) + end
    try:
        stream.write(message.encode(encoding, "backslashreplace").decode(encoding))
        if flush:
            stream.flush()
    except OSError:
        if stream is not sys.stderr:
            raise
        silence(stream)


def print_table(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    stream: TextIO | None,
    numbers: Sequence[int] = (),
    *,
    heading: str = "",
    keeps: str = "",
    styles: Mapping[int, str] | None = None,
) -> None:
    """Print a table; to no stream as `put`. Without titles it has two columns: labels and texts.

    numbers   columns that are aligned on their right
    heading   a line above the table
    keeps     as in `printable`
    styles    rich's style of a row, by its number
    """
    if not is_terminal(stream):
        put(plain_table(titles, rows, numbers, heading=heading, keeps=keeps), stream)
        return
    from rich.table import Table
    from rich.text import Text

    if heading:
        put(heading, stream)
    cells = _printable_cells(rows, keeps)
    table = Table(show_header=bool(titles), box=None, pad_edge=False)
    widths = _widths([titles, *cells] if titles else cells)
    for column, width in enumerate(widths):
        # On a narrow terminal numbers and labels stay whole, names lose their ends, the last column takes more lines.
        is_label, is_last = not titles and column == 0, column == len(widths) - 1
        table.add_column(
            titles[column] if titles else "",
            justify="right" if column in numbers else "left",
            overflow="fold" if is_last else "ellipsis",
            no_wrap=not is_last,
            min_width=width if is_label or column in numbers else None,
            style="bold" if is_label else "",
        )
    for number, row in enumerate(cells):
        table.add_row(*map(Text, row), style=(styles or {}).get(number))
    draw(table, stream)


def plain_table(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Sequence[int] = (),
    *,
    heading: str = "",
    keeps: str = "",
) -> str:
    """The table as aligned lines; indented below a heading."""
    columns = _printable_columns(rows, keeps) or [[]] * len(titles)
    if titles:
        columns = [[title, *column] for title, column in zip(titles, columns, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    form = "  ".join(f"%{width}s" if column in numbers else f"%-{width}s" for column, width in enumerate(widths))
    texts = [(form % line).rstrip() for line in zip(*columns, strict=True)]
    return "\n".join([heading, *(f"  {text}" for text in texts)] if heading else texts)


def _printable_cells(rows: Sequence[Sequence[str]], keeps: str) -> list[tuple[str, ...]]:
    return list(zip(*_printable_columns(rows, keeps), strict=True))


def _printable_columns(rows: Sequence[Sequence[str]], keeps: str) -> list[Sequence[str]]:
    """Most columns need no escapes, which one test of all their cells shows."""
    return [_printable_column(column, keeps) for column in zip(*rows, strict=True)]


def _printable_column(cells: Sequence[str], keeps: str) -> Sequence[str]:
    text = "".join(cells)
    return cells if is_printable(text, keeps) and ":/" not in text else [printable(cell, keeps) for cell in cells]


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


@contextmanager
def progress_bar(
    label: str, stream: TextIO, is_quiet: bool = False, unit: str = BYTES
) -> Iterator[Callable[[int, int], None]]:
    """A function that takes (done, in all) and shows on a terminal how far that is, at which rate, and what remains.

    unit  BYTES or FILES
    """
    if is_quiet or not is_terminal(stream):
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=stream), transient=True) as progress:
        task = progress.add_task(label, total=None, rate="")
        started = time.monotonic()

        def advance(done: int, total: int) -> None:
            rate = rate_text(done, time.monotonic() - started, unit)
            progress.update(task, completed=done, total=total, rate=rate)

        yield advance


def rate_text(done: int, seconds: float, unit: str) -> str:
    """How much of a unit is done in a second on average: "1.2 GiB/s"; "" before there is a rate."""
    if seconds <= 0 or not done:
        return ""
    from msdump.config.environment import format_size

    rate = done / seconds
    return f"{format_size(int(rate))}/s" if unit == BYTES else f"{rate:.3g} {unit}/s"


def draw(picture: RenderableType, stream: TextIO) -> None:
    """Show a table or panel of rich, whose texts are `printable` already, on a terminal.   Raises: as `put`."""
    from rich.console import Console

    try:
        Console(file=stream).print(picture)
    except OSError:
        if stream is not sys.stderr:
            raise
        silence(stream)


def silence(stream: TextIO) -> None:
    """Let what is still buffered for a stream go nowhere: at its end Python would fail with it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def open_standard_streams() -> None:
    """Fill descriptors 0, 1 and 2 where the caller has closed them.

    The next file to be opened would get that number, and what a library in C writes to standard error would be in it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    # argparse of Python 3.10 writes to what is not there.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


# -- numbers in block characters ---------------------------------------------------------------------------------------

_BLOCKS = "▁▂▃▄▅▆▇█"
BINS = 20


def exponent_bars(histogram: ExponentHistogram) -> str:
    """`2^-9 ▁▂▅█▂ 2^0`: how many elements lie at each power of two, of both signs, on a scale of its own.

    Edges:  "" where every element is 0, NaN or Inf. More exponents than `BINS` share bars, as many to each.
    """
    counts = [one + other for one, other in zip(histogram.positive, histogram.negative, strict=True)]
    if not counts:
        return ""
    width = math.ceil(len(counts) / BINS)
    bars = [sum(counts[start : start + width]) for start in range(0, len(counts), width)]
    largest = max(bars)
    # Whatever is there is seen, however little.
    text = "".join(" " if not bar else _BLOCKS[math.ceil(bar * len(_BLOCKS) / largest) - 1] for bar in bars)
    return f"2^{histogram.first} {text} 2^{histogram.first + len(bars) * width}"


def sparkline(values: Sequence[float | None]) -> str:
    """A bar for each number, from the least to the largest of them.

    Edges:  "!" for NaN and Inf, " " for None; equal numbers are bars of half the height.
    """
    finite = [value for value in values if value is not None and math.isfinite(value)]
    least, largest = (min(finite), max(finite)) if finite else (0.0, 0.0)
    return "".join(_bar(value, least, largest) for value in values)


def _bar(value: float | None, least: float, largest: float) -> str:
    if value is None:
        return " "
    if not math.isfinite(value):
        return "!"
    # Halves first, as the distance of two numbers may be too large for a float.
    span = largest / 2 - least / 2
    share = (value / 2 - least / 2) / span if span else 0.5
    return _BLOCKS[min(len(_BLOCKS) - 1, int(share * len(_BLOCKS)))]


def bar(value: float | None, largest: float, width: int) -> str:
    """A bar of at most `width` blocks for |value|, as a share of `largest`.   Edges: "!" for NaN and Inf."""
    if value is None:
        return ""
    if not math.isfinite(value):
        return "!"
    eighths: int = round(8 * width * (abs(value) / largest)) if largest else 0
    whole, rest = divmod(eighths, 8)
    return "█" * whole + " ▏▎▍▌▋▊▉"[rest].strip()
