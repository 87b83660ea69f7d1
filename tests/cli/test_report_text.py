"""The report of a run: every number is in it, on a terminal and elsewhere."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from msdump.cli.report_text import describe, print_report, print_warning, report_rows, wait_for_writers
from msdump.dumpers.writer_pool import Job, PoolState, WriterPool
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


def plain(report: Report) -> str:
    stream = io.StringIO()
    print_report(report, stream)
    return stream.getvalue()


def test_plain_report_says_everything() -> None:
    text = plain(REPORT)
    for part in ("/data/[dump]", "0|5-8", "5 of 9", "19", "57", "233", "83 files", "150 links", "1 GiB", "3 GiB"):
        assert part in text
    assert "3 empty, 2 string" in text
    assert "1.50 s of 6.00 s" in text
    assert "25 %" in text
    assert "\x1b" not in text
    assert "training" not in text
    steps = "iterations per optimizer step: 2 for each step of SGD"
    assert re.search(rf"training +{steps}", plain(replace(REPORT, training=steps)))


def test_terminal_shows_the_same_words() -> None:
    stream = Terminal()
    print_report(REPORT, stream)
    shown = " ".join(stream.getvalue().split())
    for _, text in report_rows(REPORT):
        assert text.split()[0] in shown


def test_trouble_is_in_the_report() -> None:
    report = replace(REPORT, unmatched=("Cov2D",), error="No space left on device", lost=4)
    text = plain(report)
    assert "Cov2D" in text
    assert "No space left on device" in text
    assert "4 tensors lost" in text
    assert "lost" not in plain(replace(report, lost=0))


def test_operators_that_were_not_looked_at_are_beside_those_that_were() -> None:
    assert "not looked at" not in plain(REPORT)
    text = plain(replace(REPORT, unseen={"If": 12, "Loop": 1}))
    assert "seen; 12 operators inside of If, 1 operator inside of Loop not looked at" in text


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_warning_keeps_brackets(stream: io.StringIO) -> None:
    print_warning("first [bold] line\nsecond line", stream)
    assert "first [bold] line" in stream.getvalue()
    assert "second line" in stream.getvalue()


def slow_pool(seconds: float, jobs: int = 4) -> WriterPool:
    """A pool whose jobs take that long together."""
    pool = WriterPool(1)
    never = threading.Event()

    def write() -> None:
        never.wait(seconds / jobs)

    for _ in range(jobs):
        pool.submit(Job(1 << 20, 3, write))
    return pool


def test_nothing_is_said_when_nothing_waits() -> None:
    pool, stream = WriterPool(1), Terminal()
    assert wait_for_writers(pool, stream)
    assert stream.getvalue() == ""
    pool.close()


def test_one_plain_line_where_nobody_sees_progress() -> None:
    pool, stream = slow_pool(0.8), io.StringIO()
    assert wait_for_writers(pool, stream)
    assert re.fullmatch(
        r"msdump: the script has ended; [34] MiB still wait to be written, (0 B|1 MiB) are\.\n", stream.getvalue()
    )
    assert pool.state().written_records == 12
    pool.close()


def test_a_progress_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    pool, stream = slow_pool(1.0), Terminal()
    assert wait_for_writers(pool, stream)
    assert pool.state().queued_bytes == 0
    assert re.search(r"writing.* queued, .* written, .*/s", stream.getvalue())
    pool.close()


def test_the_line_names_bytes_and_throughput() -> None:
    assert describe(PoolState(3, 3 << 20, 5 << 20, 7, 0), 2.5 * 2**20) == "3 MiB queued, 5 MiB written, 2.5 MiB/s"


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["terminal", "pipe"])
def test_ctrl_c_gives_up_what_waits(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = slow_pool(2.0)
    drain, calls = pool.drain, iter(range(10))

    def interrupted(timeout: float | None = None) -> bool:
        if next(calls) == 1:
            raise KeyboardInterrupt
        return drain(timeout)

    monkeypatch.setattr(pool, "drain", interrupted)
    assert not wait_for_writers(pool, stream)
    pool.close()
    state = pool.state()
    assert (state.queued_jobs, state.queued_bytes) == (0, 0)
    assert 0 < state.lost_records <= 9
    assert state.written_records + state.lost_records == 12
    pool.submit(Job(1, 5, lambda: None))
    assert pool.state().lost_records == state.lost_records + 5


SCRIPT = """
import time
import numpy as np
import mindspore as ms
from mindspore import nn
from msdump.formats.atomic import Folder

write = Folder.write
def slow(*arguments, **options):
    time.sleep(0.5)
    return write(*arguments, **options)
Folder.write = slow

ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
net = nn.SequentialCell([nn.ReLU(), nn.Tanh(), nn.Sigmoid()])
for step in range(12):
    net(ms.Tensor(np.full(3, step, np.float32)))
"""


@pytest.mark.usefixtures("needs_mindspore")
def test_ctrl_c_while_a_run_waits_for_its_writers(tmp_path: Path) -> None:
    common = {
        "dump_mode": 0, "path": str(tmp_path / "dump"), "net_name": "Net", "iteration": "all", "saved_data": "tensor",
        "input_output": 0, "kernels": [], "support_device": [0], "op_debug_mode": 0, "file_format": "npy",
    }  # fmt: skip
    (tmp_path / "dump.json").write_text(json.dumps({"common_dump_settings": common}))
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "msdump", "run", "--config", "dump.json", "train.py"]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "the script has ended" not in (line := process.stderr.readline()):
            assert line, "the run ended without waiting"
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
        assert process.wait(60) == 130, errors
    assert re.search(r"!! Interrupted: \d+ tensors not written\. Every file on disk is whole\.", errors)
    files = list((tmp_path / "dump").rglob("*.npy"))
    assert 0 < len(files) < 12 * 5
    assert not [path for path in (tmp_path / "dump").rglob("*") if path.is_file() and path.suffix != ".npy"]
    for path in files:
        assert np.load(path).shape == (3,)
