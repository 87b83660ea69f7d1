"""The asynchronous engine as a session wires it: folders, file kinds, memory, signals, the end of the process."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msdump.dumpers.staging import free_memory, staging_budget
from msdump.engine import opening
from msdump.engine.graphs import GraphSession
from msdump.errors import ConfigError, DumpError
from msdump.formats.bin import read_bin
from msdump.formats.npy_reader import read_npy
from msdump.formats.paths.acl import parse_async_path, parse_bin_file_name
from msdump.formats.paths.sync import parse_data_file_name
from msdump.formats.statistic_csv import read_statistic_csv
from msdump.mindspore.program.executor import Executor
from msdump.process import sessions
from tests.dumpers.test_sync import _small_graph

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(tmp_path / "dump.json"))
    sessions.reset_for_tests()
    yield tmp_path
    sessions.reset_for_tests()


def configure(folder: Path, **changes: Any) -> None:
    common = {
        "dump_mode": 0, "path": str(folder / "dump"), "net_name": "Net", "iteration": "0|2", "saved_data": "tensor",
        "input_output": 0, "kernels": [], "support_device": [0], "op_debug_mode": 0, "file_format": "npy",
    }  # fmt: skip
    (folder / "dump.json").write_text(json.dumps({"common_dump_settings": {**common, **changes}}))


def train(folder: Path, steps: int = 3, device_id: int = 0) -> GraphSession:
    opened = opening.open_mindspore("CPU", device_id)
    assert opened is not None
    executor = Executor(_small_graph(), opened.observers)
    for _ in range(steps):
        executor.run([np.ones(3, np.float32)], opened.next_iteration())
    opened.close()
    return opened


def files(folder: Path) -> dict[str, Path]:
    """Every file below the dump's path by its path without the time, which is checked."""
    found = {}
    for path in (folder / "dump").rglob("*"):
        if path.is_file():
            relative = path.relative_to(folder / "dump").as_posix()
            place = parse_async_path(relative)
            assert place is not None, relative
            found[relative.removeprefix(place.time)] = path
    return found


def test_npy_tree(folder: Path) -> None:
    configure(folder, saved_data="full")
    opened = train(folder, device_id=0)
    found = files(folder)
    names = {re.sub(r"\d{16}", "*", name) for name in found}
    operators = {
        f"/0/kernel_graph_0/0/{step}/Neg.Neg-op{op}.{op}.0.*.{io}.0.ND.npy"
        for step in (0, 2) for op in range(3) for io in ("input", "output")
    }  # fmt: skip
    parameters = {f"/0/kernel_graph_0/0/{step}/Parameter.x.0.0.*.output.0.ND.npy" for step in (0, 2)}
    tables = {f"/0/kernel_graph_0/0/{step}/statistic.csv" for step in (0, 2)}
    assert names == operators | parameters | tables
    for path in found.values():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        if path.suffix == ".npy":
            name = parse_data_file_name(path.name)
            assert name is not None
            is_negative = name.op_type == "Neg" and (name.slot + name.task_id + (name.io == "output")) % 2
            assert read_npy(path).tolist() == [-1.0 if is_negative else 1.0] * 3
        else:
            assert len(read_statistic_csv(path)) == 7
    report = opened.report()
    assert (report.tensors_written, report.lost, report.error) == (14, 0, None)
    assert (report.files, report.links) == (8 + 2, 6)
    assert report.iterations_dumped == 2


def test_bin_tree(folder: Path) -> None:
    configure(folder, file_format="bin")
    train(folder)
    found = files(folder)
    assert {Path(name).parent.as_posix() for name in found} == {f"/0/kernel_graph_0/0/{step}" for step in (0, 2)}
    assert len(found) == 2 * 4
    for path in found.values():
        name, read = parse_bin_file_name(path.name), read_bin(path)
        assert name is not None
        assert [tensor.io for tensor in read.tensors] == ["input", "output"][name.op_type == "Parameter" :]
        assert name.op_name == re.sub("[^A-Za-z0-9_-]", "_", read.op_name)
        assert name.timestamp_us == read.dump_time_us
        assert {tensor.format for tensor in read.tensors} == {"ND"}


def test_statistics_alone(folder: Path) -> None:
    configure(folder, saved_data="statistic", statistic_category=["max", "l2norm"])
    train(folder)
    found = files(folder)
    assert {Path(name).name for name in found} == {"statistic.csv"}
    for path in found.values():
        rows = read_statistic_csv(path)
        assert [row.max for row in rows] == [1.0, -1.0, -1.0, 1.0, 1.0, -1.0, 1.0]
        assert all(row.md5 is None for row in rows)


