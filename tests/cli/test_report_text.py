"""The report of a run: every number is in it, on a terminal and elsewhere."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from msdump.cli.report_text import plain_text, print_report, print_warning, report_rows
from msdump.process.report import Report

REPORT = Report(
    path="/data/[dump]",
    iterations_asked="0|5-8",
    iterations_run=9,
    iterations_dumped=5,
    operators_seen=57,
    operators_selected=19,
    tensors_written=233,
    files=83,
    links=150,
    bytes_named=3 * 1024**3,
    bytes_written=1024**3,
    skipped={"empty": 3, "string": 2},
    dump_seconds=1.5,
    run_seconds=6.0,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_report_says_everything() -> None:
    text = plain_text(REPORT)
    for part in ("/data/[dump]", "0|5-8", "5 of 9", "19", "57", "233", "83 files", "150 links", "1 GiB", "3 GiB"):
        assert part in text
    assert "3 empty, 2 string" in text
    assert "1.50 s of 6.00 s" in text
    assert "25 %" in text
    assert "\x1b" not in text


def test_terminal_shows_the_same_words() -> None:
    stream = Terminal()
    print_report(REPORT, stream)
    shown = " ".join(stream.getvalue().split())
    for _, text in report_rows(REPORT):
        assert text.split()[0] in shown


def test_trouble_is_in_the_report() -> None:
    report = replace(REPORT, unmatched=("Cov2D",), error="No space left on device", lost=4)
    text = plain_text(report)
    assert "Cov2D" in text
    assert "No space left on device" in text
    assert "4 tensors lost" in text
    assert "lost" not in plain_text(replace(report, lost=0))


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_warning_keeps_brackets(stream: io.StringIO) -> None:
    print_warning("first [bold] line\nsecond line", stream)
    assert "first [bold] line" in stream.getvalue()
    assert "second line" in stream.getvalue()
