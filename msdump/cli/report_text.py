"""The end of a run in words: the wait for its writers, what was selected and seen, what lies on disk, what it cost."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from msdump.cli.exit_status import FINE, INCOMPLETE, NOTHING
from msdump.cli.printing import LINE_ENDS, draw, is_terminal, print_table, printable, put, say_next
from msdump.config.environment import format_size
from msdump.errors import shortened
from msdump.tables.messages import message

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from msdump.process.report import Report, StepTimes
    from msdump.process.sessions import Pool, PoolProgress

_COUNTED = re.compile(r"\b(?:tensor|operand)\b")


def format_count(count: int, singular: str) -> str:
    return f"{count} {singular}" if count == 1 else f"{count} {singular}s"


def _skipped(reason: str, count: int) -> str:
    """3 empty tensors"""
    return f"{count} {reason if count == 1 else re.sub(_COUNTED, lambda match: f'{match[0]}s', reason, count=1)}"


def report_rows(report: Report) -> list[tuple[str, str]]:
    """The report as (label, text), in reading order. Rows that would say nothing are left out."""
    rows = [("folder", report.path)]
    if report.iterations_run or report.kind.title:
        asked = f", asked for {report.iterations_asked}" if report.iterations_asked else ""
        rows.append(("iterations", f"{report.iterations_dumped} of {report.iterations_run} dumped{asked}"))
    if report.training:
        rows.append(("training", report.training))
    if report.kind.title:
        files, links = format_count(report.files, "file"), format_count(report.links, "link")
        on_disk, named = format_size(report.bytes_written), format_size(report.bytes_named)
        rows += [
            ("operators", f"{report.operators_selected} selected of {report.operators_seen} seen{_unseen(report)}"),
            ("tensors", f"{report.tensors_written} written as {files} and {links}"),
            ("bytes", f"{on_disk} on disk" + (f" for {named} of tensors" if report.links else "")),
        ]
    if report.skipped:
        rows.append(("skipped", ", ".join(_skipped(*item) for item in sorted(report.skipped.items()))))
    if report.overflows is not None:
        rows.append(("overflow", "no operator overflowed or raised" if not report.overflows else report.overflows[0]))
        if len(report.overflows) > 1:
            rows.append(("", f"first of {len(report.overflows)}; each is logged where it happened"))
    if report.steps is not None:
        rows.append(("time", _times(report.steps)))
    elif report.run_seconds > 0:
        share = 100 * report.dump_seconds / report.run_seconds
        rows.append(
            ("time", f"{report.dump_seconds:.2f} s of {report.run_seconds:.2f} s went into the dump ({share:.0f} %)")
        )
    rows += [("note", line) for line in report.notes]
    rows += [("outside", line) for line in report.outside]
    rows += [("not matched", name) for name in shortened(report.unmatched)]
    if report.error:
        lost = f"{format_count(report.lost, report.kind.item)} lost. " if report.lost else ""
        rows.append(("error", f"{lost}{report.error}"))
    return rows


def _times(steps: StepTimes) -> str:
    share = 100 * steps.own_seconds / steps.seconds
    text = (
        f"{share:.0f} % of a dumped step is msdump's: {steps.own_seconds:.2f} s of {steps.seconds:.2f} s "
        f"in {format_count(steps.count, 'step')}"
    )
    if steps.plain:
        times = steps.usual / steps.plain
        text += f"; it takes {times:.3g} times as long as a plain step of this run ({1e3 * steps.plain:.3g} ms)"
    return f"{text}; {steps.advice}" if steps.advice else text


def _unseen(report: Report) -> str:
    """What "seen" leaves out: operators that another one runs by itself."""
    inside = (f"{format_count(count, 'operator')} inside of {op_type}" for op_type, count in report.unseen.items())
    text = ", ".join(inside)
    return f"; {text} not looked at" if text else ""


def _title(report: Report) -> str:
    kind = report.kind
    size = format_size(report.bytes_written)
    links = f" and {format_count(report.links, 'link')}" if report.links else ""
    return kind.title or f"{kind.name}: {format_count(report.files, 'file')}{links}, {size}"


def print_report(report: Report, stream: TextIO) -> None:
    """Write the report: a table on a terminal, plain lines anywhere else."""
    rows = report_rows(report)
    styles = {number: "red" for number, (label, _) in enumerate(rows) if label in ("error", "not matched")}
    print_table((), rows, stream, heading=_title(report), keeps=LINE_ENDS, styles=styles)


def conclude(reports: Sequence[Report], may_be_empty: bool, stream: TextIO) -> int:
    """The exit status that reports give a command, and a warning where it is not 0.

    4 when a dump is not complete, else 3 when all dumps of one kind chose nothing, else 0.
    may_be_empty   nothing need be dumped here: other processes dump
    """
    status = FINE
    for kind in dict.fromkeys(report.kind for report in reports):
        mine = [report for report in reports if report.kind == kind]
        if any(report.failure for report in mine):
            count = sum(report.lost for report in mine)
            lost = f", {format_count(count, kind.item)} lost" if count else ""
            print_warning(f"The {kind.name} is not complete{lost}. {kind.goes_on} went on.", stream)
            status = INCOMPLETE
        elif all(report.is_empty for report in mine) and not may_be_empty:
            lines = [f"Nothing was dumped: {kind.nothing}."]
            for report in mine:
                lines += [*report.advice, *(f"Never matched: {name}" for name in shortened(report.unmatched))]
            print_warning("\n".join(lines), stream)
            status = status or NOTHING
    return status


def say_next_of(reports: Sequence[Report], stream: TextIO) -> None:
    """The next commands for what lies on disk."""
    from msdump.analysis.find.hints import command_line, path_word

    paths = dict.fromkeys(report.path for report in reports if report.tensors_written)
    words = [path_word(path) for path in paths]
    steps = [(command_line("ls", word), message("what the dump holds")) for word in words[:1]]
    steps += [
        (command_line("nan", word), message("the first NaN or Inf, and the line that made it")) for word in words[:1]
    ]
    say_next(steps, stream)


def print_warning(message: str, stream: TextIO) -> None:
    """A warning, framed and red on a terminal."""
    if not is_terminal(stream):
        lines = [f"!! {line}" for line in message.splitlines()]
        put("\n".join(["", *lines, ""]), stream)
        return
    from rich.panel import Panel
    from rich.text import Text

    draw(Panel(Text(printable(message, LINE_ENDS)), title="msdump", border_style="bold red"), stream)


_TICK_SECONDS = 0.2


def wait_for_writers(pool: Pool, stream: TextIO) -> bool:
    """Wait until everything is written; on a terminal with a progress line, elsewhere with one line that says so.

    False: Ctrl-C. Files that threads are in the middle of become whole, the others are counted as lost.
    """
    try:
        if not pool.drain(_TICK_SECONDS):
            _wait(pool, stream)
    except KeyboardInterrupt:
        pool.give_up()
        return False
    return True


def _wait(pool: Pool, stream: TextIO) -> None:
    if not is_terminal(stream):
        state = pool.state()
        waiting, written = format_size(state.queued_bytes), format_size(state.written_bytes)
        text = f"msdump: the script has ended; {waiting} still wait to be written, {written} are."
        put(text, stream, flush=True)
        pool.drain()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("writing"), BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(file=stream), transient=True) as progress:
        _follow(pool, progress, progress.add_task(""))


def _follow(pool: Pool, progress: Progress, task: TaskID) -> None:
    """Show how far the writers are, until they are done."""
    first, started = pool.state().written_bytes, time.perf_counter()
    is_done = False
    while not is_done:
        is_done = pool.drain(_TICK_SECONDS)
        state = pool.state()
        done = state.written_bytes - first
        progress.update(
            task,
            completed=done,
            total=done + state.queued_bytes,
            description=describe(state, done / (time.perf_counter() - started)),
        )


def describe(state: PoolProgress, bytes_per_second: float) -> str:
    """One line: bytes that wait, bytes on disk, throughput."""
    return (
        f"{format_size(state.queued_bytes)} queued, {format_size(state.written_bytes)} written, "
        f"{format_size(round(bytes_per_second))}/s"
    )