def test_statistics_need_npy(folder: Path) -> None:
    configure(folder, saved_data="full", file_format="bin")
    with pytest.raises(ConfigError, match="file_format"):
        opening.open_mindspore("CPU", 0)


def test_a_folder_that_cannot_be_made_is_said_at_once(folder: Path) -> None:
    (folder / "dump").write_text("in the way")
    configure(folder)
    with pytest.raises(DumpError, match="expected a folder that can be made, got none: it is a file"):
        opening.open_mindspore("CPU", 0)


def test_a_folder_that_vanishes_stops_the_dump_not_the_training(folder: Path) -> None:
    configure(folder, iteration="all")
    opened = opening.open_mindspore("CPU", 0)
    assert opened is not None
    assert opened.pool is not None
    executor = Executor(_small_graph(), opened.observers)
    executor.run([np.ones(3, np.float32)], opened.next_iteration())
    assert opened.pool.drain(60)
    (root,) = (folder / "dump").iterdir()
    root.rename(folder / "moved")
    root.write_text("in the way")
    result = executor.run([np.ones(3, np.float32)], opened.next_iteration())
    assert result[0].tolist() == [-1.0] * 3
    with pytest.raises(DumpError, match=r"7 tensors of the step that failed are missing.*expected"):
        opened.close()
    assert opened.report().lost == 7
    assert opened.report().tensors_written == 7


def test_a_folder_that_is_removed_is_not_made_again(folder: Path) -> None:
    configure(folder, iteration="all")
    opened = opening.open_mindspore("CPU", 0)
    assert opened is not None
    assert opened.pool is not None
    executor = Executor(_small_graph(), opened.observers)
    executor.run([np.ones(3, np.float32)], opened.next_iteration())
    assert opened.pool.drain(60)
    (root,) = (folder / "dump").iterdir()
    root.rename(folder / "moved")
    executor.run([np.ones(3, np.float32)], opened.next_iteration())
    with pytest.raises(DumpError, match="it was removed or renamed"):
        opened.close()
    assert not root.exists()
    assert (opened.report().iterations_run, opened.report().iterations_dumped, opened.report().lost) == (2, 1, 7)


def test_runs_in_the_same_second_keep_apart(folder: Path) -> None:
    """Their names differ by their time only, and two processes may well write the same one."""
    configure(folder, iteration="0")
    for _ in range(3):
        train(folder, 1)
        sessions.reset_for_tests()
    times = sorted((folder / "dump").iterdir())
    assert len(times) == 3
    assert {len(list(time.rglob("*.npy"))) for time in times} == {7}
    train(folder, 1, device_id=5)
    assert len([*(folder / "dump").glob("*/5")]) == 1


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("4096", 4096),
        ("3K", 3 << 10),
        ("512M", 512 << 20),
        ("2G", 2 << 30),
        ("1GiB", 1 << 30),
        (" 2 mb ", 2 << 20),
    ],
)
def test_budget(text: str, size: int) -> None:
    assert staging_budget({"MSDUMP_ASYNC_BUFFER": text}) == size


def test_default_budget() -> None:
    assert 0 < staging_budget({}) <= min(2 << 30, free_memory())


