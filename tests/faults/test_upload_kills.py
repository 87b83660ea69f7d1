"""SIGKILL at any moment of an upload: objects of the store are whole, and the next upload leaves nothing behind."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from msdump.formats.dump_dir import DumpDir
from msdump.formats.pack_tree import pack_tree
from msdump.storage import remote
from msdump.storage.uploading import upload_tree
from tests.analysis.small_dump import write_dump
from tests.storage.small_s3 import SmallS3

_KILLED = """
    import sys
    import fsspec, obstore
    from msdump.storage import remote
    from msdump.storage.uploading import upload_tree
    remote._WHOLE_BYTES, remote._PART_BYTES = 6 << 20, 5 << 20
    print("ready", flush=True)
    sent = upload_tree(sys.argv[1], sys.argv[2])
    print("done", sent.failed, flush=True)
"""
# Large enough for an upload in parts.
_SIZES = (1, 1000, 50_000, 2_000_000)


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallS3]:
    pytest.importorskip("obstore")
    with SmallS3() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        remote.forget()
        monkeypatch.setattr(remote, "_PART_BYTES", 5 << 20)
        monkeypatch.setattr(remote, "_WHOLE_BYTES", 6 << 20)
        yield server
        remote.forget()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["s3", "local"])
def test_a_killed_upload_loses_nothing(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each round sends a run of the same names and sizes over the one before; 200 of them with `--kills 200`."""
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("fsspec")
    if kind == "s3":
        server: SmallS3 = request.getfixturevalue("s3")
        url = "s3://dump/job"
    else:
        url = "local://store/job"

    def held() -> dict[str, bytes]:
        if kind == "local":
            return _files(tmp_path / "store/job")
        return {name.removeprefix("job/"): one.content for name, one in list(server.objects.items())}

    option = request.config.getoption
    rng, killed = random.Random(option("faults_seed")), 0
    before: dict[str, bytes] = {}
    longest = 0.3
    for number in range(option("kills")):
        dump = tmp_path / f"dump{number % 2}"
        _write(dump, number)
        own = _files(dump)
        command = [sys.executable, "-c", textwrap.dedent(_KILLED), dump.name, url]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        began = time.monotonic()
        if number:
            time.sleep(rng.random() * longest)
            process.send_signal(signal.SIGKILL)
        said = process.communicate()[0]
        if said:  # it was quicker
            assert said == "done ()\n"
            longest = min(longest, time.monotonic() - began)
        killed += not said
        assert _files(dump) == own
        # Each object is that of this run or of the one before, and no reader sees anything else.
        found = {name: content for name, content in held().items() if not _is_hidden(name)}
        assert all(content in (own.get(name), before.get(name)) for name, content in found.items())
        assert found.keys() >= before.keys()
        remote.forget()
        if found:
            for tensor in DumpDir.open(url, strict=True).tensors():
                data = tensor.load()
                assert (data == data[0]).all()
        sent = upload_tree(dump, url)
        assert not sent.failed
        before = held()
        assert before == own
        assert upload_tree(dump, url).files == 0
    assert killed or option("kills") < 3


def _write(dump: Path, number: int) -> None:
    """A pack and files beside it, under names and in sizes that never change."""
    operators = [
        (f"Net/Exp-op{place}", {("output", 0): np.full(size, number, np.float32)}) for place, size in enumerate(_SIZES)
    ]
    shutil.rmtree(dump, ignore_errors=True)
    write_dump(dump, operators)
    list(pack_tree(dump))
    write_dump(dump, operators, iteration=1)


def _files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def _is_hidden(name: str) -> bool:
    last = name.rpartition("/")[2]
    return last.startswith(".") and last.endswith(".tmp")
