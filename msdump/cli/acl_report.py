"""The end of an ACL dump in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from msdump.cli.report_text import format_bytes, format_count
from msdump.cli.tables import print_table

if TYPE_CHECKING:
    from msdump.acl_engine import AclReport


def acl_report_rows(report: AclReport) -> list[tuple[str, str]]:
    """The report as (label, text), in reading order. Rows that would say nothing are left out."""
    rows = [
        ("folder", report.path),
        ("runs", f"{report.iterations_dumped} of {report.iterations_run} dumped"),
        ("operators", f"{report.operators_selected} selected of {report.operators_seen} seen"),
        (
            "tensors",
            f"{report.tensors_written} in {format_count(report.files, 'file')}, {format_bytes(report.bytes_written)}",
        ),
    ]
    if report.skipped:
        rows.append(("skipped", ", ".join(f"{count} {reason}" for reason, count in sorted(report.skipped.items()))))
    if report.overflows is not None:
        rows.append(("overflow", ", ".join(report.overflows) or "no operator overflowed or raised"))
    if report.dump_seconds:
        rows.append(("time", f"{report.dump_seconds:.2f} s went into the dump"))
    if report.error:
        rows.append(("error", f"{format_count(report.lost, 'tensor')} lost. {report.error}"))
    return rows


def print_acl_report(report: AclReport, stream: TextIO) -> None:
    """Write the report: a table on a terminal, aligned lines anywhere else."""
    rows: Sequence[tuple[str, str]] = acl_report_rows(report)
    print_table(("ACL dump", ""), rows, stream)