@pytest.mark.parametrize("text", ["0", "-1", "1.5G", "lots", "2P", "1" * 19, "0x10"])
def test_a_wrong_budget_is_a_configuration_error(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    configure(folder)
    monkeypatch.setenv("MSDUMP_ASYNC_BUFFER", text)
    with pytest.raises(ConfigError, match="MSDUMP_ASYNC_BUFFER: expected a size of at least 1 bytes such as 512M"):
        opening.open_mindspore("CPU", 0)
    assert not (folder / "dump").exists()


@pytest.mark.parametrize("size", ["1", "64M"])
def test_any_budget_leaves_the_same_files(folder: Path, monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    configure(folder)
    monkeypatch.setenv("MSDUMP_ASYNC_BUFFER", size)
    assert train(folder).report().files == 8


def test_sigterm_is_taken_only_where_nobody_handles_it(folder: Path) -> None:
    configure(folder)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        train(folder)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sessions.reset_for_tests()
    train(folder)
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    sessions.reset_for_tests()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


# -- the end of the process --------------------------------------------------------------------------------------

# A slow disk: nothing is written before all is dumped, and then every file takes a moment, so that most of the dump
# still waits when the script ends, however busy the machine is.
SLOW = """
import os, sys, threading, time
import numpy as np
from msdump.engine import opening
from msdump.process import sessions
from msdump.engine.graphs import GraphSession
from msdump.formats.atomic import Folder
from msdump.mindspore.program.executor import Executor
from tests.dumpers.test_sync import _small_graph

write, all_dumped = Folder.write, threading.Event()
def slow(*arguments, **options):
    all_dumped.wait()
    time.sleep(0.02)
    return write(*arguments, **options)
Folder.write = slow

opened = opening.open_mindspore("CPU", 0)
executor = Executor(_small_graph(), opened.observers)
for number in range(8):
    executor.run([np.full(3, number, np.float32)], opened.next_iteration())
waiting = opened.pool.state().queued_jobs
all_dumped.set()
print("waiting", waiting, flush=True)
"""
ENDINGS = {
    "normal": ("", 0),
    "exception": ("raise ValueError('the script fails')", 1),
    "exit": ("sys.exit(3)", 3),
    "terminated": ("time.sleep(60)", 143),
    "interrupted": ("time.sleep(60)", -signal.SIGINT),
    "forked": ("if os.fork() == 0: sys.exit(5)\nos.wait()", 0),
}


@pytest.mark.parametrize("ending", list(ENDINGS))
def test_whatever_ends_the_process_everything_is_written(folder: Path, ending: str) -> None:
    configure(folder, iteration="all", saved_data="full")
    code, status = ENDINGS[ending]
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SLOW + code], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline().split()
    assert line[0] == "waiting"
    assert int(line[1]) > 20
    if ending in ("terminated", "interrupted"):
        process.send_signal(signal.SIGTERM if ending == "terminated" else signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == status, errors
    found = files(folder)
    assert len(found) == 8 * 8
    for name, path in found.items():
        if path.suffix == ".npy":
            number = float(name.split("/")[4])
            assert set(np.abs(read_npy(path)).tolist()) == {number}
        else:
            assert len(read_statistic_csv(path)) == 7


FORK = """
import multiprocessing, sys
import numpy as np
from msdump.engine import opening
from msdump.process import sessions
from msdump.engine.graphs import GraphSession
from msdump.mindspore.program.executor import Executor
from tests.dumpers.test_sync import _small_graph

opened = opening.open_mindspore("CPU", 0) if sys.argv[1] == "late" else None
inherited = opened and Executor(_small_graph(), opened.observers)

def child():
    global opened
    opened = opened or opening.open_mindspore("CPU", 0)
    executor = inherited or Executor(_small_graph(), opened.observers)
    for _ in range(3):
        assert executor.run([np.ones(3, np.float32)], opened.next_iteration())[0].tolist() == [-1.0] * 3

process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join(60)
print(process.exitcode)
process.kill()
"""


@pytest.mark.parametrize("engine", ["sync", "async"])
@pytest.mark.parametrize(("moment", "count"), [("late", 0), ("early", 14)])
def test_a_forked_process_dumps_whole_or_not_at_all(folder: Path, engine: str, moment: str, count: int) -> None:
    """Late: its threads and files are the parent's. Early: it ends as multiprocessing lets it, without atexit."""
    configure(folder)
    content = json.loads((folder / "dump.json").read_text())
    content["e2e_dump_settings"] = {"enable": engine == "sync", "trans_flag": True}
    (folder / "dump.json").write_text(json.dumps(content))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"}
    done = subprocess.run(
        [sys.executable, "-c", FORK, moment], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "0\n", done.stderr
    assert len(list((folder / "dump").rglob("*.npy"))) == count
    assert done.stderr.count("dumps nothing itself") == (moment == "late")


TERMINATED_CHILD = """
# Python forgets a signal that reaches the child before it has put itself in order after the fork: wait until it has.
ready, is_ready = os.pipe()
child = os.fork()
if not child:
    os.write(is_ready, b"1")
    time.sleep(60)
    os._exit(1)
os.read(ready, 1)
os.kill(child, signal.SIGTERM)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_a_forked_child_dies_of_sigterm_as_one_without_a_dump(folder: Path) -> None:
    """It must not end as its parent would: that has a dump to finish, and its exit status says so."""
    configure(folder, iteration="all")
    code = "import signal\n" + SLOW + TERMINATED_CHILD
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code], cwd=ROOT, text=True, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"child {-signal.SIGTERM}" in done.stdout
    assert len(files(folder)) == 8 * 7
