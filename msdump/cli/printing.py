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
import re
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeGuard

from msdump.cli.exit_status import FINE, FOUND, INCOMPLETE, NOTHING
from msdump.cli.layout import TableLine, filled, is_width_told, table_lines, terminal_width, text_width, wrapped
from msdump.errors import did_you_mean
from msdump.tables.messages import ENGLISH, Message, joined, message, messages, translated
from msdump.tables.printable import LINE_ENDS, is_printable, printable, without_commands

if TYPE_CHECKING:
    from rich.console import RenderableType

    from msdump.formats.sidecars import Lost
    from msdump.formats.statistic_row import StatisticRow
    from msdump.statistics.exponents import ExponentHistogram
    from msdump.statistics.stats import Statistics

__all__ = [
    "BYTES", "FILES", "LINE_ENDS", "ROWS", "HelpFormatter", "PrintableParser", "complain", "complain_of_damaged",
    "draw", "is_terminal", "log", "log_printable", "open_standard_streams", "print_table", "printable",
    "progress_bar", "put", "rate_text", "say", "say_answer", "say_next", "silence", "speak", "value_verdict",
    "verdict_style",
]  # fmt: skip

ROWS = 20  # of a table, unless all are to be shown
# Words as shlex.quote leaves them.
_SHELL_WORDS = re.compile(r"""(?:'[^']*'|"[^"]*"|[^\s'"])+""")
BYTES, FILES, RANKS = "bytes", "files", "ranks"  # what a progress bar counts


class HelpFormatter(argparse.HelpFormatter):
    """Help texts within the width of the terminal: paragraphs are filled, lists keep their lines."""

    def __init__(self, prog: str, **options: Any) -> None:
        options.setdefault("width", terminal_width(sys.stdout, sys.stderr) - 1)
        super().__init__(prog, **options)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(f"{indent}{line}".rstrip() for line in filled(text, width - len(indent)).split("\n"))


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


def say(text: object = "", end: str = "\n", flush: bool = False, has_secrets: bool = False, wraps: bool = True) -> None:
    """Print a result.

    has_secrets  as in `printable`
    wraps        as in `put`
    Raises:      OSError, as BrokenPipeError where its reader has gone.
    """
    put(text, sys.stdout, end, flush, has_secrets, wraps)


def say_answer(lines: Sequence[str], status: int) -> None:
    """Print an answer; the first line has the colour of the exit status that comes with it."""
    if not lines:
        return
    style = verdict_style(status)
    if not style or not is_terminal(sys.stdout):
        say(joined("\n", lines))
        return
    from rich.text import Text

    first, *others = lines
    draw(Text(_wrapped_for(sys.stdout, _shown(first, sys.stdout)), style=style, no_wrap=True), sys.stdout)
    if others:
        say(joined("\n", others))


def say_next(steps: Iterable[tuple[str, str]], stream: TextIO | None = None) -> None:
    """End an answer with the next commands.

    steps   lines as a shell takes them, and what each is for; one without a line is left out
    stream  None: standard output, as of all commands but those that run a program

    A line that is too wide for the terminal goes on behind a backslash, so that it can be copied.
    """
    stream = stream or sys.stdout
    lines = ["", _told(message("next:"), stream)]
    width = terminal_width(stream) if is_width_told() or is_terminal(stream) else None
    for command, purpose in steps:
        if not command:
            continue
        purpose = _told(purpose, stream)
        line = f"  {command}  # {purpose}"
        if width is None or text_width(line) <= width:
            lines.append(line)
        else:
            lines += [f"  # {purpose}", *_continued(command, width)]
    if len(lines) > 2:
        put("\n".join(lines), stream, wraps=False)


def _continued(command: str, width: int) -> list[str]:
    """A command line over several lines, parted between its words."""
    lines, current = [], " "
    for word in _SHELL_WORDS.findall(command):
        if current.strip() and text_width(current) + 1 + text_width(word) > width - 2:
            lines.append(f"{current} \\")
            current = "     "
        current += f" {word}"
    return [*lines, current]


def complain(text: object = "", end: str = "\n") -> None:
    """Print what went wrong, beside the results."""
    put(text, sys.stderr, end)


def complain_of_damaged(damaged: Iterable[tuple[object, Exception]]) -> None:
    """Name files that could not be read; the error of each says which it is."""
    for _, problem in damaged:
        complain(f"damaged: {problem}")


