"""What is sent to a store, and when a file counts as being there: by its content."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.cli.main import main
from msdump.storage import remote
from msdump.storage.remote import find_object, has_content, put_file
from msdump.storage.uploading import Uploader, upload_tree
from tests.storage.small_s3 import SmallS3

JOB = "s3://dump/job"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallS3]:
    pytest.importorskip("obstore")
    with SmallS3() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        remote.forget()
        monkeypatch.setattr(remote, "_PART_BYTES", 5 << 20)  # the least that S3 takes
        yield server
        remote.forget()


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    folder = tmp_path / "dump" / "rank_0"
    folder.mkdir(parents=True)
    (folder / "a.npy").write_bytes(b"a" * 1000)
    (folder / "empty.csv").write_bytes(b"")
    (folder / "5.tar").write_bytes(bytes(range(256)) * (6 << 12))
    return tmp_path / "dump"


def _held(server: SmallS3) -> dict[str, bytes]:
    return {name: held.content for name, held in server.objects.items()}


def _on_disk(dump: Path) -> dict[str, bytes]:
    return {f"job/{path.relative_to(dump)}": path.read_bytes() for path in dump.rglob("*") if path.is_file()}


# Tags that are MD5 sums, as S3 has them; tags of another kind, as with keys of the user; stores without metadata.
@pytest.mark.parametrize("keeps_metadata", [True, False])
@pytest.mark.parametrize("tag", [None, "0" * 32, "another"])
def test_a_rerun_of_equal_sizes_is_sent(
    s3: SmallS3, dump: Path, tag: str | None, keeps_metadata: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    s3.keeps_metadata = keeps_metadata
    if tag is not None:
        s3.tag_of = lambda content: tag
    assert main(["upload", str(dump), JOB]) == 0
    assert _held(s3) == _on_disk(dump)
    assert main(["upload", str(dump), JOB]) == 0
    assert f"{JOB}: 0 files sent, 0 B; 3 were there." in capsys.readouterr().out
    for path in dump.rglob("*.*"):
        path.write_bytes(path.read_bytes()[::-1].replace(b"a", b"b"))
    assert upload_tree(dump, JOB).files == 2
    assert _held(s3) == _on_disk(dump)
    assert not s3.uploads


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_equal_is_what_has_the_same_bytes(mine: bytes, theirs: bytes) -> None:
    """A store that keeps nothing but bytes."""
    pytest.importorskip("fsspec")
    url = f"memory://equal{os.getpid()}/x"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x")
        path.write_bytes(theirs)
        put_file(url, str(path))
        found = find_object(url)
        assert found is not None
        path.write_bytes(mine)
        assert has_content(found, str(path)) == (mine == theirs)


def test_an_object_of_another_client_is_compared_by_its_bytes(s3: SmallS3, dump: Path) -> None:
    for name, content in _on_disk(dump).items():
        s3.hold(name, content, "of-parts-2")
    assert upload_tree(dump, JOB).files == 0
    s3.hold("job/rank_0/5.tar", b"\0" * (dump / "rank_0/5.tar").stat().st_size, "of-parts-2")
    assert upload_tree(dump, JOB).files == 1
    assert _held(s3) == _on_disk(dump)


def test_a_file_that_changes_while_it_is_sent_is_not_there(
    s3: SmallS3, dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = dump / "rank_0/a.npy"
    put = remote._Obstore.put

    def put_late(store: remote._Obstore, name: str, file: str, checksum: str) -> None:
        if file == str(path):
            path.write_bytes(b"b" * 1001)
        put(store, name, file, checksum)

    monkeypatch.setattr(remote._Obstore, "put", put_late)
    ((failed, reason),) = upload_tree(dump, JOB).failed
    assert failed == str(path) and "changed while it was sent" in reason


def test_what_is_no_plain_file_is_named(s3: SmallS3, dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Left out, and the status says so: what the store lacks is not lost in silence."""
    (dump / "rank_0/link.npy").symlink_to("a.npy")
    (dump / "folder").symlink_to("rank_0")
    os.mkfifo(dump / "rank_0/pipe")
    (dump / "rank_0/6.tar.part").write_bytes(b"x")
    (dump / "rank_0/.x.1.tmp").write_bytes(b"x")
    assert main(["upload", str(dump), JOB]) == 4
    told = capsys.readouterr().err
    for name in ("link.npy: expected a plain file, got a symbolic link", "folder: expected", "pipe: expected a plain",
                 "6.tar.part: a pack that is still written"):  # fmt: skip
        assert name in told
    assert sorted(s3.objects) == ["job/rank_0/5.tar", "job/rank_0/a.npy", "job/rank_0/empty.csv"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every folder")
def test_a_folder_that_cannot_be_read_is_named(s3: SmallS3, dump: Path) -> None:
    (dump / "closed").mkdir(mode=0)
    ((path, _),) = upload_tree(dump, JOB).failed
    assert path.endswith("closed")


def test_an_uploader_whose_thread_ended_still_sends(s3: SmallS3, dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pack that could not be sent is tried again at the end, and what fails then is reported."""
    uploader = Uploader(str(dump), JOB, [str(dump / "rank_0")])
    put, refused = remote._Obstore.put, [OSError(0, "busy")]

    def put_later(store: remote._Obstore, name: str, file: str, checksum: str) -> None:
        if refused:
            raise refused.pop()
        put(store, name, file, checksum)

    monkeypatch.setattr(remote._Obstore, "put", put_later)
    uploader.send(str(dump / "rank_0/5.tar"))
    sent = uploader.close()
    assert (sent.files, sent.failed) == (3, ())
    assert uploader.close() == sent
    assert _held(s3) == _on_disk(dump)


def test_a_file_that_has_changed_is_sent_again(s3: SmallS3, dump: Path) -> None:
    """And a folder that was added later is sent at the end, alone."""
    uploader = Uploader(str(dump), JOB, [])
    path = dump / "rank_0" / "a.npy"
    for content in (b"first", b"second"):
        path.write_bytes(content)
        uploader.send(str(path))
        while s3.objects.get("job/rank_0/a.npy") is None or s3.objects["job/rank_0/a.npy"].content != content:
            assert uploader._thread.is_alive()
    (dump / "rank_1").mkdir()
    (dump / "rank_1" / "b.json").write_bytes(b"{}")
    uploader.add(str(dump / "rank_1"))
    assert not uploader.close().failed
    assert _held(s3) == {"job/rank_0/a.npy": b"second", "job/rank_1/b.json": b"{}"}
