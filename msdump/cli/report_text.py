"""The report at the end of a run: what was configured, observed and written, and its cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from msdump.cli.main import DUMP_FAILED, NOTHING_DUMPED
from msdump.cli.printing import LINE_ENDS, draw, is_terminal, plain_table, print_table, printable, put
from msdump.config.environment import format_size

if TYPE_CHECKING:
    from msdump.process.report import Report


def format_count(count: int, singular: str) -> str:
    return f"{count} {singular}" if count == 1 else f"{count} {singular}s"


def report_rows(report: Report) -> list[tuple[str, str]]:
    """The report as (label, text), in reading order. Rows that would say nothing are left out."""
    rows = [("folder", report.path)]
    if report.iterations_run or report.kind.title:
        asked = f", asked for {report.iterations_asked}" if report.iterations_asked else ""
        rows.append(("iterations", f"{report.iterations_dumped} of {report.iterations_run} dumped{asked}"))
    if report.kind.title:
        files, links = format_count(report.files, "file"), format_count(report.links, "link")
        on_disk, named = format_size(report.bytes_written), format_size(report.bytes_named)
        rows += [
            ("operators", f"{report.operators_selected} selected of {report.operators_seen} seen"),
            ("tensors", f"{report.tensors_written} written as {files} and {links}"),
            ("bytes", f"{on_disk} on disk for {named} of tensors"),
        ]
    if report.skipped:
        rows.append(("skipped", ", ".join(f"{count} {reason}" for reason, count in sorted(report.skipped.items()))))
    if report.overflows is not None:
        rows.append(("overflow", "no operator overflowed or raised" if not report.overflows else report.overflows[0]))
        if len(report.overflows) > 1:
            rows.append(("", f"first of {len(report.overflows)}; each is logged where it happened"))
    if report.run_seconds > 0:
        share = 100 * report.dump_seconds / report.run_seconds
        rows.append(
            ("time", f"{report.dump_seconds:.2f} s of {report.run_seconds:.2f} s went into the dump ({share:.0f} %)")
        )
    rows += [("outside", line) for line in report.outside]
    rows += [("not matched", name) for name in report.unmatched]
    if report.error:
        lost = f"{format_count(report.lost, report.kind.item)} lost. " if report.lost else ""
        rows.append(("error", f"{lost}{report.error}"))
    return rows


def _title(report: Report) -> str:
    kind = report.kind
    size = format_size(report.bytes_written)
    links = f" and {format_count(report.links, 'link')}" if report.links else ""
    return kind.title or f"{kind.name}: {format_count(report.files, 'file')}{links}, {size}"


def plain_text(report: Report) -> str:
    """The report as aligned lines."""
    return plain_table((), report_rows(report), heading=_title(report), keeps=LINE_ENDS)


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
    status = 0
    for kind in dict.fromkeys(report.kind for report in reports):
        mine = [report for report in reports if report.kind == kind]
        if any(report.failure for report in mine):
            count = sum(report.lost for report in mine)
            lost = f", {format_count(count, kind.item)} lost" if count else ""
            print_warning(f"The {kind.name} is not complete{lost}. {kind.goes_on} went on.", stream)
            status = DUMP_FAILED
        elif all(report.is_empty for report in mine) and not may_be_empty:
            lines = [f"Nothing was dumped: {kind.nothing}."]
            for report in mine:
                lines += [*report.advice, *(f"Never matched: {name}" for name in report.unmatched)]
            print_warning("\n".join(lines), stream)
            status = status or NOTHING_DUMPED
    return status


def print_warning(message: str, stream: TextIO) -> None:
    """A warning, framed and red on a terminal."""
    if not is_terminal(stream):
        lines = [f"!! {line}" for line in message.splitlines()]
        put("\n".join(["", *lines, ""]), stream)
        return
    from rich.panel import Panel
    from rich.text import Text

    draw(Panel(Text(printable(message, LINE_ENDS)), title="msdump", border_style="bold red"), stream)