def say_lost(lost: Mapping[int, Lost]) -> None:
    """Name what dumps that are not complete lack, by rank."""
    from msdump.analysis.missing import lost_lines

    for line in lost_lines(lost):
        say(line)


def log(level: str, text: str) -> None:
    """One line in msaccucmp's form."""
    say(f"{time.strftime('%Y-%m-%d %H:%M:%S')} ({os.getpid()}) - [{level}] {text}", flush=True, wraps=False)


def put(
    text: object,
    stream: TextIO | None,
    end: str = "\n",
    flush: bool = False,
    has_secrets: bool = False,
    wraps: bool = True,
) -> None:
    """Print a text of any lines to a stream; to none when it is None, which is how Python has a closed one.

    wraps    whether lines that are too wide for a terminal, or for COLUMNS, become several; in a pipe or file without
             COLUMNS each stays whole, so that a search finds it

    Edges:   what the stream's encoding cannot spell is written out as well.
    Raises:  OSError, but not of standard error: that its reader has gone changes no result.
    """
    if stream is None:
        return
    shown = _shown(text, stream, has_secrets)
    if wraps:
        shown = _wrapped_for(stream, shown)
    try:
        stream.write(shown + end)
        if flush:
            stream.flush()
    except OSError:
        if stream is not sys.stderr:
            raise
        silence(stream)


def _shown(text: object, stream: TextIO, has_secrets: bool = False) -> str:
    """The text as the stream can spell it."""
    told = without_commands(printable(_told(text, stream), LINE_ENDS, has_secrets))
    return told.encode(_encoding(stream), "backslashreplace").decode(_encoding(stream))


def _encoding(stream: TextIO) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


_spoken = ENGLISH


def speak(language: str) -> None:
    """Choose the language of what is printed from now on, as one of `LANGUAGES`."""
    global _spoken
    _spoken = language


def _told(text: object, stream: TextIO) -> str:
    """The text in the language that was chosen; in English for a stream that cannot spell that."""
    told = str(translated(text, _spoken))
    if _spoken == ENGLISH or not isinstance(text, Message):
        return told
    try:
        told.encode(_encoding(stream))
    except (LookupError, UnicodeEncodeError):
        return str(text)
    return told


def _wrapped_for(stream: TextIO, text: str) -> str:
    if not is_width_told() and not is_terminal(stream):
        return text
    width = terminal_width(stream)
    if all(len(line) <= width and line.isascii() for line in text.split("\n")):
        return text
    return "\n".join("\n".join(wrapped(line, width)) for line in text.split("\n"))


def print_table(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    stream: TextIO | None,
    numbers: Collection[int] = (),
    *,
    heading: str = "",
    keeps: str = "",
    styles: Mapping[int, str] | None = None,
    wraps: Collection[int] = (),
    named: Collection[int] = (0, 1),
    most: int | None = None,
) -> None:
    """Print a table within the width of the terminal; to no stream as `put`. Without titles it has two columns: labels
    and texts. A verdict stands in the first column, and has its colour.

    numbers   columns that are aligned on their right
    heading   a line above the table, which is indented then
    keeps     as in `printable`
    styles    rich's style of a row, by its number
    wraps     columns whose texts take several lines where there is no room; the others lose their middle
    named     columns that are there even if all rows say the same
    most      rows to show, before a line that says how many more there are; None for all
    """
    if stream is None:
        return
    shown = rows if most is None else rows[:most]
    verdicts = [str(row[0]) if row else "" for row in shown]
    if _spoken != ENGLISH:
        titles, shown = (
            [_told(title, stream) for title in titles],
            [[_told(cell, stream) for cell in row] for row in shown],
        )
    columns = _printable_columns(shown, keeps) or [[] for _ in titles]
    # Texts beside labels are sentences, as those of `put`.
    is_fitted = bool(titles) or is_terminal(stream) or is_width_told()
    width = terminal_width(stream, sys.stderr, sys.stdin) - (2 if heading else 0)
    lines = table_lines(
        titles, columns, width if is_fitted else None, numbers=numbers, wraps=wraps, keeps=named,
        ellipsis=_ellipsis(stream), in_each=_told(_IN_EACH, stream),
    )  # fmt: skip
    if heading:
        put(heading, stream)
    _put_lines(lines, stream, "  " if heading else "", styles or {}, verdicts if titles else None)
    if len(shown) < len(rows):
        put(message("{count} more (--all)", count=len(rows) - len(shown)), stream)


