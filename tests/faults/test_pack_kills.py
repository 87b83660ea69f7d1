"""SIGKILL at any moment while a pack is written: all members that are there are whole, for stock tar too."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from msdump.formats.dump_dir import DumpDir
from msdump.formats.pack_recovery import recover_tree

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
        process.stdout.readline()
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
