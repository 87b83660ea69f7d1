"""SIGKILL at any moment while a pack is written, made, taken apart or mended: all members that are there are whole, for
stock tar too, nothing is lost, and the same command again leaves what it leaves undisturbed."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from msdump.formats.dump_dir import DumpDir
from msdump.formats.npy import NpyWriter
from msdump.formats.pack import Packs
from msdump.formats.pack_recovery import recover_tree
from msdump.formats.pack_tree import pack_tree
from msdump.formats.paths.sync import SyncPaths
from msdump.tensors.records import TensorRecord
from tests.contracts.writer_contract import record
from tests.faults.conftest import Servers
from tests.faults.runs import temporary_files
from tests.faults.test_kills import moments

_KILLED = """
    import sys, numpy as np
    from pathlib import Path
    from msdump.formats.pack import Packs
    from msdump.formats.npy import NpyWriter
    from tests.contracts.writer_contract import by_iteration, record
    root = Path(sys.argv[1])
    packs = Packs(by_iteration(root), 0o400)
    writer = NpyWriter(by_iteration(root), open_folder=packs.open)
    print("ready", flush=True)
    for number in range(1000000):
        item = record(number, data=np.full(1 + number * 7919 % 60000, number, np.float32))
        packs.write([item]); writer.write([item])
"""


@pytest.mark.slow
def test_a_killed_writer_leaves_whole_members(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """200 of them with `--kills 200`; each costs the start of a process."""
    rng = random.Random(pytestconfig.getoption("faults_seed"))
    for number in range(pytestconfig.getoption("kills")):
        folder = tmp_path / str(number)
        folder.mkdir()
        command = [sys.executable, "-c", textwrap.dedent(_KILLED), folder]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.random() / 10)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        for part in folder.rglob("*.tar.part"):
            _check(folder, part)


def _check(folder: Path, part: Path) -> None:
    """What was written holds its own number throughout, and nothing between two members is missing."""

    def numbers() -> list[int]:
        arrays = [tensor.load() for tensor in DumpDir.open(folder, strict=True).tensors()]
        assert all((one == one[0]).all() for one in arrays)
        return sorted(int(one[0]) for one in arrays)

    found = numbers()
    assert found == list(range(len(found)))
    listed = subprocess.run(["tar", "tf", part], capture_output=True, text=True, check=False).stdout.split("\n")
    # tar lists a last member whose data is cut as well.
    assert 0 <= len(list(filter(None, listed))) - len(found) <= 1
    if found:
        list(recover_tree(folder))
        assert numbers() == found


# -- commands ----------------------------------------------------------------------------------------------------------

_LONG = "a" * 200 + "b" * 100


def _paths(root: Path) -> Callable[[TensorRecord], Path]:
    paths = SyncPaths(root, 0, "Net")
    return lambda one: paths.data_dir(one.graph_id, one.iteration)


def _folders(root: Path) -> None:
    """Three iterations: links, a name that is too long for a file, a table."""
    writer = NpyWriter(_paths(root))
    for number in range(18):
        name = _LONG if number % 6 == 5 else f"Net/op{number}"
        data = np.full(1 + number * 7919 % 3000, number, np.float32)
        writer.write([record(number, iteration=number // 6, op_name=name, data=data)])
    writer.close()
    for folder in sorted({path.parent for path in root.rglob("*.npy")}):
        names = sorted(path.name for path in folder.glob("*.npy"))
        (folder / f"link.{names[0]}").hardlink_to(folder / names[0])
        (folder / "statistic.csv").write_text(f"a,b\n{folder.name},2\n{folder.name},3\n")


def _packs(root: Path) -> None:
    _folders(root)
    list(pack_tree(root))


def _damaged(root: Path) -> None:
    """A pack without its end, one whose last member is cut, and one of a killed writer whose name is taken."""
    _packs(root)
    first, second, third = sorted(root.rglob("*.tar"))
    data = first.read_bytes()
    first.write_bytes(data[: data.rindex(b"0/.msdump/index.json")])
    data = second.read_bytes()
    second.write_bytes(data[: data.rindex(b"1/.msdump/index.json") - 600])
    shutil.copy(third, third.with_name("2.tar.part"))
    packs = Packs(_paths(root), 0o400)
    writer = NpyWriter(_paths(root), open_folder=packs.open)
    packs.write([record(30, iteration=9)])
    writer.write([record(30, iteration=9)])
    packs.open(_paths(root)(record(30, iteration=9)))._append([b"x" * 512], 512, "end")


_STATES = {"pack": _folders, "unpack": _packs, "recover": _damaged}


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A dump before each command."""
    folders = {command: tmp_path_factory.mktemp(command) for command in _STATES}
    for command, make in _STATES.items():
        make(folders[command] / "dump")
    return folders


def _tensors(root: Path) -> set[tuple[str, int, bytes]]:
    """What a reader finds: every tensor with its iteration, however many times it is there."""
    opened = DumpDir.open(root)
    return {(one.op_name, one.iteration or 0, one.load().tobytes()) for one in opened.tensors()}


def _files(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder; of packs, which have the time in them, only that they are there."""
    return {
        path.relative_to(root).as_posix(): (path.stat().st_mode, b"" if ".tar" in path.name else path.read_bytes())
        for path in root.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("command", _STATES)
def test_a_killed_command_loses_nothing_and_leaves_nothing(
    command: str, states: dict[str, Path], servers: Servers, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """200 kills of each command with `--kills 200`; every fifth one kills the second try as well."""
    server = servers["mindspore"]
    rng = random.Random(f"{command} {pytestconfig.getoption('faults_seed')}")
    arguments = [command, "dump"]
    plain = tmp_path / "plain"
    _copy(states[command], plain)
    before = _tensors(states[command] / "dump")
    undisturbed = server.run_command(arguments, plain)
    calls = undisturbed.calls
    assert undisturbed.status in (0, 4) and len(calls) > 20, undisturbed.stderr
    assert _tensors(plain / "dump") == before
    for number in range(pytestconfig.getoption("kills")):
        folder = tmp_path / str(number)
        _copy(states[command], folder)
        faults = [moments(calls, rng) for _ in range(2 if number % 5 == 4 else 1)]
        for fault in faults:
            run = server.run_command(arguments, folder, fault)
            assert run.status in (-9, *((0, 3, 4) if fault is not faults[0] else ())), run.stderr
            assert _tensors(folder / "dump") == before, fault
        after = server.run_command(arguments, folder)
        assert after.status in (undisturbed.status, 0, 3), after.stderr
        assert _files(folder / "dump") == _files(plain / "dump"), fault
        assert temporary_files(folder) == []
        assert _tensors(folder / "dump") == before
        shutil.rmtree(folder)


def _copy(source: Path, target: Path) -> None:
    """With its links, which shutil does not know."""
    subprocess.run(["cp", "-a", source, target], check=True)