_IN_EACH = message("in each row: {columns}")


def _put_lines(
    lines: Sequence[TableLine], stream: TextIO, indent: str, styles: Mapping[int, str], verdicts: Sequence[str] | None
) -> None:
    """verdicts: the first cell of each row in English; None where it is a label"""
    if not is_terminal(stream):
        put("\n".join(f"{indent}{line.text}".rstrip() for line in lines), stream, wraps=False)
        return
    from rich.text import Text

    text = Text(no_wrap=True)
    for number, line in enumerate(lines):
        plain = without_commands(f"{indent}{line.text}".rstrip())
        part = Text(plain, style="" if line.row is None else styles.get(line.row, ""))
        if line.row is None and verdicts is not None:
            part.stylize("bold")
        elif line.row is not None and line.end and (style := _cell_style(verdicts, line.row)):
            part.stylize(style, len(indent), len(indent) + line.end)
        text.append_text(part)
        if number < len(lines) - 1:
            text.append("\n")
    draw(text, stream)


def _cell_style(verdicts: Sequence[str] | None, row: int) -> str:
    return "bold" if verdicts is None else verdict_style(verdicts[row])


def _ellipsis(stream: TextIO) -> str:
    try:
        "\u2026".encode(_encoding(stream))
    except (LookupError, UnicodeEncodeError):
        return "..."
    return "\u2026"


_STYLES = {FINE: "green", FOUND: "bold red", NOTHING: "yellow", INCOMPLETE: "yellow"}
# How verdicts of tables begin -> the exit status of a command that finds nothing else.
_VERDICTS = {
    "WRONG": FOUND, "OUTVOTED": FOUND, "differs": FOUND, "NaN": FOUND, "Inf": FOUND, "damaged": FOUND, "error": FOUND,
    "failed": FOUND, "outvoted": FOUND, "agrees": FINE, "identical": FINE, "ok": FINE, "equal": FINE, "not": INCOMPLETE,
    "no": INCOMPLETE, "missing": INCOMPLETE, "far": INCOMPLETE, "zero": INCOMPLETE,
}  # fmt: skip


_NAN, _INF, _ZERO, _OK, _UNSET = messages("NaN", "Inf", "zero", "ok", "unset")


def value_verdict(numbers: Statistics | StatisticRow | None, is_unset: bool = False) -> str:
    """What is worst about the values of a tensor: "NaN", "Inf", "zero" (all of them), else "ok"; "-": not known.

    is_unset  "unset": no operator has written them
    """
    if is_unset:
        return _UNSET
    nan, inf = (None, None) if numbers is None else (numbers.holds_nan, numbers.holds_inf)
    if nan:
        return _NAN
    if inf:
        return _INF
    if numbers is None or nan is None or inf is None:
        return "-"
    return _ZERO if numbers.count and numbers.zero == numbers.count else _OK


def verdict_style(verdict: str | int) -> str:
    """Rich's style of a verdict: of a cell by its first word, of an answer by the exit status that comes with it."""
    status = verdict if isinstance(verdict, int) else _VERDICTS.get(verdict.split(" ")[0].rstrip(":"))
    return "" if status is None else _STYLES.get(status, "")


def _printable_columns(rows: Sequence[Sequence[str]], keeps: str) -> list[Sequence[str]]:
    """Most columns need no escapes, which one test of all their cells shows."""
    return [_printable_column(column, keeps) for column in zip(*rows, strict=True)]


def _printable_column(cells: Sequence[str], keeps: str) -> Sequence[str]:
    text = "".join(cells)
    return cells if is_printable(text, keeps) and ":/" not in text else [printable(cell, keeps) for cell in cells]


@contextmanager
def progress_bar(
    label: str, stream: TextIO, is_quiet: bool = False, unit: str = BYTES
) -> Iterator[Callable[[int, int], None]]:
    """A function that takes (done, in all) and shows on a terminal how far that is, at which rate, and what remains.

    unit  BYTES, FILES or RANKS
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
    from rich.text import Text

    try:
        Console(file=stream).print(picture, soft_wrap=isinstance(picture, Text), highlight=False)
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
