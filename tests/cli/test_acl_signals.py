"""What a dump through ACL leaves when the process is told to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from tests.frontends.acl.scripts import everything, files, small_model

ROOT = Path(__file__).resolve().parents[2]
FILES = ("Add.add", "Data.x", "Relu.relu")

# A slow disk: most of the dump still waits when the signal comes.
SLOW = """
import time
import numpy as np
import msdump.acl
from msdump.formats.atomic import Folder

write = Folder.write
def slow(*arguments, **options):
    time.sleep(0.02)
    return write(*arguments, **options)
Folder.write = slow

dump = msdump.acl.dump("acl.json")
dump.__enter__()
model = msdump.acl.load("net.onnx")
for _ in range(8):
    model(np.zeros((2, 3), np.float32))
print("ready", flush=True)
time.sleep(60)
"""


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    small_model(folder)
    everything(folder)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            # One that no signal ended would fill the disk.
            process.kill()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_what_waits_is_written(tmp_path: Path, number: signal.Signals, status: int) -> None:
    with started(tmp_path, "-c", SLOW) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == status, errors
    assert files(tmp_path) == sorted(FILES * 8)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_acl_run_says_what_is_there(tmp_path: Path, number: signal.Signals, status: int) -> None:
    endless = ("acl", "run", "net.onnx", "--random", "0", "--dump", "acl.json", "--times", "9999999")
    with started(tmp_path, "-m", "msdump", *endless) as process:
        deadline = time.monotonic() + 60
        while len(files(tmp_path)) < 10 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == status, errors
    folders = sorted((tmp_path / "out").glob("*/0/net/1/*"), key=lambda path: int(path.name))
    assert len(folders) > 3
    # The run that was cut short may have fewer.
    assert all(len(list(folder.iterdir())) == len(FILES) for folder in folders[:-1])
    assert "ACL dump" in errors and "Traceback" not in errors
    # Beside how it was made.
    dumped = [name for name in files(tmp_path) if name != "command.json"]
    assert f"{len(dumped)} files" in errors
