"""Reports of other processes: what arrives, and what a damaged or late one does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from msdump.process.report import VARIABLE, ChildReport, Inbox, Outbox, Report, is_child


def as_child(patch: pytest.MonkeyPatch) -> Path:
    """Let this process be a child of the one that opened the inbox; the folder of the inbox."""
    owner, folder = os.environ[VARIABLE].split(":", 1)
    patch.setenv(VARIABLE, f"{int(owner) + 1}:{folder}")
    return Path(folder)


def test_a_dump_is_unfinished_until_it_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    with Inbox() as inbox:
        assert not is_child() and inbox.read() == []
        folder = as_child(monkeypatch)
        assert is_child()
        outbox, other = Outbox("/one"), Outbox("/two")
        unfinished = inbox.read()
        assert [report.path for report in unfinished] == ["/one", "/two"]
        assert all(report.error and report.process_id == os.getpid() for report in unfinished)
        outbox.finish(Report("/one", tensors_written=3))
        other.finish(Report("/two", error="the disk is full"))
        assert inbox.read() == [
            ChildReport(os.getpid(), "/one", 3, False, None),
            ChildReport(os.getpid(), "/two", 0, False, "the disk is full"),
        ]
        (folder / "damaged").write_text("{")
        (folder / "another").write_text('{"process_id": 1, "path": "p", "more": 2}')
        assert len(inbox.read()) == 2
    assert not folder.exists()
    outbox.finish(Report("/one", tensors_written=4))  # it is not read any more


def test_the_process_of_the_inbox_sends_nothing() -> None:
    with Inbox() as inbox:
        Outbox("/own").finish(Report("/own", tensors_written=1))
        assert inbox.read() == []
    assert VARIABLE not in os.environ
    Outbox("/own").finish(Report("/own", tensors_written=1))
